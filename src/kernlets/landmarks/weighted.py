"""Landmarks drawn sample by sample with given weights: LKDL section IV-C.

A sampler gets the whole X in memory, in floating point; how rows from disk or from a
stream reach it is in `select.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backend.arrays import as_like, eps, index_like, row_norms, to_numpy
from ..backend.rows import map_rows
from ..core import Array, Kernel
from ..kernels.pairs import energies


def draw(
    weights: np.ndarray,  # (n,) non-negative
    m: int,
    rng: np.random.Generator,
    replace: bool = False,
) -> np.ndarray:  # (≤ m,)
    """m indices, one after the other, each with probability ∝ its weight.

    Without replacement an index leaves the urn once drawn, and zero weights are drawn
    uniformly when nothing else is left. With replacement repeated indices are removed
    afterwards, so fewer than m may remain.
    """
    if replace:
        share = weights / weights.sum() if weights.any() else None
        return np.unique(rng.choice(len(weights), m, p=share))
    # Exponential clocks of rate w ring in the order of draws without replacement.
    rings = np.full(len(weights), np.inf)
    live = weights > 0
    rings[live] = rng.exponential(size=live.sum()) / (weights[live] / weights.max())
    return np.lexsort((rng.random(len(weights)), rings))[:m]


def uniform(kernel: Kernel, X: Array, m: int, rng: np.random.Generator) -> np.ndarray:
    """m indices, all equally likely, without replacement."""
    return rng.choice(X.shape[0], m, replace=False)


def diagonal(
    kernel: Kernel, X: Array, m: int, rng: np.random.Generator, *, replace: bool = False
) -> np.ndarray:
    """pᵢ ∝ κ(xᵢ, xᵢ)²; the same as uniform for RBF kernels and for unit-norm data."""
    return draw(_weights(kernel.diag(X)) ** 2, m, rng, replace)


def column_norm(
    kernel: Kernel,
    X: Array,
    m: int,
    rng: np.random.Generator,
    *,
    squared: bool = False,
    replace: bool = False,
) -> np.ndarray:
    """pᵢ ∝ ‖kᵢ‖ (``squared``: ‖kᵢ‖²), kᵢ the i-th column of the kernel matrix.

    n² evaluations of the kernel, a block of rows at a time.
    """
    n = X.shape[0]
    columns = kernel.take(X, index_like(np.arange(n), X))

    def norms(block: Array) -> Array:
        return row_norms(kernel(block, columns))

    squares = _weights(map_rows(norms, X, row_bytes=2 * n * X.dtype.itemsize))
    return draw(squares if squared else np.sqrt(squares), m, rng, replace)


def coreset(
    kernel: Kernel, X: Array, m: int, rng: np.random.Generator, *, replace: bool = False
) -> np.ndarray:
    """pᵢ ∝ min over γ of ‖xᵢ − γμ‖², μ the mean: unusual samples are likelier."""
    return draw(coreset_weights(X), m, rng, replace)


def coreset_weights(X: Array) -> np.ndarray:  # (n, p) -> (n,)
    """‖xᵢ‖² − ⟨xᵢ, μ⟩²/‖μ‖² = ‖xᵢ − γᵢμ‖² at the least-squares γᵢ = ⟨xᵢ, μ⟩/‖μ‖²."""
    mean = as_like(X.mean(0), X).reshape(-1)
    own, along, energy = energies(X), X @ mean, float(mean @ mean)
    if energy <= (10 * eps(own)) ** 2 * float(own.mean()):
        return _weights(own)  # centred data: what is left of the mean is rounding
    return _weights(own - along * along / energy)


def _weights(values: Any) -> np.ndarray:  # (n,)
    """Non-negative float64 weights on the host."""
    return np.maximum(to_numpy(values).astype(np.float64), 0.0)
