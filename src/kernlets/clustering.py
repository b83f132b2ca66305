"""Lloyd's k-means from sums over rows, in memory, on disk or on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from .contracts import Array, BlockSums
from .data.rows import cache_rows, sum_rows
from .data.sparse_rows import as_dense
from .numerics.arrays import (
    as_like,
    double,
    group_sums,
    index_like,
    namespace,
    row_norms,
    scalers_for,
    to_numpy,
)
from .numerics.random import row_uniforms
from .numerics.scaling import quiet

RESTING = 1e-4  # relative shift of centres below which more steps change little


@dataclass(frozen=True)
class Clusters(BlockSums):
    """Sums over the rows nearest to each centre; they add up over blocks."""

    sums: np.ndarray  # (m, p) of x − origin
    counts: np.ndarray  # (m,)
    energy: float  # Σ‖x − origin‖²

    def __add__(self, other: Clusters) -> Clusters:
        return Clusters(
            self.sums + other.sums,
            self.counts + other.counts,
            self.energy + other.energy,
        )

    def mean_variance(self) -> float:
        """Mean variance of the features, as in scikit-learn's tolerance."""
        n, p = max(self.counts.sum(), 1), self.sums.shape[1]
        mean = self.sums.sum(0) / n
        return max(self.energy / n - float(mean @ mean), 0.0) / p


def lloyd(
    X: Array,  # (n, p)
    start: Array,  # (m, p)
    max_iter: int,
    share: float = 1.0,
    seed: int = 0,
    weights: np.ndarray | None = None,  # (n,)
) -> Array:  # (m, p)
    """Centres after `max_iter` steps of Lloyd's algorithm, fewer if centres rest.

    The number of steps defines the method, which has no tolerance to reach.
    A centre that is nearest to no row stays where it is. With ``share < 1`` only so
    many of the rows count, drawn by `seed`, the same ones in each round.
    """
    origin = as_like(to_numpy(double(start)).mean(0), start)
    centres = to_numpy(double(start - origin))
    row_bytes = (len(centres) + 2 * X.shape[1]) * start.dtype.itemsize
    with cache_rows(X) as rows:
        for _ in range(max_iter):
            arguments = as_like(centres, start), origin, weights
            block_sums = partial(_cluster_sums, *arguments, share, seed)
            clusters = sum_rows(block_sums, rows, row_bytes, numbered=True)
            if not np.isfinite(clusters.energy):
                raise ValueError(
                    f"the distances of k-means overflow in {start.dtype}: scale the "
                    f"samples, e.g. with {scalers_for(start.dtype)}"
                )
            last, centres, has_rows = centres, centres.copy(), clusters.counts > 0
            counts = clusters.counts[has_rows, None]
            centres[has_rows] = clusters.sums[has_rows] / counts
            if ((centres - last) ** 2).sum() <= RESTING * clusters.mean_variance():
                break
    return as_like(centres, start) + origin


def _cluster_sums(
    centres: Array,
    origin: Array,
    weights: np.ndarray | None,
    share: float,
    seed: int,
    block: Array,
    first: int,
) -> Clusters:
    block_weights = None if weights is None else weights[first : first + block.shape[0]]
    if share < 1:
        drawn = np.flatnonzero(row_uniforms(seed, first, block.shape[0]) < share)
        block = block[index_like(drawn, block)]
        block_weights = None if block_weights is None else block_weights[drawn]
    with quiet():  # an overflow is detected in the energy
        rows = as_dense(block) - origin  # numbers near 0 lose fewer digits in float32
        nearest = namespace(rows).argmax(
            rows @ centres.T - row_norms(centres) / 2, axis=1
        )
        squares = double(row_norms(rows))
        if block_weights is not None:
            rows, squares = (
                rows * as_like(block_weights, rows)[:, None],
                to_numpy(squares) * block_weights,
            )
        energy = float(squares.sum())
    counts = np.bincount(to_numpy(nearest), block_weights, minlength=len(centres))
    sums = to_numpy(double(group_sums(rows, nearest, len(centres))))
    return Clusters(sums, counts, energy)
