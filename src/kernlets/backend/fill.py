"""Rows without gaps, for what cannot work with them, wherever the rows are."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..core import Array
from .arrays import as_like
from .lazy_rows import LazyRows, is_elsewhere, is_stored
from .masks import column_means, filled, has_gaps
from .rows import CountedBlocks, is_blocks, map_rows, sum_rows
from .weights import Weights


def at_hand(X: Any) -> bool:
    """Whether all rows are in memory, so that they can be filled in over each other."""
    return not (is_blocks(X) or is_elsewhere(X))


def mean_filled_rows(X: Any, weights: Weights = None) -> Any:
    """X with the means of the columns in place of what is unknown.

    For k-means and other ways to choose first atoms. What follows learns from what was
    observed only. A feature that was never observed is 0 in all rows.
    """
    if isinstance(X, CountedBlocks) and X.has_gaps:
        means = column_means(X)
        complete = partial(map, partial(_filled, means), X)
        return CountedBlocks(complete, X.shape, has_gaps=False)
    if is_blocks(X) or not _gaps_by_block(X):
        return X
    fill = partial(_filled, column_means(X, weights))
    if is_stored(X):
        return LazyRows(X, fill, 24 * X.shape[1])
    return map_rows(fill, X, 24 * X.shape[1])


def counted_blocks(X: Any) -> CountedBlocks:
    """Blocks that can be read again, after a pass that counts their rows."""
    n, p, gaps = 0, 0, False
    for block in X:
        n, p, gaps = n + block.shape[0], block.shape[1], gaps or has_gaps(block)
    return CountedBlocks(lambda: iter(X), (n, p), gaps)


def any_gaps(X: Any) -> bool:
    """Whether anything is unknown of samples in memory, or of rows on disk."""
    return _gaps_by_block(X) if is_stored(X) and X.ndim == 2 else has_gaps(X)


def _gaps_by_block(X: Any) -> bool:
    return bool(int(sum_rows(_gaps, X, 9 * X.shape[1])))


def _gaps(block: Array) -> np.ndarray:
    return np.array(int(has_gaps(block)))


def _filled(means: Array, block: Array) -> Array:
    return filled(block, as_like(means, block))
