"""`GrossErrorMask`: entries that are far from what they should be become unknown."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ..backend.arrays import as_like, is_array, to_numpy
from ..backend.constraints import AT_LEAST_1, POSITIVE, Interval
from ..backend.convergence import warn_unfinished
from ..backend.estimator import Estimator
from ..backend.rows import map_rows
from ..backend.scale import unit_rows
from ..backend.threads import parallel
from ..backend.validation import check_rows
from ..core import Array
from ..fields import Declared, Floats, Indices, Maybe, Number, Size, Whole
from ..kernels.complete import completed_rows
from ..learners.first_atoms import nonzero_rows

STEEP = 8.0  # of the weights' fall around the threshold
REST = 0.05  # relative change of the weights that ends the rounds
WORKING_BYTES = 2**13  # of a row, beside itself


class _Atoms:
    """Samples D that rows are coded over, γ = argmin Σ_f w_f (x_f − (γD)_f)² + λ‖γ‖².

    With W = diag(w) the normal equations are (DWDᵀ + λI)γ = DWx, in as many unknowns
    as there are samples. Of more samples than features, γD = K W^½ (W^½KW^½ + λI)⁻¹
    W^½ x with K = DᵀD, in as many as there are features.
    """

    def __init__(self, atoms: np.ndarray, ridge: float) -> None:
        self.atoms, self.ridge = atoms, ridge
        m, p = atoms.shape
        self.inner = (atoms.T @ atoms).astype(np.float64) if p < m else None

    def explained(self, x: np.ndarray, weights: np.ndarray) -> np.ndarray:  # like x
        """γD of one row, or of several with the same weights."""
        if self.inner is None:
            weighted = self.atoms * weights
            system = (weighted @ self.atoms.T).astype(np.float64)
            energy = float(np.diagonal(system).sum())
            code = self._solved(system, energy, weighted @ x.T)
            return (code.T @ self.atoms).astype(x.dtype)
        root = np.sqrt(weights.astype(np.float64))
        system = root[:, None] * self.inner * root
        energy = float(np.diagonal(system).sum())
        solved = self._solved(system, energy, (root * x).T)
        return ((root * solved.T) @ self.inner).astype(x.dtype)

    def _solved(
        self, system: np.ndarray, energy: float, right: np.ndarray
    ) -> np.ndarray:
        level = self.ridge * energy / len(self.atoms) or 1.0
        return np.linalg.solve(system + level * np.eye(len(system)), right)


class GrossErrorMask(OneToOneFeatureMixin, TransformerMixin, Estimator):
    """Mark gross errors as unknown (NaN), e.g. the covered part of a face.

    A row is coded over the training samples by weighted least squares with a ridge,
    and entries with large residuals e lose their weight 1/(1 + exp(8(e²/δ − 1))), where
    δ is a quantile of e²; and again, until the weights rest. This is regularised robust
    coding (Yang et al., 2013). What then has a weight below one half is marked, and
    whatever stands behind takes it as missing::

        make_pipeline(GrossErrorMask(), SRCClassifier())

    Where labels are given, as in such a pipeline, a row is coded over the samples of
    each class alone, and the class with the smallest weighted error Σ w e² / Σ w says
    what is marked. All samples together are so many directions that they explain what
    covers a face as well as the face.

    It must be trained on clean samples of all classes, of which nothing is marked. Of
    a new row that is clean about ``1 - quantile`` is, at no great cost: coders of the
    rest need not see all.

    Parameters
    ----------
    quantile : float, default=0.6
        Share of the entries that count as right when weights are found.
    ridge : float, default=0.01
        Weight of the penalty on codes, relative to the mean energy of the atoms.
    max_iter : int, default=15
        Largest number of rounds.
    by_class : bool, default=True
        Whether labels, where `fit` gets some, part the samples. For classes of several
        samples each.

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
    >>> found = np.isnan(GrossErrorMask(quantile=0.8).fit(X).transform(x))[0]
    >>> bool(found[:5].all()), int(found[5:].sum()) < 5
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
        "groups_": Maybe(Indices("m")),  # files of version 0.1.0 have none
        "mean_": Floats("p"),
        "level_": Number(least=0),
        "n_iter_": Whole(),
    }

    def __init__(
        self,
        quantile: float = 0.6,
        ridge: float = 0.01,
        *,
        max_iter: int = 15,
        by_class: bool = True,
    ) -> None:
        self.quantile = quantile
        self.ridge = ridge
        self.max_iter = max_iter
        self.by_class = by_class

    def fit(self, X: Any, y: Any = None) -> GrossErrorMask:
        """Keep the rows of X, which must be free of gross errors, and their labels y.

        Numbers that are no labels, as of a regression, are ignored.
        """
        self._validate_params()
        given = completed_rows(
            check_rows(self, X, reset=True, whole=True, allow_nan=True)
        )
        rows = to_numpy(given)
        usable = nonzero_rows(rows)
        if len(usable) == 0:
            raise ValueError("X has no sample other than zero to code others over")
        self.samples_ = as_like(unit_rows(rows[usable]), given)
        self.groups_ = self._groups(y, len(rows))[usable]
        self.mean_ = as_like(rows.mean(axis=0), given)
        self.level_ = self._own_level()
        self.n_iter_ = self.max_iter
        return self

    def _groups(self, y: Any, n: int) -> np.ndarray:  # (n,)
        """The class of each row; all are of one where labels are not to be used."""
        if y is None or not self.by_class:
            return np.zeros(n, dtype=np.intp)
        labels = to_numpy(y) if is_array(y) else np.asarray(y)
        check_consistent_length(labels, np.empty(n))
        if labels.ndim != 1 or type_of_target(labels) not in ("binary", "multiclass"):
            return np.zeros(n, dtype=np.intp)
        return np.unique(labels, return_inverse=True)[1].astype(np.intp)

    def _sets(self) -> list[_Atoms]:
        """The samples that rows are coded over together: all, or those of a class."""
        samples = to_numpy(self.samples_)
        groups = getattr(self, "groups_", np.zeros(len(samples), dtype=np.intp))
        parts = (samples[groups == g] for g in np.unique(groups))
        return [_Atoms(part, self.ridge) for part in parts]

    def _own_level(self) -> float:
        """The largest share of its energy that is left of some sample."""
        trust = np.ones(self.mean_.shape[0], dtype=to_numpy(self.mean_).dtype)
        sets = self._sets()
        rests = (each.atoms - each.explained(each.atoms, trust) for each in sets)
        largest = max(float(np.square(rest).sum(axis=1).max()) for rest in rests)
        return 1.01 * largest  # above rounding

    def _share_left(
        self, x: np.ndarray, known: np.ndarray, sets: list[_Atoms]
    ) -> float:
        """The least ‖x − γD‖²/‖x‖² with a code that trusts all entries."""
        trust = known.astype(x.dtype)
        rests = ((x - atoms.explained(x, trust)) * known for atoms in sets)
        least = min(float(left @ left) for left in rests)
        return least / max(float(x @ x), float(np.finfo(x.dtype).tiny))

    def transform(self, X: Any) -> Array:  # (n, p)
        """X with NaN in place of gross errors; what was unknown before stays so."""
        check_is_fitted(self)
        X = check_rows(self, X, by_blocks=True, like=self.mean_, allow_nan=True)
        sets, mean = self._sets(), to_numpy(self.mean_)

        def marked(block: Array) -> Array:
            rows = to_numpy(block).copy()
            # blocks from a GPU come one by one, to a host with several cores
            gross = parallel(lambda row: self._gross(row, sets, mean), rows)
            for row, where in zip(rows, gross, strict=True):
                row[where] = np.nan
            return as_like(rows, self.mean_)

        return map_rows(marked, X, 8 * X.shape[1] + WORKING_BYTES)

    def _gross(
        self, row: np.ndarray, sets: list[_Atoms], mean: np.ndarray
    ) -> np.ndarray:  # (p,)
        """Where one row has gross errors."""
        known = ~np.isnan(row)
        x = np.where(known, row, 0)
        if not known.any() or self._share_left(x, known, sets) <= self.level_:
            return ~known
        found = [self._weighted(x, known, atoms, mean) for atoms in sets]
        return min(found, key=lambda pair: pair[0])[1] < 0.5

    def _weighted(
        self, x: np.ndarray, known: np.ndarray, atoms: _Atoms, mean: np.ndarray
    ) -> tuple[float, np.ndarray]:  # (p,)
        """Σ w e² / Σ w of a code over these samples, and the weights w."""
        weights, left = known.astype(x.dtype), (x - mean) * known
        for _ in range(self.max_iter):
            before, weights = weights, self._reweighted(left, known)
            if np.linalg.norm(weights - before) <= REST * np.linalg.norm(before):
                break
            left = (x - atoms.explained(x, weights)) * known
        else:
            warn_unfinished(
                f"weights of entries still moved after max_iter={self.max_iter} "
                "rounds: raise max_iter"
            )
        total = max(float(weights.sum()), float(np.finfo(x.dtype).tiny))
        return float(weights @ (left * left)) / total, weights

    def _reweighted(self, left: np.ndarray, known: np.ndarray) -> np.ndarray:
        """1/(1 + exp(8(e²/δ − 1))), and 1 where there is no error at all."""
        squares = left * left
        level = np.quantile(squares[known], self.quantile)
        if not level > 0:
            return (known & (squares <= level)).astype(left.dtype)
        steep = np.clip(STEEP * (squares / level - 1), None, 50)
        return np.where(known, 1 / (1 + np.exp(steep)), 0).astype(left.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
