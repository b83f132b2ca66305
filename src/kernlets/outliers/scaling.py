"""Centre and scale of features; the robust ones do not depend on outliers."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from ..contracts import Array
from ..numerics.arrays import as_like, eps, namespace, to_numpy
from ..numerics.scaling import peaks, power_of_two

MIDDLE = 0.9  # share of the values between the quantiles that make the robust scale


def moments(X: Array) -> tuple[Array, Array]:  # (p,), (p,)
    """Mean and deviation; features constant up to rounding are only shifted."""
    xp, power = namespace(X), _powers_of_two(X)
    deviation, mean = xp.std(X / power, axis=0), xp.mean(X / power, axis=0)
    return mean * power, _nonzero_scale(deviation, mean, power)


def robust_moments(X: Array) -> tuple[Array, Array]:  # (p,), (p,)
    """Median, and the range of the middle values, which is 1 for N(0, 1).

    Where most values of a feature are equal, the scale is the deviation.
    """
    xp, power = namespace(X), _powers_of_two(X)
    scaled = X / power
    tail = (1 - MIDDLE) / 2
    quantiles = np.quantile(to_numpy(scaled), [tail, 0.5, 1 - tail], axis=0)
    normal_range = 2 * float(norm.ppf(1 - tail))
    low, centre, high = (as_like(quantile, X) for quantile in quantiles)
    scale, deviation = (high - low) / normal_range, xp.std(scaled, axis=0)
    varies = scale > 4 * eps(X) * xp.abs(centre)
    return centre * power, _nonzero_scale(
        xp.where(varies, scale, deviation), centre, power
    )


def _powers_of_two(X: Array) -> Array:  # (p,)
    """Powers of two near the largest entries, so that no square overflows."""
    return power_of_two(peaks(X, axis=0))[0]


def _nonzero_scale(scale: Array, centre: Array, power: Array) -> Array:
    xp = namespace(scale)
    varies = scale > 4 * eps(scale) * xp.abs(centre)
    varies = varies & (scale * power > 0)  # it may underflow
    return xp.where(varies, scale, 1.0) * power
