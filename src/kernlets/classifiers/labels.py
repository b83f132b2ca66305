"""Checks of labels, and predictions from scores or residuals, for all classifiers."""

from __future__ import annotations

import operator
import warnings
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets

from ..contracts import Array, SparseCodes
from ..data.labels import label_values
from ..data.missing import has_missing
from ..data.rows import apply_to_rows, on_dask
from ..data.weights import check_weights, repeat_by_weight
from ..kernels import Precomputed
from ..kernels.base import Kernel
from ..kernels.complete import completed_rows
from ..numerics.arrays import (
    as_like,
    empty,
    index_like,
    is_dask,
    move_like,
    namespace,
    or_wider,
    to_numpy,
)
from ..numerics.scaling import quiet
from ..schema import Declared, Labels, Size


class ScoreVoting:
    """`predict` and `decision_function` from `_scores` and `classes_`."""

    _declared: ClassVar[Declared] = {
        "n_features_in_": Size("p"),
        "classes_": Labels("C"),
    }

    classes_: np.ndarray

    def _scores(self, X: Any) -> Array:  # (n, n_classes)
        """Return the score of each class for each sample; the largest wins."""
        raise NotImplementedError

    def predict(self, X: Any) -> Array:  # (n,)
        """Return the label with the best score."""
        scores = self._scores(X)  # first, because it checks that this is fitted
        labels = apply_to_rows(partial(_winners, self.classes_), scores)
        is_movable = isinstance(labels, np.ndarray) and labels.dtype.kind in "iufb"
        return move_like(labels, X) if is_movable else labels

    def decision_function(self, X: Any) -> Array:  # (n, n_classes), (n,) for two
        """Return the score of each class; of two, the second minus the first."""
        return apply_to_rows(_margins, self._scores(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the rows whose label is predicted correctly."""
        predicted = self.predict(X)
        if is_dask(predicted):
            return on_dask().weighted_accuracy(predicted, y, sample_weight)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        # scikit-learn's check uses samples in the plane, where a few atoms of any
        # class represent every sample; sparse codes need more dimensions
        tags.classifier_tags.poor_score = True
        return tags


class ResidualVoting(ScoreVoting):
    """The class with the smallest of the `residuals` wins."""

    def residuals(self, X: Any) -> Array:  # (n, n_classes)
        """Return the squared residual of each sample for each class."""
        raise NotImplementedError

    def _scores(self, X: Any) -> Array:  # (n, n_classes)
        return apply_to_rows(operator.neg, self.residuals(X))


def _winners(classes: np.ndarray, scores: Array) -> np.ndarray:  # (n,)
    return classes[to_numpy(_check_finite(scores)).argmax(axis=1)]


def _margins(scores: Array) -> Array:
    scores = _check_finite(scores)
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


def _check_finite(scores: Array) -> Array:
    """Return the scores, or raise an error if they are not finite."""
    xp = namespace(scores)
    if not bool(xp.all(xp.isfinite(scores))):
        raise ValueError(
            f"scores of classes are not finite in {scores.dtype}: the samples are too "
            f"large. Scale them as those of the training{or_wider(scores.dtype)}"
        )
    return scores


def class_residuals(
    codes: SparseCodes,  # n
    gram: Array,  # (m, m)
    corr: Array,  # (n, m)
    energy: Array,  # (n,)
    atom_classes: np.ndarray,  # (m,) class indices
    n_classes: int,
) -> Array:  # (n, n_classes)
    """‖x − γ_c D_c‖² = ‖x‖² − 2⟨γ_c, corr_c⟩ + γ_c G γ_cᵀ, class by class."""
    xp = namespace(corr)
    dense = codes.toarray()
    residuals = empty((corr.shape[0], n_classes), like=corr)
    for c in range(n_classes):
        atoms = index_like(np.flatnonzero(atom_classes == c), corr)
        class_codes = dense[:, atoms]
        with quiet():  # `_check_finite` refuses scores that overflow
            slopes = 2 * corr[:, atoms] - class_codes @ gram[atoms][:, atoms]
            residuals[:, c] = energy - xp.sum(class_codes * slopes, axis=1)
    return xp.clip(residuals, 0, None)


def prior_residuals(
    residuals: Array,  # (n, n_classes)
    X: Any,  # (n, p)
    counts: np.ndarray,  # (n_classes,)
    temperature: float = 1.0,
) -> Array:  # (n, n_classes)
    """Set residuals of rows without observed values to −temperature·log(prior).

    The most frequent class then wins, and softmax(−residuals/temperature) is the prior.
    """
    if not has_missing(X):
        return residuals
    xp = namespace(residuals)
    is_all_missing = xp.all(xp.isnan(X), axis=1)
    n_empty = int(xp.sum(xp.astype(is_all_missing, xp.int64)))
    if n_empty == 0:
        return residuals
    warnings.warn(
        f"{n_empty} rows of X have no observed value: their label is that of the "
        "largest class",
        stacklevel=2,
    )
    prior = np.maximum(counts, 1e-9) / counts.sum()
    prior_levels = as_like(-temperature * np.log(prior), residuals)
    return xp.where(is_all_missing[:, None], prior_levels, residuals)


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


def complete_samples(
    estimator: Any, X: Array, y: Any, sample_weight: Any, kernel: Kernel | None = None
) -> tuple[Array, np.ndarray, np.ndarray]:
    """Repeat samples by their weights, fill them in, and set `classes_`.

    This is for classifiers that compare samples with each other and cannot use weights,
    which must be whole numbers. Return the samples, the index in `classes_` of the
    class of each, and its row number in X.
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
    estimator.classes_, class_indices = np.unique(labels, return_inverse=True)
    return completed_rows(X), class_indices, row_numbers


def check_class_count(
    estimator: Any, classes: np.ndarray, min_classes: int = 2
) -> None:
    """Raise if there are too few classes."""
    if len(classes) < min_classes:
        raise ValueError(
            f"y has one class only; {type(estimator).__name__} needs at least 2 "
            "classes. For a single class use a learner, e.g. KSVD"
        )
