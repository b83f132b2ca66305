"""Centre and scale of features; those of outliers do not reach the robust ones."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from ..backend.arrays import as_like, eps, namespace, to_numpy
from ..backend.scale import peaks, power_of_two
from ..core import Array

MIDDLE = 0.9  # share of the values between the quantiles that make the robust scale


def moments(X: Array) -> tuple[Array, Array]:  # (p,), (p,)
    """Mean and deviation; features constant up to rounding are only shifted."""
    xp, unit = namespace(X), _units(X)
    deviation, mean = xp.std(X / unit, axis=0), xp.mean(X / unit, axis=0)
    return mean * unit, _usable(deviation, mean, unit)


def robust_moments(X: Array) -> tuple[Array, Array]:  # (p,), (p,)
    """Median, and the range of the middle values, which is 1 for N(0, 1).

    The deviation takes its place where most values are the same.
    """
    xp, unit = namespace(X), _units(X)
    scaled = X / unit
    tail = (1 - MIDDLE) / 2
    marks = np.quantile(to_numpy(scaled), [tail, 0.5, 1 - tail], axis=0)
    width = 2 * float(norm.ppf(1 - tail))
    low, centre, high = (as_like(mark, X) for mark in marks)
    spread, deviation = (high - low) / width, xp.std(scaled, axis=0)
    varies = spread > 4 * eps(X) * xp.abs(centre)
    return centre * unit, _usable(xp.where(varies, spread, deviation), centre, unit)


def _units(X: Array) -> Array:  # (p,)
    """Powers of two near the largest entries, so that no square overflows."""
    return power_of_two(peaks(X, axis=0))[0]


def _usable(spread: Array, centre: Array, unit: Array) -> Array:
    xp = namespace(spread)
    varies = spread > 4 * eps(spread) * xp.abs(centre)
    varies = varies & (spread * unit > 0)  # it may underflow
    return xp.where(varies, spread, 1.0) * unit
