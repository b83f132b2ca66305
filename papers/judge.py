"""How verdicts are reached: from the spread over seeds, by Student's t, and no more.

A *number* is compared by the interval of the difference between our mean and the
published one, s √(1/n + 1/r) wide with the standard deviation s over our n seeds and
the r runs that the paper averages, plus the rounding or reading of the printed number.
A *claim* is a mean that the paper puts on one side of a bound: it holds if the interval
is on that side, fails if it is on the other, and is undecided if it has both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean, stdev
from typing import NamedTuple

from scipy.stats import t

LEVEL = 0.95
FEWEST = 3  # seeds that can decide: two may agree by chance
REPRODUCED, BETTER, WORSE, MISMATCH = "reproduced", "better", "worse", "mismatch"
HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"


class Interval(NamedTuple):
    """Where a mean or a difference is, at a level of confidence."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    def beyond(self, low: float, high: float) -> float:
        """How far all of it is outside of two bounds; negative if some is inside."""
        return max(low - self.high, self.low - high)

    def inside(self, low: float, high: float) -> float:
        """How far all of it is inside of two bounds; negative if some is outside."""
        return min(self.low - low, high - self.high)


def interval(
    values: Sequence[float], level: float = LEVEL, runs: float = inf
) -> Interval | None:
    """Interval of the mean; with `runs`, of its difference from a mean of so many.

    None for fewer than `FEWEST` values, whose spread is as good as unknown.
    """
    n = len(values)
    if n < FEWEST:
        return None
    error = stdev(values) * (1 / n + 1 / runs) ** 0.5
    half = float(t.ppf((1 + level) / 2, n - 1)) * error
    return Interval(fmean(values) - half, fmean(values) + half)


@dataclass(frozen=True)
class Terms:
    """What a number is judged by, besides our values.

    `better` is "higher" or "lower" where one is a success, as for the method that a
    paper proposes; it is empty for its rivals and for numbers without a good side.
    `span` is how far apart the published numbers beside it are: where the interval is
    wider to either side, even the paper's own effect would not be seen. `exact` says
    that the method draws no random numbers, so that one run is enough.
    """

    allowance: float = 0.0  # rounding or reading of the printed number
    runs: int = 1  # that the paper averages
    better: str = ""
    span: float | None = None
    exact: bool = False


class NumberVerdict(NamedTuple):
    """A verdict on a number, and the interval of the difference."""

    name: str
    interval: Interval | None


def judge_number(
    published: float, values: Sequence[float], terms: Terms
) -> NumberVerdict:
    """Compare our values with a published number."""
    around = _difference(published, values, terms)
    if around is None:
        return NumberVerdict(UNDECIDED, None)
    if around.beyond(-terms.allowance, terms.allowance) <= 0:
        blind = terms.span is not None and around.half_width > terms.span
        return NumberVerdict(UNDECIDED if blind else REPRODUCED, around)
    if not terms.better:
        return NumberVerdict(MISMATCH, around)
    ahead = (around.low > 0) == (terms.better == "higher")
    return NumberVerdict(BETTER if ahead else WORSE, around)


def _difference(
    published: float, values: Sequence[float], terms: Terms
) -> Interval | None:
    if terms.exact:
        return Interval(*[fmean(values) - published] * 2)
    return interval([value - published for value in values], runs=terms.runs)


class ClaimVerdict(NamedTuple):
    """A verdict on a claim, with the part of it that decides."""

    name: str
    part: str
    mean: float
    interval: Interval | None
    seeds: int


def judge_claim(
    parts: Mapping[str, Sequence[float]], low: float = -inf, high: float = inf
) -> ClaimVerdict:
    """Whether the mean of every part is between the bounds.

    All parts must hold, so that each may be tested at the full level; since one that
    fails is enough, for that their number is corrected for (Bonferroni), as it is in
    the interval that is shown, unless the claim holds.
    """
    found = {name: interval(values) for name, values in parts.items()}
    wide = {name: _corrected(values, len(parts)) for name, values in parts.items()}
    outside = {name: _or_not(at).beyond(low, high) for name, at in wide.items()}
    inside = {name: _or_not(at).inside(low, high) for name, at in found.items()}
    worst = max(outside, key=outside.__getitem__)
    if outside[worst] > 0:
        return _verdict(FAILS, worst, parts, wide)
    least = min(inside, key=inside.__getitem__)
    if inside[least] > 0:
        return _verdict(HOLDS, least, parts, found)
    return _verdict(UNDECIDED, least, parts, wide)


def _corrected(values: Sequence[float], count: int) -> Interval | None:
    return interval(values, 1 - (1 - LEVEL) / count)


def _or_not(found: Interval | None) -> Interval:
    """The mean of too few values may be anywhere."""
    return Interval(-inf, inf) if found is None else found


def _verdict(
    name: str,
    part: str,
    parts: Mapping[str, Sequence[float]],
    intervals: Mapping[str, Interval | None],
) -> ClaimVerdict:
    values = parts[part]
    return ClaimVerdict(name, part, fmean(values), intervals[part], len(values))
