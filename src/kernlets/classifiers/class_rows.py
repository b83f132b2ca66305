"""The rows of each class, whether in memory, on disk, in a stream or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ..config import options
from ..contracts import Array
from ..data.check import check_rows
from ..data.lazy_rows import n_parts_at_once
from ..data.missing import all_in_memory
from ..data.rows import (
    evenly_spaced_rows,
    load_row_subset,
    on_dask,
    select_rows,
    take_rows,
    with_selectable_columns,
)
from ..data.stream import Blocks, CountedBlocks, is_blocks, no_blocks_error
from ..data.weights import (
    Weights,
    check_weights,
    n_weighted_samples,
    row_numbers_by_weight,
    weights_as_counts,
)
from ..io.checkpoint import branches
from ..kernels import Kernel, Precomputed, resolve
from ..kernels.complete import completed_rows
from ..kernels.samples import check_samples, takes_missing, takes_rows
from ..numerics.arrays import index_like, is_dask, namespace
from ..numerics.threads import parallel
from .labels import (
    check_class_count,
    check_labels,
    drop_unweighted,
    indices_of_labels,
)

MAX_CONCURRENT = 16  # classes that a cluster works on at a time

Result = TypeVar("Result")


@dataclass(frozen=True)
class ClassRows:
    """Checked rows to learn from, their classes, and the rows of each class."""

    X: Any
    classes: np.ndarray  # (n_classes,)
    counts: np.ndarray  # (n_classes,) of samples; a row of weight w counts as w samples
    row_numbers: list[np.ndarray]  # in X, of each class; empty if X is not one array
    of_class: Callable[[int], Any]
    """Returns the rows of a class; a call may allocate memory."""
    weights: Weights = None
    dropped: np.ndarray | None = None
    """Numbers in the input of the rows of X, if rows of weight zero were dropped."""

    @property
    def is_one_array(self) -> bool:
        return sum(map(len, self.row_numbers)) > 0

    def class_weights(self, c: int) -> Weights:
        return None if self.weights is None else self.weights[self.row_numbers[c]]

    def sample(self, n_rows: int) -> tuple[Array, np.ndarray]:  # (m, p), (m,)
        """Read evenly spaced rows of each class, by weight, and their classes.

        Blocks are read once for each class, up to the last of its rows.
        """
        share = min(1.0, n_rows / self.counts.sum())
        numbers, class_indices = [], []
        for c in range(len(self.classes)):
            rows = self._rows_by_weight(c)
            n_sampled = -(-len(rows) * share // 1)
            numbers.append(rows[evenly_spaced_rows(len(rows), int(n_sampled))])
            class_indices.append(np.full(len(numbers[-1]), c))
        if self.is_one_array:
            source, positions = load_row_subset(self.X, np.concatenate(numbers))
            return source[positions], np.concatenate(class_indices)
        parts = [self._take(c, rows) for c, rows in enumerate(numbers) if len(rows)]
        return namespace(parts[0]).concat(parts), np.concatenate(class_indices)

    def _rows_by_weight(self, c: int) -> np.ndarray:
        """Return row numbers of a class: in X if it is one array, or in its rows."""
        if not self.is_one_array:
            return np.arange(self.counts[c])
        rows = self.row_numbers[c]
        return rows[row_numbers_by_weight(len(rows), self.class_weights(c))]

    def _take(self, c: int, numbers: np.ndarray) -> Array:
        rows = self.of_class(c)
        if is_blocks(rows):
            shape = int(self.counts[c]), 0  # the columns are not needed
            return CountedBlocks(rows.read, shape, False).take(numbers)
        return take_rows(rows, numbers)

    def numbers_in_input(self) -> list[np.ndarray]:
        """Return the row numbers of each class in the X that the user passed."""
        if self.dropped is None:
            return self.row_numbers
        return [self.dropped[rows] for rows in self.row_numbers]

    def map_classes(self, caller: str, learn: Callable[[int], Result]) -> list[Result]:
        """Return `learn(c)` for all classes, as many at a time as fit into memory."""
        max_concurrent = n_parts_at_once(self.X, self.counts.max() / self.counts.sum())
        # If a cluster does the work, these threads only wait for it.
        n_waiting = min(len(self.classes), MAX_CONCURRENT)
        n_threads = n_waiting if is_dask(self.X) else options.n_threads
        with options(n_threads=n_threads):
            return map_classes(caller, learn, len(self.classes), max_concurrent)


def map_classes(
    caller: str,
    learn: Callable[[int], Result],
    n_classes: int,
    max_concurrent: int | None = None,
) -> list[Result]:
    """Return `learn(c)` for all classes, each with a folder for its checkpoints."""
    folders = branches(caller, n_classes)

    def learn_class(c: int) -> Result:
        with options(checkpoint=folders[c]):
            return learn(c)

    return parallel(learn_class, range(n_classes), max_concurrent)


def kernel_of(learner: Any) -> Kernel | None:
    """Return the kernel of a kernel learner, or None for a linear learner."""
    kernel = getattr(learner, "kernel", None)
    return None if kernel is None else resolve(kernel)


def check_class_rows(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    learner: Any,
) -> ClassRows:
    """Check the rows, labels and weights of a fit, and split them by class.

    Missing entries are filled in, unless the learner learns from rows that have some.
    """
    kernel, learns_missing = (
        kernel_of(learner),
        getattr(learner, "_learns_missing", False),
    )
    allow_nan = learns_missing or (takes_missing(kernel) and all_in_memory(X))
    X = _check_training_rows(estimator, X, kernel, allow_nan)
    weights, dropped = weights_as_counts(check_weights(sample_weight, X)), None
    if not isinstance(kernel, Precomputed):  # new samples need all of its columns
        X, y, weights, dropped = drop_unweighted(X, y, weights)
    X = X if learns_missing else completed_rows(X, weights)
    if is_dask(X) and y is not None:
        return _split_on_cluster(estimator, X, y)
    n_rows = getattr(X, "shape", [None])[0]  # blocks have no shape
    labels = check_labels(estimator, y, n_rows)
    classes, class_indices = np.unique(labels, return_inverse=True)
    if n_rows is None:
        counts, none = np.bincount(class_indices), no_row_numbers(len(classes))
        return ClassRows(X, classes, counts, none, _select_blocks(X, class_indices))
    rows = _split_array(X, classes, class_indices, weights, kernel)
    return replace(rows, dropped=dropped)


def check_stream_rows(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    learner: Any,
    is_first: bool,
) -> tuple[Array, np.ndarray, Weights]:
    """Check the next rows, labels and weights of a labelled stream."""
    kernel = kernel_of(learner)
    if isinstance(kernel, Precomputed):
        raise ValueError("partial_fit takes no precomputed kernel: use fit")
    allow_nan = getattr(learner, "_streams_missing", False)
    X = check_samples(estimator, X, kernel, reset=is_first, allow_nan=allow_nan)
    X, y, weights, _ = drop_unweighted(X, y, check_weights(sample_weight, X))
    return X, check_labels(estimator, y, X.shape[0], min_classes=1), weights


def split_stream_rows(
    X: Array, labels: np.ndarray, weights: Weights, classes: np.ndarray
) -> ClassRows:
    """Split the next rows of a labelled stream by the classes of its first rows."""
    class_indices = indices_of_labels(labels, classes)
    return _split_array(X, classes, class_indices, weights, None)


def check_new_samples(estimator: Any, X: Any, learner: Any) -> Any:
    """Check new samples, and convert them like the model of a fitted learner.

    Of a kernel matrix, whose columns the classes share, `LazyRows` are read.
    """
    kernel, like = fitted_kernel(learner), getattr(learner, "_model_array", None)
    X = check_samples(
        estimator, X, kernel, containers="dask", like=like, allow_nan=True
    )
    if isinstance(kernel, Precomputed):
        return with_selectable_columns(X, type(estimator).__name__)
    return X


def fitted_kernel(learner: Any) -> Kernel | None:
    """Return the kernel of a fitted learner with all parameters set, or None."""
    return getattr(learner, "kernel_", None)


def _check_training_rows(
    estimator: Any, X: Any, kernel: Kernel | None, allow_nan: bool
) -> Any:
    """Check X for a fit and set the number of features; check blocks when read."""
    if not is_stream(X, kernel):
        return check_samples(
            estimator,
            X,
            kernel,
            reset=True,
            containers="dask",
            ensure_min_samples=2,
            allow_nan=allow_nan,
        )
    if isinstance(X, Iterator):
        raise ValueError(
            "X is an iterator that can be read only once, but each class reads it: "
            "pass a list of blocks, or kernlets.Blocks(function)"
        )
    head = next(iter(X), None)
    if head is None:
        raise no_blocks_error()
    like = check_rows(estimator, head, reset=True, allow_nan=allow_nan)[:0]
    return check_rows(estimator, X, containers="stream", like=like, allow_nan=allow_nan)


def is_stream(X: Any, kernel: Kernel | None) -> bool:
    """Whether X is an iterable of blocks of rows, not of samples that are arrays."""
    return is_blocks(X) and takes_rows(kernel)


def _split_array(
    X: Any,
    classes: np.ndarray,
    class_indices: np.ndarray,
    weights: Weights,
    kernel: Kernel | None,
) -> ClassRows:
    """Split rows in one array; those of a class in a large file stay on disk."""
    row_numbers = [np.flatnonzero(class_indices == c) for c in range(len(classes))]
    counts = [
        n_weighted_samples(None if weights is None else weights[rows], len(rows))
        for rows in row_numbers
    ]

    def of_class(c: int) -> Any:
        if not isinstance(kernel, Precomputed):
            return select_rows(X, row_numbers[c])
        rows = index_like(row_numbers[c], X)
        return X[rows][:, rows]

    return ClassRows(X, classes, np.array(counts), row_numbers, of_class, weights)


def no_row_numbers(n_classes: int) -> list[np.ndarray]:
    return [np.empty(0, dtype=np.intp)] * n_classes


def _split_on_cluster(estimator: Any, X: Any, y: Any) -> ClassRows:
    classes, class_arrays = on_dask().split_rows(X, y)
    check_class_count(estimator, classes)
    counts = np.array([class_array.shape[0] for class_array in class_arrays])
    none = no_row_numbers(len(classes))
    return ClassRows(X, classes, counts, none, class_arrays.__getitem__)


def _select_blocks(X: Any, class_indices: np.ndarray) -> Callable[[int], Blocks]:
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
