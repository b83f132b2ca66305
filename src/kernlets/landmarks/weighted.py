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

from ..backend.arrays import (
    as_like,
    double,
    eps,
    row_norms,
    to_numpy,
)
from ..backend.lazy_rows import is_elsewhere
from ..backend.random import row_uniforms
from ..backend.rows import row_width, sum_rows
from ..backend.scale import all_finite, power_of_two, quiet
from ..backend.sparse_rows import column_sums
from ..core import Array, Kernel


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
    weigh: Callable[..., Any],  # (n, p) -> (n,)
    X: Any,
    m: int,
    rng: np.random.Generator,
    replace: bool = False,
    numbered: bool = False,
) -> np.ndarray:  # (≤ m,)
    """`draw` with the weights of the rows of X, wherever these are.

    With `numbered`, `weigh` gets the number of the first row of a block, too.
    """
    weigh = weigh if numbered else partial(_unnumbered, weigh)
    if not is_elsewhere(X):
        return draw(host_weights(weigh(X, 0)), m, rng, replace)
    row_bytes = 4 * 8 * row_width(X)
    if replace:
        parts = sum_rows(partial(_weights_of_block, weigh), X, row_bytes, numbered=True)
        return draw(np.concatenate(parts), m, rng, replace)
    block = partial(_first_of_block, weigh, m, _seed(rng))
    return sum_rows(block, X, row_bytes, numbered=True).rows


def _unnumbered(weigh: Callable[[Array], Any], block: Array, first: int) -> Any:
    return weigh(block)


def _weights_of_block(
    weigh: Callable[..., Any], block: Array, first: int
) -> list[np.ndarray]:
    """A list, so that those of several blocks add up."""
    return [host_weights(weigh(block, first))]


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
    weigh: Callable[..., Any], m: int, seed: int, block: Array, first: int
) -> First:
    return First.of(host_weights(weigh(block, first)), first, m, seed)


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
    with quiet():
        return host_weights(kernel.diag(X)) ** 2


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
    with quiet():  # weights are looked at
        sums = sum_rows(_sums, X, row_bytes=16 * X.shape[1])
    return sums[:-1] / X.shape[0], float(sums[-1]) / X.shape[0]


def _sums(block: Array) -> np.ndarray:  # (p + 1,)
    own = float(double(row_norms(block)).sum())
    return np.append(column_sums(block), own)


def _off_mean(mean: np.ndarray, typical: float, X: Array) -> np.ndarray:  # (n,)
    with quiet():  # weights are looked at
        return host_weights(_off_mean_squares(mean, typical, X))


def _off_mean_squares(mean: np.ndarray, typical: float, X: Array) -> Array:  # (n,)
    own, energy = row_norms(X), float(mean @ mean)
    if energy <= (10 * eps(own)) ** 2 * typical:
        return own  # centred data: what is left of the mean is rounding
    unit = float(power_of_two(np.float64(energy) ** 0.5))  # lest squares overflow
    along = X @ as_like(mean / unit, own)
    return own - along * along / (energy / unit / unit)


def host_weights(values: Any) -> np.ndarray:  # (n,)
    """Non-negative float64 weights on the host."""
    weights = np.maximum(to_numpy(values).astype(np.float64), 0.0)
    if not all_finite(weights):
        raise ValueError(
            "the weights of samples as landmarks overflow: scale the samples, e.g. "
            "with UnitNorm or StandardScaler, or use landmarks='uniform'"
        )
    return weights
