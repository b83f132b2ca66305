"""`DictionaryImputer`: missing values filled in by sparse or local codes."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .. import schema
from ..base.constraints import AT_LEAST_1, NOT_NEGATIVE, SINGLE_LEARNER
from ..base.estimator import Estimator
from ..contracts import Array
from ..data.check import check_rows
from ..data.missing import fill_missing
from ..data.rows import map_rows
from ..kernels import Kernel, resolve
from ..kernels.complete import fill_in, observed_moments, refine, usual_kernel
from ..learners.base import DictionaryLearner
from ..numerics.arrays import as_like, to_numpy
from ..numerics.convergence import warn_unfinished
from ..sklearn_base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

WORKING_COPIES = 8  # copies of a row in memory while it is filled in


class DictionaryImputer(OneToOneFeatureMixin, TransformerMixin, Estimator):
    """Fill in missing values (NaN) by codes over the observed entries of each row.

    Without a learner the atoms are the training samples nearest to a row. It is coded
    over their images in the feature space of a kernel by least squares with a ridge,
    and the same combination of the samples gives the missing entries. Training samples
    with missing entries are filled in from the others, pass by pass, until they settle.

    With a learner, e.g. ``KSVD(60, n_nonzero_coefs=3)`` for images, missing
    entries are those of ``inverse_transform(transform(X))``: sparse codes over learned
    atoms, and pre-images if the atoms are in a feature space.

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
        Whether to append a column for each feature that is missing in some training
        sample: 1 where it is missing, else 0.

    Attributes
    ----------
    mean_, scale_ : arrays (p,)
        Mean and standard deviation of the observed entries of each feature. With a
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

    _fills_missing = True  # `transform` returns no missing entries

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learner": [SINGLE_LEARNER, None],
        "kernel": [str, Kernel, callable, None],
        "n_neighbors": [AT_LEAST_1],
        "ridge": [NOT_NEGATIVE],
        "max_iter": [AT_LEAST_1],
        "tol": [NOT_NEGATIVE],
        "add_indicator": ["boolean"],
    }

    _declared: ClassVar[schema.Declared] = {
        "n_features_in_": schema.Size("p"),
        "mean_": schema.Floats("p"),
        "scale_": schema.Floats("p"),
        "samples_": schema.Either(schema.Nothing(), schema.Floats("n", "p")),
        "learner_": schema.Many(schema.Part(DictionaryLearner, p="p"), None),
        "kernel_": schema.Part(Kernel),
        "n_iter_": schema.Whole(),
        "converged_": schema.Flag(),
        "changes_": schema.Floats("i>=0"),
        "indicator_features_": schema.Indices("f>=0", below="p"),
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
        """Learn from the rows of X to fill in other rows; y is ignored."""
        self._learn(X)
        return self

    def fit_transform(  # type: ignore[override]
        self, X: Any, y: Any = None
    ) -> Array:  # (n, p + indicators)
        """Learn from the rows of X and fill in their missing entries.

        Each row is filled in from the others. `transform` of the same rows also uses
        the filled-in rows themselves.
        """
        rows, complete_rows = self._learn(X)
        return self._to_original_units(rows, complete_rows)

    def _learn(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Fit, and return the rows, and the rows standardised and filled in."""
        self._validate_params()
        checked = check_rows(
            self,
            X,
            reset=True,
            containers="memory",
            allow_nan=True,
            ensure_min_samples=2,
        )
        X = to_numpy(checked)
        mean, scale = observed_moments(X)
        if self.learner is not None:
            scale = np.ones_like(scale)
        self.mean_, self.scale_ = as_like(mean, checked), as_like(scale, checked)
        rows = self._standardize(X)
        if self.kernel is None:
            self.kernel_ = usual_kernel(rows.shape[1])
        else:
            centred_rows = fill_missing(rows, rows.dtype.type(0))
            self.kernel_ = resolve(self.kernel).bound(centred_rows)
        self.learner_: list[Any] = []
        self.samples_: Any = None
        if self.learner is None:
            complete_rows = self._complete(rows)
            self.samples_ = as_like(complete_rows, checked)
        else:
            complete_rows = self._by_learner(rows)
        has_missing = np.isnan(X).any(axis=0) & self.add_indicator
        self.indicator_features_ = np.flatnonzero(has_missing)
        return X, complete_rows

    def _complete(self, rows: np.ndarray) -> np.ndarray:
        """Fill in training rows from the other rows, starting with the means."""
        start = fill_missing(rows, rows.dtype.type(0))
        step = partial(self._step, rows, np.arange(len(rows)))
        complete_rows, changes, _ = refine(rows, start, step, self.max_iter, self.tol)
        self.changes_, self.n_iter_ = np.array(changes), len(changes)
        size = float(np.square(complete_rows, dtype=np.float64).mean())
        self.converged_ = changes[-1] <= self.tol**2 * size
        if not self.converged_:
            warn_unfinished(
                f"filled-in values still moved after max_iter={self.max_iter} passes: "
                "raise max_iter or tol"
            )
        return complete_rows

    def _step(
        self, rows: np.ndarray, self_indices: np.ndarray | None, samples: np.ndarray
    ) -> np.ndarray:
        settings = self.kernel_, self.n_neighbors, self.ridge
        return fill_in(rows, samples, *settings, self_indices)

    def _by_learner(self, rows: np.ndarray) -> np.ndarray:
        """Fit a learner to the observed entries if it can, else to rows filled in."""
        learner = clone(self.learner)
        if getattr(learner, "_learns_missing", False):
            objective = learner.fit(rows).history_["objective"]
            self.changes_, self.n_iter_ = np.abs(np.diff(objective)), learner.n_iter_
            is_small = self.changes_[-1:] <= self.tol * objective[-1]
            self.converged_ = bool(is_small.all())
            if not self.converged_:
                warn_unfinished(
                    f"the error of {learner!r} still changed by more than tol="
                    f"{self.tol:g} of it in its last iteration: raise max_iter of the "
                    "learner, or tol"
                )
        else:
            learner.fit(self._complete(rows))
        self.learner_ = [learner]
        return self._decode(rows)

    def _decode(self, rows: np.ndarray) -> np.ndarray:
        learner = self.learner_[0]
        decoded = to_numpy(learner.inverse_transform(learner.transform(rows)))
        return fill_missing(rows, decoded.astype(rows.dtype))

    def transform(self, X: Any) -> Array:  # (n, p + indicators)
        """Fill in the missing entries of X; observed entries stay unchanged."""
        check_is_fitted(self)
        X = check_rows(self, X, containers="disk", like=self.mean_, allow_nan=True)
        return map_rows(self._fill_block, X, WORKING_COPIES * 8 * X.shape[1])

    def _fill_block(self, block: Array) -> Array:
        rows = self._standardize(to_numpy(block))
        if self.learner_:
            complete_rows = self._decode(rows)
        else:
            complete_rows = self._step(rows, None, to_numpy(self.samples_))
        return self._to_original_units(to_numpy(block), complete_rows)

    def _standardize(self, X: np.ndarray) -> np.ndarray:
        return (X - to_numpy(self.mean_)) / to_numpy(self.scale_)

    def _to_original_units(self, rows: np.ndarray, complete_rows: np.ndarray) -> Array:
        """Combine observed and imputed values, and append indicators."""
        values = complete_rows * to_numpy(self.scale_) + to_numpy(self.mean_)
        imputed = fill_missing(rows, values)
        if self.add_indicator:
            marks = np.isnan(rows)[:, self.indicator_features_]
            imputed = np.concatenate([imputed, marks.astype(imputed.dtype)], axis=1)
        return as_like(imputed, self.mean_)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return names of the features and of the indicator columns."""
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
