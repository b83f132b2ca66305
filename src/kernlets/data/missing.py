"""Missing entries: an entry of a row that is NaN is missing.

NaN in the rows themselves is the mask, so that every container transports it: blocks,
memory maps, devices and clusters. `split_mask` separates it for one block at a time,
where inner products are formed; see `kernlets.coders.masked`. Algorithms that need
complete rows get means in place of missing entries.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..contracts import Array
from ..numerics.arrays import (
    as_float,
    as_like,
    double,
    index_like,
    is_array,
    namespace,
    to_numpy,
    working_dtype,
)
from ..numerics.scaling import refuse_large_sums
from .lazy_rows import LazyRows, is_lazy, is_lazy_or_dask
from .rows import map_rows, sum_rows
from .stream import CountedBlocks, is_blocks
from .weights import Weights, weights_of_rows


class MaskedRows(NamedTuple):
    """A block of rows with zeros for missing entries, and the mask of observed ones."""

    rows: Array  # (n, p)
    observed: Array  # (n, p) booleans


class MaskGroup(NamedTuple):
    """Rows of a block that have the same mask."""

    rows: np.ndarray  # (k,) indices in the block
    features: np.ndarray  # (q,) indices of the observed features


def has_missing(X: Any) -> bool:
    """Whether a block of rows of numbers has missing entries."""
    if not is_array(X) or X.ndim != 2 or 0 in X.shape:
        return False
    if isinstance(X, np.ndarray):  # with NaN the minimum is NaN
        return X.dtype.kind == "f" and bool(np.isnan(X.min()))
    return X.is_floating_point() and bool(X.amin().isnan())


def split_mask(X: Array) -> MaskedRows:
    """Separate the mask from the rows."""
    xp = namespace(X)
    observed = ~xp.isnan(X)
    return MaskedRows(xp.where(observed, X, xp.zeros_like(X)), observed)


def apply_by_completeness(
    complete: Callable[[Array], Array],  # makes a new array
    incomplete: Callable[[Array], Array],
    X: Array,  # (n, p)
) -> Array:  # (n, ·)
    """Apply `complete` to the complete rows of a block, and `incomplete` to the others.

    The result of a row does not depend on missing entries of other rows; see
    `replace_incomplete_rows`.
    """
    if not has_missing(X):
        return complete(X)
    rows = incomplete_rows(X)
    incomplete_results = incomplete(X[index_like(rows, X)])
    if len(rows) == X.shape[0]:
        return incomplete_results
    results = complete(replace_incomplete_rows(X, rows))
    results[index_like(rows, X)] = incomplete_results
    return results


def incomplete_rows(X: Array) -> np.ndarray:
    """Return the numbers of the rows of a block that have NaN."""
    return np.flatnonzero(to_numpy(namespace(X).isnan(X).any(axis=1)))


def replace_incomplete_rows(X: Array, rows: np.ndarray) -> Array:  # (n, p)
    """Return the block with its first complete row in place of these, incomplete rows.

    Products of matrices of other shapes are rounded differently. So complete rows are
    computed in a block that has as many rows as it would have without NaN.
    """
    is_complete = np.ones(X.shape[0], dtype=bool)
    is_complete[rows] = False
    block_of_complete_rows = namespace(X).asarray(X, copy=True)
    block_of_complete_rows[index_like(rows, X)] = X[int(is_complete.argmax())]
    return block_of_complete_rows


def group_by_mask(observed: np.ndarray) -> list[MaskGroup]:  # (n, p)
    """Group rows by their masks, in the order of the masks' bits."""
    bits = np.packbits(observed, axis=1)
    mask_keys = np.ascontiguousarray(bits).view(f"V{bits.shape[1]}")[:, 0]
    _, first_rows, group = np.unique(mask_keys, return_index=True, return_inverse=True)
    rows = _cut_at_lengths(np.argsort(group, kind="stable"), np.bincount(group))
    features_and_counts = (
        np.nonzero(observed[first_rows])[1],
        observed[first_rows].sum(axis=1),
    )
    return list(map(MaskGroup, rows, _cut_at_lengths(*features_and_counts)))


def _cut_at_lengths(x: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
    """Cut x into consecutive pieces, much faster than `np.split` for many pieces."""
    ends = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    return [x[begin:end] for begin, end in pairwise(ends)]


def take_observed(X: Array, group: MaskGroup) -> Array:  # (k, q)
    """Return the observed entries of the rows of one group."""
    return X[index_like(group.rows, X)][:, index_like(group.features, X)]


def fill_missing(X: Array, values: Array) -> Array:  # (n, p), (n, p) or (p,)
    """Return X with `values` in place of missing entries."""
    xp = namespace(X)
    return xp.where(xp.isnan(X), values, X)


def first_observed(X: Array) -> Array:  # (p,)
    """Return the first observed value of each column, 0 if there is none."""
    if not has_missing(X):
        return X[0]
    xp, (rows, observed) = namespace(X), split_mask(X)
    first_rows = xp.argmax(xp.astype(observed, xp.int8), axis=0)
    return rows[first_rows, xp.arange(X.shape[1])]


def drop_empty_rows(X: Array) -> Array:  # (n', p)
    """Drop the rows of a block in which all entries are missing."""
    if not has_missing(X):
        return X
    xp = namespace(X)
    is_observed = to_numpy(~xp.isnan(X).all(axis=1))
    return X if is_observed.all() else X[index_like(np.flatnonzero(is_observed), X)]


def column_means(X: Any, weights: Weights = None) -> Array:  # (p,)
    """Return the mean of the observed entries of each feature, 0 if there are none."""
    observed_sums = partial(_observed_sums, weights)
    totals = sum_rows(observed_sums, X, 32 * X.shape[1], numbered=weights is not None)
    refuse_large_sums(totals, "the sums of columns")
    xp = namespace(totals)
    never_observed = np.flatnonzero(to_numpy(totals[0]) == 0)
    if len(never_observed):
        names = ", ".join(map(str, never_observed[:5])) + (
            ", ..." if len(never_observed) > 5 else ""
        )
        warnings.warn(
            f"X has {len(never_observed)} features that were never observed "
            f"(columns {names}): "
            "nothing is learned of them, and they are filled with 0",
            stacklevel=2,
        )
    return totals[1] / xp.where(totals[0] > 0, totals[0], 1.0)


def _observed_sums(weights: Weights, block: Array, first: int = 0) -> Array:  # (2, p)
    xp, (rows, observed) = namespace(block), split_mask(block)
    counts, values = double(xp.astype(observed, rows.dtype)), double(rows)
    row_weights = weights_of_rows(weights, first, block.shape[0], values)
    if row_weights is not None:
        return xp.stack([row_weights @ counts, row_weights @ values])
    return xp.stack([xp.sum(counts, axis=0), xp.sum(values, axis=0)])


def masked_to_nan(X: Any) -> Any:
    """Convert an array of `numpy.ma` to rows with NaN where it is masked."""
    if not np.ma.isMaskedArray(X):
        return X
    return np.ma.filled(X.astype(working_dtype(X.dtype)), np.nan)


def mark_missing(
    X: Any, missing: Any = None, *, value: float | None = None
) -> np.ndarray:  # (n, p)
    """Return rows with NaN, which means missing, where a mask or a value says so.

    For data that cannot hold NaN: whole numbers with a mask beside them, or with a
    value that stands for "not measured". All estimators with the tag ``allow_nan``
    accept the result. They also accept `numpy.ma` arrays directly.

    Parameters
    ----------
    X : array (n, p)
        The rows.
    missing : array of booleans (n, p), optional
        True where an entry is missing.
    value : number, optional
        The number that stands for "missing", e.g. -1 or 9999.

    Returns
    -------
    array (n, p)
        A copy of X in floating point.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import mark_missing
    >>> mark_missing(np.array([[1, -9], [3, 4]]), value=-9).tolist()
    [[1.0, nan], [3.0, 4.0]]
    """
    rows = as_float(np.array(X))
    if missing is None and value is None:
        raise ValueError("mark_missing needs missing, an array of booleans, or a value")
    for mask in _missing_masks(rows, missing, value):
        rows[mask] = np.nan
    return rows


def _missing_masks(
    rows: np.ndarray, missing: Any, value: float | None
) -> Iterator[np.ndarray]:
    if missing is not None:
        mask = np.asarray(missing)
        if mask.dtype != bool or mask.shape != rows.shape:
            raise ValueError(
                f"missing has shape {mask.shape} and dtype {mask.dtype}, but it must "
                f"be an array of booleans of the shape of X, {rows.shape}"
            )
        yield mask
    if value is not None:
        yield rows == value


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
    if is_blocks(X) or not any_missing(X):
        return X
    fill = partial(_fill_block, column_means(X, weights))
    if is_lazy(X):
        return LazyRows(X, fill, 24 * X.shape[1])
    return map_rows(fill, X, 24 * X.shape[1])


def count_blocks(X: Any) -> CountedBlocks:
    """Count the rows of blocks in one pass, and look for missing entries."""
    n, p, is_incomplete = 0, 0, False
    for block in X:
        n, p = n + block.shape[0], block.shape[1]
        is_incomplete = is_incomplete or has_missing(block)
    return CountedBlocks(lambda: iter(X), (n, p), is_incomplete)


def any_missing(X: Any) -> bool:
    """Whether a source of rows of numbers has missing entries; it is read for that."""
    if all_in_memory(X) or X.ndim != 2:
        return has_missing(X)
    n_incomplete_blocks = sum_rows(
        lambda block: np.array(int(has_missing(block))), X, 9 * X.shape[1]
    )
    return bool(n_incomplete_blocks > 0)


def _fill_block(means: Array, block: Array) -> Array:
    return fill_missing(block, as_like(means, block))
