"""Random choices, all from the number of the case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

Choice = TypeVar("Choice")


class Draw:
    """A generator of choices; the same number gives the same choices everywhere."""

    def __init__(self, number: int) -> None:
        self.rng = np.random.default_rng([number, 20250916])

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return bool(self.rng.random() < probability)

    def pick(self, choices: Sequence[Choice]) -> Choice:
        """One of some values, all alike in probability."""
        return choices[int(self.rng.integers(len(choices)))]

    def weighted(self, weights: Mapping[Choice, float]) -> Choice:
        """One of the keys, with probabilities in proportion to the values."""
        shares = np.array(list(weights.values()), dtype=float)
        place = np.searchsorted(shares.cumsum(), self.rng.random() * shares.sum())
        return list(weights)[int(place)]

    def count(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def power(self, low: float, high: float) -> float:
        """A number between 10**low and 10**high, even on a logarithmic scale."""
        return float(10.0 ** self.rng.uniform(low, high))

    def some(self, choices: Sequence[Choice], share: float) -> list[Choice]:
        """The choices that are taken, each with the same probability."""
        return [choice for choice in choices if self.chance(share)]

    def maybe(self, value: Choice, probability: float) -> Choice | None:
        """The value, or None."""
        return value if self.chance(probability) else None


def text_of(value: Any, limit: int = 160) -> str:
    """One line that describes a value."""
    line = " ".join(repr(value).split())
    return line if len(line) <= limit else line[:limit] + "…"
