"""The numbers that the papers print: the table in `published.csv`.

A number is known by paper, place (table or figure), row and column (`at`). `source`
says where it stands: in a ``table``, in the ``text``, in a ``file`` from which the
authors draw a figure, or only in the ``figure``, that is read off a curve. What is
printed may be off by half a unit of its last digit, what was read from a figure by a
whole one. Places that end in
``-seconds`` are the times beside a table; ``table3-copied`` are rows that a paper took
from another one.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

SOURCES = ("table", "text", "file", "figure")


@dataclass(frozen=True)
class Published:
    """One printed number and where it stands."""

    paper: str
    place: str
    row: str
    at: Any  # number or name of a column; None if there is only one
    value: float
    source: str = "table"
    note: str = ""
    allowance: float = 0.0  # by which rounding or reading may be off

    def __str__(self) -> str:
        return f"{self.value:g}"

    def over(self, other: Published) -> Published:
        """The ratio to another number of the paper, in place of this one."""
        value = self.value / other.value
        parts = (each.allowance / abs(each.value) for each in (self, other))
        note = f"{self} / {other}"
        return replace(self, value=value, allowance=abs(value) * sum(parts), note=note)

    @property
    def identity(self) -> tuple[str, str, str, Any]:
        """What makes it one number, wherever it is shown."""
        return self.paper, self.place, self.row, self.at


def number(paper: str, place: str, row: str, at: Any = None) -> Published:
    """One number, e.g. ``number("lkdl", "table3", "FDDL")``."""
    try:
        return _all()[paper, place, row, at]
    except KeyError:
        where = f"{paper}/{place}, row {row!r}, column {at!r}"
        raise KeyError(f"published.csv has no number at {where}") from None


def numbers(
    paper: str, place: str, series: Mapping[str, Sequence[str]] | None = None
) -> dict[tuple[str, Any], Published]:
    """The numbers of a table or figure, by curve and column.

    `series` names our curves that stand beside a row of the paper; a row that it does
    not mention has one of its own name.
    """
    series = series or {}
    return {
        (name, each.at): each
        for each in _all().values()
        if (each.paper, each.place) == (paper, place)
        for name in series.get(each.row, (each.row,))
    }


def as_place(text: str) -> Any:
    """A column or place on a curve: a number where the text looks like one."""
    try:
        value = float(text)
    except ValueError:
        return text or None
    return int(value) if value.is_integer() else value


@cache
def _all() -> dict[tuple[str, str, str, Any], Published]:
    with files(__package__).joinpath("published.csv").open(encoding="utf-8") as file:
        found = [_read(line) for line in csv.DictReader(file)]
    return {each.identity: each for each in found}


def _read(line: dict[str, str]) -> Published:
    unit = 10.0 ** -len(line["value"].partition(".")[2])
    return Published(
        **{**line, "at": as_place(line["at"]), "value": float(line["value"])},
        allowance=unit if line["source"] == "figure" else unit / 2,
    )
