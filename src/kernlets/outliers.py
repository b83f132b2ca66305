"""Outlier detection by the reconstruction error of a learned dictionary."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .backend.arrays import eps, index_like, namespace, to_numpy
from .backend.constraints import Interval
from .backend.estimator import Estimator
from .backend.fill import at_hand
from .backend.pipelines import before_last, last_step
from .backend.random import generator
from .backend.rows import map_rows, rows_in_room, spread_sample
from .backend.samples import floats_of, is_objects
from .backend.scale import peaks, power_of_two
from .core import Array, Kernel
from .fields import Conditions, Declared, Floats, Indices, Number, Part, Size
from .kernels import resolve
from .kernels.check_samples import check_samples, takes_rows
from .kernels.complete import completed_rows
from .learners import ReducedKernelDL, base

LEARNING_SHARE = 16  # training rows of a file take 1/16 of the memory option
ERROR_COPIES = 4  # scoring a block needs this many arrays of its size


class DictionaryOutlierDetector(OutlierMixin, Estimator):
    """Outlier detector that scores a sample by its reconstruction error ‖φ(x) − Dγ‖².

    Methods follow scikit-learn (low scores are abnormal, predictions are 1 and -1);
    attributes follow PyOD (high scores are abnormal, labels are 0 and 1).

    Parameters
    ----------
    learner : dictionary learner or Pipeline that ends in one, optional
        Default: `ReducedKernelDL` with an RBF kernel and the sizes of its paper: 20
        atoms, 4 non-zeros and 50 anchors by k-means, or fewer if there are few samples.
    contamination : float
        Share of outliers among the training samples, from 0 to 0.5.
    standardize : bool
        Whether to scale the features to mean 0 and variance 1 first; samples that are
        not rows of numbers stay as they are.
    trim : bool
        Whether to learn twice, the second time without the share `contamination` of
        samples that the first dictionary represents worst, so that outliers do not
        become atoms.
    random_state : int, RandomState, Generator or None
        Seed of a learner that has no ``random_state`` of its own.

    Attributes
    ----------
    learner_ : estimator
        The fitted learner.
    mean_, scale_ : arrays (p,)
        Mean and standard deviation of the features.
    offset_ : float
        `decision_function` is `score_samples` minus this value.
    decision_scores_ : array (n,)
        Reconstruction errors of the training samples.
    threshold_ : float
        The error above which a sample is an outlier.
    labels_ : array (n,)
        1 for outliers among the training samples, otherwise 0.

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
        "contamination": [Interval(Real, 0, 0.5, closed="right")],
        "standardize": ["boolean"],
        "trim": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
    }

    _declared: ClassVar[Declared] = {
        "n_features_in_": Size("p"),
        "mean_": Floats("p"),
        "scale_": Floats("p"),
        "learner_": Part(base.DictionaryLearner, Pipeline, p="p"),
        "decision_scores_": Floats("n"),
        "threshold_": Number(),
        "offset_": Number(),
        "labels_": Indices("n", below=2),
    }
    _conditions: ClassVar[Conditions] = {
        "learner_ must end in a dictionary learner": lambda self: isinstance(
            last_step(self.learner_), base.DictionaryLearner
        ),
    }

    def __init__(
        self,
        learner: BaseEstimator | None = None,
        contamination: float = 0.1,
        *,
        standardize: bool = True,
        trim: bool = True,
        random_state: Any = None,
    ) -> None:
        self.learner = learner
        self.contamination = contamination
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
        known = self._standardized(self._learning_rows(X))
        learner = self._seeded(len(known))
        self.learner_ = clone(learner).fit(known)
        if self.trim:
            normal = self._normal_rows(self._learned_errors(known))
            self.learner_ = learner.fit(known[index_like(normal, known)])
        scores = self._errors(X)
        self.decision_scores_ = scores
        self.threshold_ = self._quantile(scores)
        self.offset_ = -self.threshold_
        self.labels_ = (to_numpy(scores) > self.threshold_).astype(int)
        return self

    def score_samples(self, X: Any) -> Array:  # (n,)
        """The negative reconstruction error: the lower, the more abnormal."""
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _learning_rows(self, X: Array) -> Array:
        """The rows to learn from; their mean and scale standardise all rows.

        From a file larger than a part of the memory option, evenly spaced rows are
        taken.
        """
        X = spread_sample(X, max(2, rows_in_room(X, LEARNING_SHARE)))
        self._measure_features(X)
        return X

    def _kernel(self) -> Kernel | None:
        """The kernel that meets the samples first, if they are not rows of numbers."""
        steps = getattr(self.learner, "steps", [("", self.learner)])
        kernel = getattr(steps[0][1], "kernel", None)
        kernel = None if kernel is None else resolve(kernel)
        return None if takes_rows(kernel) else kernel

    def _measure_features(self, X: Array) -> None:
        """Mean and deviation; features constant up to rounding are only shifted."""
        if is_objects(X):
            kind = floats_of(X).dtype
            self.mean_, self.scale_ = np.zeros(1, kind), np.ones(1, kind)
            return
        xp = namespace(X)
        unit = power_of_two(peaks(X, axis=0))[0]
        deviation, mean = xp.std(X / unit, axis=0), xp.mean(X / unit, axis=0)
        varies = deviation > 4 * eps(X) * xp.abs(mean)
        varies = varies & (deviation * unit > 0)  # it may underflow
        self.mean_ = mean * unit
        self.scale_ = xp.where(varies, deviation, 1.0) * unit

    def _standardized(self, X: Array) -> Array:
        if is_objects(X) or not self.standardize:
            return X
        return (X - self.mean_) / self.scale_

    def _seeded(self, n_samples: int) -> Any:
        seed = int(generator(self.random_state).integers(2**31))
        learner = _default_learner(n_samples) if self.learner is None else self.learner
        learner = clone(learner)
        last = last_step(learner)
        if last.get_params(deep=False).get("random_state", seed) is None:
            last.set_params(random_state=seed)
        return learner

    def _normal_rows(self, errors: Array) -> np.ndarray:
        return np.flatnonzero(to_numpy(errors) <= self._quantile(errors))

    def _quantile(self, errors: Array) -> float:
        """The error that a share `contamination` of the samples exceeds."""
        return float(np.quantile(to_numpy(errors), 1 - self.contamination))

    def _errors(self, X: Array) -> Array:  # (n,)
        """Reconstruction errors of rows before standardisation, block by block."""

        def errors(block: Array) -> Array:
            return self._learned_errors(self._standardized(block))

        return map_rows(errors, X, row_bytes=ERROR_COPIES * 8 * X.shape[-1])

    def _learned_errors(self, X: Array) -> Array:  # (n,)
        """Reconstruction errors of standardised rows."""
        X = before_last(self.learner_, X)
        return last_step(self.learner_).reconstruction_error(X, per_sample=True)


def _default_learner(n_samples: int) -> ReducedKernelDL:
    """The default learner; with RBF ‖φ(x)‖ is 1, so no outlier outweighs the rest."""
    n_atoms = max(1, min(20, n_samples // 5))
    return ReducedKernelDL(
        "rbf",
        n_components=n_atoms,
        n_nonzero_coefs=min(4, n_atoms),
        anchors="kmeans",
        n_anchors=max(1, min(50, n_samples // 2)),
    )


#: Detectors by the names that the command line knows.
DETECTORS = {"outliers": DictionaryOutlierDetector}
