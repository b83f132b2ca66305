"""Landmarks by approximate ridge leverage scores.

Musco and Musco, "Recursive sampling for the Nyström method", 2017, with one uniform
pilot sample instead of the recursion. LKDL does not have this sampler.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..contracts import Array
from ..data.rows import map_rows, take_rows
from ..kernels import Kernel
from ..numerics.arrays import (
    as_like,
    double,
    eps,
    index_like,
    namespace,
    row_norms,
    to_numpy,
)
from .samplers import draw_rows

MAX_PILOT = 2048
MIN_PILOT = 512


def leverage(
    kernel: Kernel,
    X: Array,
    m: int,
    rng: np.random.Generator,
    *,
    n_pilot: int | None = None,
    regularization: float | None = None,
) -> np.ndarray:
    """Draw with pᵢ ∝ the ridge leverage score of xᵢ: how badly others predict it.

    See `leverage_scores`. The pilot has 2m samples by default, at least 512 and at
    most 2048, and all samples where there are fewer.
    """
    n = X.shape[0]
    if n_pilot is None:
        n_pilot = min(max(2 * m, MIN_PILOT), MAX_PILOT)
    pilot = rng.choice(n, min(n_pilot, n), replace=False)
    return draw_rows(_scorer(kernel, X, pilot, m, regularization), X, m, rng)


def leverage_scores(
    kernel: Kernel,
    X: Array,
    pilot: np.ndarray,  # (s,) indices
    m: int,
    regularization: float | None = None,
) -> np.ndarray:  # (n,)
    """Compute ℓᵢ = (κ(xᵢ, xᵢ) − kᵢₛ (Kₛₛ + λ s/n I)⁻¹ kₛᵢ) / λ with a random pilot S.

    With all samples as the pilot this is the exact score (K (K + λI)⁻¹)ᵢᵢ. By default
    λ is the tail of the spectrum over q = m/2 (at most half the pilot),
    λ = Σ_{j>q} σⱼ / q, estimated from the pilot; the scores then sum to 2q at most.
    """
    return _scorer(kernel, X, pilot, m, regularization)(X, 0)


def _scorer(
    kernel: Kernel, X: Array, pilot: np.ndarray, m: int, ridge: float | None
) -> Callable[[Array, int], np.ndarray]:
    """Return a function that computes the scores of a block of rows."""
    share, sample = len(pilot) / X.shape[0], take_rows(X, pilot)
    # a precomputed kernel takes column indices of the whole matrix instead of rows
    columns = kernel.take(X, index_like(pilot, X)) if kernel.by_index else sample
    products = kernel(sample, columns)
    gram = double(products)
    values, vectors = namespace(gram).linalg.eigh(gram)
    # an indefinite kernel has negative eigenvalues
    values = namespace(gram).clip(values, 0.0, None)
    if ridge is None:
        ridge = _tail(to_numpy(values), m, eps(products)) / share
    whitener = as_like(vectors / (values + ridge * share) ** 0.5, products)
    return partial(_scores, kernel, columns, whitener, ridge)


def _scores(
    kernel: Kernel, columns: Array, whitener: Array, ridge: float, X: Array, first: int
) -> np.ndarray:  # (n,)
    def explain(block: Array) -> Array:
        return row_norms(kernel(block, columns) @ whitener)

    row_bytes = 2 * whitener.shape[0] * whitener.dtype.itemsize
    explained_energy = to_numpy(map_rows(explain, X, row_bytes))
    unexplained = to_numpy(double(kernel.diag(X))) - explained_energy
    return np.clip(unexplained / ridge, 0.0, 1.0)


def _tail(values: np.ndarray, m: int, precision: float) -> float:
    """Compute Σ_{j>q} σⱼ / q of the pilot's spectrum (ascending), never zero."""
    q = max(1, min(m, len(values)) // 2)
    tail = float(np.maximum(values[: len(values) - q], 0.0).sum()) / q
    floor = len(values) * precision * max(float(values[-1]), 0.0)
    return max(tail, floor) or 1.0  # the tail of a zero kernel is 0
