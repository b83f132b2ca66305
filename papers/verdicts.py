"""The numbers and claims of an exhibit, each with its verdict and how it came about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isinf
from statistics import fmean, stdev
from typing import Any

from . import judge
from .judge import ClaimVerdict, Interval, Terms
from .points import Missing, Points
from .published import Published
from .spec import Claim, Derived, Exhibit, Metric, entry

CALIBRATED, NOT_COMPARABLE = "calibrated", "not comparable"
NOT_MEASURED = "not measured"
VERDICTS = (
    judge.REPRODUCED,
    judge.BETTER,
    judge.WORSE,
    judge.MISMATCH,
    judge.HOLDS,
    judge.FAILS,
    judge.UNDECIDED,
    CALIBRATED,
    NOT_COMPARABLE,
    NOT_MEASURED,
)
HOW = {"figure": "read from the figure", "file": "in the authors' file of the figure"}
MISSES = (judge.WORSE, judge.MISMATCH, judge.FAILS)


@dataclass(frozen=True)
class Context:
    """What all verdicts of an exhibit depend on."""

    exhibit: Exhibit
    points: Points
    beside: Mapping[str, Points]  # of other exhibits that are looked up, by name
    smaller: str  # why no number is comparable at this scale, if none is
    no_timing: str  # why seconds are not judged, if they are not
    setting: str  # what the runs were made with
    exact: frozenset[str]  # curves that need no random numbers


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
    interval: Interval | None = None  # of the difference
    rule: str = ""
    counted: bool = True  # False where the number is counted elsewhere

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
    """A claim of the paper and what our runs say about it."""

    claim: Claim
    verdict: str
    why: str = ""
    found: ClaimVerdict | None = None
    rule: str = ""

    @property
    def counted(self) -> bool:
        return not self.claim.repeats


def judged_rows(context: Context) -> Iterator[Row]:
    """A row for each curve and place, and for each published number without runs."""
    exhibit, points = context.exhibit, context.points
    if exhibit.axes.kind == "images":
        return
    unmeasured = [place for place in exhibit.published if place not in points]
    for series, x in (*points, *unmeasured):
        published = exhibit.published.get((series, x))
        values = tuple(points.at(series, x).values()) if (series, x) in points else ()
        row = Row(series, x, exhibit.metric, published, values)
        yield _judged(row, context, span(exhibit, x))


def judged_derived(context: Context) -> Iterator[Row]:
    """A row for each number that is computed from the curves."""
    for each in context.exhibit.derived:
        values = _computed(each, context)
        row = Row(each.label, None, each.metric, each.published, values)
        yield _judged(row, context, each.span)


def span(exhibit: Exhibit, x: Any) -> float | None:
    """How far apart the published numbers are, at this place or else at all."""
    if exhibit.effect is not None:
        return exhibit.effect
    here = [each.value for (_, at), each in exhibit.published.items() if at == x]
    everywhere = [each.value for each in exhibit.published.values()]
    for values in (here, everywhere):
        if len(set(values)) > 1:
            return max(values) - min(values)
    return None


def _computed(derived: Derived, context: Context) -> tuple[float, ...]:
    try:
        return tuple(derived.compute(*_looked_up(derived, context)))
    except Missing:
        return ()


def _looked_up(wanted: Derived | Claim, context: Context) -> tuple[Points, ...]:
    if wanted.beside is None:
        return (context.points,)
    return context.points, context.beside[wanted.beside.name]


def _judged(row: Row, context: Context, apart: float | None) -> Row:
    """The row with its verdict, if there is a number to compare with."""
    published = row.published
    if published is None:
        return row
    elsewhere = entry(context.exhibit.repeats, row.series, row.x)
    row = replace(row, counted=elsewhere is None)
    if not row.values:
        return replace(row, verdict=NOT_MEASURED, why=elsewhere or "")
    return _compared(row, published, _terms(row, published, context, apart), context)


def _terms(
    row: Row, published: Published, context: Context, apart: float | None
) -> Terms:
    exhibit = context.exhibit
    return Terms(
        published.allowance,
        exhibit.runs,
        row.metric.better if row.series in exhibit.proposed else "",
        apart,
        row.series in context.exact,
    )


def _compared(row: Row, published: Published, terms: Terms, context: Context) -> Row:
    found = judge.judge_number(published.value, row.values, terms)
    name, why = _set_aside(row, context, found.name) or (found.name, "")
    if name == judge.UNDECIDED and found.interval:
        why = "the interval is wider than the effect that the paper reports"
    elsewhere = entry(context.exhibit.repeats, row.series, row.x)
    return replace(
        row,
        verdict=name,
        why="; ".join(filter(None, (why, elsewhere))),
        interval=found.interval,
        rule=_rule(published, terms, context.setting if row.metric.timing else ""),
    )


def _set_aside(row: Row, context: Context, verdict: str) -> tuple[str, str] | None:
    """The verdict of a number that cannot confirm or refute anything, and why.

    One that a parameter was fitted to confirms nothing, but a miss after the fit is a
    miss: it refutes the reading.
    """
    exhibit = context.exhibit
    reason = entry(exhibit.incomparable, row.series, row.x) or context.smaller
    if not reason and row.metric.timing:
        reason = context.no_timing
    if reason:
        return NOT_COMPARABLE, reason
    fitted = entry(exhibit.calibrated, row.series, row.x)
    if fitted and verdict in MISSES:
        return verdict, f"missed although {fitted}"
    return (CALIBRATED, fitted) if fitted else None


def _rule(published: Published, terms: Terms, setting: str) -> str:
    how = HOW.get(published.source, "printed")
    draws = f"paper: mean of {terms.runs}" if terms.runs > 1 else "paper: one run"
    if terms.exact:
        draws = "no random numbers"
    allowance = f"{how} ± {terms.allowance:.2g}"
    return "; ".join(filter(None, (draws, allowance, setting)))


def judged_claims(context: Context) -> Iterator[Judged]:
    """Each claim of the exhibit with its verdict."""
    for claim in context.exhibit.claims:
        parts = _parts(claim, context)
        if not parts:
            yield Judged(claim, NOT_MEASURED)
            continue
        why = context.smaller or (context.no_timing if claim.timing else "")
        found = judge.judge_claim(parts, claim.at_least, claim.at_most)
        verdict = NOT_COMPARABLE if why else found.name
        yield Judged(claim, verdict, why, found, _claim_rule(claim, parts, context))


def _parts(claim: Claim, context: Context) -> Mapping[str, Sequence[float]]:
    """What the claim is about; nothing if a point of it was not measured."""
    try:
        return claim.parts(*_looked_up(claim, context))
    except Missing:
        return {}


def _claim_rule(claim: Claim, parts: Mapping[str, Any], context: Context) -> str:
    many = f"the least favourable of {len(parts)} parts" if len(parts) > 1 else ""
    setting = context.setting if claim.timing else ""
    return "; ".join(filter(None, ("t interval over seeds", many, setting)))


def bounds(claim: Claim) -> str:
    """What the paper says of the mean: at least, at most, or between two numbers."""
    low, high = (f"{bound:g}" for bound in (claim.at_least, claim.at_most))
    if isinf(claim.at_most):
        return f"≥ {low}"
    return f"≤ {high}" if isinf(claim.at_least) else f"{low} to {high}"
