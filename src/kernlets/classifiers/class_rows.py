"""The rows of each class, whether in memory, on disk, in a stream or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..backend.arrays import index_like, is_dask
from ..backend.load_dask import dask_labels
from ..backend.rows import Blocks, is_blocks, no_blocks_error, select_rows
from ..backend.validation import check_rows
from ..backend.weights import Weights
from ..core import Array, Kernel
from ..kernels import Precomputed
from ..kernels.check_samples import check_samples, takes_rows
from .labels import check_count, checked_labels

MANY = 16  # number of classes that a cluster works on at a time


@dataclass(frozen=True)
class ClassParts:
    """The classes, their numbers of rows, and access to their rows."""

    classes: np.ndarray  # (n_classes,)
    counts: np.ndarray  # (n_classes,)
    rows: list[np.ndarray]  # row numbers; empty if the rows are not in one array
    part: Callable[[int], Any]  # the rows of a class; a call may allocate memory
    at_once: int | None = None  # classes that a cluster works on; None: as threads

    def counted(self, weights: Weights) -> ClassParts:
        """The same with counts by the weights of the rows."""
        if weights is None:
            return self
        counts = [int(weights[rows].sum()) for rows in self.rows]
        return replace(self, counts=np.array(counts))


def labelled_rows(
    estimator: Any, X: Any, kernel: Kernel | None, allow_nan: bool = False
) -> Any:
    """Check X for a fit, which sets the number of features; blocks as they are read."""
    if not is_stream(X, kernel):
        keys: dict[str, Any] = {"ensure_min_samples": 2, "allow_nan": allow_nan}
        return check_samples(estimator, X, kernel, reset=True, lazy=True, **keys)
    if isinstance(X, Iterator):
        raise ValueError(
            "X is an iterator that can be read only once, but each class reads it: "
            "pass a list of blocks, or kernlets.Blocks(function)"
        )
    head = next(iter(X), None)
    if head is None:
        raise no_blocks_error()
    gaps = {"allow_nan": allow_nan}
    like = check_rows(estimator, head, reset=True, **gaps)[:0]
    return Blocks(lambda: (check_rows(estimator, b, like=like, **gaps) for b in X))


def is_stream(X: Any, kernel: Kernel | None) -> bool:
    """Whether X is an iterable of blocks, and not of samples that are arrays."""
    return is_blocks(X) and takes_rows(kernel)


def split_classes(
    estimator: Any, X: Any, y: Any, kernel: Kernel | None = None
) -> ClassParts:
    """Split checked rows by their labels."""
    if is_dask(X) and y is not None:
        return _split_on_cluster(estimator, X, y)
    n_rows = getattr(X, "shape", [None])[0]  # blocks have no shape
    labels = checked_labels(estimator, y, n_rows)
    classes, codes = np.unique(labels, return_inverse=True)
    if n_rows is None:
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
    rows, at_once = _no_rows(len(classes)), min(len(classes), MANY)
    return ClassParts(classes, counts, rows, parts.__getitem__, at_once)


def _from_array(
    X: Any, rows: list[np.ndarray], kernel: Kernel | None
) -> Callable[[int], Any]:
    """Rows of one array; rows of a large array on disk stay there."""
    if isinstance(kernel, Precomputed):
        return lambda c: rows_of(X, rows[c], kernel)
    return lambda c: select_rows(X, rows[c])


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
