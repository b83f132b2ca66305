"""Outlier detection by how badly dictionaries represent a row."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..backend.arrays import index_like, namespace, to_numpy
from ..backend.constraints import Interval, StrOptions
from ..backend.estimator import Estimator
from ..backend.fill import at_hand
from ..backend.pipelines import before_last, last_step
from ..backend.random import generator
from ..backend.rows import (
    map_rows,
    rows_in_room,
    spread_rows,
    spread_sample,
    take_rows,
)
from ..backend.samples import floats_of, is_objects
from ..backend.scale import quiet
from ..backend.validation import check_rows
from ..core import Array, Kernel
from ..fields import (
    Conditions,
    Declared,
    Either,
    Floats,
    Indices,
    Maybe,
    Number,
    Part,
    Samples,
    Size,
)
from ..kernels import resolve
from ..kernels.check_samples import check_samples, takes_rows
from ..kernels.complete import completed_rows
from ..learners import base
from .attribution import Represented, represented
from .reasons import OutlierExplanation
from .sampled import SampledDictionaries
from .scaling import moments, robust_moments
from .thresholds import (
    ODDS,
    confidence,
    conformal_threshold,
    fence,
    p_values,
    share_threshold,
)

LEARNING_SHARE = 16  # training rows of a file take 1/16 of the memory option
ERROR_COPIES = 4  # scoring a block needs this many arrays of its size
REFERENCE_ROWS = 256  # normal rows that are kept for reasons if a learner is given
AMONG_OUTLIERS = {"n_dictionaries": 96, "n_atoms": 16}
ALL_NORMAL = {"n_dictionaries": 12, "n_atoms": 512}


class DictionaryOutlierDetector(OutlierMixin, Estimator):
    """Outlier detector that scores a sample by how badly dictionaries represent it.

    By default many small dictionaries of training samples vote (`SampledDictionaries`):
    the score is the distance to the nearest atom, 1 for a usual sample, 3 for one that
    is three times as far away. Clusters of outliers get few votes, because they have an
    atom in few of the dictionaries. With a learner the score is the reconstruction
    error ‖φ(x) − Dγ‖² of its dictionary.

    Methods follow scikit-learn (low scores are abnormal, predictions are 1 and -1);
    attributes and probabilities follow PyOD (high scores are abnormal, labels are 0
    and 1).

    Parameters
    ----------
    learner : dictionary learner or Pipeline that ends in one, optional
        Learns one dictionary instead of the many small ones.
    contamination : float or "auto"
        Share of outliers among the training samples, from 0 to 0.5: that many are
        beyond the threshold. "auto" sets the threshold by the scores themselves, to the
        fence of a boxplot for skewed samples.
    novelty : bool
        Whether all training samples are normal: the default dictionaries are larger
        then, and nothing is trimmed.
    alpha : float, optional
        The rate of false alarms to keep to, e.g. 0.01, instead of `contamination`. Half
        of the samples are then set aside to calibrate the threshold: a fresh normal
        sample exceeds it with a probability of at most `alpha`, whatever its
        distribution (split-conformal). Outliers among the samples make that rate lower.
    standardize : bool
        Whether to scale the features first: by default to the median 0 and the range
        of the middle 90 % of a standard normal variable, for a learner to mean 0 and
        variance 1.
    trim : bool, optional
        Whether to learn twice, the second time without the samples that were
        represented worst: the share `contamination` of them for a learner (0.1 if that
        is "auto"), 30 % for the correlations of the default. Default: unless `novelty`.
    random_state : int, RandomState, Generator or None
        Seed of the draws, or of a learner that has no ``random_state`` of its own.

    Attributes
    ----------
    learner_ : estimator
        The fitted dictionaries.
    mean_, scale_ : arrays (p,)
        Centre and scale of the features.
    offset_ : float
        `decision_function` is `score_samples` minus this value.
    decision_scores_ : array (n,)
        Scores of the training samples.
    threshold_ : float
        The score above which a sample is an outlier.
    labels_ : array (n,)
        1 for outliers among the training samples, otherwise 0.
    calibration_scores_ : array (k,)
        Scores of the samples that were set aside, with `alpha`.
    reference_, reference_rows_ : arrays (r, p), (r,)
        Some normal samples, scaled, and their numbers, if there is a `learner`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import DictionaryOutlierDetector
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> X[0] = 9
    >>> int(DictionaryOutlierDetector(random_state=0).fit(X).decision_scores_.argmax())
    0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learner": [BaseEstimator, None],
        "contamination": [
            Interval(Real, 0, 0.5, closed="right"),
            StrOptions({"auto"}),
        ],
        "novelty": ["boolean"],
        "alpha": [Interval(Real, 0, 1, closed="neither"), None],
        "standardize": ["boolean"],
        "trim": ["boolean", None],
        "random_state": ["random_state", np.random.Generator],
    }

    _declared: ClassVar[Declared] = {
        "n_features_in_": Size("p"),
        "mean_": Floats("p"),
        "scale_": Floats("p"),
        "learner_": Part(base.DictionaryLearner, Pipeline, SampledDictionaries, p="p"),
        "decision_scores_": Floats("n"),
        "threshold_": Number(),
        "offset_": Number(),
        "labels_": Indices("n", below=2),
        "calibration_scores_": Maybe(Floats("k")),
        "reference_": Maybe(Either(Floats("r", "p"), Samples("r"))),
        "reference_rows_": Maybe(Indices("r")),
    }
    _conditions: ClassVar[Conditions] = {
        "learner_ must end in a dictionary learner": lambda self: isinstance(
            last_step(self.learner_), (base.DictionaryLearner, SampledDictionaries)
        ),
    }

    def __init__(
        self,
        learner: BaseEstimator | None = None,
        contamination: float | str = 0.1,
        *,
        novelty: bool = False,
        alpha: float | None = None,
        standardize: bool = True,
        trim: bool | None = None,
        random_state: Any = None,
    ) -> None:
        self.learner = learner
        self.contamination = contamination
        self.novelty = novelty
        self.alpha = alpha
        self.standardize = standardize
        self.trim = trim
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> DictionaryOutlierDetector:
        """Learn what is normal from the rows of X; y is ignored."""
        self._validate_params()
        gaps = at_hand(X)
        X = check_samples(
            self,
            X,
            self._kernel(),
            reset=True,
            ensure_min_samples=2,
            by_blocks=True,
            allow_nan=gaps,
        )
        X = completed_rows(X)
        rng = generator(self.random_state)
        learning, calibration = self._split(X, rng)
        whole = calibration is None  # rows that are all in memory are not copied then
        rows = spread_sample(X, len(learning)) if whole else take_rows(X, learning)
        self._measure_features(rows)
        self._learn(self._standardized(rows), learning, rng)
        self.decision_scores_ = self._errors(X)
        self._set_threshold(calibration)
        return self

    def score_samples(self, X: Any) -> Array:  # (n,)
        """The negative score: the lower, the more abnormal."""
        check_is_fitted(self)
        like, kernel = self.mean_, self._kernel()
        X = check_samples(self, X, kernel, by_blocks=True, like=like, allow_nan=True)
        return -self._errors(X)

    def decision_function(self, X: Any) -> Array:  # (n,)
        """`score_samples` shifted so that outliers are negative."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:  # (n,)
        """-1 for outliers, 1 for inliers."""
        decision = self.decision_function(X)
        xp = namespace(decision)
        return 1 - 2 * xp.astype(decision < 0, xp.int64)

    def predict_proba(self, X: Any, method: str = "linear") -> np.ndarray:  # (n, 2)
        """How probably samples are normal, and outliers, as PyOD estimates it.

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
        """How probably another training set would give samples the same labels.

        From 0 to 1, as in PyOD: Perini et al. 2020.
        """
        scores, training = self._scores(X), self._training_scores()
        share = float(np.mean(training > self.threshold_))
        return confidence(scores, training, scores > self.threshold_, share)

    def p_values(self, X: Any) -> np.ndarray:  # (n,)
        """Conformal p-values: the share of calibration samples at least as abnormal.

        Those of fresh normal samples are at most a with a probability of at most a.
        Needs a fit with `alpha`.
        """
        check_is_fitted(self)
        if not hasattr(self, "calibration_scores_"):
            raise ValueError("p-values need calibration rows: fit with alpha=0.01")
        return p_values(self._scores(X), to_numpy(self.calibration_scores_))

    def explain(self, X: Any) -> list[OutlierExplanation]:
        """Why samples get their scores, one explanation for each.

        Printed, an explanation says which features stand out, and what would be usual;
        `plotting.plot_outlier` draws it.

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
        X = check_rows(self, X, like=self.mean_, allow_nan=True)
        scores = to_numpy(self._errors(X))
        known = represented(self, self._standardized(X))
        return [self._explanation(known, i, s) for i, s in enumerate(scores)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # ------------------------------------------------------------------ learning

    def _split(
        self, X: Array, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Numbers of the rows to learn from, and of those to calibrate with, if any.

        From a file larger than a part of the memory option, evenly spaced rows are
        taken.
        """
        rows = spread_rows(X.shape[0], max(2, rows_in_room(X, LEARNING_SHARE)))
        if self.alpha is None:
            return rows, None
        if len(rows) < 4:
            raise ValueError(
                f"alpha={self.alpha} sets half of the rows aside, and there are "
                f"{len(rows)}: pass more rows, or leave alpha out"
            )
        rows = rng.permutation(rows)
        return np.sort(rows[len(rows) // 2 :]), np.sort(rows[: len(rows) // 2])

    def _kernel(self) -> Kernel | None:
        """The kernel that meets the samples first, if they are not rows of numbers."""
        steps = getattr(self.learner, "steps", [("", self.learner)])
        kernel = getattr(steps[0][1], "kernel", None)
        kernel = None if kernel is None else resolve(kernel)
        return None if takes_rows(kernel) else kernel

    def _measure_features(self, X: Array) -> None:
        if is_objects(X):
            kind = floats_of(X).dtype
            self.mean_, self.scale_ = np.zeros(1, kind), np.ones(1, kind)
            return
        measure = robust_moments if self.learner is None else moments
        self.mean_, self.scale_ = measure(X)

    def _standardized(self, X: Array) -> Array:
        if is_objects(X) or not self.standardize:
            return X
        with quiet():
            found = (X - self.mean_) / self.scale_
            if bool(namespace(found).isinf(found).any()):  # a difference too large
                found = X / self.scale_ - self.mean_ / self.scale_
        return _bounded(found)

    def _learn(
        self, known: Array, numbers: np.ndarray, rng: np.random.Generator
    ) -> None:
        seed = int(rng.integers(2**31))
        for name in ("reference_", "reference_rows_"):
            self.__dict__.pop(name, None)
        if self.learner is None:
            self.learner_ = self._sampled(seed).fit(known)
            self.learner_.row_numbers_ = numbers[self.learner_.row_numbers_]
            return
        learner = self._seeded(seed)
        self.learner_ = clone(learner).fit(known)
        errors = to_numpy(self._learned_errors(known))
        usual = np.flatnonzero(errors <= self._usual(errors))
        if self._trims():
            self.learner_ = learner.fit(known[index_like(usual, known)])
        usual = usual[spread_rows(len(usual), REFERENCE_ROWS)]
        self.reference_ = known[index_like(usual, known)]
        self.reference_rows_ = numbers[usual]

    def _trims(self) -> bool:
        return not self.novelty if self.trim is None else self.trim

    def _sampled(self, seed: int) -> SampledDictionaries:
        sizes = ALL_NORMAL if self.novelty else AMONG_OUTLIERS
        trim = 0.3 if self._trims() else 0.0
        return SampledDictionaries(**sizes, trim=trim, random_state=seed)

    def _seeded(self, seed: int) -> Any:
        learner = clone(self.learner)
        last = last_step(learner)
        if last.get_params(deep=False).get("random_state", seed) is None:
            last.set_params(random_state=seed)
        return learner

    def _usual(self, errors: np.ndarray) -> float:
        """The error up to which rows are taken for normal."""
        share = 0.1 if isinstance(self.contamination, str) else self.contamination
        return share_threshold(errors, share)

    def _set_threshold(self, calibration: np.ndarray | None) -> None:
        self.__dict__.pop("calibration_scores_", None)
        scores = self._training_scores()
        if calibration is not None:
            rows = index_like(calibration, self.decision_scores_)
            self.calibration_scores_ = self.decision_scores_[rows]
            found = conformal_threshold(scores[calibration], float(self.alpha or 0))
        elif isinstance(self.contamination, str):
            found = fence(scores)
        else:
            found = share_threshold(scores, self.contamination)
        self.threshold_ = found
        self.offset_ = -found
        self.labels_ = (scores > found).astype(int)

    # ------------------------------------------------------------------- scoring

    def _scores(self, X: Any) -> np.ndarray:  # (n,)
        return -to_numpy(self.score_samples(X))

    def _training_scores(self) -> np.ndarray:  # (n,)
        return to_numpy(self.decision_scores_)

    def _errors(self, X: Array) -> Array:  # (n,)
        """Scores of rows before standardisation, block by block."""

        def errors(block: Array) -> Array:
            return self._learned_errors(self._standardized(block))

        return map_rows(errors, X, row_bytes=ERROR_COPIES * 8 * X.shape[-1])

    def _learned_errors(self, X: Array) -> Array:  # (n,)
        """Scores of standardised rows."""
        if isinstance(self.learner_, SampledDictionaries):
            return self.learner_.errors(X)
        X = before_last(self.learner_, X)
        return last_step(self.learner_).reconstruction_error(X, per_sample=True)

    def _explanation(
        self, known: Represented, row: int, score: float
    ) -> OutlierExplanation:
        lower = float(np.mean(self._training_scores() < score))
        return OutlierExplanation(
            float(score),
            self.threshold_,
            lower,
            known.contributions[row],
            self._restored(known.rows[row]),
            self._restored(known.expected[row]),
            self._restored(known.nearest[row]),
            int(known.numbers[row]),
            self._feature_names(),
        )

    def _restored(self, row: np.ndarray) -> np.ndarray:  # (p,)
        """A standardised row in its own units."""
        if not self.standardize:
            return row
        return row * to_numpy(self.scale_) + to_numpy(self.mean_)

    def _feature_names(self) -> tuple[str, ...]:
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            return tuple(map(str, names))
        return tuple(f"x{j}" for j in range(self.n_features_in_))


def _bounded(X: Array) -> Array:  # (n, p)
    """Standardised entries cut off where sums of their fourth powers overflow.

    They are as abnormal as can be anyway.
    """
    xp = namespace(X)
    most = float(xp.finfo(X.dtype).max) ** 0.2
    return xp.clip(X, -most, most)
