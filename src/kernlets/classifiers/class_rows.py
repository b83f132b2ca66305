"""The rows of each class, whether in memory, on disk, in a stream or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..contracts import Array
from ..data.check import check_rows
from ..data.rows import on_dask, select_rows
from ..data.stream import Blocks, is_blocks, no_blocks_error
from ..data.weights import Weights
from ..kernels import Kernel, Precomputed
from ..kernels.samples import check_samples, takes_rows
from ..numerics.arrays import index_like, is_dask
from .labels import check_class_count, check_labels

MAX_CONCURRENT = 16  # classes that a cluster works on at a time


@dataclass(frozen=True)
class ClassRows:
    """The classes, their numbers of rows, and access to their rows."""

    classes: np.ndarray  # (n_classes,)
    counts: np.ndarray  # (n_classes,)
    row_numbers: list[np.ndarray]  # of each class; empty if X is not one array
    rows_of_class: Callable[[int], Any]  # a call may allocate memory
    n_concurrent: int | None = None  # classes at a time; None: the number of threads

    def with_weighted_counts(self, weights: Weights) -> ClassRows:
        """Return the same classes with sums of weights as counts."""
        if weights is None:
            return self
        counts = [int(weights[rows].sum()) for rows in self.row_numbers]
        return replace(self, counts=np.array(counts))


def check_labelled_rows(
    estimator: Any, X: Any, kernel: Kernel | None, allow_nan: bool = False
) -> Any:
    """Check X for a fit and set the number of features; check blocks when read."""
    if not is_stream(X, kernel):
        checks: dict[str, Any] = {"ensure_min_samples": 2, "allow_nan": allow_nan}
        return check_samples(estimator, X, kernel, reset=True, lazy=True, **checks)
    if isinstance(X, Iterator):
        raise ValueError(
            "X is an iterator that can be read only once, but each class reads it: "
            "pass a list of blocks, or kernlets.Blocks(function)"
        )
    head = next(iter(X), None)
    if head is None:
        raise no_blocks_error()
    nan_option = {"allow_nan": allow_nan}
    like = check_rows(estimator, head, reset=True, **nan_option)[:0]
    return Blocks(
        lambda: (check_rows(estimator, block, like=like, **nan_option) for block in X)
    )


def is_stream(X: Any, kernel: Kernel | None) -> bool:
    """Whether X is an iterable of blocks of rows, not of samples that are arrays."""
    return is_blocks(X) and takes_rows(kernel)


def split_classes(
    estimator: Any, X: Any, y: Any, kernel: Kernel | None = None
) -> ClassRows:
    """Split checked rows by their labels."""
    if is_dask(X) and y is not None:
        return _split_on_cluster(estimator, X, y)
    n_rows = getattr(X, "shape", [None])[0]  # blocks have no shape
    labels = check_labels(estimator, y, n_rows)
    classes, class_indices = np.unique(labels, return_inverse=True)
    if n_rows is None:
        row_numbers, rows_of_class = (
            _no_row_numbers(len(classes)),
            _rows_in_blocks(X, class_indices),
        )
    else:
        row_numbers = [np.flatnonzero(class_indices == c) for c in range(len(classes))]
        rows_of_class = _rows_in_array(X, row_numbers, kernel)
    return ClassRows(classes, np.bincount(class_indices), row_numbers, rows_of_class)


def _no_row_numbers(n_classes: int) -> list[np.ndarray]:
    return [np.empty(0, dtype=np.intp)] * n_classes


def _split_on_cluster(estimator: Any, X: Any, y: Any) -> ClassRows:
    classes, class_arrays = on_dask().split_rows(X, y)
    check_class_count(estimator, classes)
    counts = np.array([class_array.shape[0] for class_array in class_arrays])
    row_numbers, n_concurrent = (
        _no_row_numbers(len(classes)),
        min(len(classes), MAX_CONCURRENT),
    )
    return ClassRows(
        classes, counts, row_numbers, class_arrays.__getitem__, n_concurrent
    )


def _rows_in_array(
    X: Any, row_numbers: list[np.ndarray], kernel: Kernel | None
) -> Callable[[int], Any]:
    """Return a function for the rows of a class; those of a large file stay on disk."""
    if isinstance(kernel, Precomputed):
        return lambda c: take_samples(X, row_numbers[c], kernel)
    return lambda c: select_rows(X, row_numbers[c])


def take_samples(X: Array, row_numbers: np.ndarray, kernel: Kernel | None) -> Array:
    """Select samples in memory; rows and columns of a precomputed matrix."""
    samples = X[index_like(row_numbers, X)]
    return (
        samples[:, index_like(row_numbers, X)]
        if isinstance(kernel, Precomputed)
        else samples
    )


def _rows_in_blocks(X: Any, class_indices: np.ndarray) -> Callable[[int], Blocks]:
    """Return a function for the blocks of a class, selected as each block is read."""

    def blocks_of_class(c: int) -> Iterator[Array]:
        start = 0
        for block in X:
            end = start + block.shape[0]
            if end > len(class_indices):
                raise ValueError(
                    f"X has more rows than the {len(class_indices)} labels of y"
                )
            row_numbers = np.flatnonzero(class_indices[start:end] == c)
            if len(row_numbers):
                yield block[index_like(row_numbers, block)]
            start = end
        if start != len(class_indices):
            raise ValueError(
                f"X has {start} rows but y has {len(class_indices)} labels"
            )

    return lambda c: Blocks(lambda: blocks_of_class(c))
