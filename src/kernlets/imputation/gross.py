"""`GrossErrorMask` replaces entries with gross errors by NaN (missing)."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ..base.constraints import AT_LEAST_1, POSITIVE, Interval
from ..base.estimator import Estimator
from ..contracts import Array
from ..data.check import check_rows
from ..data.rows import map_rows
from ..kernels.complete import completed_rows
from ..learners.initial_atoms import nonzero_rows
from ..numerics.arrays import as_like, is_array, to_numpy
from ..numerics.convergence import warn_unfinished
from ..numerics.scaling import unit_rows
from ..numerics.threads import parallel
from ..schema import Declared, Floats, Indices, Number, Size, Whole
from ..sklearn_base import OneToOneFeatureMixin, TransformerMixin

STEEP = 8.0  # steepness of the weights around the threshold
REST = 0.05  # rounds end when the relative change of the weights is smaller
WORKING_BYTES = 2**13  # memory for the work on one row


class _Atoms:
    """Samples D over which rows are coded: γ = argmin Σ_f w_f (x_f − (γD)_f)² + λ‖γ‖².

    With W = diag(w) the normal equations are (DWDᵀ + λI)γ = DWx, in as many unknowns
    as there are samples. Of more samples than features, γD = K W^½ (W^½KW^½ + λI)⁻¹
    W^½ x with K = DᵀD, in as many as there are features.
    """

    def __init__(self, atoms: np.ndarray, ridge: float) -> None:
        self.atoms, self.ridge = atoms, ridge
        m, p = atoms.shape
        self.inner = (atoms.T @ atoms).astype(np.float64) if p < m else None

    def reconstruct(self, x: np.ndarray, weights: np.ndarray) -> np.ndarray:  # like x
        """Compute γD for one row, or for several rows with the same weights."""
        if self.inner is None:
            weighted = self.atoms * weights
            system_matrix = (weighted @ self.atoms.T).astype(np.float64)
            energy = float(np.diagonal(system_matrix).sum())
            code = self._solve(system_matrix, energy, weighted @ x.T)
            return (code.T @ self.atoms).astype(x.dtype)
        sqrt_w = np.sqrt(weights.astype(np.float64))
        system_matrix = sqrt_w[:, None] * self.inner * sqrt_w
        energy = float(np.diagonal(system_matrix).sum())
        solution = self._solve(system_matrix, energy, (sqrt_w * x).T)
        return ((sqrt_w * solution.T) @ self.inner).astype(x.dtype)

    def _solve(
        self, system_matrix: np.ndarray, energy: float, rhs: np.ndarray
    ) -> np.ndarray:
        level = self.ridge * energy / len(self.atoms) or 1.0
        return np.linalg.solve(system_matrix + level * np.eye(len(system_matrix)), rhs)


class GrossErrorMask(OneToOneFeatureMixin, TransformerMixin, Estimator):
    """Mark gross errors as missing (NaN), e.g. the covered part of a face.

    A row is coded over the training samples by weighted least squares with a ridge,
    and entries with large residuals e lose their weight 1/(1 + exp(8(e²/δ − 1))), where
    δ is a quantile of e². This is repeated until the weights settle: regularised robust
    coding (Yang et al., 2013). Entries with a weight below one half become NaN, which
    the next step of a pipeline takes as missing::

        make_pipeline(GrossErrorMask(), SRCClassifier())

    Where labels are given, as in such a pipeline, a row is coded over the samples of
    each class alone, and the class with the smallest weighted error Σ w e² / Σ w
    decides which entries are marked. The samples of all classes together span so many
    directions that they explain the cover of a face as well as the face.

    It must be trained on clean samples of all classes; none of their entries is marked.
    Of a clean new row about ``1 - quantile`` of the entries are marked, which costs
    little, because the others are enough to code it.

    Parameters
    ----------
    quantile : float, default=0.6
        Share of the entries that count as correct when weights are computed.
    ridge : float, default=0.01
        Weight of the penalty on codes, relative to the mean energy of the atoms.
    max_iter : int, default=50
        Largest number of rounds.
    by_class : bool, default=True
        Whether rows are coded over the samples of each class alone, if `fit` gets
        labels. For classes of several samples each.

    Attributes
    ----------
    samples_ : array (m, p)
        The training samples, with unit norm.
    groups_ : array (m,)
        The class of each, from 0 on; zeros if rows are coded over all of them.
    mean_ : array (p,)
        Their mean before that, from which the first residuals are taken.
    level_ : float
        Share of its energy, not explained, up to which nothing of a row is marked: the
        largest of the training samples.
    n_iter_ : int
        Largest number of rounds that a sample took.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import GrossErrorMask
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((20, 3)) @ rng.random((3, 30))
    >>> x = X[:1].copy()
    >>> x[0, :5] += 9
    >>> is_error = np.isnan(GrossErrorMask(quantile=0.8).fit(X).transform(x))[0]
    >>> bool(is_error[:5].all()), int(is_error[5:].sum()) < 5
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "ridge": [POSITIVE],
        "max_iter": [AT_LEAST_1],
        "by_class": ["boolean"],
    }

    _declared: ClassVar[Declared] = {
        "n_features_in_": Size("p"),
        "samples_": Floats("m", "p"),
        "groups_": Indices("m"),
        "mean_": Floats("p"),
        "level_": Number(least=0),
        "n_iter_": Whole(),
    }

    def __init__(
        self,
        quantile: float = 0.6,
        ridge: float = 0.01,
        *,
        max_iter: int = 50,
        by_class: bool = True,
    ) -> None:
        self.quantile = quantile
        self.ridge = ridge
        self.max_iter = max_iter
        self.by_class = by_class

    def fit(self, X: Any, y: Any = None) -> GrossErrorMask:
        """Store the rows of X, which must be free of gross errors, and their labels y.

        Numbers that are no labels, as of a regression, are ignored.
        """
        self._validate_params()
        X = check_rows(self, X, reset=True, containers="memory", allow_nan=True)
        complete = completed_rows(X)
        rows = to_numpy(complete)
        nonzero = nonzero_rows(rows)
        if len(nonzero) == 0:
            raise ValueError("X has no sample other than zero to code others over")
        self.samples_ = as_like(unit_rows(rows[nonzero]), complete)
        self.groups_ = self._groups(y, len(rows))[nonzero]
        self.mean_ = as_like(rows.mean(axis=0), complete)
        self.level_ = self._training_level()
        self.n_iter_ = self.max_iter
        return self

    def _groups(self, y: Any, n: int) -> np.ndarray:  # (n,)
        """Return the class of each row, or 0 for all rows if labels are not used."""
        if y is not None and self.by_class:
            labels = to_numpy(y) if is_array(y) else np.asarray(y)
            check_consistent_length(labels, np.empty(n))
            if labels.ndim == 1 and type_of_target(labels) in ("binary", "multiclass"):
                return np.unique(labels, return_inverse=True)[1].astype(np.intp)
        return np.zeros(n, dtype=np.intp)

    def _atom_sets(self) -> list[_Atoms]:
        """Return the samples over which rows are coded: a set per class, or one."""
        samples = to_numpy(self.samples_)
        classes = np.unique(self.groups_)
        return [_Atoms(samples[self.groups_ == c], self.ridge) for c in classes]

    def _training_level(self) -> float:
        """Return the largest unexplained share of the energy of a training sample."""
        level = 0.0
        for atoms in self._atom_sets():
            ones = np.ones(atoms.atoms.shape[1], dtype=atoms.atoms.dtype)
            residuals = atoms.atoms - atoms.reconstruct(atoms.atoms, ones)
            level = max(level, float(np.square(residuals).sum(axis=1).max()))
        return 1.01 * level  # allow for rounding errors

    def _unexplained_share(
        self, x: np.ndarray, observed: np.ndarray, sets: list[_Atoms]
    ) -> float:
        """Return the least ‖x − γD‖²/‖x‖² over the sets, for observed entries."""
        weights = observed.astype(x.dtype)
        residuals = ((x - atoms.reconstruct(x, weights)) * observed for atoms in sets)
        least = min(float(e @ e) for e in residuals)
        return least / max(float(x @ x), float(np.finfo(x.dtype).tiny))

    def transform(self, X: Any) -> Array:  # (n, p)
        """Replace gross errors in X by NaN; missing entries stay NaN."""
        check_is_fitted(self)
        X = check_rows(self, X, containers="disk", like=self.mean_, allow_nan=True)
        sets, mean = self._atom_sets(), to_numpy(self.mean_)

        def mark_errors(block: Array) -> Array:
            rows = to_numpy(block).copy()
            # blocks from a GPU come one at a time, so the threads share the rows
            errors = parallel(lambda row: self._find_errors(row, sets, mean), rows)
            for row, is_error in zip(rows, errors, strict=True):
                row[is_error] = np.nan
            return as_like(rows, self.mean_)

        return map_rows(mark_errors, X, 8 * X.shape[1] + WORKING_BYTES)

    def _find_errors(
        self, row: np.ndarray, sets: list[_Atoms], mean: np.ndarray
    ) -> np.ndarray:  # (p,)
        """Return a mask of the gross errors and the missing entries of one row."""
        observed = ~np.isnan(row)
        x = np.where(observed, row, 0)
        if not observed.any():
            return ~observed
        if self._unexplained_share(x, observed, sets) <= self.level_:
            return ~observed
        candidates = [self._robust_weights(x, observed, atoms, mean) for atoms in sets]
        return min(candidates, key=lambda pair: pair[0])[1] < 0.5

    def _robust_weights(
        self, x: np.ndarray, observed: np.ndarray, atoms: _Atoms, mean: np.ndarray
    ) -> tuple[float, np.ndarray]:  # (p,)
        """Code x over these samples; return Σ w e² / Σ w and the weights w."""
        weights, residual = observed.astype(x.dtype), (x - mean) * observed
        for _ in range(self.max_iter):
            previous, weights = weights, self._weights_of(residual, observed)
            if np.linalg.norm(weights - previous) <= REST * np.linalg.norm(previous):
                break
            residual = (x - atoms.reconstruct(x, weights)) * observed
        else:
            warn_unfinished(
                f"weights of entries still moved after max_iter={self.max_iter} "
                "rounds: raise max_iter"
            )
        total = max(float(weights.sum()), float(np.finfo(x.dtype).tiny))
        return float(weights @ (residual * residual)) / total, weights

    def _weights_of(self, residual: np.ndarray, observed: np.ndarray) -> np.ndarray:
        """Return 1/(1 + exp(8(e²/δ − 1))); for δ = 0, 1 where the error is 0."""
        squares = residual * residual
        delta = np.quantile(squares[observed], self.quantile)
        if not delta > 0:
            return (observed & (squares <= delta)).astype(residual.dtype)
        exponent = np.clip(STEEP * (squares / delta - 1), None, 50)
        return np.where(observed, 1 / (1 + np.exp(exponent)), 0).astype(residual.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
