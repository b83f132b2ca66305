"""Replace missing entries (NaN) by means, for algorithms that need complete rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..contracts import Array
from ..numerics.arrays import as_like
from .lazy_rows import LazyRows, is_lazy, is_lazy_or_dask
from .masks import column_means, fill_missing, has_missing
from .rows import CountedBlocks, is_blocks, map_rows, sum_rows
from .weights import Weights


def all_in_memory(X: Any) -> bool:
    """Whether all rows are in memory, so that they can be imputed from each other."""
    return not (is_blocks(X) or is_lazy_or_dask(X))


def fill_rows_with_means(X: Any, weights: Weights = None) -> Any:
    """Return X with the means of the columns in place of missing entries.

    k-means and other ways to choose the first atoms need complete rows. The learning
    that follows uses observed entries only. A feature that was never observed is 0.
    """
    if isinstance(X, CountedBlocks) and X.has_missing:
        means = column_means(X)
        read_filled = partial(map, partial(_fill_block, means), X)
        return CountedBlocks(read_filled, X.shape, has_missing=False)
    if is_blocks(X) or not _any_block_has_missing(X):
        return X
    fill = partial(_fill_block, column_means(X, weights))
    if is_lazy(X):
        return LazyRows(X, fill, 24 * X.shape[1])
    return map_rows(fill, X, 24 * X.shape[1])


def count_blocks(X: Any) -> CountedBlocks:
    """Count the rows of blocks in one pass, and look for missing entries."""
    n, p, is_incomplete = 0, 0, False
    for block in X:
        n, p, is_incomplete = (
            n + block.shape[0],
            block.shape[1],
            is_incomplete or has_missing(block),
        )
    return CountedBlocks(lambda: iter(X), (n, p), is_incomplete)


def any_missing(X: Any) -> bool:
    """Whether samples in memory, or rows on disk, have missing entries."""
    return _any_block_has_missing(X) if is_lazy(X) and X.ndim == 2 else has_missing(X)


def _any_block_has_missing(X: Any) -> bool:
    return bool(int(sum_rows(_missing_flag, X, 9 * X.shape[1])))


def _missing_flag(block: Array) -> np.ndarray:
    return np.array(int(has_missing(block)))


def _fill_block(means: Array, block: Array) -> Array:
    return fill_missing(block, as_like(means, block))
