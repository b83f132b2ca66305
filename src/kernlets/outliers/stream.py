"""Outlier detection in a stream, with thresholds that follow the recent scores."""

from __future__ import annotations

from math import inf
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from .. import schema
from ..base.constraints import AT_LEAST_1, LEARNER, Interval
from ..base.pipelines import before_last, last_step
from ..contracts import Array
from ..data.block_loop import apply_rows, read_rows
from ..data.check import check_rows
from ..kernels.complete import completed_rows, filled_over
from ..learners import BudgetKernelDL
from ..learners.base import DictionaryLearner
from ..numerics.arrays import index_like, namespace, to_numpy
from ..numerics.random import generator
from .base import OutlierDetector, robust_moments, with_seed
from .thresholds import far_out, p_values, running_threshold

SLOW = "rational_quadratic"  # decays slowly, so that scores of far rows differ
EVEN = 1e-5  # relative difference up to which energies of rows count as equal
RARE = 4  # far rows are rare while they are less than 1/4 of the window: quartiles hold


class StreamOutlierDetector(OutlierDetector):
    """Outlier detector for a stream of samples whose distribution may change.

    Samples are scored by the reconstruction error ‖φ(x) − Dγ‖² first and learned from
    afterwards, a mini-batch at a time:

    * Missing values (NaN) of a sample are filled in from the last samples, as
      `DictionaryImputer` does, so that they count neither for nor against it.
    * A score above the threshold is an alarm. The threshold follows the scores of the
      last `window` samples, so that of samples which are all of one kind about the
      share `alpha` are alarms, whatever their distribution.
    * A score beyond the third quartile by three interquartile ranges is far out, and
      the dictionary does not learn from the sample. Of several such samples in a row
      the first alone counts for the threshold, so that a fault which lasts for some
      time remains an alarm.
    * When a quarter of the last `window` samples are far out, the stream has changed:
      everything is learned anew from the most recent samples, and the alarms end.

    A learner that forgets follows slow changes. For a stream that changes all the time
    use ``RLSDictionary(schedule="forgetting=0.999")``.

    Parameters
    ----------
    learner : learner with `partial_fit`, or Pipeline that ends in one, optional
        Default: ``BudgetKernelDL("rational_quadratic", n_nonzero_coefs=1)``. The steps
        before the learner are fitted to the first samples, and when everything is
        learned anew.
    alpha : float
        The rate of alarms to keep to.
    window : int
        Number of scores that the threshold is set by. The stream begins with a quarter
        as many samples, which are gathered until a first dictionary is learned.
    batch_size : int
        Number of samples that are scored before any of them is learned from.
    standardize : bool
        Whether to scale the features by the first samples: to the median 0 and the
        range of the middle 90 % of a standard normal variable.
    random_state : int, RandomState, Generator or None
        Seed of a learner that has no ``random_state`` of its own.

    Attributes
    ----------
    decision_scores_, labels_ : arrays (n,)
        Of the samples of the last call of `fit` or `partial_fit`: scores, and 1 for
        alarms, as they were before the samples were learned from. All are 0 while the
        first samples are gathered.
    threshold_ : float
        The score above which the next sample is an alarm.
    offset_ : float
        `decision_function` is `score_samples` minus this value.
    ceiling_ : float
        The largest score that is possible: κ(x, x) if that is the same for all samples,
        otherwise infinite.
    recent_scores_ : array (w,)
        The scores that the threshold is set by.
    recent_rows_ : array (r, p)
        The last samples, a quarter of the window.
    recent_far_ : array (f,)
        1 for those of the last samples that are far out, otherwise 0.
    reference_, reference_rows_ : arrays (r, p), (r,)
        The last samples that are not far out, scaled, and their numbers in the stream;
        `explain` compares with them.
    learner_ : estimator
        The current learner.
    mean_, scale_ : arrays (p,)
        Centre and scale of the features.
    n_samples_seen_ : int
        Number of samples so far, in all calls.
    n_restarts_ : int
        Number of times that everything was learned anew.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import StreamOutlierDetector
    >>> rows = np.random.default_rng(0).standard_normal((600, 3))
    >>> rows[500] = 9
    >>> detector = StreamOutlierDetector(window=400, random_state=0)
    >>> alarms = []
    >>> for start in range(0, 600, 50):
    ...     detector = detector.partial_fit(rows[start : start + 50])
    ...     alarms += [start + int(i) for i in np.flatnonzero(detector.labels_)]
    >>> 500 in alarms, len(alarms) < 20
    (True, True)
    """

    pending_: Array

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learner": [LEARNER, None],
        "alpha": [Interval(Real, 0, 1, closed="neither")],
        "window": [Interval(Integral, 2 * RARE, None, closed="left")],
        "batch_size": [AT_LEAST_1],
        "standardize": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
    }

    _declared: ClassVar[schema.Declared] = {
        "n_features_in_": schema.Size("p"),
        "n_samples_seen_": schema.Whole(),
        "decision_scores_": schema.Floats("n", like="float64"),
        "labels_": schema.Indices("n", below=2),
        "pending_": schema.Maybe(schema.Floats("k", "p", finite=False)),
        "mean_": schema.Floats("p"),
        "scale_": schema.Floats("p"),
        "learner_": schema.Part(DictionaryLearner, Pipeline, p="p"),
        "ceiling_": schema.Number(least=0, finite=False),
        "recent_scores_": schema.Floats("w", like="float64"),
        "recent_rows_": schema.Floats("r", "p"),
        "recent_far_": schema.Indices("f", below=2),
        "threshold_": schema.Number(),
        "offset_": schema.Number(),
        "n_restarts_": schema.Whole(),
    }
    # attributes of a detector that gathers its first rows
    _early = (
        *("n_features_in_", "n_samples_seen_", "decision_scores_", "labels_"),
        *("pending_", "n_restarts_"),
    )
    _conditions: ClassVar[schema.Conditions] = {
        "learner_ must end in a learner with partial_fit": lambda self: hasattr(
            last_step(self.learner_), "partial_fit"
        ),
        "recent_far_ must cover recent_rows_": lambda self: (
            len(self.recent_far_) >= self.recent_rows_.shape[0]
        ),
    }

    def __init__(
        self,
        learner: BaseEstimator | None = None,
        alpha: float = 0.01,
        *,
        window: int = 1000,
        batch_size: int = 32,
        standardize: bool = True,
        random_state: Any = None,
    ) -> None:
        self.learner = learner
        self.alpha = alpha
        self.window = window
        self.batch_size = batch_size
        self.standardize = standardize
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> StreamOutlierDetector:
        """Forget what was learned, and follow the rows of X; y is ignored.

        A first dictionary is learned however few rows there are.
        """
        self._validate_params()
        X = check_rows(self, X, reset=True, ensure_min_samples=2, allow_nan=True)
        for name in ("learner_", "pending_"):
            self.__dict__.pop(name, None)
        self.n_samples_seen_ = self.n_restarts_ = 0
        self._follow(X, X.shape[0])
        return self

    def partial_fit(self, X: Any, y: Any = None) -> StreamOutlierDetector:
        """Score the next rows of the stream, then learn from them; y is ignored.

        Results are in `labels_` and `decision_scores_`. Until a quarter of
        `window` rows has been seen, they are gathered, and the detector is not fitted.
        """
        self._validate_params()
        begins = not hasattr(self, "n_features_in_")
        is_fitted = self.__sklearn_is_fitted__()
        like = getattr(self, "mean_" if is_fitted else "pending_", None)
        X = check_rows(self, X, reset=begins, like=like, allow_nan=True)
        n_new = X.shape[0]
        if begins:
            self.n_samples_seen_ = self.n_restarts_ = 0
        if not is_fitted:
            X = read_rows(X, slice(0, n_new))
            xp = namespace(X)
            if hasattr(self, "pending_"):
                X = xp.concat([self.pending_, X])
            if X.shape[0] < self._n_first():
                self.pending_ = xp.asarray(X, copy=True)  # X may be overwritten
                self.decision_scores_ = np.zeros(n_new)
                self.labels_ = np.zeros(n_new, dtype=np.int64)
                self.n_samples_seen_ += n_new
                return self
        self._follow(X, n_new)
        return self

    def p_values(self, X: Any) -> np.ndarray:  # (n,)
        """Return the share of recent scores, and its own, that are as abnormal or more.

        For samples like the recent ones they are at most a with a probability of at
        most a.
        """
        return p_values(self._scores(X), self._training_scores())

    @property
    def reference_(self) -> Array:  # (r, p)
        """Recent samples that are not far out, scaled, for explanations."""
        rows = index_like(self._recent_usual(), self.recent_rows_)
        return self._standardize(self.recent_rows_[rows])

    @property
    def reference_rows_(self) -> np.ndarray:  # (r,)
        """The numbers in the stream of the rows of `reference_`."""
        first = self.n_samples_seen_ - self.recent_rows_.shape[0]
        return first + self._recent_usual()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")

    # ------------------------------------------------------------ the first samples

    def _n_first(self) -> int:
        """Return the number of rows that a first dictionary and first scores need."""
        n_atoms = getattr(last_step(self.learner), "n_components", None) or 1
        return min(self.window, max(self.window // RARE, 2 * n_atoms))

    def _start(self, X: Array) -> tuple[np.ndarray, np.ndarray]:  # (n,), (n,)
        """Learn everything from these rows, and return their scores and labels.

        A dictionary of the first half scores the second one, as new rows are scored.
        Then a dictionary is learned from all rows that are not far out.
        """
        X = completed_rows(X)
        self.mean_, self.scale_ = robust_moments(X)
        scaled = self._standardize(X)
        learner = self._new_learner()
        n, n_atoms = X.shape[0], getattr(last_step(learner), "n_components", None)
        half = min(n, max(n // 2, n_atoms or 1))
        self.learner_ = clone(learner).fit(scaled[:half])
        scores = self._float64_errors(scaled)
        new_scores = scores[half:] if half < n else scores
        self.ceiling_ = self._ceiling(scaled)
        usual = np.flatnonzero(scores <= far_out(new_scores, self.ceiling_))
        if len(usual) >= half:
            scaled = scaled[index_like(usual, scaled)]
        self.learner_ = learner.fit(scaled)
        self.recent_scores_ = new_scores[-self.window :]
        self.recent_far_ = np.zeros(n, dtype=np.int64)[-self.window :]
        self.recent_rows_ = self._latest(X)
        self._choose_threshold()
        return scores, scores > self.threshold_

    def _new_learner(self) -> Any:
        seed = int(generator(self.random_state).integers(2**31))
        if self.learner is None:
            return BudgetKernelDL(SLOW, n_nonzero_coefs=1, random_state=seed)
        if not hasattr(last_step(self.learner), "partial_fit"):
            name = type(last_step(self.learner)).__name__
            raise ValueError(
                f"{name} cannot learn from a stream: use RLSDictionary, "
                "OnlineDictionary or BudgetKernelDL, or DictionaryOutlierDetector for "
                "rows that are all known"
            )
        return with_seed(self.learner, seed)

    # ---------------------------------------------------------- the following samples

    def _follow(self, X: Array, n_new: int) -> None:
        """Score and learn batch by batch; store scores and labels of the new rows."""
        n, first, results = X.shape[0], 0, []
        if not self.__sklearn_is_fitted__():
            first = min(n, self._n_first())
            results.append(apply_rows(self._start, X, slice(0, first)))
            self.__dict__.pop("pending_", None)
        for begin in range(first, n, self.batch_size):
            end = min(n, begin + self.batch_size)
            results.append(apply_rows(self._step, X, slice(begin, end)))
        self.n_samples_seen_ += n_new
        scores, alarms = zip(*results, strict=True)
        self.decision_scores_ = np.concatenate(scores)[-n_new:]
        self.labels_ = np.concatenate(alarms)[-n_new:].astype(np.int64)

    def _step(self, batch: Array) -> tuple[np.ndarray, np.ndarray]:  # (n,), (n,)
        """Score a few rows before learning from them; return scores and alarms."""
        batch = filled_over(batch, self.recent_rows_)
        scaled = self._standardize(batch)
        scores = self._float64_errors(scaled)
        alarms = scores > self.threshold_
        is_far = scores > far_out(self.recent_scores_, self.ceiling_)
        self._remember(batch, scores, is_far)
        if self.recent_far_.sum() >= self.window // RARE:
            self._start(self.recent_rows_)
            self.n_restarts_ += 1
        elif not is_far.all():
            usual = scaled[index_like(np.flatnonzero(~is_far), scaled)]
            last_step(self.learner_).partial_fit(before_last(self.learner_, usual))
        return scores, alarms

    def _remember(self, batch: Array, scores: np.ndarray, is_far: np.ndarray) -> None:
        follows_far = np.append(self.recent_far_[-1:] > 0, is_far[:-1])
        counted = scores[~(is_far & follows_far)]
        self.recent_scores_ = np.append(self.recent_scores_, counted)[-self.window :]
        self.recent_far_ = np.append(self.recent_far_, is_far)[-self.window :]
        rows = namespace(batch).concat([self.recent_rows_, batch])
        self.recent_rows_ = self._latest(rows)
        self._choose_threshold()

    def _choose_threshold(self) -> None:
        """Set the conformal threshold, or the fence if no score can exceed that."""
        threshold = running_threshold(self.recent_scores_, self.alpha)
        if threshold >= self.ceiling_ * (1 - EVEN):
            threshold = far_out(self.recent_scores_, self.ceiling_)
        self._set_threshold(threshold)

    def _latest(self, rows: Array) -> Array:
        """Return a copy of the last rows, as many as a restart needs."""
        return namespace(rows).asarray(rows[-self._n_first() :], copy=True)

    # ----------------------------------------------------------------------- scoring

    def _recent_usual(self) -> np.ndarray:
        """Return indices of the recent rows that are not far out, or all if all are."""
        is_far = self.recent_far_[-self.recent_rows_.shape[0] :]
        usual = np.flatnonzero(is_far == 0)
        return usual if len(usual) else np.arange(len(is_far))

    def _ceiling(self, scaled: Array) -> float:
        """Return the error of an empty code if it is the same for all rows, or ∞."""
        rows = before_last(self.learner_, scaled)
        energies = to_numpy(last_step(self.learner_).dictionary_.energy(rows))
        low, high = float(energies.min()), float(energies.max())
        return low if high <= low * (1 + EVEN) else inf

    def _standardize(self, X: Array) -> Array:
        recent = getattr(self, "recent_rows_", None)
        rows = X if recent is None else filled_over(X, recent)
        return super()._standardize(rows)

    def _float64_errors(self, scaled: Array) -> np.ndarray:  # (n,)
        return to_numpy(self._learned_errors(scaled)).astype(np.float64)

    def _training_scores(self) -> np.ndarray:  # (n,)
        return self.recent_scores_
