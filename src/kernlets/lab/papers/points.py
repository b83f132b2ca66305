"""Measured values by curve, place and seed, which claims and derived rows look up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any


class Missing(Exception):
    """A number has not been measured."""


class Points:
    """Values by curve, place and seed."""

    def __init__(self, values: Mapping[tuple[str, Any], Mapping[int, Any]]) -> None:
        self._values = values

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self._values)

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

    def pairs(
        self, first: tuple[str, Any], second: tuple[str, Any]
    ) -> list[tuple[float, float]]:
        """Values of two points, seed by seed."""
        left, right = self.at(*first), self.at(*second)
        common = [(left[seed], right[seed]) for seed in left if seed in right]
        if not common:
            raise Missing(f"{first} and {second} with the same seed")
        return common
