"""Landmarks drawn at random with given weights, or by k-means: LKDL section IV-C.

Weights are computed at once for X in memory, and block by block for rows on disk or on
a cluster; the same seed draws the same samples. Ridge leverage scores are weights that
LKDL does not have: Musco and Musco, "Recursive sampling for the Nyström method", 2017,
here with one uniform pilot sample instead of the recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..clustering import lloyd
from ..contracts import Array
from ..data.lazy_rows import is_lazy_or_dask
from ..data.rows import (
    host_rows,
    load_row_subset,
    map_rows,
    n_columns,
    sum_rows,
    take_rows,
)
from ..data.sparse_rows import as_dense, column_sums
from ..kernels import Kernel
from ..numerics.arrays import (
    as_like,
    double,
    eps,
    index_like,
    is_array,
    namespace,
    row_norms,
    to_numpy,
)
from ..numerics.random import row_uniforms
from ..numerics.scaling import all_finite, power_of_two, quiet


def draw(
    weights: np.ndarray,  # (n,) non-negative
    m: int,
    rng: np.random.Generator,
    replace: bool = False,
) -> np.ndarray:  # (≤ m,)
    """Draw m indices, one after the other, each with probability ∝ its weight.

    Without replacement each index is drawn at most once, and indices of zero weight are
    drawn uniformly when no others are left. With replacement, repeated indices are
    removed afterwards, so fewer than m may remain.
    """
    if replace:
        share = weights / weights.sum() if weights.any() else None
        return np.unique(rng.choice(len(weights), m, p=share))
    return FirstDraws.of(weights, 0, m, int(rng.integers(2**62))).rows


def draw_rows(
    weigh: Callable[..., Any],  # (b, p), number of the first row -> (b,)
    X: Any,
    m: int,
    rng: np.random.Generator,
    replace: bool = False,
) -> np.ndarray:  # (≤ m,)
    """Call `draw` with the weights of the rows of X, in memory, on disk or in Dask."""
    if not is_lazy_or_dask(X):
        return draw(host_weights(weigh(X, 0)), m, rng, replace)
    row_bytes = 4 * 8 * n_columns(X)
    if replace:
        block = partial(_weights_of_block, weigh)
        block_weights = sum_rows(block, X, row_bytes, numbered=True)
        return draw(np.concatenate(block_weights), m, rng, replace)
    block = partial(_first_of_block, weigh, m, int(rng.integers(2**62)))
    return sum_rows(block, X, row_bytes, numbered=True).rows


def _weights_of_block(
    weigh: Callable[..., Any], block: Array, first: int
) -> list[np.ndarray]:
    """Return a list, because the lists of several blocks are concatenated by +."""
    return [host_weights(weigh(block, first))]


@dataclass(frozen=True)
class FirstDraws:
    """The m rows drawn first, by the exponential clocks that simulate drawing.

    Clocks with rates w ring in the order of draws without replacement with weights w.
    The m first rows of several blocks are added by ``+``.
    """

    rows: np.ndarray  # (≤ m,) in sampling order
    rings: np.ndarray  # (≤ m,) log of the ringing time, infinite for zero weight
    luck: np.ndarray  # (≤ m,) random order of the rows of zero weight
    m: int

    @classmethod
    def of(cls, weights: np.ndarray, first: int, m: int, seed: int) -> FirstDraws:
        """Draw from the rows `first`, `first` + 1, ... by their weights."""
        n = len(weights)
        with np.errstate(divide="ignore"):  # log 0 = -∞ is intended
            clocks = np.log(-np.log1p(-row_uniforms(seed, first, n)))
            rings = np.where(weights > 0, clocks - np.log(weights), np.inf)
        rows = np.arange(first, first + n)
        return cls(rows, rings, row_uniforms(seed + 1, first, n), m)._cut_to_m()

    def __add__(self, other: FirstDraws) -> FirstDraws:
        both = FirstDraws(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.rings, other.rings]),
            np.concatenate([self.luck, other.luck]),
            self.m,
        )
        return both._cut_to_m()

    def _cut_to_m(self) -> FirstDraws:
        order = np.lexsort((self.luck, self.rings))[: self.m]
        return FirstDraws(self.rows[order], self.rings[order], self.luck[order], self.m)


def _first_of_block(
    weigh: Callable[..., Any], m: int, seed: int, block: Array, first: int
) -> FirstDraws:
    return FirstDraws.of(host_weights(weigh(block, first)), first, m, seed)


def uniform(
    kernel: Kernel, X: Array, m: int, rng: np.random.Generator, *, replace: bool = False
) -> np.ndarray:
    """Draw m indices, all equally likely; with `replace`, repeated ones are removed."""
    indices = rng.choice(X.shape[0], m, replace=replace)
    return np.unique(indices) if replace else indices


def diagonal(
    kernel: Kernel, X: Array, m: int, rng: np.random.Generator, *, replace: bool = False
) -> np.ndarray:
    """Draw with pᵢ ∝ κ(xᵢ, xᵢ)²: like `uniform` for RBF kernels and unit-norm data."""
    return draw_rows(partial(_squared_energies, kernel), X, m, rng, replace)


def _squared_energies(kernel: Kernel, X: Array, first: int) -> np.ndarray:
    with quiet():
        return host_weights(kernel.diag(X)) ** 2


def coreset(
    kernel: Kernel,
    X: Array,
    m: int,
    rng: np.random.Generator,
    *,
    replace: bool = False,
    own_mean: bool = False,
) -> np.ndarray:
    """Draw with pᵢ ∝ min over γ of ‖xᵢ − γμ‖², μ the mean of the samples.

    Unusual samples are likelier than others. With `own_mean` the distance is that from
    the mean of the sample's own entries, ‖xᵢ − x̄ᵢ1‖², as in the program of LKDL's
    authors; rows of unit norm and mean 0 are then all equally likely.
    """
    if own_mean:
        return draw_rows(_distances_from_own_mean, X, m, rng, replace)
    weigh = partial(coreset_weights, *mean_and_energy(X))
    return draw_rows(weigh, X, m, rng, replace)


def _distances_from_own_mean(X: Array, first: int) -> np.ndarray:  # (n,)
    """Compute ‖xᵢ − x̄ᵢ1‖² of a block of rows."""
    X = as_dense(X)
    with quiet():  # host_weights reports overflow
        return host_weights(row_norms(X - namespace(X).mean(X, axis=1)[:, None]))


def mean_and_energy(X: Array) -> tuple[np.ndarray, float]:  # (p,)
    """Compute μ and the mean of ‖x‖², in float64."""
    with quiet():  # host_weights reports overflow
        sums = sum_rows(_sums, X, row_bytes=16 * X.shape[1])
    return sums[:-1] / X.shape[0], float(sums[-1]) / X.shape[0]


def _sums(block: Array) -> np.ndarray:  # (p + 1,)
    energy = float(double(row_norms(block)).sum())
    return np.append(column_sums(block), energy)


def coreset_weights(
    mean: np.ndarray, mean_energy: float, X: Array, first: int = 0
) -> np.ndarray:  # (n,)
    """Compute min over γ of ‖xᵢ − γμ‖² = ‖xᵢ‖² − ⟨xᵢ, μ⟩²/‖μ‖²."""
    with quiet():  # host_weights reports overflow
        energies, energy_of_mean = row_norms(X), float(mean @ mean)
        if energy_of_mean <= (10 * eps(energies)) ** 2 * mean_energy:
            return host_weights(energies)  # centred data: the mean is a rounding error
        # scaled, so that squares do not overflow
        scale = float(power_of_two(np.float64(energy_of_mean) ** 0.5))
        projections = X @ as_like(mean / scale, energies)
        explained = projections * projections / (energy_of_mean / scale / scale)
        return host_weights(energies - explained)


def host_weights(values: Any) -> np.ndarray:  # (n,)
    """Convert weights to non-negative float64 on the host; refuse infinite ones."""
    weights = np.maximum(to_numpy(values).astype(np.float64), 0.0)
    if not all_finite(weights):
        raise ValueError(
            "the weights of samples as landmarks overflow: scale the samples, e.g. "
            "with UnitNorm or StandardScaler, or use landmarks='uniform'"
        )
    return weights


MAX_EXACT = 8192  # samples up to which all columns are evaluated
N_COLUMNS = 2048  # columns that are drawn where there are more samples


def column_norm(
    kernel: Kernel,
    X: Array,
    m: int,
    rng: np.random.Generator,
    *,
    squared: bool = False,
    replace: bool = False,
) -> np.ndarray:
    """Draw with pᵢ ∝ ‖kᵢ‖ (``squared``: ‖kᵢ‖²), kᵢ column i of the kernel matrix.

    Exact up to 8192 samples, and for a precomputed matrix, by n² evaluations of the
    kernel, a block of rows at a time. Where there are more samples, ‖kᵢ‖² is estimated
    from 2048 of its entries, see `ColumnNorms`; that takes 2048 n evaluations.
    """
    return draw_rows(ColumnNorms.of(kernel, X, rng, squared), X, m, rng, replace)


@dataclass(frozen=True)
class ColumnNorms:
    """The norms ‖kᵢ‖ for blocks of rows, from all samples or from a random subset.

    With the samples S, |S| = s, drawn uniformly from n,

        ‖kᵢ‖² ≈ κ(xᵢ, xᵢ)² + (n − 1)/|S ∖ i| Σ_{j ∈ S ∖ i} κ(xᵢ, xⱼ)²,

    which is unbiased. The diagonal has a term of its own, because under a narrow kernel
    it is most of the norm, and samples in S would be drawn n/s times too often.
    """

    kernel: Kernel
    columns: Array  # (s, p), or their numbers in a precomputed matrix
    numbers: np.ndarray  # (s,) row numbers of the columns, ascending
    n: int
    squared: bool

    @classmethod
    def of(
        cls, kernel: Kernel, X: Array, rng: np.random.Generator, squared: bool
    ) -> ColumnNorms:
        n = X.shape[0]
        numbers = np.arange(n)
        if n > MAX_EXACT and not kernel.by_index:  # a matrix needs no evaluations
            numbers = np.sort(rng.choice(n, N_COLUMNS, replace=False))
        source = X, index_like(numbers, X)
        if not kernel.by_index:
            source = load_row_subset(X, numbers)
        columns = kernel.take(*source)
        return cls(kernel, columns, numbers, n, squared)

    def __call__(self, X: Array, first: int) -> np.ndarray:  # (b, p) -> (b,)
        """Compute the norms for the rows with the numbers `first`, `first` + 1, ..."""
        s = len(self.numbers)
        sums = host_weights(map_rows(self._sums, X, s * (8 + X.dtype.itemsize)))
        squares = sums if s == self.n else self._estimate(sums, X, first)
        return squares if self.squared else np.sqrt(squares)

    def _sums(self, block: Array) -> Array:  # (b,)
        """Compute Σ κ(x, xⱼ)² over the columns."""
        return row_norms(double(self.kernel(block, self.columns)))

    def _estimate(self, sums: np.ndarray, X: Array, first: int) -> np.ndarray:
        own_squares = to_numpy(self.kernel.diag(X)).astype(np.float64) ** 2
        is_column = np.isin(first + np.arange(len(sums)), self.numbers)
        other_squares = np.maximum(sums - is_column * own_squares, 0.0)
        return own_squares + other_squares * (
            (self.n - 1) / (len(self.numbers) - is_column)
        )


LARGE = 4e12  # with more multiplications than this, only a share of the rows is used


def kmeans(
    kernel: Kernel,
    X: Array,
    m: int,
    rng: np.random.Generator,
    *,
    init: str = "random",
    max_iter: int = 10,
) -> Array:  # (m, p)
    """Return the m centres of one k-means run on X; the kernel is not used.

    It takes `max_iter` steps of Lloyd's algorithm, fewer if centres rest. That is the
    method, which has no tolerance: a few steps are enough for landmarks.
    ``init="k-means++"`` lowers the error further if m is small, at the cost of a slow
    start. With m = n each sample is its own centre. If X is very large, a random share
    of the rows is used.
    """
    if m == X.shape[0] and is_array(X):
        return X
    if init == "random":
        start = take_rows(X, np.sort(rng.choice(X.shape[0], m, replace=False)))
    else:
        from sklearn.cluster import kmeans_plusplus

        rows = host_rows(X, f"init={init!r} needs X in memory: use init='random'")
        seed = int(rng.integers(2**31))
        start = as_like(as_dense(kmeans_plusplus(rows, m, random_state=seed)[0]), X)
    share = min(1.0, LARGE / (max_iter * m * X.shape[0] * X.shape[1]))
    return lloyd(X, as_dense(start), max_iter, share, int(rng.integers(2**63)))


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
