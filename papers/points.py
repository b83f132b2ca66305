"""Measured values by curve, place and seed, which claims and derived rows look up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean
from typing import Any

from .published import as_place
from .records import Record
from .spec import Exhibit

Place = tuple[str, Any]  # a curve and where on it


class Missing(Exception):
    """A number has not been measured."""


class Points:
    """Values by curve, place and seed."""

    def __init__(self, values: Mapping[Place, Mapping[int, Any]]) -> None:
        self._values = values

    def __iter__(self) -> Iterator[Place]:
        return iter(self._values)

    def __contains__(self, place: object) -> bool:
        return place in self._values

    def __bool__(self) -> bool:
        return bool(self._values)

    def at(self, series: str, x: Any = None) -> dict[int, Any]:
        """Values by seed."""
        try:
            return dict(self._values[series, x])
        except KeyError:
            raise Missing(f"{series} at {x}") from None

    def mean(self, series: str, x: Any = None) -> float:
        return fmean(self.at(series, x).values())

    @property
    def series(self) -> list[str]:
        """Names of the curves, in the order of the runs' grid."""
        return list(dict.fromkeys(name for name, _ in self._values))

    def places(self, series: str) -> list[Any]:
        """Where a curve has values; None stands for everywhere."""
        found = [x for name, x in self._values if name == series]
        if not found:
            raise Missing(series)
        return found

    def pairs(self, first: Place, second: Place) -> list[tuple[float, float]]:
        """Values of two points, seed by seed, of the seeds that both have."""
        return self.pairs_with(self, first, second)

    def pairs_with(
        self, other: Points, first: Place, second: Place
    ) -> list[tuple[float, float]]:
        """The same of a point here and one of another exhibit."""
        return [(a, b) for a, b in by_seed(self.at(*first), other.at(*second))]


def by_seed(*columns: Mapping[int, Any]) -> list[tuple[Any, ...]]:
    """Values of several points, seed by seed, of the seeds that all of them have."""
    first, *others = columns
    seeds = [seed for seed in first if all(seed in other for other in others)]
    if not seeds:
        raise Missing("values with the same seed")
    return [tuple(column[seed] for column in columns) for seed in seeds]


def shown_records(
    exhibit: Exhibit, records: Iterable[Record], scale: str
) -> tuple[Record, ...]:
    """The runs of an exhibit at one scale, in the order of its grid, then by seed."""
    cases = exhibit.study.cases(scale)
    own = (
        record
        for record in records
        if record.cell.study == exhibit.study.name and record.cell.scale == scale
    )

    def place(record: Record) -> tuple[int, int]:
        case = record.cell.case
        last = cases.index(case) if case in cases else len(cases)
        return last, record.cell.seed

    return tuple(sorted(own, key=place))


def points_of(exhibit: Exhibit, records: Iterable[Record]) -> Points:
    """The values that the exhibit shows."""
    found: dict[Place, dict[int, Any]] = {}
    for record in records:
        case = record.cell.case
        wanted = all(case.get(key) == v for key, v in exhibit.where.items())
        if not (record.done and wanted and exhibit.value in record.values):
            continue
        series = str(case.get(exhibit.series, exhibit.series))
        value = record.values[exhibit.value]
        for x, y in _spread_out(value, exhibit, case):
            found.setdefault((series, x), {})[record.cell.seed] = y
    return Points(found)


def _spread_out(value: Any, exhibit: Exhibit, case: Any) -> Iterator[tuple[Any, Any]]:
    if exhibit.x is not None or exhibit.axes.kind == "images":
        yield case.get(exhibit.x), value
    elif isinstance(value, dict):
        yield from ((as_place(x), y) for x, y in value.items())
    elif isinstance(value, list):
        yield from enumerate(value, start=1)
    else:
        yield None, value
