"""What runs leave behind: one line of JSON each, in one file per paper.

A line is appended in a single write, so that several processes may share a folder and
a run that is stopped loses at most the line it was writing. Lines are of two kinds:
sessions (machine, versions, threads, device) and runs, which name their session.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

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
    """What one run gave: values, or the reason why there are none."""

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


class Records:
    """The files of a folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def append(self, paper: str, line: dict[str, Any]) -> None:
        """Add one line to the file of a paper."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{paper}.jsonl"
        text = json.dumps(line, separators=(",", ":")).encode()
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            # begins with a line break too: what stands before it may be torn
            os.write(handle, b"\n" + text + b"\n")
        finally:
            os.close(handle)

    def add(self, record: Record) -> None:
        paper = record.cell.study.partition(".")[0]
        line = {**asdict(record.cell), **asdict(record)}
        del line["cell"]
        kept = {name: v for name, v in line.items() if v not in ("", None, ())}
        self.append(paper, kept)

    def read(self) -> list[Record]:
        """The last record of each run; one that failed does not hide one that did."""
        found: dict[Key, Record] = {}
        for line in self._lines():
            if "study" not in line:
                continue
            record = _record(line)
            known = found.get(record.cell.key)
            if known is None or record.done or not known.done:
                found[record.cell.key] = record
        return list(found.values())

    def sessions(self) -> dict[str, dict[str, Any]]:
        """What the runs were made with, by the name of the session."""
        opened = (line for line in self._lines() if line.get("kind") == "session")
        return {line["name"]: line for line in opened}

    def _lines(self) -> Iterator[dict[str, Any]]:
        for path in sorted(self.folder.glob("*.jsonl")):
            yield from _parsed(path.read_text("utf-8").splitlines())


def _parsed(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            parsed = json.loads(line) if line else None
        except json.JSONDecodeError:
            continue  # a run that was stopped while it wrote
        if isinstance(parsed, dict):
            yield parsed


def _record(line: dict[str, Any]) -> Record:
    names = Cell.__dataclass_fields__
    cell = Cell(**{name: line[name] for name in names})
    rest = set(Record.__dataclass_fields__) - {"cell"}
    return Record(cell, **{name: line[name] for name in rest if name in line})
