"""`ResidualClassifier`: one dictionary per class, and the smallest residual wins."""

from __future__ import annotations

import warnings
from copy import copy
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..base.constraints import LEARNER
from ..base.estimator import Estimator
from ..base.progress import part_of
from ..coders import encode
from ..coders.bookkeeping import side_by_side
from ..config import options
from ..contracts import Array, Dictionary, SparseCoder, SparseCodes
from ..data.block_loop import keep_groups_together
from ..data.check import trust_checked_rows
from ..data.labels import label_classes, label_values
from ..data.lazy_rows import n_parts_at_once
from ..data.missing import all_in_memory, fill_rows_with_means
from ..data.rows import (
    apply_to_rows,
    evenly_spaced_rows,
    load_row_subset,
    load_values,
    map_rows,
    n_columns,
    with_selectable_columns,
)
from ..data.stream import apply_to_blocks, first_block, is_blocks
from ..data.weights import (
    Weights,
    check_weights,
    drop_zero_weights,
    n_weighted_samples,
    nonzero_weight_rows,
    row_numbers_by_weight,
    weights_as_counts,
)
from ..io.checkpoint import branches
from ..kernels import Kernel, Precomputed, resolve
from ..kernels.complete import completed_rows
from ..kernels.indefinite import check_kernel
from ..kernels.samples import check_samples, describe_input, takes_missing
from ..learners import KSVD
from ..learners.base import DictionaryLearner
from ..learners.initial_atoms import NonzeroRows
from ..numerics.arrays import as_like, namespace, to_numpy
from ..numerics.random import generator
from ..numerics.scaling import least_energy, quiet
from ..numerics.text import printable
from ..numerics.threads import parallel
from ..schema import Conditions, Declared, Indices, Many, Number, Part
from ..sklearn_base import BaseEstimator, ClassifierMixin
from .class_rows import check_labelled_rows, is_stream, split_classes, take_samples
from .labels import ResidualVoting, check_labels, prior_residuals

N_SAMPLED = 200  # samples from which residuals over the other classes are estimated
ROUNDING_SHARE = 1e-6  # training residuals below this share of those count as zero
DEFAULT_NONZEROS = 10  # of a code over the dictionary of one class
DEFAULT_ATOMS = 30  # of a small class; a class with fewer samples keeps all of them


def _learns_from_streams(classifier: ResidualClassifier) -> bool:
    """Whether the learner has `partial_fit`; if not, name learners that do."""
    learner = classifier._learner()
    if hasattr(learner, "partial_fit"):
        return True
    raise AttributeError(
        f"{type(learner).__name__} has no partial_fit: use RLSDictionary or "
        "OnlineDictionary, which learn from streams"
    )


class ResidualClassifier(ResidualVoting, ClassifierMixin, Estimator):
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
        learner = self._learner()
        kernel = kernel_of(learner)
        allow_nan = _learns_from_nan(learner) or (
            takes_missing(kernel) and all_in_memory(X)
        )
        X = check_labelled_rows(self, X, kernel, allow_nan)
        weights = weights_as_counts(check_weights(sample_weight, X))
        used_rows = None
        if not isinstance(kernel, Precomputed):  # new samples need all of its columns
            X, y, weights, used_rows = _used_rows(X, y, weights)
        X = X if _learns_from_nan(learner) else completed_rows(X, weights)
        learner = bind_kernel(learner, X, weights)
        split = split_classes(self, X, y, kernel).with_weighted_counts(weights)
        counts = split.counts.tolist()
        seeds = _seeds(learner, self.random_state, len(counts))
        checkpoint_folders = branches(type(self).__name__, len(counts))
        _warn_of_small_classes(learner, split.counts)

        def fit_class(job: tuple[int, int, int | None, Any]) -> Any:
            c, count, seed, checkpoint_folder = job
            with options(checkpoint=checkpoint_folder):
                class_weights = (
                    None if weights is None else weights[split.row_numbers[c]]
                )
                rows = split.rows_of_class(c)
                class_learner = _prepare_learner(
                    _clone_with_seed(learner, seed), count, rows, class_weights
                )
                with part_of(self, c, f"class {split.classes[c]}", class_learner):
                    return _fit_learner(class_learner, rows, class_weights)

        jobs = list(
            zip(range(len(counts)), counts, seeds, checkpoint_folders, strict=True)
        )
        max_concurrent = n_parts_at_once(X, split.counts.max() / split.counts.sum())
        # If a cluster does the work, these threads only wait for it.
        with options(n_threads=split.n_concurrent or options.n_threads):
            self.learners_ = parallel(fit_class, jobs, max_concurrent)
        self.classes_ = split.classes
        self.class_rows_ = [
            rows if used_rows is None else used_rows[rows] for rows in split.row_numbers
        ]
        self.class_count_ = split.counts
        self.temperature_ = self._mean_error()
        if split.row_numbers[0].size and split.counts.max() < DEFAULT_ATOMS:
            class_indices = np.searchsorted(self.classes_, label_values(y))
            self._set_temperature(X, class_indices, weights)
        return self

    @property
    def _n_tasks(self) -> None:
        """None, because the learner of each class reports its own callback tasks."""
        return None

    def _set_temperature(
        self, X: Array, class_indices: np.ndarray, weights: Weights
    ) -> None:
        """Set the temperature if the atoms are the samples, so that residuals vanish.

        It is then a tenth of the mean residual over the nearest other class.
        """
        weighted_rows = row_numbers_by_weight(X.shape[0], weights)
        sample = weighted_rows[evenly_spaced_rows(len(weighted_rows), N_SAMPLED)]
        rows, sample_positions = load_row_subset(X, sample)
        residuals = to_numpy(self._residuals(rows[sample_positions]))
        residuals[np.arange(len(sample)), class_indices[sample]] = np.inf
        rival_residual = float(residuals.min(axis=1).mean())
        if self.temperature_ < ROUNDING_SHARE * rival_residual:
            self.temperature_ = rival_residual / 10

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
        kernel = kernel_of(learner)
        is_first_call = not hasattr(self, "learners_")
        nan_option = {"allow_nan": getattr(learner, "_streams_missing", False)}
        X = check_samples(self, X, kernel, reset=is_first_call, **nan_option)
        X, y, weights, _ = _used_rows(X, y, check_weights(sample_weight, X))
        labels = check_labels(self, y, X.shape[0], min_classes=1)
        if is_first_call:
            learner = bind_kernel(learner, completed_rows(X, weights), weights)
            self._make_learners(learner, labels if classes is None else classes)
        class_indices = self._class_indices(labels)

        def feed_class(job: tuple[Any, np.ndarray]) -> None:
            class_learner, rows = job
            if len(rows):
                class_weights = None if weights is None else weights[rows]
                with trust_checked_rows(take_samples(X, rows, kernel)) as X_c:
                    if not hasattr(class_learner, "n_features_in_"):
                        _set_defaults(
                            class_learner,
                            _n_weighted_rows(rows, weights),
                            X_c,
                            class_weights,
                        )
                    class_learner.partial_fit(X_c, None, class_weights)

        class_rows = [
            np.flatnonzero(class_indices == c) for c in range(len(self.classes_))
        ]
        parallel(feed_class, zip(self.learners_, class_rows, strict=True))
        counts = [_n_weighted_rows(rows, weights) for rows in class_rows]
        self.class_count_ = self.class_count_ + counts
        self.temperature_ = self._mean_error()
        return self

    def _make_learners(self, learner: Any, classes: Any) -> None:
        """Create an unfitted learner for each class of a stream."""
        if isinstance(kernel_of(learner), Precomputed):
            raise ValueError("partial_fit takes no precomputed kernel: use fit")
        self.classes_ = np.unique(label_values(classes))
        n_classes = len(self.classes_)
        seeds = _seeds(learner, self.random_state, n_classes)
        self.learners_ = [_clone_with_seed(learner, seed) for seed in seeds]
        self.class_rows_ = [np.empty(0, dtype=np.intp)] * n_classes
        self.class_count_ = np.zeros(n_classes, dtype=np.int64)

    def _class_indices(self, labels: np.ndarray) -> np.ndarray:
        label_classes([self.classes_, labels])  # text and numbers cannot be compared
        unknown_labels = np.setdiff1d(labels, self.classes_)
        if len(unknown_labels):
            raise ValueError(
                f"y has the label {unknown_labels[0]}, which the first call did not "
                "name: pass all labels of the stream as classes to the first "
                "partial_fit"
            )
        return np.searchsorted(self.classes_, labels)

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
        if isinstance(_fitted_kernel(learner), Precomputed):
            return (
                n_features == len(rows) and rows.max(initial=-1) < self.n_features_in_
            )
        return n_features in (None, self.n_features_in_)

    def _learner(self) -> Any:
        return KSVD() if self.learner is None else self.learner

    def residuals(self, X: Any) -> Array:  # (n, n_classes)
        """Compute the squared residual of each sample over each dictionary."""
        check_is_fitted(self)
        self._check_all_fitted()
        kernel = _fitted_kernel(self.learners_[0])
        if is_stream(X, kernel):
            return apply_to_blocks(self.residuals, X)
        like = getattr(self.learners_[0], "_model_array", None)
        X = check_samples(self, X, kernel, lazy=True, like=like, allow_nan=True)
        if isinstance(kernel, Precomputed):  # each class takes columns of the matrix
            return self._residuals(with_selectable_columns(X, type(self).__name__))
        return apply_to_rows(copy(self)._residuals, X, 4 * 8 * n_columns(X))

    def _residuals(self, X: Array) -> Array:  # (n, n_classes)
        by_matrix = isinstance(_fitted_kernel(self.learners_[0]), Precomputed)
        are_dictionary_learners = [
            isinstance(learner, DictionaryLearner) for learner in self.learners_
        ]
        if by_matrix or not all(are_dictionary_learners):
            residuals = self._residuals_by_class(X, by_matrix)
        else:  # a block of rows stays in the cache for all classes
            class_dictionaries = [
                (learner.dictionary_, learner.coder_) for learner in self.learners_
            ]
            row_bytes = max(
                dictionary.row_bytes for dictionary, _ in class_dictionaries
            )
            with keep_groups_together(self.learners_[0].coder_):
                residuals = map_rows(
                    partial(_block_residuals, class_dictionaries), X, row_bytes
                )
        temperature = max(self.temperature_, least_energy(residuals))
        return prior_residuals(residuals, X, self.class_count_, temperature)

    def _residuals_by_class(self, X: Array, by_matrix: bool) -> Array:
        """Compute residuals by `reconstruction_error` of each learner."""
        columns = []
        for learner, rows in zip(self.learners_, self.class_rows_, strict=True):
            with trust_checked_rows(X[:, rows] if by_matrix else X) as X_c:
                columns.append(learner.reconstruction_error(X_c, per_sample=True))
        return namespace(columns[0]).stack(columns, axis=1)

    def encode(self, X: Any) -> SparseCodes:
        """Compute sparse codes over each dictionary separately and join their columns.

        The atoms of the first class come first. The codes of a sample over one class
        do not depend on the other classes.
        """
        check_is_fitted(self)
        self._check_all_fitted()
        kernel = _fitted_kernel(self.learners_[0])
        by_matrix = isinstance(kernel, Precomputed)
        if not is_stream(X, kernel):
            like = getattr(self.learners_[0], "_model_array", None)
            if by_matrix:
                X = check_samples(self, X, kernel)
            else:
                X = check_samples(self, X, kernel, lazy=True, like=like, allow_nan=True)
        codes = []
        for learner, rows in zip(self.learners_, self.class_rows_, strict=True):
            with trust_checked_rows(X[:, rows] if by_matrix else X) as samples:
                codes.append(learner.encode(samples))
        return side_by_side(codes)

    def _check_all_fitted(self) -> None:
        """Raise if a class of a stream does not have enough samples yet."""
        for label, learner in zip(self.classes_, self.learners_, strict=True):
            if not learner.__sklearn_is_fitted__():
                raise NotFittedError(
                    f"class {printable(label)} has too few samples for a dictionary: "
                    "call partial_fit with more of them before you predict"
                )

    def predict_proba(self, X: Any) -> Array:  # (n, n_classes)
        """softmax(−r / `temperature_`): a ranking between 0 and 1, not calibrated.

        Wrap the classifier in scikit-learn's `CalibratedClassifierCV` if the numbers
        must be frequencies.
        """
        residuals = self.residuals(X)  # first, because it checks that this is fitted
        return apply_to_rows(partial(_softmax, self.temperature_), residuals)

    def __sklearn_tags__(self) -> Any:
        kernel = kernel_of(self.learner)
        return describe_input(super().__sklearn_tags__(), kernel, allow_nan=True)


def _block_residuals(
    class_dictionaries: list[tuple[Dictionary, SparseCoder]], X: Array
) -> Array:  # (n, n_classes)
    """Compute squared residuals of one block over each dictionary."""
    columns = [
        encode(dictionary, coder, X).residual
        for dictionary, coder in class_dictionaries
    ]
    return namespace(columns[0]).stack(columns, axis=1)


class UsedRows(NamedTuple):
    """Rows to learn from, and their numbers in X; None if these are all rows."""

    X: Any
    y: Any
    weights: Weights
    numbers: np.ndarray | None


def _used_rows(X: Any, y: Any, weights: Weights) -> UsedRows:
    """Drop rows of weight zero and their labels, if the rows are in memory."""
    row_numbers = nonzero_weight_rows(X, weights)
    if row_numbers is None or y is None:
        return UsedRows(X, y, weights, None)
    labels = label_values(y)
    if len(labels) != X.shape[0]:
        return UsedRows(X, y, weights, None)  # the labels are refused later
    X, weights = drop_zero_weights(X, weights)
    return UsedRows(X, labels[row_numbers], weights, row_numbers)


def _n_weighted_rows(rows: np.ndarray, weights: Weights) -> int:
    return n_weighted_samples(None if weights is None else weights[rows], len(rows))


def _learns_from_nan(learner: Any) -> bool:
    """Whether a learner accepts rows with missing values."""
    return getattr(learner, "_learns_missing", False)


def kernel_of(learner: Any) -> Kernel | None:
    """Return the kernel of a kernel learner, or None for a linear learner."""
    kernel = getattr(learner, "kernel", None)
    return None if kernel is None else resolve(kernel)


def _fitted_kernel(learner: Any) -> Kernel | None:
    """Return the kernel of a fitted learner with all parameters set, or None."""
    return getattr(learner, "kernel_", None)


def bind_kernel(learner: Any, X: Any, weights: Weights = None) -> Any:
    """Set the open parameters of the learner's kernel from the rows of all classes.

    Residuals of several classes can be compared only in one feature space. If X is a
    stream of blocks, the first block determines the parameters, as in a feature map.
    """
    kernel = kernel_of(learner)
    if kernel is None:
        return learner
    bound = kernel.bound(first_block(X)[0], weights)
    check_kernel(bound, X)
    return learner if bound is kernel else clone(learner).set_params(kernel=bound)


def _softmax(temperature: float, residuals: Array) -> Array:  # (n, n_classes)
    xp = namespace(residuals)
    scale = max(temperature, float(xp.finfo(residuals.dtype).tiny) ** 0.5)
    excess = residuals - xp.min(residuals, axis=1, keepdims=True)
    with quiet():  # a class whose excess overflows gets weight 0
        weights = xp.exp(-excess / as_like(scale, residuals))
    return weights / xp.sum(weights, axis=1, keepdims=True)


def _seeds(learner: BaseEstimator, random_state: Any, n: int) -> list[int | None]:
    """Return seeds for n clones of a learner, or None for each if it needs none."""
    params = learner.get_params(deep=False)
    if params.get("random_state", "none needed") is not None:
        return [None] * n
    return generator(random_state).integers(2**31, size=n).tolist()


def _clone_with_seed(learner: BaseEstimator, seed: int | None) -> Any:
    learner_clone = clone(learner)
    return (
        learner_clone if seed is None else learner_clone.set_params(random_state=seed)
    )


def _warn_of_small_classes(learner: BaseEstimator, counts: np.ndarray) -> None:
    """Warn once of all classes that have fewer samples than `n_components`.

    There is no warning if `n_components` is the size of the largest class: this is a
    request for all samples of all classes.
    """
    n_components = learner.get_params(deep=False).get("n_components")
    small_counts = counts[counts < (n_components or 0)]
    if not len(small_counts) or n_components == counts.max():
        return
    subject = (
        "a class has" if len(small_counts) == 1 else f"{len(small_counts)} classes have"
    )
    smallest, largest = small_counts.min(), small_counts.max()
    size_range = f"{smallest}" if smallest == largest else f"{smallest} to {largest}"
    warnings.warn(
        f"{subject} {size_range} samples, fewer than n_components={n_components}: "
        "such a class gets one atom per sample",
        stacklevel=3,
    )


def _fit_learner(learner: Any, X: Any, weights: Weights) -> Any:
    """Fit a learner to the checked rows of a class."""
    weight_arguments = () if weights is None else (None, weights)
    with trust_checked_rows(X):
        learner.fit(X, *weight_arguments)
    return learner


def _prepare_learner(learner: Any, n_samples: int, X: Any, weights: Weights) -> Any:
    """Limit atoms and non-zeros to the samples of the class, and set the defaults."""
    params = learner.get_params(deep=False)
    for name in ("n_components", "n_nonzero_coefs"):
        if params.get(name) is not None and params[name] > n_samples:
            learner.set_params(**{name: n_samples})
    _set_defaults(learner, n_samples, X, weights)
    return learner


def _set_defaults(learner: Any, n_samples: int, X: Any, weights: Weights) -> None:
    """Set open parameters of the learner to the classifier's defaults."""
    if not isinstance(learner, DictionaryLearner):
        return
    rows = X if hasattr(X, "shape") else first_block(X)[0]
    n_features = rows.shape[1] if rows.ndim == 2 else n_samples
    count_usable = partial(_n_usable, kernel_of(learner), X, n_samples, weights)
    params = learner._class_defaults(
        count_usable, n_features, DEFAULT_ATOMS, DEFAULT_NONZEROS
    )
    learner.set_params(**params)


def _n_usable(kernel: Kernel | None, X: Any, n_samples: int, weights: Weights) -> int:
    """Count the rows of a class that can be atoms; of a stream, return all rows."""
    if is_blocks(X):
        return n_samples
    weights = weights_as_counts(weights)
    if kernel is None:
        return NonzeroRows.find(fill_rows_with_means(X, weights)).count(weights)
    energies = load_values(map_rows(kernel.diag, X, 8 * n_columns(X)))
    usable = to_numpy(energies > 0)
    return int(usable.sum() if weights is None else weights[usable].sum())
