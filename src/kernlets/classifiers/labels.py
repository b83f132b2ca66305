"""What classifiers by residual share: labels in, votes out."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from ..backend.arrays import is_torch, move_like, to_numpy
from ..core import Array


class ResidualVoting:
    """`predict` and `decision_function` from `residuals` and `classes_`."""

    classes_: np.ndarray

    def residuals(self, X: Any) -> Array:  # (n, n_classes)
        """Squared residual of each sample for each class."""
        raise NotImplementedError

    def predict(self, X: Any) -> Array:  # (n,)
        """The label with the smallest residual."""
        best = to_numpy(self.residuals(X)).argmin(axis=1)
        labels = self.classes_[best]
        return move_like(labels, X) if labels.dtype.kind in "iufb" else labels

    def decision_function(self, X: Any) -> Array:  # (n, n_classes), (n,) for two
        """Minus the residuals; with two classes, how much better the second fits."""
        residuals = self.residuals(X)
        if residuals.shape[1] == 2:
            return residuals[:, 0] - residuals[:, 1]
        return -residuals

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        # scikit-learn's check has samples in the plane, where a few atoms of any
        # class represent every sample: sparse residuals need room
        tags.classifier_tags.poor_score = True
        return tags


def checked_labels(estimator: Any, y: Any, n_samples: int) -> np.ndarray:
    """Labels as a NumPy array: one per sample, at least two classes."""
    name = type(estimator).__name__
    if y is None:
        raise ValueError(
            f"This {name} estimator requires y to be passed, but the target y is None"
        )
    labels = column_or_1d(to_numpy(y) if is_torch(y) else y, warn=True)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y contains NaN or infinity: remove those samples")
    check_classification_targets(labels)
    if len(labels) != n_samples:
        raise ValueError(
            f"X has {n_samples} samples but y has {len(labels)}: they must be equal"
        )
    if len(np.unique(labels)) < 2:
        raise ValueError(
            f"y has one class only; {name} needs at least 2 classes. For a single "
            "class use a learner, e.g. KSVD"
        )
    return labels
