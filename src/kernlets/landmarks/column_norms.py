"""Landmarks by the norms of the columns of the kernel matrix: LKDL section IV-C."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..contracts import Array, Kernel
from ..data.rows import load_row_subset, map_rows
from ..kernels.user_kernels import known_by_index
from ..numerics.arrays import double, index_like, row_norms, to_numpy
from .weighted import draw_rows, host_weights

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
    """pᵢ ∝ ‖kᵢ‖ (``squared``: ‖kᵢ‖²), kᵢ the i-th column of the kernel matrix.

    Exact up to 8192 samples, and for a precomputed matrix, by n² evaluations of the
    kernel, a block of rows at a time. Where there are more samples, ‖kᵢ‖² is estimated
    from 2048 of its entries, see `ColumnNorms`; that takes 2048 n evaluations.
    """
    weigh = ColumnNorms.of(kernel, X, rng, squared)
    return draw_rows(weigh, X, m, rng, replace, numbered=True)


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
        # a precomputed matrix needs no evaluations of a kernel
        is_index_only = known_by_index(kernel, X)
        numbers = np.arange(n)
        if n > MAX_EXACT and not is_index_only:
            numbers = np.sort(rng.choice(n, N_COLUMNS, replace=False))
        source = (
            (X, index_like(numbers, X))
            if is_index_only
            else load_row_subset(X, numbers)
        )
        columns = kernel.take(*source)
        return cls(kernel, columns, numbers, n, squared)

    def __call__(self, X: Array, first: int) -> np.ndarray:  # (b, p) -> (b,)
        """Norms for the rows with the numbers `first`, `first` + 1, ..."""
        s = len(self.numbers)
        sums = host_weights(map_rows(self._sums, X, s * (8 + X.dtype.itemsize)))
        squares = sums if s == self.n else self._estimate(sums, X, first)
        return squares if self.squared else np.sqrt(squares)

    def _sums(self, block: Array) -> Array:  # (b,)
        """Σ κ(x, xⱼ)² over the columns."""
        return row_norms(double(self.kernel(block, self.columns)))

    def _estimate(self, sums: np.ndarray, X: Array, first: int) -> np.ndarray:
        own_squares = to_numpy(self.kernel.diag(X)).astype(np.float64) ** 2
        is_column = np.isin(first + np.arange(len(sums)), self.numbers)
        other_squares = np.maximum(sums - is_column * own_squares, 0.0)
        return own_squares + other_squares * (
            (self.n - 1) / (len(self.numbers) - is_column)
        )
