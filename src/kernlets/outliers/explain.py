"""Explanations of outlier scores: shares of the features, and usual values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..base.notebook import text_portrait
from ..base.pipelines import last_step
from ..base.row_names import row_name, row_names
from ..contracts import Array
from ..dictionaries import ExplicitDictionary
from ..kernels.complete import NEIGHBORS, RIDGE, fill_in, usual_kernel
from ..numerics.arrays import as_like, to_numpy
from ..numerics.text import printable
from .sampled import SampledDictionaries

MAX_FEATURES = 5  # number of features that the text names


@dataclass(frozen=True)
class OutlierExplanation:
    """Why a row gets its outlier score; printed, a few lines of text.

    Parameters
    ----------
    score, threshold : float
        The score of the row, and the score above which rows are outliers.
    rank : float
        The share of the training rows with a lower score.
    contributions : array (p,)
        The contribution of each feature to the score.
    values : array (p,)
        The row with missing values filled in.
    expected : array (p,)
        Usual values: the representation of the row by the dictionaries.
    nearest : array (p,)
        The nearest normal training row.
    nearest_row : int
        Its position in the X that the detector was fitted to.
    names : tuple of str
        Names of the features.
    nearest_name : int, str or None
        The label of the nearest row in the index of a dataframe, or its row in a file.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import DictionaryOutlierDetector
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> detector = DictionaryOutlierDetector(random_state=0).fit(X)
    >>> reason = detector.explain([[0.1, 12.0, 0.2]])[0]
    >>> int(reason.order[0]), reason.is_outlier
    (1, True)
    """

    score: float
    threshold: float
    rank: float
    contributions: np.ndarray  # (p,)
    values: np.ndarray  # (p,)
    expected: np.ndarray  # (p,)
    nearest: np.ndarray  # (p,)
    nearest_row: int
    names: tuple[str, ...]
    nearest_name: Any = None

    @property
    def is_outlier(self) -> bool:
        """Whether the score is above the threshold."""
        return self.score > self.threshold

    @property
    def shares(self) -> np.ndarray:  # (p,)
        """Contributions divided by their sum."""
        total = float(self.contributions.sum())
        p = len(self.contributions)
        return self.contributions / total if total > 0 else np.full(p, 1 / p)

    @property
    def order(self) -> np.ndarray:  # (p,)
        """Features by their share, the largest first."""
        return np.argsort(-self.contributions, kind="stable")

    def __repr__(self) -> str:
        kind = "outlier" if self.is_outlier else "normal"
        return (
            f"<OutlierExplanation: {kind}, score {self.score:.4g}, threshold "
            f"{self.threshold:.4g}; {printable(self.brief())}>"
        )

    def _repr_html_(self) -> str:
        return text_portrait(str(self))

    def __str__(self) -> str:
        kind = "outlier" if self.is_outlier else "normal"
        side = "above" if self.is_outlier else "not above"
        verdict = (
            f"{kind}: score {self.score:.4g}, {side} the threshold "
            f"{self.threshold:.4g}; {100 * self.rank:.1f} % of the training rows score "
            "lower"
        )
        features = self.order[:MAX_FEATURES]
        lines = [
            f"  {self.names[j]} is {self.values[j]:.4g} where {self.expected[j]:.4g} "
            f"is usual: {100 * self.shares[j]:.0f} % of the score"
            for j in features
        ]
        n_more = len(self.names) - len(features)
        if n_more > 0:
            share = 1 - float(self.shares[features].sum())
            lines.append(f"  {n_more} other features: {100 * share:.0f} %")
        row = self.nearest_row if self.nearest_name is None else self.nearest_name
        nearest = f"nearest normal training row: {printable(row)}"
        return "\n".join([verdict, *lines, nearest])

    def brief(self, n_features: int = 3) -> str:
        """Describe the features with the largest shares in one line."""
        return "; ".join(
            f"{self.names[j]}={self.values[j]:.4g} (usual {self.expected[j]:.4g}, "
            f"{100 * self.shares[j]:.0f} %)"
            for j in self.order[:n_features]
        )


class Attribution(NamedTuple):
    """Standardised rows, their contributions, and normal values beside them."""

    rows: np.ndarray  # (n, p)
    contributions: np.ndarray  # (n, p)
    expected: np.ndarray  # (n, p)
    nearest: np.ndarray  # (n, p)
    numbers: np.ndarray  # (n,)


def explain_scores(
    detector: Any,
    X: Array,  # (n, p) standardised
    scores: np.ndarray,  # (n,)
) -> list[OutlierExplanation]:
    """Attribute the score of each row to its features, and name a normal row."""
    if isinstance(detector.learner_, SampledDictionaries):
        attribution = _by_dictionaries(detector, X)
    elif hasattr(detector, "reference_"):
        attribution = _by_learner(detector, X)
    else:
        raise ValueError(
            "this detector holds no normal rows to compare with: fit it again"
        )
    scale, mean = 1.0, 0.0
    if detector.standardize:
        scale, mean = to_numpy(detector.scale_), to_numpy(detector.mean_)
    unnamed = [f"x{j}" for j in range(detector.n_features_in_)]
    names = tuple(map(str, getattr(detector, "feature_names_in_", unnamed)))
    training_scores, names_of_rows = detector._training_scores(), row_names(detector)
    return [
        OutlierExplanation(
            score=float(score),
            threshold=detector.threshold_,
            rank=float(np.mean(training_scores < score)),
            contributions=contributions,
            values=row * scale + mean,
            expected=expected * scale + mean,
            nearest=nearest * scale + mean,
            nearest_row=int(number),
            names=names,
            nearest_name=row_name(names_of_rows, int(number)),
        )
        for score, row, contributions, expected, nearest, number in zip(
            scores, *attribution, strict=True
        )
    ]


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
    """Return decreases of the error when features get the values of the normal row."""
    variants = np.tile(x, (len(x) + 1, 1))
    np.fill_diagonal(variants, normal)
    errors = to_numpy(detector._learned_errors(as_like(variants, detector.reference_)))
    reductions = np.maximum(errors[-1] - errors[:-1], 0)
    return reductions if reductions.any() else np.abs(x - normal)


def _nearest(rows: np.ndarray, candidates: np.ndarray) -> np.ndarray:  # (n,)
    """Return the nearest candidate to each row, by the sum of absolute differences.

    Candidates that are equal to the row are skipped, if any differs from it.
    """
    distances = [np.abs(candidates - x).sum(axis=1) for x in rows]
    return np.array([np.where(d > 0, d, np.inf).argmin() for d in distances], np.intp)
