"""The contribution of each feature to a row's score, and normal rows to compare."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..base.pipelines import last_step
from ..contracts import Array
from ..dictionaries import ExplicitDictionary
from ..kernels.complete import NEIGHBORS, RIDGE, fill_in, usual_kernel
from ..numerics.arrays import as_like, to_numpy
from .sampled import SampledDictionaries


class Attribution(NamedTuple):
    """Standardised rows, their contributions, and normal values beside them."""

    rows: np.ndarray  # (n, p)
    contributions: np.ndarray  # (n, p)
    expected: np.ndarray  # (n, p)
    nearest: np.ndarray  # (n, p)
    numbers: np.ndarray  # (n,)


def attribute(detector: Any, X: Array) -> Attribution:
    """Attribute the scores of standardised rows to their features."""
    if isinstance(detector.learner_, SampledDictionaries):
        return _by_dictionaries(detector, X)
    if not hasattr(detector, "reference_"):
        raise ValueError(
            "this detector holds no normal rows to compare with: fit it again"
        )
    return _by_learner(detector, X)


def _by_dictionaries(detector: Any, X: Array) -> Attribution:
    """Contributions of features are exact, because distances are sums over features.

    The expected row is the median of the nearest atoms over the dictionaries.
    """
    learner: SampledDictionaries = detector.learner_
    X = learner.completed(X)
    contributions, atom_indices = (to_numpy(array) for array in learner.parts(X))
    atoms = to_numpy(learner.rows_)
    is_raw = learner.views_ != 2
    is_raw = is_raw if is_raw.any() else ~is_raw
    expected = np.stack([np.median(atoms[i], axis=0) for i in atom_indices[:, is_raw]])
    scores = to_numpy(learner.errors(learner.rows_))
    normal_atoms = np.flatnonzero(scores <= detector.threshold_)
    normal_atoms = normal_atoms if len(normal_atoms) else np.arange(len(atoms))
    rows = to_numpy(X)
    near = normal_atoms[_nearest(rows, atoms[normal_atoms])]
    numbers = learner.row_numbers_[near]
    return Attribution(rows, contributions, expected, atoms[near], numbers)


def _by_learner(detector: Any, X: Array) -> Attribution:
    """Contributions are squared residuals if the dictionary is linear, else changes.

    In the feature space of a kernel, or after a map, a residual has no features. The
    contribution of a feature is then the decrease of the error when the feature gets
    its value in the nearest normal row.
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
        return Attribution(rows, (rows - expected) ** 2, expected, nearest, numbers)
    pairs = zip(rows, nearest, strict=True)
    changes = np.stack([_changes(detector, x, z) for x, z in pairs])
    return Attribution(rows, changes, nearest, nearest, numbers)


def _changes(detector: Any, x: np.ndarray, normal: np.ndarray) -> np.ndarray:  # (p,)
    """Decreases of the error when single features get the values of the normal row."""
    variants = np.tile(x, (len(x) + 1, 1))
    np.fill_diagonal(variants, normal)
    errors = to_numpy(detector._learned_errors(as_like(variants, detector.reference_)))
    reductions = np.maximum(errors[-1] - errors[:-1], 0)
    return reductions if reductions.any() else np.abs(x - normal)


def _nearest(rows: np.ndarray, candidates: np.ndarray) -> np.ndarray:  # (n,)
    """The nearest candidate to each row, by the sum of absolute differences.

    Candidates that are equal to the row are skipped, if any differs from it.
    """
    return np.array([_nearest_other(np.abs(candidates - x).sum(axis=1)) for x in rows])


def _nearest_other(distances: np.ndarray) -> int:
    positive = np.where(distances > 0, distances, np.inf)
    return int(positive.argmin())
