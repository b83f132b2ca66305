"""The runs of the papers' experiments: one line of JSON each, one file per paper."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.harness.records import JsonLines

from .spec import Case, Values

Key = tuple[str, str, str, int]


@dataclass(frozen=True)
class Cell:
    """One run: a case of a study with one seed at one scale."""

    study: str
    scale: str
    case: Case
    seed: int

    @property
    def key(self) -> Key:
        return self.study, self.scale, json.dumps(self.case, sort_keys=True), self.seed

    @property
    def title(self) -> str:
        """For progress and messages."""
        values = " ".join(str(value) for value in self.case.values())
        return f"{self.study} {values} seed {self.seed}".replace("  ", " ")


@dataclass(frozen=True)
class Record:
    """The result of one run: values, or the reason why there are none."""

    cell: Cell
    values: Values = field(default_factory=dict)
    seconds: float = 0.0
    peak_bytes: int | None = None
    session: str = ""
    skipped: str = ""
    error: str = ""
    warned: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        return not (self.skipped or self.error)


class Records(JsonLines):
    """The runs in a folder, one file per paper."""

    def add(self, record: Record) -> None:
        """Append one run to the file of its paper."""
        paper = record.cell.study.partition(".")[0]
        line = {**asdict(record.cell), **asdict(record)}
        del line["cell"]
        kept = {name: v for name, v in line.items() if v not in ("", None, ())}
        self.append(paper, kept)

    def read(self) -> list[Record]:
        """The last record of each run; a failure does not replace a success."""
        found: dict[Key, Record] = {}
        for line in self.lines():
            if "study" not in line:
                continue
            record = _record(line)
            known = found.get(record.cell.key)
            if known is None or record.done or not known.done:
                found[record.cell.key] = record
        return list(found.values())


def _record(line: dict[str, Any]) -> Record:
    names = Cell.__dataclass_fields__
    cell = Cell(**{name: line[name] for name in names})
    rest = set(Record.__dataclass_fields__) - {"cell"}
    return Record(cell, **{name: line[name] for name in rest if name in line})
