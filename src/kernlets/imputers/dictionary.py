"""`DictionaryImputer`: missing values filled in by sparse or local codes."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from ..backend.arrays import as_like, to_numpy
from ..backend.constraints import AT_LEAST_1, LEARNER, NOT_NEGATIVE
from ..backend.convergence import warn_unfinished
from ..backend.estimator import Estimator
from ..backend.masks import filled
from ..backend.rows import map_rows
from ..backend.validation import check_rows
from ..core import Array, Kernel
from ..fields import (
    Declared,
    Either,
    Flag,
    Floats,
    Indices,
    Many,
    Nothing,
    Part,
    Size,
    Whole,
)
from ..kernels import resolve
from ..kernels.complete import fill_in, observed_moments, refined, usual_kernel
from ..learners.base import DictionaryLearner

WORKING_COPIES = 8  # of a row while it is filled in


class DictionaryImputer(OneToOneFeatureMixin, TransformerMixin, Estimator):
    """Fill in missing values (NaN) by codes over what was observed of each row.

    Without a learner the atoms are the training samples nearest to a row. It is coded
    over their images in the feature space of a kernel by least squares with a ridge,
    and the same combination of the samples fills the gaps. Training samples that have
    gaps themselves are filled in over the others, pass by pass, until nothing moves.

    With a learner, e.g. ``KSVD(60, n_nonzero_coefs=3)`` for images, the gaps are those
    of ``inverse_transform(transform(X))``: sparse codes over learned atoms, pre-images
    if these are in a feature space.

    Parameters
    ----------
    learner : dictionary learner, optional
        Learns the atoms. A kernel learner learns from rows that are filled in by the
        samples nearest to them.
    kernel : str, Kernel, callable or None
        The kernel of the codes over samples. Default: xᵀy/p + exp(−‖x − y‖²/(2p)) for
        standardised columns, a linear model and its neighbourhood.
    n_neighbors : int, default=60
        Number of samples that a row is coded over.
    ridge : float, default=0.3
        Weight λ of the penalty on codes, relative to the mean κ(z, z).
    max_iter : int, default=20
        Largest number of passes over the training samples.
    tol : float, default=0.05
        Passes end when filled-in values move by less than this share of their size.
    add_indicator : bool, default=False
        Whether to append a column for each feature with gaps in the training samples:
        1 where it was missing, else 0.

    Attributes
    ----------
    mean_, scale_ : arrays (p,)
        Mean and standard deviation of what was observed of each feature. With a
        learner rows are only centred, and the deviation is 1.
    samples_ : array (n, p) or None
        The training samples, standardised and filled in.
    learner_ : list
        The fitted learner, if there is one.
    kernel_ : Kernel
        The kernel with all parameters set.
    n_iter_ : int
        Number of passes, or of iterations of a linear learner.
    converged_ : bool
        Whether the last of them changed less than `tol` says.
    changes_ : array
        Mean squared change of the filled-in values in each pass, in units of `scale_`;
        of a linear learner that of its objective.
    indicator_features_ : array
        Features with a column of their own if `add_indicator` is set.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import DictionaryImputer
    >>> t = np.linspace(0, 1, 50)
    >>> X = np.c_[t, 2 * t, 1 - t]
    >>> X[10, 1] = np.nan
    >>> DictionaryImputer().fit_transform(X)[10].round(1).tolist()
    [0.2, 0.4, 0.8]
    """

    _fills_gaps = True  # nothing is missing in what it returns

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learner": [LEARNER, None],
        "kernel": [str, Kernel, callable, None],
        "n_neighbors": [AT_LEAST_1],
        "ridge": [NOT_NEGATIVE],
        "max_iter": [AT_LEAST_1],
        "tol": [NOT_NEGATIVE],
        "add_indicator": ["boolean"],
    }

    _declared: ClassVar[Declared] = {
        "n_features_in_": Size("p"),
        "mean_": Floats("p"),
        "scale_": Floats("p"),
        "samples_": Either(Nothing(), Floats("n", "p")),
        "learner_": Many(Part(DictionaryLearner, p="p"), None),
        "kernel_": Part(Kernel),
        "n_iter_": Whole(),
        "converged_": Flag(),
        "changes_": Floats("i>=0"),
        "indicator_features_": Indices("f>=0", below="p"),
    }

    def __init__(
        self,
        learner: BaseEstimator | None = None,
        kernel: Any = None,
        *,
        n_neighbors: int = 60,
        ridge: float = 0.3,
        max_iter: int = 20,
        tol: float = 0.05,
        add_indicator: bool = False,
    ) -> None:
        self.learner = learner
        self.kernel = kernel
        self.n_neighbors = n_neighbors
        self.ridge = ridge
        self.max_iter = max_iter
        self.tol = tol
        self.add_indicator = add_indicator

    def fit(self, X: Any, y: Any = None) -> DictionaryImputer:
        """Learn from the rows of X what is missing in others; y is ignored."""
        self._learn(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:  # (n, p + indicators)
        """Learn from the rows of X and fill in what is missing in them.

        Each row is filled in by the others. `transform` of the same rows also uses the
        rows themselves, as they were filled in.
        """
        rows, known = self._learn(X)
        return self._finished(rows, known)

    def _learn(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the fit, and the same standardised and filled in."""
        self._validate_params()
        keys: dict[str, Any] = {"ensure_min_samples": 2, "allow_nan": True}
        given = check_rows(self, X, reset=True, whole=True, **keys)
        X = to_numpy(given)
        self._measure(X, given)
        rows = self._standardized(X)
        self.kernel_ = self._kernel(rows)
        self.learner_: list[Any] = []
        self.samples_: Any = None
        if self.learner is None:
            known = self._complete(rows)
            self.samples_ = as_like(known, given)
        else:
            known = self._by_learner(rows)
        gaps = np.isnan(X).any(axis=0)
        self.indicator_features_ = np.flatnonzero(gaps if self.add_indicator else [])
        return X, known

    def _measure(self, X: np.ndarray, like: Array) -> None:
        """Mean and deviation; learned atoms see rows that are only centred."""
        mean, scale = observed_moments(X)
        if self.learner is not None:
            scale = np.ones_like(scale)
        self.mean_, self.scale_ = as_like(mean, like), as_like(scale, like)

    def _kernel(self, rows: np.ndarray) -> Kernel:
        if self.kernel is not None:
            return resolve(self.kernel).bound(filled(rows, rows.dtype.type(0)))
        return usual_kernel(rows.shape[1])

    def _complete(self, rows: np.ndarray) -> np.ndarray:
        """Training rows filled in over the others, from the means on."""
        start = filled(rows, rows.dtype.type(0))
        own = np.arange(len(rows))
        step = partial(self._step, rows, own)
        known, changes, _ = refined(rows, start, step, self.max_iter, self.tol)
        self.changes_, self.n_iter_ = np.array(changes), len(changes)
        size = float(np.square(known, dtype=np.float64).mean())
        self.converged_ = changes[-1] <= self.tol**2 * size
        if not self.converged_:
            warn_unfinished(
                f"filled-in values still moved after max_iter={self.max_iter} passes: "
                "raise max_iter or tol"
            )
        return known

    def _step(
        self, rows: np.ndarray, own: np.ndarray | None, samples: np.ndarray
    ) -> np.ndarray:
        settings = self.kernel_, self.n_neighbors, self.ridge
        return fill_in(rows, samples, *settings, own)

    def _by_learner(self, rows: np.ndarray) -> np.ndarray:
        """Linear atoms learn from what was observed, others from rows filled in."""
        learner = clone(self.learner)
        if getattr(learner, "_learns_gaps", False):
            objective = learner.fit(rows).history_["objective"]
            self.changes_, self.n_iter_ = np.abs(np.diff(objective)), learner.n_iter_
            last = self.changes_[-1:] <= self.tol * objective[-1]
            self.converged_ = bool(last.all())
            if not self.converged_:
                warn_unfinished(
                    f"the error of {learner!r} still changed by more than tol="
                    f"{self.tol:g} of it in its last iteration: raise max_iter of the "
                    "learner, or tol"
                )
        else:
            learner.fit(self._complete(rows))
        self.learner_ = [learner]
        return self._decoded(rows)

    def _decoded(self, rows: np.ndarray) -> np.ndarray:
        learner = self.learner_[0]
        found = to_numpy(learner.inverse_transform(learner.transform(rows)))
        return filled(rows, found.astype(rows.dtype))

    def transform(self, X: Any) -> Array:  # (n, p + indicators)
        """X with what is missing filled in; what was observed stays as it is."""
        check_is_fitted(self)
        X = check_rows(self, X, by_blocks=True, like=self.mean_, allow_nan=True)
        return map_rows(self._filled_block, X, WORKING_COPIES * 8 * X.shape[1])

    def _filled_block(self, block: Array) -> Array:
        rows = to_numpy(block)
        known = self._standardized(rows)
        if self.learner_:
            known = self._decoded(known)
        else:
            known = self._step(known, None, to_numpy(self.samples_))
        return self._finished(rows, known)

    def _standardized(self, X: np.ndarray) -> np.ndarray:
        return (X - to_numpy(self.mean_)) / to_numpy(self.scale_)

    def _finished(self, rows: np.ndarray, known: np.ndarray) -> Array:
        """Observed values untouched, indicators beside them, where the model is."""
        found = known * to_numpy(self.scale_) + to_numpy(self.mean_)
        whole = filled(rows, found)
        if self.add_indicator:
            marks = np.isnan(rows)[:, self.indicator_features_]
            whole = np.concatenate([whole, marks.astype(whole.dtype)], axis=1)
        return as_like(whole, self.mean_)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features, and of the columns that say what was missing."""
        names = super().get_feature_names_out(input_features)
        marks = [f"missingindicator_{names[j]}" for j in self.indicator_features_]
        return np.concatenate([names, np.array(marks, dtype=object)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")
