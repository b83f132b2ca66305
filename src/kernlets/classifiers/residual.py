"""Classification by the smallest residual over one dictionary per class."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from ..backend.arrays import as_like, index_like, namespace
from ..backend.random import generator
from ..backend.threads import parallel
from ..config import options
from ..core import Array, Kernel
from ..kernels import Precomputed, resolve
from ..kernels.samples import check_samples, describe_input
from ..learners import KSVD
from ..learners.checkpoint import branches
from .labels import ResidualVoting, checked_labels


class ResidualClassifier(ResidualVoting, ClassifierMixin, BaseEstimator):
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
    class_rows_ : list of arrays, the training rows of each class
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
        learner = KSVD() if self.learner is None else self.learner
        kernel = kernel_of(learner)
        X = check_samples(self, X, kernel, reset=True, ensure_min_samples=2)
        labels = checked_labels(self, y, X.shape[0])
        self.classes_, codes = np.unique(labels, return_inverse=True)
        members = [np.flatnonzero(codes == c) for c in range(len(self.classes_))]
        seeds = _seeds(learner, self.random_state, len(members))
        folders = branches(type(self).__name__, len(members))

        def fit_class(job: tuple[np.ndarray, int | None, Any]) -> Any:
            rows, seed, folder = job
            with options(checkpoint=folder):
                fitted = _prepared(learner, len(rows), seed)
                return fitted.fit(_part(X, rows, kernel))

        self.class_rows_ = members
        self.learners_ = parallel(fit_class, zip(members, seeds, folders, strict=True))
        errors = [fitted.history_["objective"][-1] for fitted in self.learners_]
        sizes = [len(rows) for rows in members]
        self.temperature_ = float(np.average(errors, weights=sizes))
        return self

    def residuals(self, X: Any) -> Array:  # (n, n_classes)
        """Squared residual of each sample over the dictionary of each class."""
        check_is_fitted(self)
        kernel = kernel_of(self.learners_[0])
        X = check_samples(self, X, kernel)
        columns = []
        for fitted, rows in zip(self.learners_, self.class_rows_, strict=True):
            known = X[:, rows] if isinstance(kernel, Precomputed) else X
            columns.append(fitted.reconstruction_error(known, per_sample=True))
        return namespace(columns[0]).stack(columns, axis=1)

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
        return describe_input(super().__sklearn_tags__(), kernel_of(self.learner))


def kernel_of(learner: Any) -> Kernel | None:
    """The kernel that a kernel learner works with, None for a linear one."""
    kernel = getattr(learner, "kernel", None)
    return None if kernel is None else resolve(kernel)


def _part(X: Array, rows: np.ndarray, kernel: Kernel | None) -> Array:
    """The training samples of one class; of a precomputed matrix rows and columns."""
    part = X[index_like(rows, X)]
    return part[:, index_like(rows, X)] if isinstance(kernel, Precomputed) else part


def _seeds(learner: BaseEstimator, random_state: Any, n: int) -> list[int | None]:
    """Seeds for n clones of a learner that has no random state of its own."""
    params = learner.get_params(deep=False)
    if params.get("random_state", "none needed") is not None:
        return [None] * n
    return generator(random_state).integers(2**31, size=n).tolist()


def _prepared(learner: BaseEstimator, n_samples: int, seed: int | None) -> Any:
    """A seeded clone with no more atoms (and non-zeros) than the class has samples."""
    fitted = clone(learner)
    params = fitted.get_params(deep=False)
    if seed is not None:
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
