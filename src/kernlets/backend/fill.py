"""Rows without gaps, for what cannot work with them, wherever the rows are."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..core import Array
from .arrays import as_like
from .lazy_rows import LazyRows, is_elsewhere, is_stored
from .masks import column_means, filled, has_gaps
from .reading import no_rows
from .rows import is_blocks, map_rows, sum_rows
from .weights import Weights


def at_hand(X: Any) -> bool:
    """Whether all rows are in memory, so that they can be filled in over each other."""
    return not (is_blocks(X) or is_elsewhere(X))


def mean_filled_rows(X: Any, weights: Weights = None) -> Any:
    """X with the means of the columns in place of what is unknown.

    For k-means and other ways to choose first atoms. What follows learns from what was
    observed only. A feature that was never observed is 0 in all rows.
    """
    if is_blocks(X) or not _gaps_by_block(X):
        return X
    fill = partial(_filled, as_like(column_means(X, weights), no_rows(X)))
    if is_stored(X):
        return LazyRows(X, fill, 24 * X.shape[1])
    return map_rows(fill, X, 24 * X.shape[1])


def any_gaps(X: Any) -> bool:
    """Whether anything is unknown of samples in memory, or of rows on disk."""
    return _gaps_by_block(X) if is_stored(X) and X.ndim == 2 else has_gaps(X)


def _gaps_by_block(X: Any) -> bool:
    return bool(int(sum_rows(_gaps, X, 9 * X.shape[1])))


def _gaps(block: Array) -> np.ndarray:
    return np.array(int(has_gaps(block)))


def _filled(means: Array, block: Array) -> Array:
    return filled(block, means)
