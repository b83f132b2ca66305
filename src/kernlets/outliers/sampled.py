"""Many small dictionaries of training rows, and the distances of rows to their atoms.

This module learns and scores. Other modules of this package turn scores into labels,
probabilities and explanations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..base.constraints import AT_LEAST_1, Interval
from ..base.estimator import Estimator, check_fitted
from ..contracts import Array
from ..data.missing import has_missing
from ..data.rows import evenly_spaced_sample, map_rows
from ..kernels.complete import NEIGHBORS, RIDGE, fill_in, usual_kernel
from ..loops.table import l1_distances
from ..numerics.arrays import (
    as_like,
    double,
    empty,
    index_like,
    namespace,
    to_numpy,
)
from ..numerics.random import generator
from ..schema import Conditions, Declared, Floats, Indices, Maybe, Size

#: Features that a dictionary uses: all, half of them, or all without the correlations
#: between them.
VIEWS = ("all", "half", "decorrelated")
LEAST_UNIT = 1e-100  # least unit, as a share of the largest distance
UNIT_ROWS = 4096  # training rows from which the unit of each dictionary is computed
MAX_DECORRELATED = 512  # features; beyond that, covariances are costly and unreliable
SHRINKAGE = 0.05  # share of the mean variance that is added to every variance
TRIM_ROUNDS = 3
FAR = 1e6  # robust deviations beyond which a value adds nothing to covariances


class Group(NamedTuple):
    """Dictionaries that use the same features of the rows."""

    numbers: np.ndarray  # (g,) of the dictionaries
    features: np.ndarray  # (q,) of the rows
    rows: Array  # (n, p) as these dictionaries see them
    samples: Array  # (r, p) the same of `SampledDictionaries.rows_`
    distances: Array  # (n, g, m) of the rows from the atoms of each dictionary


class SampledDictionaries(Estimator):
    """Small dictionaries of randomly drawn training rows, each with one-sparse codes.

    With the Laplacian kernel κ(x, z) = exp(−‖x − z‖₁/σ) all atoms φ(z) have unit norm,
    so that the best code with one non-zero belongs to the nearest atom, and its error
    is 1 − κ(x, z)². That error is close to 1 for everything far away; the distance
    ‖x − z‖₁ = −σ/2 · log(1 − error) has the same order and keeps growing. A
    row's score is a mean of its distances to the nearest atom of each dictionary, each
    in units of the median over the training rows: 1 is usual, 3 is three times as far.
    Views whose scores vary more weigh less, so that no view dominates.

    Dictionaries are small on purpose: a cluster of outliers that makes up 3 % of the
    rows has no atom in most dictionaries of 16, where one dictionary of all rows
    represents it perfectly. Where all rows are normal, more atoms are better.

    A training row is not compared with itself: where a row equals an atom, and no other
    training row does, the next atom counts.

    Parameters
    ----------
    n_dictionaries : int
        Number of dictionaries, shared by three views in turn: all features, a random
        half of them, and features without their correlations.
    n_atoms : int
        Atoms of each dictionary, at most half of the rows, or nine tenths of them
        without trimming.
    trim : float
        Share of the rows that are left out, as the least usual ones: when the
        correlations between the features are measured, and, by the scores of a first
        set of dictionaries, when atoms are drawn.
    random_state : int, RandomState, Generator or None
        Seed of the draws.

    Attributes
    ----------
    rows_ : array (r, p)
        The rows that are atoms.
    row_numbers_ : array (r,)
        Their numbers among the training rows.
    is_single_ : array (r,)
        1 where no other training row is equal, otherwise 0.
    atoms_ : array (t, m)
        The atoms of each dictionary, as indices into `rows_`.
    features_ : array (t, p)
        1 for the features that a dictionary uses, otherwise 0.
    views_ : array (t,)
        The view of each dictionary: 0 for all features, 1 for half of them, 2 for
        features without correlations.
    units_ : array (t,)
        Median distances of training rows.
    weights_ : array (t,)
        Weights of the dictionaries in the mean; their sum is 1.
    whitening_ : array (p, p)
        The symmetric matrix that removes correlations (absent beyond 512 features).

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets.outliers import SampledDictionaries
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> model = SampledDictionaries(random_state=0).fit(X)
    >>> bool(model.errors(np.full((1, 3), 9.0))[0] > 5)
    True
    """

    row_numbers_: np.ndarray

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_dictionaries": [AT_LEAST_1],
        "n_atoms": [AT_LEAST_1],
        "trim": [Interval(Real, 0, 1, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    }

    _declared: ClassVar[Declared] = {
        "n_features_in_": Size("p"),
        "rows_": Floats("r", "p"),
        "row_numbers_": Indices("r"),
        "is_single_": Indices("r", below=2),
        "atoms_": Indices("t", "m", below="r"),
        "features_": Indices("t", "p", below=2),
        "views_": Indices("t", below=len(VIEWS)),
        "units_": Floats("t", like="float64"),
        "weights_": Floats("t", like="float64"),
        "whitening_": Maybe(Floats("p", "p")),
    }
    _conditions: ClassVar[Conditions] = {
        "units_ must be positive": lambda self: bool((self.units_ > 0).all()),
        "every dictionary must use a feature": lambda self: bool(
            self.features_.any(axis=1).all()
        ),
        "a view without correlations needs whitening_": lambda self: bool(
            hasattr(self, "whitening_") or not (self.views_ == 2).any()
        ),
    }

    def __init__(
        self,
        n_dictionaries: int = 96,
        n_atoms: int = 16,
        trim: float = 0.3,
        random_state: Any = None,
    ) -> None:
        self.n_dictionaries = n_dictionaries
        self.n_atoms = n_atoms
        self.trim = trim
        self.random_state = random_state

    def fit(
        self, X: Array, y: Any = None, row_numbers: np.ndarray | None = None
    ) -> SampledDictionaries:
        """Draw dictionaries from rows that are scaled and complete; y is ignored.

        `row_numbers` are the numbers of these rows, if they are part of a larger array.
        """
        self._validate_params()
        rng = generator(self.random_state)
        self.n_features_in_ = int(X.shape[1])
        self._decorrelate(X)
        all_rows = np.arange(X.shape[0])
        self._draw(X, all_rows, rng)
        self._measure(X)
        if self.trim:
            self._draw(X, self._usual_rows(X), rng)
            self._measure(X)
        if row_numbers is not None:
            self.row_numbers_ = row_numbers[self.row_numbers_]
        return self

    def errors(self, X: Array) -> Array:  # (n,)
        """Return scores of rows; the larger, the less usual."""
        check_fitted(self)
        row_bytes = 8 * (4 * self.n_features_in_ + 2 * self.atoms_.shape[1])
        return map_rows(self._block_errors, X, row_bytes)

    def parts(self, X: Array) -> tuple[Array, Array]:  # (n, p), (n, t)
        """Return contributions of the features to the scores, and the nearest atoms.

        Contributions of a row sum up to its `errors`; atoms are indices into `rows_`.
        """
        check_fitted(self)
        X = self.completed(X)
        xp = namespace(X)
        contributions, factors = xp.zeros_like(X), self._factors.tolist()
        nearest: list[Any] = [None] * len(self.atoms_)
        for group in self._iterate_groups(X):
            features = index_like(group.features, X)
            choices = xp.argmin(group.distances, axis=2)
            for g, t in enumerate(group.numbers):
                nearest[t] = index_like(self.atoms_[t], X)[choices[:, g]]
                differences = xp.abs(group.rows - group.samples[nearest[t]])
                contributions[:, features] += differences[:, features] * factors[t]
        return contributions, xp.stack(nearest, axis=1)

    def completed(self, X: Array) -> Array:
        """Fill in missing entries of rows from the nearest atoms."""
        if not has_missing(X):
            return X
        samples = to_numpy(self.rows_)
        kernel = usual_kernel(X.shape[1])
        return as_like(fill_in(to_numpy(X), samples, kernel, NEIGHBORS, RIDGE), X)

    # ------------------------------------------------------------------ learning

    def _usual_rows(self, X: Array) -> np.ndarray:
        """Return numbers of the rows that score lowest, at least two."""
        scores = to_numpy(self.errors(X))
        count = max(2, round((1 - self.trim) * len(scores)))
        return np.sort(np.argsort(scores, kind="stable")[:count])

    def _draw(self, X: Array, among: np.ndarray, rng: np.random.Generator) -> None:
        """Draw atoms from the rows numbered `among`, and features of dictionaries."""
        n, p = len(among), X.shape[1]
        max_atoms = n // 2 if self.trim else n * 9 // 10
        count = min(n, max(2, min(self.n_atoms, max_atoms)))
        drawn = [among[rng.permutation(n)[:count]] for _ in range(self.n_dictionaries)]
        numbers, atom_indices = np.unique(np.array(drawn), return_inverse=True)
        self.row_numbers_ = numbers
        self.rows_ = X[index_like(numbers, X)]
        self.atoms_ = atom_indices.reshape(self.n_dictionaries, count)
        self.is_single_ = _singles(to_numpy(X), numbers)
        n_views = len(VIEWS) if hasattr(self, "whitening_") else len(VIEWS) - 1
        self.views_ = np.arange(self.n_dictionaries) % n_views
        self.features_ = np.ones((self.n_dictionaries, p), dtype=np.int64)
        for t in np.flatnonzero(self.views_ == 1):
            self.features_[t, rng.permutation(p)[(p + 1) // 2 :]] = 0

    def _decorrelate(self, X: Array) -> None:
        """Compute the inverse root of the covariance of the more usual rows."""
        self.__dict__.pop("whitening_", None)
        if not 2 <= X.shape[1] <= MAX_DECORRELATED:
            return
        sample = evenly_spaced_sample(X, 10 * UNIT_ROWS)
        rows = np.clip(to_numpy(double(sample)), -FAR, FAR)
        usual, rounds = rows, TRIM_ROUNDS if self.trim else 1
        for _ in range(rounds):
            whitening = _whitening(usual)
            lengths = np.square((rows - usual.mean(axis=0)) @ whitening).sum(axis=1)
            usual = rows[lengths <= np.quantile(lengths, 1 - self.trim)]
        self.whitening_ = as_like(whitening, X)

    def _measure(self, X: Array) -> None:
        """Compute units (median distances, or means where those are 0) and weights."""
        sample = evenly_spaced_sample(X, UNIT_ROWS)
        self.units_ = self.weights_ = np.ones(len(self.atoms_))
        nearest = to_numpy(double(self._nearest_distances(sample))).T
        self.units_ = np.array([_typical_distance(values) for values in nearest])
        # Views weigh in inverse proportion to the deviation of their scores.
        relative = nearest / self.units_[:, None]
        weights = np.empty(len(relative))
        for view in np.unique(self.views_):
            members = self.views_ == view
            deviation = float(relative[members].mean(axis=0).std()) or 1.0
            weights[members] = 1 / (deviation * members.sum())
        self.weights_ = weights / weights.sum()

    # ------------------------------------------------------------------- scoring

    @property
    def _factors(self) -> np.ndarray:  # (t,)
        """Weights of the distances in the score."""
        return self.weights_ / self.units_

    def _block_errors(self, X: Array) -> Array:  # (n,)
        nearest = self._nearest_distances(self.completed(X))
        return (nearest * as_like(self._factors, nearest)).sum(1)

    def _nearest_distances(self, X: Array) -> Array:  # (n, t)
        """Return the distance of each row from the nearest atom of each dictionary."""
        nearest = empty((X.shape[0], len(self.atoms_)), like=X)
        for group in self._iterate_groups(X):
            numbers = index_like(group.numbers, X)
            nearest[:, numbers] = namespace(X).min(group.distances, axis=2)
        return nearest

    def _iterate_groups(self, X: Array) -> Iterator[Group]:
        """Yield dictionaries with the distances ‖x − z‖₁ from rows x to their atoms z.

        All dictionaries of a view are one group, but for those with half of the
        features, each of which has its own. A row itself as an atom is at infinity.
        """
        self_atoms = self._self_atoms(X)
        has_self_atoms = bool((self_atoms >= 0).any())
        self_atoms = index_like(self_atoms[:, None], X)

        def group(numbers: np.ndarray, rows: Array, samples: Array) -> Group:
            is_one = len(numbers) == 1
            atoms = self.atoms_[numbers]
            # the atoms of several dictionaries overlap, those of one do not
            used = atoms[0] if is_one else np.unique(atoms)
            features = np.flatnonzero(self.features_[numbers[0]])
            used_atoms = index_like(used, X)
            near_rows, near_samples = rows, samples[used_atoms]
            if len(features) < X.shape[1]:
                columns = index_like(features, X)
                near_rows, near_samples = rows[:, columns], near_samples[:, columns]
            distances = l1_distances(near_rows, near_samples)
            if has_self_atoms:
                distances[self_atoms == used_atoms] = float("inf")
            if is_one:
                distances = distances[:, None]
            else:
                places = np.searchsorted(used, atoms)
                distances = distances[:, index_like(places, X)]
            return Group(numbers, features, rows, samples, distances)

        for view in np.unique(self.views_):
            rows, samples = X, self.rows_
            if view == 2:
                rows, samples = X @ self.whitening_, samples @ self.whitening_
            numbers = np.flatnonzero(self.views_ == view)
            for group_numbers in numbers[:, None] if view == 1 else [numbers]:
                yield group(group_numbers, rows, samples)

    def _self_atoms(self, X: Array) -> np.ndarray:  # (n,)
        """Return the index of the atom that alone equals each row, or -1."""
        singles = np.flatnonzero(self.is_single_)
        keys = _keys(to_numpy(self.rows_)[singles])
        index_of = dict(zip(keys, singles.tolist(), strict=True))
        return np.array([index_of.get(key, -1) for key in _keys(to_numpy(X))])


def _whitening(rows: np.ndarray) -> np.ndarray:  # (n, p) -> (p, p)
    """(C + λI)^(−1/2) of the covariance C, with λ a share of the mean variance."""
    centred = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(rows))
    level = SHRINKAGE * float(values.mean()) or 1.0
    return (vectors / np.sqrt(np.maximum(values, 0) + level)) @ vectors.T


def _singles(rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:  # (r,)
    """1 for each of the numbered rows that equals no other row."""
    keys = _keys(rows)
    counts = Counter(keys)
    return np.array([counts[keys[i]] == 1 for i in numbers]).astype(np.int64)


def _keys(rows: np.ndarray) -> list[bytes]:
    """Return bytes that are equal for equal rows; -0.0 equals 0.0."""
    rows = np.ascontiguousarray(rows + 0.0)
    return rows.view(f"V{rows[:1].nbytes}")[:, 0].tolist() if rows.size else []


def _typical_distance(distances: np.ndarray) -> float:
    """Return the median of the distances, or the mean if the median is almost zero."""
    least = LEAST_UNIT * float(distances.max())
    candidates = (float(value) for value in (np.median(distances), distances.mean()))
    return next((value for value in candidates if value > least), 1.0)
