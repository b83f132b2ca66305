"""Landmarks drawn at random with given weights: LKDL section IV-C.

Weights are computed at once for X in memory, and block by block for rows on disk or on
a cluster; the same seed draws the same samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from ..backend.arrays import (
    as_like,
    double,
    eps,
    index_like,
    is_array,
    row_norms,
    to_numpy,
)
from ..backend.random import row_uniforms
from ..backend.rows import map_rows, sum_rows
from ..backend.stored import is_elsewhere
from ..core import Array, Kernel
from ..kernels.pairs import energies


def draw(
    weights: np.ndarray,  # (n,) non-negative
    m: int,
    rng: np.random.Generator,
    replace: bool = False,
) -> np.ndarray:  # (≤ m,)
    """m indices, one after the other, each with probability ∝ its weight.

    Without replacement each index is drawn at most once, and indices of zero weight are
    drawn uniformly when no others are left. With replacement, repeated indices are
    removed afterwards, so fewer than m may remain.
    """
    if replace:
        share = weights / weights.sum() if weights.any() else None
        return np.unique(rng.choice(len(weights), m, p=share))
    return First.of(weights, 0, m, _seed(rng)).rows


def draw_rows(
    weigh: Callable[[Array], Any],  # (n, p) -> (n,)
    X: Any,
    m: int,
    rng: np.random.Generator,
    replace: bool = False,
) -> np.ndarray:  # (≤ m,)
    """`draw` with the weights of the rows of X, in memory or elsewhere."""
    if not is_elsewhere(X):
        return draw(_weights(weigh(X)), m, rng, replace)
    row_bytes = 4 * 8 * X.shape[1]
    if replace:
        weights = np.asarray(map_rows(weigh, X, row_bytes))
        return draw(_weights(weights), m, rng, replace)
    block = partial(_first_of_block, weigh, m, _seed(rng))
    return sum_rows(block, X, row_bytes, numbered=True).rows


@dataclass(frozen=True)
class First:
    """The first m rows whose clocks ring; over blocks of rows they add up.

    Exponential clocks of rate w ring in the order of draws without replacement.
    """

    rows: np.ndarray  # (≤ m,) in the order of ringing
    rings: np.ndarray  # (≤ m,) logarithm of the time, infinite for a rate of zero
    luck: np.ndarray  # (≤ m,) order of those that never ring
    m: int

    @classmethod
    def of(cls, weights: np.ndarray, first: int, m: int, seed: int) -> First:
        """From the weights of the rows `first`, `first` + 1, ..."""
        n = len(weights)
        with np.errstate(divide="ignore"):  # log 0 is what is meant
            clocks = np.log(-np.log1p(-row_uniforms(seed, first, n)))
            rings = np.where(weights > 0, clocks - np.log(weights), np.inf)
        rows = np.arange(first, first + n)
        return cls(rows, rings, row_uniforms(seed + 1, first, n), m)._shortened()

    def __add__(self, other: First) -> First:
        both = First(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.rings, other.rings]),
            np.concatenate([self.luck, other.luck]),
            self.m,
        )
        return both._shortened()

    def _shortened(self) -> First:
        kept = np.lexsort((self.luck, self.rings))[: self.m]
        return First(self.rows[kept], self.rings[kept], self.luck[kept], self.m)


def _first_of_block(
    weigh: Callable[[Array], Any], m: int, seed: int, block: Array, first: int
) -> First:
    return First.of(_weights(weigh(block)), first, m, seed)


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**62))


def uniform(kernel: Kernel, X: Array, m: int, rng: np.random.Generator) -> np.ndarray:
    """m indices, all equally likely, without replacement."""
    return rng.choice(X.shape[0], m, replace=False)


def diagonal(
    kernel: Kernel, X: Array, m: int, rng: np.random.Generator, *, replace: bool = False
) -> np.ndarray:
    """pᵢ ∝ κ(xᵢ, xᵢ)²; the same as uniform for RBF kernels and for unit-norm data."""
    return draw_rows(partial(_squared_energies, kernel), X, m, rng, replace)


def _squared_energies(kernel: Kernel, X: Array) -> np.ndarray:
    return _weights(kernel.diag(X)) ** 2


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
    return draw_rows(partial(_off_mean, *_mean_and_energy(X)), X, m, rng, replace)


def coreset_weights(X: Array) -> np.ndarray:  # (n, p) -> (n,)
    """‖xᵢ‖² − ⟨xᵢ, μ⟩²/‖μ‖² = ‖xᵢ − γᵢμ‖² at the least-squares γᵢ = ⟨xᵢ, μ⟩/‖μ‖²."""
    return _off_mean(*_mean_and_energy(X), X)


def _mean_and_energy(X: Array) -> tuple[np.ndarray, float]:  # (p,)
    """μ and the mean of ‖x‖², in float64."""
    sums = sum_rows(_sums, X, row_bytes=16 * X.shape[1])
    return sums[:-1] / X.shape[0], float(sums[-1]) / X.shape[0]


def _sums(block: Array) -> np.ndarray:  # (p + 1,)
    own = energies(block)
    total = block.sum(0) if sparse.issparse(block) else double(block).sum(0)
    flat = np.asarray(to_numpy(total) if is_array(total) else total).ravel()
    return np.append(flat.astype(np.float64), float(double(own).sum()))


def _off_mean(mean: np.ndarray, typical: float, X: Array) -> np.ndarray:  # (n,)
    own, energy = energies(X), float(mean @ mean)
    if energy <= (10 * eps(own)) ** 2 * typical:
        return _weights(own)  # centred data: what is left of the mean is rounding
    along = X @ as_like(mean, own)
    return _weights(own - along * along / energy)


def _weights(values: Any) -> np.ndarray:  # (n,)
    """Non-negative float64 weights on the host."""
    return np.maximum(to_numpy(values).astype(np.float64), 0.0)
