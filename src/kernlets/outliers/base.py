"""Base class of outlier detectors: scores, labels, probabilities, explanations.

Detectors in `detector.py` learn from all rows at once, those in `stream.py` from a
stream.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.base import clone

from ..base.estimator import Estimator, check_fitted
from ..base.pipelines import before_last, last_step
from ..contracts import Array
from ..data.check import check_rows
from ..data.rows import map_rows
from ..data.samples import is_objects
from ..kernels import Kernel, kernel_or_class
from ..kernels.samples import check_samples, takes_rows
from ..numerics.arrays import as_like, eps, namespace, to_numpy
from ..numerics.scaling import peaks, power_of_two, quiet
from ..sklearn_base import OutlierMixin
from .explain import OutlierExplanation, explain_scores
from .thresholds import ODDS, confidence

MIDDLE = 0.9  # share of the values between the quantiles that make the robust scale
ERROR_COPIES = 4  # scoring a block needs this many arrays of its size


class OutlierDetector(OutlierMixin, Estimator, ABC):
    """A detector that scales rows by `mean_` and `scale_` and scores by `learner_`.

    A subclass defines `fit` and `_training_scores`, and sets `threshold_` and
    `offset_`.
    """

    learner: Any
    learner_: Any
    standardize: bool
    mean_: Array
    scale_: Array
    threshold_: float
    offset_: float

    def score_samples(self, X: Any) -> Array:  # (n,)
        """Return the negative score: the lower, the more abnormal."""
        check_fitted(self)
        like, kernel = self.mean_, self._kernel()
        X = check_samples(self, X, kernel, containers="disk", like=like, allow_nan=True)
        return -self._errors(X)

    @abstractmethod
    def _training_scores(self) -> np.ndarray:  # (n,)
        """Return scores of training rows, with which new scores are compared."""

    def decision_function(self, X: Any) -> Array:  # (n,)
        """Return `score_samples`, shifted so that outliers are negative."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:  # (n,)
        """Return -1 for outliers and 1 for inliers."""
        decision = self.decision_function(X)
        xp = namespace(decision)
        return 1 - 2 * xp.astype(decision < 0, xp.int64)

    def predict_proba(self, X: Any, method: str = "linear") -> np.ndarray:  # (n, 2)
        """Return probabilities of samples to be normal and to be outliers, as in PyOD.

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
        """Return how certain the label of each sample is, from 0 to 1, as in PyOD.

        It is the probability that another training set would give the sample the same
        label: Perini et al. 2020.
        """
        scores, training = self._scores(X), self._training_scores()
        share = float(np.mean(training > self.threshold_))
        return confidence(scores, training, scores > self.threshold_, share)

    def explain(self, X: Any) -> list[OutlierExplanation]:
        """Explain why samples get their scores, one explanation for each.

        A printed explanation lists the features with the largest shares, and their
        usual values; `plotting.plot_outlier` draws it.

        Parameters
        ----------
        X : array (n, p)
            The samples, few of them: there is one explanation for each.
        """
        check_fitted(self)
        if self._kernel() is not None:
            raise ValueError(
                "explain tells the shares of features, which these samples do not "
                "have: compare them with score_samples"
            )
        X = check_rows(self, X, like=self.mean_, allow_nan=True)
        scores = to_numpy(self._errors(X))
        return explain_scores(self, self._standardize(X), scores)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # ------------------------------------------------------------------ learning

    def _kernel(self) -> Kernel | None:
        """Return the kernel that takes the samples, if they are not rows of numbers."""
        steps = getattr(self.learner, "steps", [("", self.learner)])
        kernel = kernel_or_class(getattr(steps[0][1], "kernel", None))
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
        # Entries are clipped so that sums of their fourth powers do not overflow. They
        # are extremely abnormal anyway.
        limit = float(namespace(scaled).finfo(scaled.dtype).max) ** 0.2
        return namespace(scaled).clip(scaled, -limit, limit)

    def _scores(self, X: Any) -> np.ndarray:  # (n,)
        return -to_numpy(self.score_samples(X))

    def _errors(self, X: Array) -> Array:  # (n,)
        """Return scores of rows before standardisation, block by block."""
        row_bytes = ERROR_COPIES * 8 * X.shape[-1]
        return map_rows(
            lambda X: self._learned_errors(self._standardize(X)), X, row_bytes
        )

    def _learned_errors(self, X: Array) -> Array:  # (n,)
        """Return scores of standardised rows."""
        X = before_last(self.learner_, X)
        return last_step(self.learner_).reconstruction_error(X, per_sample=True)


def with_seed(learner: Any, seed: int) -> Any:
    """Copy a learner, and set this seed if its random_state is None."""
    learner = clone(learner)
    final = last_step(learner)
    if final.get_params(deep=False).get("random_state", seed) is None:
        final.set_params(random_state=seed)
    return learner


def moments(X: Array) -> tuple[Array, Array]:  # (p,), (p,)
    """Return mean and deviation; features constant up to rounding are only shifted."""
    xp, power = namespace(X), power_of_two(peaks(X, axis=0))[0]
    deviation, mean = xp.std(X / power, axis=0), xp.mean(X / power, axis=0)
    return mean * power, _nonzero_scale(deviation, mean, power)


def robust_moments(X: Array) -> tuple[Array, Array]:  # (p,), (p,)
    """Return the median, and the range of the middle values, which is 1 for N(0, 1).

    Where most values of a feature are equal, the scale is the deviation.
    """
    # Powers of two near the largest entries, so that no square overflows
    xp, power = namespace(X), power_of_two(peaks(X, axis=0))[0]
    scaled, tail = X / power, (1 - MIDDLE) / 2
    quantiles = np.quantile(to_numpy(scaled), [tail, 0.5, 1 - tail], axis=0)
    low, centre, high = (as_like(quantile, X) for quantile in quantiles)
    scale = (high - low) / (2 * float(norm.ppf(1 - tail)))
    varies = scale > 4 * eps(X) * xp.abs(centre)
    scale = xp.where(varies, scale, xp.std(scaled, axis=0))
    return centre * power, _nonzero_scale(scale, centre, power)


def _nonzero_scale(scale: Array, centre: Array, power: Array) -> Array:
    xp = namespace(scale)
    varies = scale > 4 * eps(scale) * xp.abs(centre)
    varies = varies & (scale * power > 0)  # it may underflow
    return xp.where(varies, scale, 1.0) * power
