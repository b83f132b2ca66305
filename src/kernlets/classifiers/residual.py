"""`ResidualClassifier`: one dictionary per class, and the smallest residual wins."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from ..base.constraints import LEARNER
from ..base.estimator import check_fitted
from ..coders.encoding import encode_block, encode_complete
from ..contracts import Array, Dictionary, SparseCoder, SparseCodes
from ..data.missing import has_missing
from ..data.rows import apply_to_rows, map_rows, n_columns
from ..data.stream import apply_to_blocks
from ..kernels import Precomputed, kernel_or_class
from ..kernels.samples import describe_input
from ..learners import KSVD
from ..learners.base import DictionaryLearner
from ..loops.codes import side_by_side
from ..numerics.arrays import namespace, to_numpy
from ..schema import Conditions, Declared, Indices, Many, Number, Part
from .base import ResidualVoting, prior_residuals, softmax_of_residuals
from .class_learners import (
    DEFAULT_ATOMS,
    bind_kernel,
    check_all_fitted,
    clone_per_class,
    fit_to_class,
    is_of_matrix,
    partial_fit_to_class,
    warn_of_small_classes,
)
from .class_rows import (
    ClassRows,
    check_class_rows,
    check_new_samples,
    check_stream_rows,
    fitted_kernel,
    is_stream,
    no_row_numbers,
    split_stream_rows,
)
from .labels import stream_classes

N_SAMPLED = 200  # samples from which residuals over the other classes are estimated
ROUNDING_SHARE = 1e-6  # training residuals below this share of those count as zero


def _learns_from_streams(classifier: ResidualClassifier) -> bool:
    """Whether the learner has `partial_fit`; if not, name learners that do."""
    learner = classifier._learner()
    if hasattr(learner, "partial_fit"):
        return True
    raise AttributeError(
        f"{type(learner).__name__} has no partial_fit: use RLSDictionary or "
        "OnlineDictionary, which learn from streams"
    )


class ResidualClassifier(ResidualVoting):
    """One dictionary per class; a sample gets the class that represents it best.

    This is the distributive scheme of LKDL, section IV-D: r_c = ‖f − D_c γ_c‖², argmin
    over c. Any learner with `reconstruction_error` can be used, after any feature map::

        make_pipeline(NystroemMap("poly:2"), ResidualClassifier(KSVD(300)))

    Parameters
    ----------
    learner : dictionary learner, optional
        The learner that is cloned for each class. Default: ``KSVD()``. A class with
        fewer samples than ``n_components`` gets one atom per sample, with a warning.
        Parameters that its kernel leaves open are set once, from the rows of all
        classes.
    random_state : int, RandomState, Generator or None
        Seed of the learners that have no ``random_state`` of their own.

    Notes
    -----
    A learner whose ``n_components`` is left open gets a quarter of the samples of a
    class as atoms, but at least 30, and up to 10 non-zeros instead of 5. A class with
    fewer than 30 samples keeps them all: on digits and faces with 3 to 20 samples per
    class that is on average above the nearest neighbour, and learned atoms are often
    below. Set ``n_components`` and ``n_nonzero_coefs`` to change this.

    Attributes
    ----------
    classes_ : array (n_classes,)
        The labels.
    learners_ : list
        The fitted learners, one per class.
    class_rows_ : list of arrays
        Row numbers of the training samples of each class.
    class_count_ : array (n_classes,)
        Number of samples learned from, for each class.
    temperature_ : float
        Mean squared training residual, the unit of `predict_proba`; a tenth of the
        residual over the nearest other class where atoms are samples.

    Examples
    --------
    >>> from kernlets import KSVD, ResidualClassifier, datasets
    >>> digits = datasets.load("digits")
    >>> model = ResidualClassifier(KSVD(30, n_nonzero_coefs=4, random_state=0))
    >>> model.fit(digits.X_train, digits.y_train)
    ResidualClassifier(learner=KSVD(n_components=30, n_nonzero_coefs=4,
                                    random_state=0))
    >>> model.score(digits.X_test, digits.y_test) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learner": [LEARNER, None],
        "random_state": ["random_state", np.random.Generator],
    }

    _declared: ClassVar[Declared] = {
        "learners_": Many(Part(DictionaryLearner, fitted=False), "C"),
        "class_rows_": Many(Indices(None), "C"),
        "class_count_": Indices("C"),
        "temperature_": Number(least=0),
    }
    _conditions: ClassVar[Conditions] = {
        "learners_ must take these features, or class_rows_": lambda self: all(
            map(self._is_suitable, self.learners_, self.class_rows_)
        ),
    }

    def __init__(
        self, learner: BaseEstimator | None = None, random_state: Any = None
    ) -> None:
        self.learner = learner
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ResidualClassifier:
        """Learn one dictionary for the rows of each class.

        X may also be a Dask array or dataframe with labels of either kind, or a list
        of blocks or `Blocks` with an array of labels. A row of `sample_weight` w counts
        as w rows; the learner must take weights, as all dictionary learners do.
        """
        self._validate_params()
        rows = check_class_rows(self, X, y, sample_weight, self._learner())
        learner = bind_kernel(self._learner(), rows.X, rows.weights)
        learners = clone_per_class(learner, len(rows.classes), self.random_state)
        warn_of_small_classes(learner, rows.counts)

        def learn_dictionary(c: int) -> Any:  # D_c
            return fit_to_class(learners[c], rows, c, self)

        self.learners_ = rows.map_classes(type(self).__name__, learn_dictionary)
        self.classes_, self.class_count_ = rows.classes, rows.counts
        self.class_rows_ = rows.numbers_in_input()
        self._set_temperature(rows)
        return self

    @property
    def _n_tasks(self) -> None:
        """None, because the learner of each class reports its own callback tasks."""
        return None

    @available_if(_learns_from_streams)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> ResidualClassifier:
        """Learn from the next rows of a labelled stream, each class from its own.

        The learner must have `partial_fit`, like `RLSDictionary`. The first call must
        name all labels of the stream, in `classes` or in y. A row of `sample_weight` w
        counts as w rows. A number of atoms that is left open is set from the first rows
        of each class.
        """
        self._validate_params()
        learner = self._learner()
        begins = not hasattr(self, "learners_")
        X, labels, weights = check_stream_rows(
            self, X, y, sample_weight, learner, begins
        )
        if begins:
            learner = bind_kernel(learner, X, weights)
            self.classes_ = stream_classes(labels if classes is None else classes)
            n_classes = len(self.classes_)
            self.learners_ = clone_per_class(learner, n_classes, self.random_state)
            self.class_rows_ = no_row_numbers(n_classes)
            self.class_count_ = np.zeros(n_classes, dtype=np.int64)
        rows = split_stream_rows(X, labels, weights, self.classes_)

        def improve_dictionary(c: int) -> None:  # D_c
            partial_fit_to_class(self.learners_[c], rows, c)

        rows.map_classes(type(self).__name__, improve_dictionary)
        self.class_count_ = self.class_count_ + rows.counts
        self.temperature_ = self._mean_error()
        return self

    def residuals(self, X: Any) -> Array:  # (n, n_classes)
        """Compute the squared residual of each sample over each dictionary."""
        check_fitted(self)
        check_all_fitted(self.learners_, self.classes_)
        kernel = fitted_kernel(self.learners_[0])
        if is_stream(X, kernel):
            return apply_to_blocks(self.residuals, X)
        X = check_new_samples(self, X, self.learners_[0])
        if isinstance(kernel, Precomputed):
            return self._residuals(X)
        return apply_to_rows(copy(self)._residuals, X, 4 * 8 * n_columns(X))

    def _residuals(self, X: Array) -> Array:  # (n, n_classes)
        learners, first = self.learners_, self.learners_[0]
        if isinstance(first, DictionaryLearner) and not is_of_matrix(first):
            dictionaries = [
                (learner.dictionary_, learner.coder_) for learner in learners
            ]
            row_bytes = max([dictionary.row_bytes for dictionary, _ in dictionaries])
            compute = partial(_block_residuals, dictionaries)
            group_size = first.coder_.group_size
            residuals = map_rows(compute, X, row_bytes, group_size)
        else:
            columns = self._map_learners(
                X,
                lambda learner, X_c: learner.reconstruction_error(X_c, per_sample=True),
            )
            residuals = namespace(columns[0]).stack(columns, axis=1)
        return prior_residuals(residuals, X, self.class_count_, self.temperature_)

    def predict_proba(self, X: Any) -> Array:  # (n, n_classes)
        """softmax(−r / `temperature_`): a ranking between 0 and 1, not calibrated.

        Wrap the classifier in scikit-learn's `CalibratedClassifierCV` if the numbers
        must be frequencies.
        """
        residuals = self.residuals(X)  # first, because it checks that this is fitted
        return apply_to_rows(
            partial(softmax_of_residuals, self.temperature_), residuals
        )

    def encode(self, X: Any) -> SparseCodes:
        """Compute sparse codes over each dictionary separately and join their columns.

        The atoms of the first class come first. The codes of a sample over one class
        do not depend on the other classes.
        """
        check_fitted(self)
        check_all_fitted(self.learners_, self.classes_)
        if not is_stream(X, fitted_kernel(self.learners_[0])):
            X = check_new_samples(self, X, self.learners_[0])
        codes = self._map_learners(X, lambda learner, X_c: learner.encode(X_c))
        return side_by_side(codes)

    def _map_learners(self, X: Any, compute: Callable[[Any, Any], Any]) -> list[Any]:
        """Return `compute(learner, X)` for all learners.

        Of a kernel matrix each gets the columns of its training rows.
        """
        return [
            compute(learner, X[:, rows] if is_of_matrix(learner) else X)
            for learner, rows in zip(self.learners_, self.class_rows_, strict=True)
        ]

    def _set_temperature(self, rows: ClassRows) -> None:
        """Set the temperature to the mean training residual.

        If the atoms are the samples, so that residuals vanish, it is a tenth of the
        mean residual over the nearest other class.
        """
        self.temperature_ = self._mean_error()
        if not rows.is_one_array or rows.counts.max() >= DEFAULT_ATOMS:
            return
        X, class_indices = rows.sample(N_SAMPLED)
        residuals = to_numpy(self._residuals(X))
        residuals[np.arange(len(residuals)), class_indices] = np.inf
        rival_residual = float(residuals.min(axis=1).mean())
        if self.temperature_ < ROUNDING_SHARE * rival_residual:
            self.temperature_ = rival_residual / 10

    def _mean_error(self) -> float:
        """Return the mean squared residual of the last training rows of all classes."""
        errors_and_counts = [
            (learner.history_["objective"][-1], count)
            for learner, count in zip(self.learners_, self.class_count_, strict=True)
            if hasattr(learner, "history_")
        ]
        if not errors_and_counts:
            return 0.0
        errors, counts = zip(*errors_and_counts, strict=True)
        return float(np.average(errors, weights=counts))

    def _is_suitable(self, learner: Any, rows: np.ndarray) -> bool:
        """Whether a learner is unfitted or was fitted to the features of these rows."""
        n_features = getattr(learner, "n_features_in_", None)
        if is_of_matrix(learner):
            return (
                n_features == len(rows) and rows.max(initial=-1) < self.n_features_in_
            )
        return n_features in (None, self.n_features_in_)

    def _learner(self) -> Any:
        return KSVD() if self.learner is None else self.learner

    def __sklearn_tags__(self) -> Any:
        kernel = kernel_or_class(getattr(self.learner, "kernel", None))
        return describe_input(super().__sklearn_tags__(), kernel, allow_nan=True)


def _block_residuals(
    dictionaries: list[tuple[Dictionary, SparseCoder]], X: Array
) -> Array:  # (n, n_classes)
    """r_c = ‖f − D_c γ_c‖² of the rows f of a block, which stays in the cache."""
    encode = encode_block if has_missing(X) else encode_complete
    residuals = [encode(D_c, coder, X).residual for D_c, coder in dictionaries]
    return namespace(residuals[0]).stack(residuals, axis=1)
