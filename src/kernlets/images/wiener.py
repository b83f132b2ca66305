"""Wiener filters over groups of similar patches.

A first estimate of the image, the pilot, gives the covariance C = V Λ Vᵀ of a group
almost without noise, and with it the linear estimate of least mean squared error,

    x = m + C (C + σ²I)⁻¹ (y − m).

In other words, V is an orthonormal dictionary of the group alone, in which the
coefficients of a noisy patch y are shrunk by λ / (λ + σ²).

The pilot has lost detail, so that its covariance is too small. Three things bring the
detail back: a share of the residual is added to the pilot, the covariance is multiplied
by a number, and it is estimated anew from the filtered patches and the variance that
the filter leaves, which is a step of expectation maximisation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ..contracts import Array
from ..numerics.arrays import as_like, namespace
from .patches import Grouping, Progress, filter_groups


@dataclass(frozen=True)
class Filter:
    """Settings of the filter of groups of patches."""

    grouping: Grouping = field(default_factory=Grouping)
    returned: float = 0.0  # share of the residual that is added to the pilot
    scale: float = 1.0  # factor of the pilot's covariance
    updates: int = 1  # number of new estimates of the covariance


def wiener_filter(
    noisy: Array,  # (c, h, w)
    pilot: Array,  # (c, h, w)
    sigma: float,
    settings: Filter,
    progress: Progress = lambda share: None,
) -> Array:  # (c, h, w)
    """Return the noisy image, filtered group by group with covariances of the pilot."""
    enhanced = pilot + settings.returned * (noisy - pilot)
    estimate = partial(_estimates, sigma=sigma, settings=settings)
    return filter_groups(
        (noisy, enhanced), pilot, settings.grouping, estimate, progress
    )


def _estimates(
    noisy: Array,  # (g, k, p)
    pilot: Array,  # (g, k, p)
    sigma: float,
    settings: Filter,
) -> tuple[Array, Array]:  # (g, k, p), (g,)
    """Filter patches; groups in which less noise is left get larger weights."""
    xp = namespace(noisy)
    _, count, length = pilot.shape
    first = xp.mean(pilot, axis=1, keepdims=True)
    centred = noisy - _means(xp.mean(noisy, axis=1, keepdims=True), first, sigma, count)
    gain = _gain(_covariance(pilot - first) * settings.scale, sigma)
    noisy_covariance = _covariance(centred) if settings.updates else None
    for _ in range(settings.updates):
        gain = _gain(gain @ noisy_covariance @ gain + sigma**2 * gain, sigma)
    estimates = noisy - centred + centred @ gain
    noise_share = xp.sum(gain**2, axis=(1, 2)) / length
    return estimates, 1 / (noise_share + 1 / count)


def _means(
    noisy: Array,  # (g, 1, p)
    pilot: Array,  # (g, 1, p)
    sigma: float,
    count: int,
) -> Array:  # (g, 1, p)
    """Return mean patches between the means of the noisy image and of the pilot.

    The former have the noise σ²/k, the latter have lost detail. If the two differ by
    the noise only, then nothing was lost, and the pilot counts; the more they differ,
    the less it does (the estimator of James and Stein).
    """
    xp = namespace(noisy)
    step = pilot - noisy
    differ = xp.mean(step**2, axis=2, keepdims=True)
    noise = sigma**2 / count
    return noisy + step * (noise / xp.clip(differ, noise))


def _covariance(centred: Array) -> Array:  # (g, k, p) -> (g, p, p)
    return namespace(centred).matrix_transpose(centred) @ centred / centred.shape[1]


def _gain(covariance: Array, sigma: float) -> Array:  # (g, p, p)
    """Compute C (C + σ²I)⁻¹ = I − σ² (C + σ²I)⁻¹, which is symmetric."""
    xp = namespace(covariance)
    ones = as_like(np.eye(covariance.shape[1]), covariance)
    return ones - sigma**2 * xp.linalg.inv(covariance + sigma**2 * ones)
