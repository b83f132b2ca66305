"""`ResidualClassifier`: one dictionary per class, and the smallest residual wins."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from ..base.constraints import SINGLE_LEARNER
from ..base.estimator import check_fitted
from ..coders.encoding import encode_block, encode_complete
from ..contracts import Array, Dictionary, SparseCoder, SparseCodes
from ..data.missing import has_missing
from ..data.rows import apply_to_rows, map_rows, n_columns
from ..data.stream import apply_to_blocks
from ..kernels import Precomputed
from ..learners import KSVD
from ..learners.base import DictionaryLearner
from ..loops.codes import side_by_side
from ..numerics.arrays import namespace, to_numpy
from ..schema import Conditions, Declared, Indices, Many, Part
from .base import ResidualProbabilities, prior_residuals
from .class_learners import (
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
    kernel_of,
    no_row_numbers,
    split_stream_rows,
)
from .labels import stream_classes
from .temperature import (
    MOST_ROWS,
    UNKNOWN_TEMPERATURE,
    HeldOut,
    fit_temperature,
    temperature_of_parts,
)


def _learns_from_streams(classifier: ResidualClassifier) -> bool:
    """Whether the learner has `partial_fit`; if not, name learners that do."""
    learner = classifier._learner()
    if hasattr(learner, "partial_fit"):
        return True
    raise AttributeError(
        f"{type(learner).__name__} has no partial_fit: use RLSDictionary or "
        "OnlineDictionary, which learn from streams"
    )


class ResidualClassifier(ResidualProbabilities):
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
        Temperature of `predict_proba`. It has the least log-loss on rows that short
        fits, with one iteration, leave out: a third of a sample of the rows, or each
        of up to 500 rows once. It follows the rows of `partial_fit`.

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
        "learner": [SINGLE_LEARNER, None],
        "random_state": ["random_state", np.random.Generator],
    }

    _declared: ClassVar[Declared] = {
        "learners_": Many(Part(DictionaryLearner, fitted=False), "C"),
        "class_rows_": Many(Indices(None), "C"),
        "class_count_": Indices("C"),
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
        warn_of_small_classes(learner, rows.counts)
        self._learn(learner, rows)
        self.temperature_ = self._held_out_temperature(learner, rows)
        return self

    def _learn(self, learner: Any, rows: ClassRows) -> None:
        """Learn the dictionaries."""
        learners = clone_per_class(learner, len(rows.classes), self.random_state)

        def learn_dictionary(c: int) -> Any:  # D_c
            return fit_to_class(learners[c], rows, c, self)

        self.learners_ = rows.map_classes(type(self).__name__, learn_dictionary)
        self.classes_, self.class_count_ = rows.classes, rows.counts
        self.class_rows_ = rows.numbers_in_input()

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
            self.temperature_ = UNKNOWN_TEMPERATURE
        rows = split_stream_rows(X, labels, weights, self.classes_)
        if all(learner.__sklearn_is_fitted__() for learner in self.learners_):
            self._follow_temperature(*rows.sample(MOST_ROWS))

        def improve_dictionary(c: int) -> None:  # D_c
            partial_fit_to_class(self.learners_[c], rows, c)

        rows.map_classes(type(self).__name__, improve_dictionary)
        self.class_count_ = self.class_count_ + rows.counts
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

    def _held_out_temperature(self, learner: Any, rows: ClassRows) -> float:
        """Fit the temperature to rows that short fits to a sample leave out."""
        n_atoms = learner.get_params(deep=False).get("n_components") or 0
        # as dense a sample as the atoms need, so that it is much like all rows
        n_rows = max(2 * MOST_ROWS, 4 * n_atoms * len(rows.classes))
        X, class_indices = rows.sample(n_rows)
        short_learner = _shortened(learner)

        def residuals_of_part(part: HeldOut) -> Array:
            model = ResidualClassifier(short_learner, random_state=0)
            model.temperature_ = UNKNOWN_TEMPERATURE
            part_rows = check_class_rows(model, part.X, part.y, None, short_learner)
            model._learn(short_learner, part_rows)
            return model._residuals(part.X_valid)

        kernel = kernel_of(learner)
        temperature = temperature_of_parts(X, class_indices, kernel, residuals_of_part)
        return UNKNOWN_TEMPERATURE if temperature is None else temperature

    def _follow_temperature(self, X: Array, y: np.ndarray) -> None:
        """Average the temperature with that of rows which are not learned from yet."""
        n_before, n_new = self.class_count_.sum(), len(y)
        residuals = to_numpy(self._residuals(X)).astype(np.float64)
        if n_new and np.isfinite(residuals).all():
            logs = np.log([self.temperature_, fit_temperature(residuals, y)])
            mean = np.average(logs, weights=[n_before, n_new])
            self.temperature_ = float(np.exp(mean))

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
        tags = super().__sklearn_tags__()
        learner = self._learner()
        if isinstance(learner, BaseEstimator):
            tags.input_tags = get_tags(learner).input_tags
        return tags


def _shortened(learner: Any) -> Any:
    """Return an unfitted copy that learns for one iteration and tells nobody."""
    short_learner, defaults = clone(learner), type(learner)().get_params(deep=False)
    params = {
        name: defaults[name]
        for name in ("schedule", "callback", "verbose")
        if name in defaults
    }
    if "max_iter" in defaults:
        params["max_iter"] = 1
    return short_learner.set_params(**params)


def _block_residuals(
    dictionaries: list[tuple[Dictionary, SparseCoder]], X: Array
) -> Array:  # (n, n_classes)
    """r_c = ‖f − D_c γ_c‖² of the rows f of a block, which stays in the cache."""
    encode = encode_block if has_missing(X) else encode_complete
    residuals = [encode(D_c, coder, X).residual for D_c, coder in dictionaries]
    return namespace(residuals[0]).stack(residuals, axis=1)
