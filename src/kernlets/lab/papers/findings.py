"""Our numbers beside the published ones, each with a verdict.

A verdict is "reproduced" if our mean is within the metric's tolerance of the published
number, or within two standard errors of the difference of the two means: 2 s √(1/n +
1/r) with the standard deviation s over our n seeds and the r runs of the paper.
Otherwise it is "better" or "worse". It is "not comparable" where the paper's data,
machine or text do not allow a comparison, for a reason that the exhibit states, and
where the problem is smaller than the paper's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

from ..published import Published, as_place
from .points import Missing, Points
from .records import Record
from .spec import SCALES, Derived, Exhibit, Metric

COLUMNS = 12  # that a table may have
VERDICTS = ("reproduced", "better", "worse", "not comparable")


@dataclass(frozen=True)
class Row:
    """One published number and ours; either may be missing."""

    series: str
    x: Any
    metric: Metric
    published: Published | None
    values: tuple[float, ...]
    verdict: str = ""
    why: str = ""

    @property
    def mean(self) -> float | None:
        return fmean(self.values) if self.values else None

    @property
    def printed(self) -> float | None:
        """The published number itself."""
        return None if self.published is None else self.published.value

    @property
    def spread(self) -> float | None:
        """Standard deviation over seeds; None for a single one."""
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def difference(self) -> float | None:
        mean, printed = self.mean, self.printed
        return None if mean is None or printed is None else mean - printed


@dataclass(frozen=True)
class Judged:
    """A claim of the paper and whether it holds here; None if it was not measured."""

    text: str
    holds: bool | None


@dataclass(frozen=True)
class Findings:
    """An exhibit with everything that was measured for it at one scale."""

    exhibit: Exhibit
    scale: str
    records: tuple[Record, ...]
    points: Points
    rows: tuple[Row, ...]  # one per curve and place
    derived: tuple[Row, ...]  # numbers computed from those
    claims: tuple[Judged, ...]

    @property
    def compared(self) -> list[Row]:
        """Rows for which there is a published number."""
        return [row for row in (*self.rows, *self.derived) if row.published is not None]

    @property
    def places(self) -> list[Any]:
        """All places on the curves, in order; None stands for everywhere."""
        found = dict.fromkeys(row.x for row in self.rows if row.values)
        if all(isinstance(x, (int, float)) for x in found if x is not None):
            return sorted(found, key=lambda x: (x is None, x or 0))
        return list(found)

    @property
    def few_places(self) -> list[Any]:
        """Places for a table: all, or some evenly spread, the last among them."""
        places = self.places
        step = -(-len(places) // COLUMNS)
        return places[::-1][::step][::-1] if step > 1 else places

    def curve(self, series: str) -> dict[Any, Row]:
        """What was measured on one curve."""
        return {r.x: r for r in self.rows if r.series == series and r.values}

    @property
    def verdicts(self) -> Counter[str]:
        """How often each verdict was given, claims included."""
        found = Counter(row.verdict for row in self.compared if row.verdict)
        holding = [claim.holds for claim in self.claims]
        found["reproduced"] += holding.count(True)
        found["worse"] += holding.count(False)
        return +found

    @property
    def skipped(self) -> list[str]:
        """The reasons why runs were not made."""
        reasons = (r.skipped or r.error for r in self.records if not r.done)
        return sorted(set(reasons))

    @property
    def seconds(self) -> float:
        return sum(record.seconds for record in self.records)

    @property
    def peak_bytes(self) -> int:
        return max((record.peak_bytes or 0 for record in self.records), default=0)

    @property
    def planned(self) -> int:
        """Runs that the study makes at this scale."""
        study = self.exhibit.study
        return sum(study.repeats(c, self.scale) for c in study.cases(self.scale))


def findings(exhibit: Exhibit, records: Iterable[Record], scale: str) -> Findings:
    """Compare an exhibit with the records of its study at one scale."""
    own = tuple(
        record
        for record in records
        if record.cell.study == exhibit.study.name and record.cell.scale == scale
    )
    own = tuple(sorted(own, key=_order(exhibit, scale)))
    points = points_of(exhibit, own)
    smaller = "" if exhibit.study.comparable(scale) else f"problem of scale {scale}"
    rows = tuple(_rows(exhibit, points, smaller))
    derived = tuple(_derived(exhibit, points, smaller))
    claims = tuple(
        Judged(claim.text, None if smaller else _holds(claim, points))
        for claim in exhibit.claims
    )
    return Findings(exhibit, scale, own, points, rows, derived, claims)


def largest_scale(records: Iterable[Record]) -> str | None:
    """The largest scale at which there are runs."""
    present = {record.cell.scale for record in records}
    return next((scale for scale in reversed(SCALES) if scale in present), None)


def _order(exhibit: Exhibit, scale: str) -> Any:
    """By the grid, then by seed: independent of the order in which runs ended."""
    cases = exhibit.study.cases(scale)
    last = len(cases)

    def place(record: Record) -> tuple[int, int]:
        case = record.cell.case
        return cases.index(case) if case in cases else last, record.cell.seed

    return place


def points_of(exhibit: Exhibit, records: Iterable[Record]) -> Points:
    """The values that the exhibit shows."""
    found: dict[tuple[str, Any], dict[int, Any]] = {}
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


def _rows(exhibit: Exhibit, points: Points, smaller: str) -> Iterator[Row]:
    if exhibit.axes.kind == "images":
        return
    unmeasured = [place for place in exhibit.published if place not in set(points)]
    for series, x in (*points, *unmeasured):
        published = exhibit.published.get((series, x))
        values = tuple(points.at(series, x).values()) if (series, x) in points else ()
        why = exhibit.not_comparable or _reason(exhibit, series, x) or smaller
        row = Row(series, x, exhibit.metric, published, values)
        yield _judged(row, why, exhibit.runs)


def _reason(exhibit: Exhibit, series: str, x: Any) -> str:
    return exhibit.incomparable.get(series) or exhibit.incomparable.get(x, "")


def _derived(exhibit: Exhibit, points: Points, smaller: str) -> Iterator[Row]:
    for each in exhibit.derived:
        values = _computed(each, points)
        row = Row(each.label, None, each.metric, each.published, values)
        yield _judged(row, each.not_comparable or smaller, exhibit.runs)


def _computed(derived: Derived, points: Points) -> tuple[float, ...]:
    try:
        return tuple(derived.compute(points))
    except Missing:
        return ()


def _judged(row: Row, why: str, runs: int) -> Row:
    if row.difference is None or row.printed is None:
        return row
    if why:
        verdict = "not comparable"
    else:
        verdict = _verdict(row, row.difference, row.printed, runs)
    return replace(row, verdict=verdict, why=why)


def _verdict(row: Row, difference: float, published: float, runs: int) -> str:
    noise = 2 * (row.spread or 0.0) * (1 / len(row.values) + 1 / runs) ** 0.5
    if abs(difference) <= max(row.metric.allowed(published), noise):
        return "reproduced"
    ahead = difference > 0 if row.metric.better == "higher" else difference < 0
    return "better" if ahead else "worse"


def _holds(claim: Any, points: Points) -> bool | None:
    try:
        return bool(claim.holds(points))
    except Missing:
        return None
