"""Classification by the smallest residual over one dictionary per class."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..backend.arrays import (
    as_like,
    check_rows,
    index_like,
    is_torch,
    move_like,
    namespace,
    to_numpy,
)
from ..backend.random import generator
from ..backend.threads import parallel
from ..core import Array
from ..learners import KSVD


class ResidualClassifier(ClassifierMixin, BaseEstimator):
    """One dictionary per class; a sample goes to the class that represents it best.

    The distributive scheme of LKDL, section IV-D: r_c = ‖f − D_c γ_c‖², argmin over c.
    Any learner with `reconstruction_error` serves, behind any feature map::

        make_pipeline(NystroemMap("poly:2"), ResidualClassifier(KSVD(300)))

    Parameters
    ----------
    learner : dictionary learner, optional
        Cloned for each class. Default: ``KSVD()``. A class with fewer samples than
        ``n_components`` gets as many atoms as samples, with a warning.
    random_state : int, RandomState, Generator or None
        Seeds the learners that have no ``random_state`` of their own.

    Attributes
    ----------
    classes_ : array of labels
    learners_ : list of fitted learners, one per class
    temperature_ : float
        Mean squared training residual, the unit in which `predict_proba` measures.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learner": [BaseEstimator, None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self, learner: BaseEstimator | None = None, random_state: Any = None
    ) -> None:
        self.learner = learner
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ResidualClassifier:
        """Learn one dictionary for the rows of each class."""
        self._validate_params()
        X = check_rows(self, X, reset=True, ensure_min_samples=2)
        labels = _checked_labels(y, X.shape[0])
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                "y has one class only; a classifier needs at least 2 classes. For a "
                "single class use the learner itself, e.g. KSVD"
            )
        learner = KSVD() if self.learner is None else self.learner
        members = [np.flatnonzero(codes == c) for c in range(len(self.classes_))]
        seeds = generator(self.random_state).integers(2**31, size=len(members))

        def fit_class(job: tuple[np.ndarray, int]) -> Any:
            rows, seed = job
            return _prepared(learner, len(rows), seed).fit(X[index_like(rows, X)])

        self.learners_ = parallel(fit_class, zip(members, seeds.tolist(), strict=True))
        errors = [fitted.history_["objective"][-1] for fitted in self.learners_]
        sizes = [len(rows) for rows in members]
        self.temperature_ = float(np.average(errors, weights=sizes))
        return self

    def residuals(self, X: Any) -> Array:  # (n, n_classes)
        """Squared residual of each sample over the dictionary of each class."""
        check_is_fitted(self)
        X = check_rows(self, X)
        columns = [
            fitted.reconstruction_error(X, per_sample=True) for fitted in self.learners_
        ]
        return namespace(columns[0]).stack(columns, axis=1)

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

    def predict_proba(self, X: Any) -> Array:  # (n, n_classes)
        """softmax(−r / temperature_): a ranking between 0 and 1, not calibrated.

        Wrap the classifier in scikit-learn's `CalibratedClassifierCV` where the
        numbers must mean frequencies.
        """
        residuals = self.residuals(X)
        xp = namespace(residuals)
        unit = max(self.temperature_, float(xp.finfo(residuals.dtype).tiny) ** 0.5)
        excess = residuals - xp.min(residuals, axis=1, keepdims=True)
        weights = xp.exp(-excess / as_like(unit, residuals))
        return weights / xp.sum(weights, axis=1, keepdims=True)


    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's check has samples in the plane, where a few atoms of any
        # class represent every sample: sparse residuals need room
        tags.classifier_tags.poor_score = True
        return tags


def _checked_labels(y: Any, n_samples: int) -> np.ndarray:
    if y is None:
        raise ValueError(
            "This ResidualClassifier estimator requires y to be passed, but the "
            "target y is None"
        )
    labels = column_or_1d(to_numpy(y) if is_torch(y) else y, warn=True)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y contains NaN or infinity: remove those samples")
    check_classification_targets(labels)
    if len(labels) != n_samples:
        raise ValueError(
            f"X has {n_samples} samples but y has {len(labels)}: they must be equal"
        )
    return labels


def _prepared(learner: BaseEstimator, n_samples: int, seed: int) -> Any:
    """A seeded clone with no more atoms (and non-zeros) than the class has samples."""
    fitted = clone(learner)
    params = fitted.get_params(deep=False)
    if params.get("random_state", seed) is None:
        fitted.set_params(random_state=seed)
    wanted = params.get("n_components")
    if wanted is None or wanted <= n_samples:
        return fitted
    warnings.warn(
        f"a class has {n_samples} samples, fewer than n_components={wanted}: its "
        f"dictionary gets {n_samples} atoms",
        stacklevel=2,
    )
    smaller = {"n_components": n_samples}
    if params.get("n_nonzero_coefs") is not None:
        smaller["n_nonzero_coefs"] = min(params["n_nonzero_coefs"], n_samples)
    return fitted.set_params(**smaller)
