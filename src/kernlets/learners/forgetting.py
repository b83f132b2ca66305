"""`Forgetting` has the factors by which new samples reduce the weights of earlier ones.

The learners in `online.py` and `rls.py` multiply their sums by these factors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np

from ..schema import Declared, Either, Nothing, Number, Text, Whole

#: schedule -> the remaining share of 1 − start after t horizons
SCHEDULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "constant": np.ones_like,
    "linear": lambda t: np.clip(1 - t, 0, None),
    "quadratic": lambda t: np.clip(1 - t, 0, None) ** 2,
    "cubic": lambda t: np.clip(1 - t, 0, None) ** 3,
    "exponential": lambda t: 0.5**t,
    "hyperbolic": lambda t: 1 / (1 + t),
}


@dataclass(frozen=True)
class Forgetting:
    """A forgetting factor λ for each sample of a stream, which may rise to 1.

    λᵢ = 1 − (1 − start) g(i / horizon) for the sample that follows i others, with
    g(t) = 1 (``"constant"``), max(1 − t, 0) to the power 1, 2, 3 (``"linear"``,
    ``"quadratic"``, ``"cubic"``), 2⁻ᵗ (``"exponential"``) or 1 / (1 + t)
    (``"hyperbolic"``): the schedules of RLS-DLA (Skretting and Engan, 2010).
    A rising λ forgets the first dictionary quickly and lets learning settle later. With
    a constant λ the learner remembers about 1 / (1 − λ) samples.

    Parameters
    ----------
    start : float, default=0.99
        The first factor, above 0 and at most 1.
    schedule : {"constant", "linear", "quadratic", "cubic", "exponential", "hyperbolic"}
        The function g, by which λ rises.
    horizon : int, optional
        Number of samples until λ is 1 (linear, quadratic, cubic), or until half of
        1 − start is left. Every schedule except the constant one needs it.

    Examples
    --------
    >>> from kernlets import Forgetting
    >>> Forgetting(0.9, "linear", horizon=4).factors(0, 6).round(3).tolist()
    [0.9, 0.925, 0.95, 0.975, 1.0, 1.0]
    """

    _declared: ClassVar[Declared] = {
        "start": Number(least=0),
        "schedule": Text(*SCHEDULES),
        "horizon": Either(Nothing(), Whole(1)),
    }

    start: float = 0.99
    schedule: str = "constant"
    horizon: int | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.start, Real) and 0 < self.start <= 1):
            raise ValueError(f"start={self.start!r} must be above 0 and at most 1")
        if self.schedule not in SCHEDULES:
            raise ValueError(
                f"schedule={self.schedule!r} must be one of {', '.join(SCHEDULES)}"
            )
        if self.schedule == "constant":
            return
        if self.horizon is None or not self.horizon > 0:
            raise ValueError(
                f"schedule={self.schedule!r} with horizon={self.horizon!r}: set the "
                "number of samples after which forgetting ends, e.g. the length of the "
                "stream"
            )

    def factors(
        self, seen: int, count: int, weights: np.ndarray | None = None
    ) -> np.ndarray:  # (count,)
        """Return λ of the `count` samples that follow `seen` others.

        The factor of a sample of weight w is λʷ.
        """
        positions: np.ndarray = np.arange(seen, seen + count)
        if weights is not None:
            positions = seen + np.cumsum(weights) - weights
        time = positions / (self.horizon or 1)
        single_factors = 1 - (1 - self.start) * SCHEDULES[self.schedule](time)
        return single_factors if weights is None else single_factors**weights


def total_weights(factors: np.ndarray, weights: np.ndarray) -> np.ndarray:  # (n,)
    """Return the weights of samples in the sums, after their own forgetting λʷ.

    Of w equal samples in a row the last counts 1, the one before λ, and so on:
    (1 − λʷ)/(1 − λ) in all.
    """
    single_factors = factors ** (1 / np.where(weights > 0, weights, 1))
    is_forgetting = single_factors < 1
    geometric_sums = (1 - factors) / np.where(is_forgetting, 1 - single_factors, 1)
    return np.where(is_forgetting, geometric_sums, weights)


def forgetting_of(value: float | Forgetting) -> Forgetting:
    """Turn a number into a constant schedule; return a schedule unchanged."""
    return value if isinstance(value, Forgetting) else Forgetting(value)
