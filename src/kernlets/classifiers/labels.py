"""Check labels, and prepare samples for classifiers that compare them directly."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from ..contracts import Array
from ..data.labels import label_classes, label_values
from ..data.weights import (
    Weights,
    check_weights,
    drop_zero_weights,
    nonzero_weight_rows,
    repeat_by_weight,
    weights_as_counts,
)
from ..kernels import Kernel, Precomputed
from ..kernels.complete import completed_rows
from ..numerics.arrays import index_like


def check_labels(
    estimator: Any, y: Any, n_samples: int | None, min_classes: int = 2
) -> np.ndarray:
    """Return labels as a NumPy array; check their number and that of the classes.

    `n_samples` is None if the number of samples is unknown before they are read.
    """
    name = type(estimator).__name__
    if y is None:
        raise ValueError(
            f"This {name} estimator requires y to be passed, but the target y is None"
        )
    labels = label_values(y)
    check_classification_targets(labels)
    if n_samples is not None and len(labels) != n_samples:
        raise ValueError(
            f"X has {n_samples} samples but y has {len(labels)} labels: pass one label "
            "per sample"
        )
    check_class_count(estimator, np.unique(labels), min_classes)
    return labels


def check_class_count(
    estimator: Any, classes: np.ndarray, min_classes: int = 2
) -> None:
    """Raise if there are too few classes."""
    if len(classes) < min_classes:
        raise ValueError(
            f"y has one class only; {type(estimator).__name__} needs at least 2 "
            "classes. For a single class use a learner, e.g. KSVD"
        )


def stream_classes(classes: Any) -> np.ndarray:
    """Return the classes of a stream, in order."""
    return np.unique(label_values(classes))


def indices_of_labels(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:  # (n,)
    """Return the index in `classes`, those of a stream, of each label."""
    label_classes([classes, labels])  # text and numbers cannot be compared
    unknown_labels = np.setdiff1d(labels, classes)
    if len(unknown_labels):
        raise ValueError(
            f"y has the label {unknown_labels[0]}, which the first call did not "
            "name: pass all labels of the stream as classes to the first "
            "partial_fit"
        )
    return np.searchsorted(classes, labels)


def drop_unweighted(
    X: Any, y: Any, weights: Weights
) -> tuple[Any, Any, Weights, np.ndarray | None]:
    """Drop rows of weight zero and their labels, if the rows are in memory.

    Also return the numbers of the other rows, or None if these are all rows.
    """
    row_numbers = nonzero_weight_rows(X, weights)
    if row_numbers is None or y is None:
        return X, y, weights, None
    labels = label_values(y)
    if len(labels) != X.shape[0]:
        return X, y, weights, None  # the labels are refused later
    X, weights = drop_zero_weights(X, weights)
    return X, labels[row_numbers], weights, row_numbers


class WeightedSamples(NamedTuple):
    """Samples without missing values, with labels and weights above zero."""

    X: Array  # (n, p)
    class_indices: np.ndarray  # (n,) in `classes`
    classes: np.ndarray  # (n_classes,)
    counts: np.ndarray  # (n_classes,) sums of the weights
    weights: Weights  # (n,)


def weighted_samples(
    estimator: Any, X: Array, y: Any, sample_weight: Any
) -> WeightedSamples:
    """Check labels and weights of samples in memory, and fill in missing values."""
    weights = weights_as_counts(check_weights(sample_weight, X))
    X, y, weights, _ = drop_unweighted(X, y, weights)
    labels = check_labels(estimator, y, X.shape[0])
    classes, class_indices = np.unique(labels, return_inverse=True)
    counts = np.rint(np.bincount(class_indices, weights)).astype(np.int64)
    X = completed_rows(X, weights)
    return WeightedSamples(X, class_indices, classes, counts, weights)


class CompleteSamples(NamedTuple):
    """Samples without missing values, with labels, each counted once."""

    X: Array  # (n, ...)
    class_indices: np.ndarray  # (n,) in `classes`
    classes: np.ndarray  # (n_classes,)
    row_numbers: np.ndarray  # (n,) in the X of the user


def complete_samples(
    estimator: Any, X: Array, y: Any, sample_weight: Any, kernel: Kernel | None = None
) -> CompleteSamples:
    """Check labels, repeat samples by their weights, and fill in missing values.

    This is for classifiers that compare samples with each other and cannot use weights,
    which must be whole numbers.
    """
    weights = check_weights(sample_weight, X)
    row_numbers = repeat_by_weight(X.shape[0], weights, type(estimator).__name__)
    labels = check_labels(estimator, y, X.shape[0])
    if row_numbers is None:
        row_numbers = np.arange(X.shape[0])
    elif isinstance(kernel, Precomputed):
        raise ValueError(
            "sample_weight cannot repeat the columns that new samples have of a "
            "precomputed kernel: repeat rows and columns of the matrix, or use "
            "ResidualClassifier"
        )
    else:
        X, labels = X[index_like(row_numbers, X)], labels[row_numbers]
        check_class_count(estimator, np.unique(labels))
    classes, class_indices = np.unique(labels, return_inverse=True)
    return CompleteSamples(completed_rows(X), class_indices, classes, row_numbers)
