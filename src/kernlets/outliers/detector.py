"""Outlier detection by how badly dictionaries represent a row."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .. import schema
from ..base.constraints import LEARNER, Interval, StrOptions
from ..base.pipelines import last_step
from ..contracts import Array
from ..data.missing import all_in_memory
from ..data.rows import (
    evenly_spaced_rows,
    evenly_spaced_sample,
    n_rows_in_memory,
    take_rows,
)
from ..data.samples import float_like, is_objects
from ..kernels.complete import completed_rows
from ..kernels.samples import check_samples
from ..learners.base import DictionaryLearner
from ..numerics.arrays import index_like, to_numpy
from ..numerics.random import generator
from .base import OutlierDetector, moments, robust_moments, with_seed
from .sampled import SampledDictionaries
from .thresholds import conformal_threshold, fence, p_values, share_threshold

LEARNING_SHARE = 16  # training rows of a file take 1/16 of the memory option
REFERENCE_ROWS = 256  # normal rows that are stored for explanations of a learner
AMONG_OUTLIERS = {"n_dictionaries": 96, "n_atoms": 16}
ALL_NORMAL = {"n_dictionaries": 12, "n_atoms": 512}


class DictionaryOutlierDetector(OutlierDetector):
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
        "learner": [LEARNER, None],
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

    _declared: ClassVar[schema.Declared] = {
        "n_features_in_": schema.Size("p"),
        "mean_": schema.Floats("p"),
        "scale_": schema.Floats("p"),
        "learner_": schema.Part(
            DictionaryLearner, Pipeline, SampledDictionaries, p="p"
        ),
        "decision_scores_": schema.Floats("n"),
        "threshold_": schema.Number(),
        "offset_": schema.Number(),
        "labels_": schema.Indices("n", below=2),
        "calibration_scores_": schema.Maybe(schema.Floats("k")),
        "reference_": schema.Maybe(
            schema.Either(schema.Floats("r", "p"), schema.Samples("r"))
        ),
        "reference_rows_": schema.Maybe(schema.Indices("r")),
    }
    _conditions: ClassVar[schema.Conditions] = {
        "learner_ must end in a dictionary learner": lambda self: isinstance(
            last_step(self.learner_), (DictionaryLearner, SampledDictionaries)
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
        """Learn from the rows of X, which are mostly normal; y is ignored."""
        self._validate_params()
        X = check_samples(
            self,
            X,
            self._kernel(),
            reset=True,
            containers="disk",
            allow_nan=all_in_memory(X),
            ensure_min_samples=2,
        )
        X = completed_rows(X)
        rng = generator(self.random_state)
        learning, calibration = self._split(X, rng)
        if calibration is None:  # rows in memory need no copy then
            rows = evenly_spaced_sample(X, len(learning))
        else:
            rows = take_rows(X, learning)
        if is_objects(rows):
            dtype = float_like(rows).dtype
            self.mean_, self.scale_ = np.zeros(1, dtype), np.ones(1, dtype)
        else:
            measure = robust_moments if self.learner is None else moments
            self.mean_, self.scale_ = measure(rows)
        self._learn(self._standardize(rows), learning, rng)
        self.decision_scores_ = self._errors(X)
        self._choose_threshold(calibration)
        return self

    def p_values(self, X: Any) -> np.ndarray:  # (n,)
        """Return p-values: the share of calibration samples at least as abnormal.

        Those of fresh normal samples are at most a with a probability of at most a.
        Needs a fit with `alpha`.
        """
        check_is_fitted(self)
        if not hasattr(self, "calibration_scores_"):
            raise ValueError("p-values need calibration rows: fit with alpha=0.01")
        return p_values(self._scores(X), to_numpy(self.calibration_scores_))

    # ------------------------------------------------------------------ learning

    def _split(
        self, X: Array, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Choose the rows to learn from, and the calibration rows, if any.

        From a file larger than a part of the memory option, evenly spaced rows are
        taken.
        """
        count = max(2, n_rows_in_memory(X, LEARNING_SHARE))
        rows = evenly_spaced_rows(X.shape[0], count)
        if self.alpha is None:
            return rows, None
        if len(rows) < 4:
            raise ValueError(
                f"alpha={self.alpha} sets half of the rows aside, and there are "
                f"{len(rows)}: pass more rows, or leave alpha out"
            )
        rows = rng.permutation(rows)
        return np.sort(rows[len(rows) // 2 :]), np.sort(rows[: len(rows) // 2])

    def _learn(
        self, scaled: Array, numbers: np.ndarray, rng: np.random.Generator
    ) -> None:
        seed = int(rng.integers(2**31))
        trims = not self.novelty if self.trim is None else self.trim
        for name in ("reference_", "reference_rows_"):
            self.__dict__.pop(name, None)
        if self.learner is None:
            sizes = ALL_NORMAL if self.novelty else AMONG_OUTLIERS
            trim = 0.3 if trims else 0.0
            dictionaries = SampledDictionaries(**sizes, trim=trim, random_state=seed)
            self.learner_ = dictionaries.fit(scaled, row_numbers=numbers)
            return
        learner = with_seed(self.learner, seed)
        self.learner_ = clone(learner).fit(scaled)
        errors = to_numpy(self._learned_errors(scaled))
        share = 0.1 if isinstance(self.contamination, str) else self.contamination
        usual = np.flatnonzero(errors <= share_threshold(errors, share))
        if trims:
            self.learner_ = learner.fit(scaled[index_like(usual, scaled)])
        usual = usual[evenly_spaced_rows(len(usual), REFERENCE_ROWS)]
        self.reference_ = scaled[index_like(usual, scaled)]
        self.reference_rows_ = numbers[usual]

    def _choose_threshold(self, calibration: np.ndarray | None) -> None:
        self.__dict__.pop("calibration_scores_", None)
        scores = self._training_scores()
        if calibration is not None:
            rows = index_like(calibration, self.decision_scores_)
            self.calibration_scores_ = self.decision_scores_[rows]
            threshold = conformal_threshold(scores[calibration], float(self.alpha or 0))
        elif isinstance(self.contamination, str):
            threshold = fence(scores)
        else:
            threshold = share_threshold(scores, self.contamination)
        self._set_threshold(threshold)
        self.labels_ = (scores > threshold).astype(int)

    # ------------------------------------------------------------------- scoring

    def _training_scores(self) -> np.ndarray:  # (n,)
        return to_numpy(self.decision_scores_)

    def _learned_errors(self, X: Array) -> Array:  # (n,)
        if isinstance(self.learner_, SampledDictionaries):
            return self.learner_.errors(X)
        return super()._learned_errors(X)
