"""The rows of each class, whether in memory, on disk, in a stream or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..backend.arrays import index_like, is_dask
from ..backend.cluster import dask_labels
from ..backend.lazy_rows import LazyRows, is_stored
from ..backend.rows import Blocks, is_blocks, no_blocks
from ..backend.validation import check_rows
from ..config import options
from ..core import Array, Kernel
from ..kernels import Callable as CallableKernel
from ..kernels import Precomputed
from ..kernels.check_samples import check_samples
from .labels import check_count, checked_labels


@dataclass(frozen=True)
class ClassParts:
    """The classes, their numbers of rows, and access to their rows."""

    classes: np.ndarray  # (n_classes,)
    counts: np.ndarray  # (n_classes,)
    rows: list[np.ndarray]  # row numbers; empty if the rows are not in one array
    part: Callable[[int], Any]  # the rows of a class; a call may allocate memory


def labelled_rows(estimator: Any, X: Any, kernel: Kernel | None) -> Any:
    """Check X for a fit, which sets the number of features; blocks as they are read."""
    if not is_stream(X, kernel):
        return check_samples(
            estimator, X, kernel, reset=True, ensure_min_samples=2, lazy=True
        )
    if isinstance(X, Iterator):
        raise ValueError(
            "X is an iterator that can be read only once, but each class reads it: "
            "pass a list of blocks, or kernlets.Blocks(function)"
        )
    head = next(iter(X), None)
    if head is None:
        raise no_blocks()
    like = check_rows(estimator, head, reset=True)[:0]
    return Blocks(lambda: (check_rows(estimator, block, like=like) for block in X))


def is_stream(X: Any, kernel: Kernel | None) -> bool:
    """Whether X is an iterable of blocks, and not samples for a callable kernel."""
    return is_blocks(X) and not isinstance(kernel, CallableKernel)


def split_classes(
    estimator: Any, X: Any, y: Any, kernel: Kernel | None = None
) -> ClassParts:
    """Split checked rows by their labels."""
    if is_dask(X) and y is not None:
        return _split_on_cluster(estimator, X, y)
    in_blocks = is_stream(X, kernel)
    labels = checked_labels(estimator, y, None if in_blocks else X.shape[0])
    classes, codes = np.unique(labels, return_inverse=True)
    if in_blocks:
        rows, part = _no_rows(len(classes)), _from_blocks(X, codes)
    else:
        rows = [np.flatnonzero(codes == c) for c in range(len(classes))]
        part = _from_array(X, rows, kernel)
    return ClassParts(classes, np.bincount(codes), rows, part)


def _no_rows(n_classes: int) -> list[np.ndarray]:
    return [np.empty(0, dtype=np.intp)] * n_classes


def _split_on_cluster(estimator: Any, X: Any, y: Any) -> ClassParts:
    classes, parts = dask_labels().split_rows(X, y)
    check_count(estimator, classes)
    counts = np.array([part.shape[0] for part in parts])
    return ClassParts(classes, counts, _no_rows(len(classes)), parts.__getitem__)


def _from_array(
    X: Any, rows: list[np.ndarray], kernel: Kernel | None
) -> Callable[[int], Any]:
    """Rows of one array; rows of a large array on disk stay there."""
    large = is_stored(X) and X.nbytes > options.memory // 4
    if large and not isinstance(kernel, Precomputed):
        # all rows between the first and the last one of a block are mapped
        return lambda c: LazyRows(X, None, X.nbytes // len(rows[c]), rows[c])
    return lambda c: rows_of(X, rows[c], kernel)


def rows_of(X: Array, rows: np.ndarray, kernel: Kernel | None) -> Array:
    """Some samples in memory; rows and columns of a precomputed matrix."""
    part = X[index_like(rows, X)]
    return part[:, index_like(rows, X)] if isinstance(kernel, Precomputed) else part


def _from_blocks(X: Any, codes: np.ndarray) -> Callable[[int], Blocks]:
    """Blocks with the rows of one class, taken as each block is read."""

    def members(c: int) -> Iterator[Array]:
        begin = 0
        for block in X:
            end = begin + block.shape[0]
            if end > len(codes):
                raise ValueError(f"X has more rows than the {len(codes)} labels of y")
            chosen = np.flatnonzero(codes[begin:end] == c)
            if len(chosen):
                yield block[index_like(chosen, block)]
            begin = end
        if begin != len(codes):
            raise ValueError(f"X has {begin} rows but y has {len(codes)} labels")

    return lambda c: Blocks(lambda: members(c))
