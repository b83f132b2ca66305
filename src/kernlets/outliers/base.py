"""Base class of outlier detectors: scores, labels, probabilities, explanations.

Detectors in `detector.py` learn from all rows at once, those in `stream.py` from a
stream.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..base.estimator import Estimator
from ..base.pipelines import before_last, last_step
from ..base.row_names import row_name, row_names
from ..contracts import Array
from ..data.check import check_rows
from ..data.rows import map_rows
from ..data.samples import is_objects
from ..kernels import Kernel, resolve
from ..kernels.samples import takes_rows
from ..numerics.arrays import namespace, to_numpy
from ..numerics.scaling import quiet
from ..sklearn_base import OutlierMixin
from .attribution import Attribution, attribute
from .reasons import OutlierExplanation
from .thresholds import ODDS, confidence

ERROR_COPIES = 4  # scoring a block needs this many arrays of its size


class OutlierDetector(OutlierMixin, Estimator, ABC):
    """A detector that scales rows by `mean_` and `scale_` and scores by `learner_`.

    A subclass defines `fit`, `score_samples` and `_training_scores`, and sets
    `threshold_` and `offset_`.
    """

    learner: Any
    learner_: Any
    standardize: bool
    mean_: Array
    scale_: Array
    threshold_: float
    offset_: float
    _takes_nan: bool = False

    @abstractmethod
    def score_samples(self, X: Any) -> Array:  # (n,)
        """The negative score: the lower, the more abnormal."""

    @abstractmethod
    def _training_scores(self) -> np.ndarray:  # (n,)
        """Scores of training rows, in memory, with which new scores are compared."""

    def decision_function(self, X: Any) -> Array:  # (n,)
        """`score_samples` shifted so that outliers are negative."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:  # (n,)
        """-1 for outliers, 1 for inliers."""
        decision = self.decision_function(X)
        xp = namespace(decision)
        return 1 - 2 * xp.astype(decision < 0, xp.int64)

    def predict_proba(self, X: Any, method: str = "linear") -> np.ndarray:  # (n, 2)
        """Probabilities of samples to be normal and to be outliers, as in PyOD.

        Parameters
        ----------
        X : array (n, p)
            The samples.
        method : {"linear", "unify"}
            "linear" maps scores from the smallest to the largest of the training
            samples to 0 to 1; "unify" takes max(0, erf(z/√2)) of standardised scores.
        """
        if method not in ODDS:
            raise ValueError(
                f"method={method!r} is not known: choose {' or '.join(map(repr, ODDS))}"
            )
        odds = ODDS[method](self._scores(X), self._training_scores())
        return np.stack([1 - odds, odds], axis=1)

    def predict_confidence(self, X: Any) -> np.ndarray:  # (n,)
        """The probability that another training set would give a sample the same label.

        From 0 to 1, as in PyOD: Perini et al. 2020.
        """
        scores, training = self._scores(X), self._training_scores()
        share = float(np.mean(training > self.threshold_))
        return confidence(scores, training, scores > self.threshold_, share)

    def explain(self, X: Any) -> list[OutlierExplanation]:
        """Why samples get their scores, one explanation for each.

        A printed explanation lists the features with the largest shares, and their
        usual values; `plotting.plot_outlier` draws it.

        Parameters
        ----------
        X : array (n, p)
            The samples, few of them: there is one explanation for each.
        """
        check_is_fitted(self)
        if self._kernel() is not None:
            raise ValueError(
                "explain tells the shares of features, which these samples do not "
                "have: compare them with score_samples"
            )
        X = check_rows(self, X, like=self.mean_, allow_nan=self._takes_nan)
        scores = to_numpy(self._errors(X))
        attribution = attribute(self, self._standardize(X))
        return [self._explanation(attribution, i, s) for i, s in enumerate(scores)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_nan
        return tags

    # ------------------------------------------------------------------ learning

    def _kernel(self) -> Kernel | None:
        """The kernel that takes the samples, if they are not rows of numbers."""
        steps = getattr(self.learner, "steps", [("", self.learner)])
        kernel = getattr(steps[0][1], "kernel", None)
        kernel = None if kernel is None else resolve(kernel)
        return None if takes_rows(kernel) else kernel

    def _set_threshold(self, threshold: float) -> None:
        self.threshold_, self.offset_ = threshold, -threshold

    # ------------------------------------------------------------------- scoring

    def _standardize(self, X: Array) -> Array:
        if is_objects(X) or not self.standardize:
            return X
        with quiet():
            scaled = (X - self.mean_) / self.scale_
            if bool(namespace(scaled).isinf(scaled).any()):  # X - mean overflows
                scaled = X / self.scale_ - self.mean_ / self.scale_
        return _clip(scaled)

    def _scores(self, X: Any) -> np.ndarray:  # (n,)
        return -to_numpy(self.score_samples(X))

    def _errors(self, X: Array) -> Array:  # (n,)
        """Scores of rows before standardisation, block by block."""

        def errors(block: Array) -> Array:
            return self._learned_errors(self._standardize(block))

        return map_rows(errors, X, row_bytes=ERROR_COPIES * 8 * X.shape[-1])

    def _learned_errors(self, X: Array) -> Array:  # (n,)
        """Scores of standardised rows."""
        X = before_last(self.learner_, X)
        return last_step(self.learner_).reconstruction_error(X, per_sample=True)

    def _explanation(
        self, attribution: Attribution, row: int, score: float
    ) -> OutlierExplanation:
        lower = float(np.mean(self._training_scores() < score))
        number = int(attribution.numbers[row])
        return OutlierExplanation(
            float(score),
            self.threshold_,
            lower,
            attribution.contributions[row],
            self._in_original_units(attribution.rows[row]),
            self._in_original_units(attribution.expected[row]),
            self._in_original_units(attribution.nearest[row]),
            number,
            self._feature_names(),
            row_name(row_names(self), number),
        )

    def _in_original_units(self, row: np.ndarray) -> np.ndarray:  # (p,)
        """Convert a standardised row to the original units."""
        if not self.standardize:
            return row
        return row * to_numpy(self.scale_) + to_numpy(self.mean_)

    def _feature_names(self) -> tuple[str, ...]:
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            return tuple(map(str, names))
        return tuple(f"x{j}" for j in range(self.n_features_in_))


def with_seed(learner: Any, seed: int) -> Any:
    """Copy a learner, and set this seed if its random_state is None."""
    learner = clone(learner)
    final = last_step(learner)
    if final.get_params(deep=False).get("random_state", seed) is None:
        final.set_params(random_state=seed)
    return learner


def _clip(X: Array) -> Array:  # (n, p)
    """Clip standardised entries so that sums of their fourth powers do not overflow.

    Clipped entries are extremely abnormal anyway.
    """
    xp = namespace(X)
    limit = float(xp.finfo(X.dtype).max) ** 0.2
    return xp.clip(X, -limit, limit)
