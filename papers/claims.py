"""What claims are about: differences and ratios of two points, seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .points import Place, Points

Parts = dict[str, list[float]]
Rule = Callable[[Points], Parts]


def value(*places: Place) -> Rule:
    """The points themselves."""

    def parts(points: Points) -> Parts:
        return {_name(each): list(points.at(*each).values()) for each in places}

    return parts


def lead(first: Place, *others: Place) -> Rule:
    """How far a point is above others."""

    def parts(points: Points) -> Parts:
        return _each(points, first, others, lambda a, b: a - b, "−")

    return parts


def below(first: Place, *others: Place) -> Rule:
    """How far a point is below others."""

    def parts(points: Points) -> Parts:
        return _each(points, first, others, lambda a, b: b - a, "below")

    return parts


def ratio(first: Place, *others: Place) -> Rule:
    """How many times as large as others a point is."""

    def parts(points: Points) -> Parts:
        return _each(points, first, others, lambda a, b: a / b, "/")

    return parts


def together(*rules: Rule) -> Rule:
    """The parts of several rules."""

    def parts(points: Points) -> Parts:
        found: Parts = {}
        for rule in rules:
            found |= rule(points)
        return found

    return parts


def rises(series: str, places: Sequence[Any]) -> Rule:
    """How far a curve rises from each place to the next."""
    steps = zip(places[1:], places, strict=False)
    return together(*(lead((series, b), (series, a)) for b, a in steps))


def highest_at(series: str, x: Any) -> Rule:
    """How far a place of a curve is above every other place of it."""

    def parts(points: Points) -> Parts:
        places = [other for other in points.places(series) if other != x]
        return lead((series, x), *((series, other) for other in places))(points)

    return parts


def _each(
    points: Points,
    first: Place,
    others: Sequence[Place],
    compare: Callable[[float, float], float],
    sign: str,
) -> Parts:
    found: Parts = {}
    for other in others:
        pairs = points.pairs(first, other)
        found[f"{_name(first)} {sign} {_name(other)}"] = [compare(*p) for p in pairs]
    return found


def _name(place: Place) -> str:
    series, x = place
    return series if x is None else f"{series} at {x}"
