"""Lloyd's k-means from sums over rows, wherever these are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from .backend.arrays import (
    as_like,
    double,
    group_sums,
    index_like,
    namespace,
    or_wider,
    row_norms,
    to_numpy,
)
from .backend.random import row_uniforms
from .backend.rows import cache_rows, sum_rows
from .backend.scale import quiet
from .backend.sparse_rows import as_dense
from .core import Array, BlockSums

TOLERANCE = 1e-4  # relative shift of the centres at which the iteration stops


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


def lloyd(
    X: Array,  # (n, p)
    start: Array,  # (m, p)
    max_iter: int,
    share: float = 1.0,
    seed: int = 0,
    weights: np.ndarray | None = None,  # (n,)
) -> Array:  # (m, p)
    """Centres after `max_iter` rounds of assigning rows and taking means.

    A centre that is nearest to no row stays where it is. With ``share < 1`` only so
    many of the rows count, drawn by `seed`, the same ones in each round.
    """
    origin = as_like(to_numpy(double(start)).mean(0), start)
    centres = to_numpy(double(start - origin))
    row_bytes = (len(centres) + 2 * X.shape[1]) * start.dtype.itemsize
    with cache_rows(X) as rows:
        for _ in range(max_iter):
            known = as_like(centres, start), origin, weights
            block = partial(_clusters, *known, share, seed)
            found = sum_rows(block, rows, row_bytes, numbered=True)
            _refuse_overflow(found, start)
            before, centres = centres, _means(found, centres)
            if ((centres - before) ** 2).sum() <= TOLERANCE * _spread(found):
                break
    return as_like(centres, start) + origin


def _refuse_overflow(found: Clusters, like: Array) -> None:
    if not np.isfinite(found.energy):
        raise ValueError(
            f"the distances of k-means overflow in {like.dtype}: scale the samples, "
            f"e.g. with UnitNorm or StandardScaler{or_wider(like.dtype)}"
        )


def _means(found: Clusters, centres: np.ndarray) -> np.ndarray:  # (m, p)
    used = found.counts > 0
    moved = centres.copy()
    moved[used] = found.sums[used] / found.counts[used, None]
    return moved


def _spread(found: Clusters) -> float:
    """Mean variance of the features, as in scikit-learn's tolerance."""
    n, p = max(found.counts.sum(), 1), found.sums.shape[1]
    mean = found.sums.sum(0) / n
    return max(found.energy / n - float(mean @ mean), 0.0) / p


def _clusters(
    centres: Array,
    origin: Array,
    weights: np.ndarray | None,
    share: float,
    seed: int,
    block: Array,
    first: int,
) -> Clusters:
    own = None if weights is None else weights[first : first + block.shape[0]]
    if share < 1:
        lucky = np.flatnonzero(row_uniforms(seed, first, block.shape[0]) < share)
        block = block[index_like(lucky, block)]
        own = None if own is None else own[lucky]
    with quiet():  # an overflow is detected in the energy
        rows = _shifted(block, origin)
        nearest = namespace(rows).argmax(
            rows @ centres.T - row_norms(centres) / 2, axis=1
        )
        squares = double(row_norms(rows))
        if own is not None:
            rows, squares = rows * as_like(own, rows)[:, None], to_numpy(squares) * own
        energy = float(squares.sum())
    counts = np.bincount(to_numpy(nearest), own, minlength=len(centres))
    totals = to_numpy(double(group_sums(rows, nearest, len(centres))))
    return Clusters(totals, counts, energy)


def _shifted(block: Array, origin: Array) -> Array:
    """Rows near zero, where float32 has its digits."""
    return as_dense(block) - origin
