"""What each feature adds to the score of a row, and what the row is compared with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..backend.arrays import as_like, to_numpy
from ..backend.pipelines import last_step
from ..core import Array
from ..dictionaries import ExplicitDictionary
from ..kernels.complete import NEIGHBORS, RIDGE, fill_in, usual_kernel
from .sampled import SampledDictionaries


class Represented(NamedTuple):
    """Standardised rows beside what is normal."""

    rows: np.ndarray  # (n, p)
    contributions: np.ndarray  # (n, p)
    expected: np.ndarray  # (n, p)
    nearest: np.ndarray  # (n, p)
    numbers: np.ndarray  # (n,)


def represented(detector: Any, X: Array) -> Represented:
    """Standardised rows of a fitted detector, taken apart."""
    if isinstance(detector.learner_, SampledDictionaries):
        return _by_dictionaries(detector, X)
    if not hasattr(detector, "reference_"):
        raise ValueError(
            "this detector holds no normal rows to compare with: fit it again"
        )
    return _by_learner(detector, X)


def _by_dictionaries(detector: Any, X: Array) -> Represented:
    """Contributions are exact: distances are sums over features.

    Expected is the median of the nearest atoms over the dictionaries.
    """
    learner: SampledDictionaries = detector.learner_
    X = learner.completed(X)
    contributions, places = (to_numpy(part) for part in learner.parts(X))
    atoms = to_numpy(learner.rows_)
    seeing = learner.views_ != 2
    seeing = seeing if seeing.any() else ~seeing
    expected = np.stack([np.median(atoms[i], axis=0) for i in places[:, seeing]])
    scores = to_numpy(learner.errors(learner.rows_))
    normal = np.flatnonzero(scores <= detector.threshold_)
    normal = normal if len(normal) else np.arange(len(atoms))
    rows = to_numpy(X)
    near = normal[_nearest(rows, atoms[normal])]
    numbers = learner.row_numbers_[near]
    return Represented(rows, contributions, expected, atoms[near], numbers)


def _by_learner(detector: Any, X: Array) -> Represented:
    """The residual of a linear dictionary; otherwise what each feature changes.

    In the feature space of a kernel, or behind a map, a residual has no features: a
    feature then counts by how much smaller the error is with its value in the nearest
    normal row.
    """
    reference = to_numpy(detector.reference_)
    kernel = usual_kernel(X.shape[1])
    rows = fill_in(to_numpy(X), reference, kernel, NEIGHBORS, RIDGE)
    near = _nearest(rows, reference)
    numbers, nearest = detector.reference_rows_[near], reference[near]
    learner = detector.learner_
    is_linear = learner is last_step(learner) and isinstance(
        getattr(learner, "dictionary_", None), ExplicitDictionary
    )
    if is_linear:
        codes = learner.transform(as_like(rows, detector.reference_))
        expected = to_numpy(learner.inverse_transform(codes))
        return Represented(rows, (rows - expected) ** 2, expected, nearest, numbers)
    pairs = zip(rows, nearest, strict=True)
    changes = np.stack([_changes(detector, x, z) for x, z in pairs])
    return Represented(rows, changes, nearest, nearest, numbers)


def _changes(detector: Any, x: np.ndarray, normal: np.ndarray) -> np.ndarray:  # (p,)
    """How much smaller the error is with each feature as in the normal row."""
    others = np.tile(x, (len(x) + 1, 1))
    np.fill_diagonal(others, normal)
    errors = to_numpy(detector._learned_errors(as_like(others, detector.reference_)))
    found = np.maximum(errors[-1] - errors[:-1], 0)
    return found if found.any() else np.abs(x - normal)


def _nearest(rows: np.ndarray, others: np.ndarray) -> np.ndarray:  # (n,)
    """The nearest of the others to each row, by the sum of absolute differences.

    A row that is among them itself gets another one, if there is one that differs.
    """
    return np.array([_nearest_other(np.abs(others - x).sum(axis=1)) for x in rows])


def _nearest_other(distances: np.ndarray) -> int:
    elsewhere = np.where(distances > 0, distances, np.inf)
    return int(elsewhere.argmin())
