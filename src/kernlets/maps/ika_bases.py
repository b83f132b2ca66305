"""Basis functions for `IKAMap` that are not kernel functions: units of a layer.

A unit is a function of ⟨w, x⟩ and an offset t. This module draws w and t and evaluates
the units; `ika.py` combines them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi

import numpy as np

from ..contracts import Array, Kernel
from ..numerics.arrays import as_like, index_like, namespace
from ..numerics.scaling import check_range, least_energy, quiet
from .frequencies import frequencies


def _relu(s: Array) -> Array:
    """max(s, 0)."""
    return s * (s > 0)


def _sigmoid(s: Array) -> Array:
    """1/(1 + exp(−s)), by tanh, which cannot overflow."""
    return 0.5 + 0.5 * namespace(s).tanh(0.5 * s)


def _cosine(s: Array) -> Array:
    return namespace(s).cos(s)


UNITS: dict[str, Callable[[Array], Array]] = {
    "relu": _relu,
    "sigmoid": _sigmoid,
    "cosine": _cosine,
}


def units(
    unit: str,
    X: Array,  # (n, p)
    filters: Array,  # (m, p)
    offsets: Array,  # (m,)
) -> Array:  # (n, m)
    """unit(⟨wⱼ, xᵢ⟩ − tⱼ)."""
    with quiet():  # a product that overflows is still on one side of the offset
        return UNITS[unit](X @ as_like(filters, X).T - as_like(offsets, X))


def switched_at_samples(
    filters: Array,  # (m, p)
    sample: Array,  # (S, p)
    rng: np.random.Generator,
) -> tuple[Array, Array]:  # (m, p), (m,)
    """Scale filters so that ⟨w, x⟩ has unit variance, and choose offsets tⱼ.

    Each unit switches on at a random sample of its own.
    """
    xp, m = namespace(filters), filters.shape[0]
    with quiet():
        projections = sample @ filters.T
    check_range(projections, "X · filters")
    std = xp.std(projections, axis=0)
    is_varying = std > least_energy(projections)
    factors = 1.0 / xp.where(is_varying, std, xp.ones_like(std))
    sample_rows = index_like(rng.integers(sample.shape[0], size=m), projections)
    offsets = projections[sample_rows, index_like(np.arange(m), projections)]
    return filters * factors[:, None], offsets * factors


def draw_waves(
    kernel: Kernel,
    m: int,
    sample: Array,  # (S, p)
    rng: np.random.Generator,
) -> tuple[Array, Array]:  # (m, p), (m,)
    """Frequencies of the kernel's spectral measure, and random phases."""
    omega = frequencies(kernel, m, sample.shape[1], "plain", rng)
    phases = rng.uniform(0.0, 2 * pi, m)
    return as_like(omega, sample), as_like(phases, sample)
