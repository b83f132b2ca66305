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

from ..backend.arrays import as_like, namespace, to_numpy
from ..backend.block_loop import keep_groups_together
from ..backend.callbacks import part_of
from ..backend.constraints import LEARNER
from ..backend.estimator import Estimator
from ..backend.labels import label_classes, label_values
from ..backend.lazy_rows import n_parts_at_once
from ..backend.missing_rows import all_in_memory, fill_rows_with_means
from ..backend.random import generator
from ..backend.rows import (
    apply_to_blocks,
    apply_to_rows,
    evenly_spaced_rows,
    first_block,
    is_blocks,
    load_row_subset,
    load_values,
    map_rows,
    n_columns,
    with_selectable_columns,
)
from ..backend.scale import least_energy, quiet
from ..backend.text import printable
from ..backend.threads import parallel
from ..backend.validation import trust_checked_rows
from ..backend.weights import (
    Weights,
    check_weights,
    drop_zero_weights,
    n_weighted_samples,
    nonzero_weight_rows,
    row_numbers_by_weight,
    weights_as_counts,
)
from ..config import options
from ..core import Array, Dictionary, Kernel, SparseCoder, SparseCodes
from ..fields import Conditions, Declared, Indices, Many, Number, Part
from ..kernels import Precomputed, resolve
from ..kernels.check_samples import check_samples, describe_input, takes_gaps
from ..kernels.complete import completed_rows
from ..kernels.definite import check_kernel
from ..learners import KSVD
from ..learners.base import DictionaryLearner
from ..learners.first_atoms import Usable
from ..persistence.checkpoint import branches
from ..pursuits import encode
from ..pursuits.bookkeeping import side_by_side
from ..sklearn_base import BaseEstimator, ClassifierMixin
from .class_rows import is_stream, labelled_rows, rows_of, split_classes
from .labels import ResidualVoting, checked_labels, prior_residuals

SOME = 200  # number of samples for the residuals over other classes
ROUNDING = 1e-6  # a training residual below this share of those counts as 0
WIDTH = 10  # default number of non-zeros per class
FEW = 30  # default number of atoms of a small class; smaller ones keep all samples


def _learns_from_streams(classifier: ResidualClassifier) -> bool:
    """Whether the learner has `partial_fit`; the error names learners that do."""
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
            map(self._suits, self.learners_, self.class_rows_)
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
        gaps = _learns_gaps(learner) or (takes_gaps(kernel) and all_in_memory(X))
        X = labelled_rows(self, X, kernel, gaps)
        weights = weights_as_counts(check_weights(sample_weight, X))
        used = None
        if not isinstance(kernel, Precomputed):  # new samples need all of its columns
            X, y, weights, used = _in_use(X, y, weights)
        X = X if _learns_gaps(learner) else completed_rows(X, weights)
        learner = with_one_kernel(learner, X, weights)
        split = split_classes(self, X, y, kernel).counted(weights)
        counts = split.counts.tolist()
        seeds = _seeds(learner, self.random_state, len(counts))
        folders = branches(type(self).__name__, len(counts))
        _warn_of_small_classes(learner, split.counts)

        def fit_class(job: tuple[int, int, int | None, Any]) -> Any:
            c, count, seed, folder = job
            with options(checkpoint=folder):
                own = None if weights is None else weights[split.rows[c]]
                rows = split.part(c)
                prepared = _prepared(_seeded(learner, seed), count, rows, own)
                with part_of(self, c, f"class {split.classes[c]}", prepared):
                    return _fitted(prepared, rows, own)

        jobs = list(zip(range(len(counts)), counts, seeds, folders, strict=True))
        at_once = n_parts_at_once(X, split.counts.max() / split.counts.sum())
        # where a cluster does the work, threads here only wait
        with options(n_threads=split.at_once or options.n_threads):
            self.learners_ = parallel(fit_class, jobs, at_once)
        self.classes_ = split.classes
        self.class_rows_ = [rows if used is None else used[rows] for rows in split.rows]
        self.class_count_ = split.counts
        self.temperature_ = self._mean_error()
        if split.rows[0].size and split.counts.max() < FEW:
            codes = np.searchsorted(self.classes_, label_values(y))
            self._warm_up(X, codes, weights)
        return self

    @property
    def _n_tasks(self) -> None:
        """Its steps are the learners of the classes."""
        return None

    def _warm_up(self, X: Array, codes: np.ndarray, weights: Weights) -> None:
        """Set the temperature if dictionaries hold all samples and have no residual.

        It is a tenth of the mean residual over the nearest other class.
        """
        counted = row_numbers_by_weight(X.shape[0], weights)
        some = counted[evenly_spaced_rows(len(counted), SOME)]
        rows, places = load_row_subset(X, some)
        residuals = to_numpy(self._residuals(rows[places]))
        residuals[np.arange(len(some)), codes[some]] = np.inf
        rival = float(residuals.min(axis=1).mean())
        if self.temperature_ < ROUNDING * rival:
            self.temperature_ = rival / 10

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
        begin = not hasattr(self, "learners_")
        gaps = {"allow_nan": getattr(learner, "_streams_gaps", False)}
        X = check_samples(self, X, kernel, reset=begin, **gaps)
        X, y, weights, _ = _in_use(X, y, check_weights(sample_weight, X))
        labels = checked_labels(self, y, X.shape[0], min_classes=1)
        if begin:
            learner = with_one_kernel(learner, completed_rows(X, weights), weights)
            self._begin(learner, labels if classes is None else classes)
        codes = self._class_numbers(labels)

        def feed(job: tuple[Any, np.ndarray]) -> None:
            fitted, rows = job
            if len(rows):
                own = None if weights is None else weights[rows]
                with trust_checked_rows(rows_of(X, rows, kernel)) as part:
                    if not hasattr(fitted, "n_features_in_"):  # its first rows
                        _set_defaults(fitted, _count(rows, weights), part, own)
                    fitted.partial_fit(part, None, own)

        members = [np.flatnonzero(codes == c) for c in range(len(self.classes_))]
        parallel(feed, zip(self.learners_, members, strict=True))
        counts = [_count(rows, weights) for rows in members]
        self.class_count_ = self.class_count_ + counts
        self.temperature_ = self._mean_error()
        return self

    def _begin(self, learner: Any, classes: Any) -> None:
        """Create an unfitted learner for each class of a stream."""
        if isinstance(kernel_of(learner), Precomputed):
            raise ValueError("partial_fit takes no precomputed kernel: use fit")
        self.classes_ = np.unique(label_values(classes))
        n = len(self.classes_)
        seeds = _seeds(learner, self.random_state, n)
        self.learners_ = [_seeded(learner, seed) for seed in seeds]
        self.class_rows_ = [np.empty(0, dtype=np.intp)] * n  # rows are not kept
        self.class_count_ = np.zeros(n, dtype=np.int64)

    def _class_numbers(self, labels: np.ndarray) -> np.ndarray:
        label_classes([self.classes_, labels])  # text and numbers cannot be compared
        unknown = np.setdiff1d(labels, self.classes_)
        if len(unknown):
            raise ValueError(
                f"y has the label {unknown[0]}, which the first call did not name: "
                "pass all labels of the stream as classes to the first partial_fit"
            )
        return np.searchsorted(self.classes_, labels)

    def _mean_error(self) -> float:
        """Mean squared residual of the samples that the classes last learned from."""
        known = [
            (fitted.history_["objective"][-1], count)
            for fitted, count in zip(self.learners_, self.class_count_, strict=True)
            if hasattr(fitted, "history_")
        ]
        if not known:
            return 0.0
        errors, counts = zip(*known, strict=True)
        return float(np.average(errors, weights=counts))

    def _suits(self, learner: Any, rows: np.ndarray) -> bool:
        """Whether a learner, fitted or not, takes the features of these samples."""
        width = getattr(learner, "n_features_in_", None)
        if isinstance(_fitted_kernel(learner), Precomputed):
            return width == len(rows) and rows.max(initial=-1) < self.n_features_in_
        return width in (None, self.n_features_in_)

    def _learner(self) -> Any:
        return KSVD() if self.learner is None else self.learner

    def residuals(self, X: Any) -> Array:  # (n, n_classes)
        """Squared residual of each sample over the dictionary of each class."""
        check_is_fitted(self)
        self._check_all_begun()
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
        known = [isinstance(each, DictionaryLearner) for each in self.learners_]
        if by_matrix or not all(known):
            residuals = self._residuals_by_class(X, by_matrix)
        else:  # a block of rows stays in the cache for all classes
            parts = [(each.dictionary_, each.coder_) for each in self.learners_]
            row_bytes = max(dictionary.row_bytes for dictionary, _ in parts)
            with keep_groups_together(self.learners_[0].coder_):
                residuals = map_rows(partial(_block_residuals, parts), X, row_bytes)
        unit = max(self.temperature_, least_energy(residuals))
        return prior_residuals(residuals, X, self.class_count_, unit)

    def _residuals_by_class(self, X: Array, by_matrix: bool) -> Array:
        """Residuals as the learners themselves compute them."""
        columns = []
        for fitted, rows in zip(self.learners_, self.class_rows_, strict=True):
            with trust_checked_rows(X[:, rows] if by_matrix else X) as known:
                columns.append(fitted.reconstruction_error(known, per_sample=True))
        return namespace(columns[0]).stack(columns, axis=1)

    def encode(self, X: Any) -> SparseCodes:
        """Sparse codes over the dictionary of each class by itself, side by side.

        The atoms of the first class come first. The codes of a sample over one class
        do not depend on the other classes.
        """
        check_is_fitted(self)
        self._check_all_begun()
        kernel = _fitted_kernel(self.learners_[0])
        by_matrix = isinstance(kernel, Precomputed)
        X = check_samples(self, X, kernel) if by_matrix else X
        places = zip(self.learners_, self.class_rows_, strict=True)
        known = ((each, X[:, rows] if by_matrix else X) for each, rows in places)
        return side_by_side([learner.encode(rows) for learner, rows in known])

    def _check_all_begun(self) -> None:
        """Raise if a class of a stream does not have enough samples yet."""
        for label, fitted in zip(self.classes_, self.learners_, strict=True):
            if not fitted.__sklearn_is_fitted__():
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
    parts: list[tuple[Dictionary, SparseCoder]], X: Array
) -> Array:  # (n, n_classes)
    """Squared residuals of one block over each dictionary."""
    columns = [encode(dictionary, coder, X).residual for dictionary, coder in parts]
    return namespace(columns[0]).stack(columns, axis=1)


class RowsInUse(NamedTuple):
    """Rows to learn from, and their numbers in X; None if these are all rows."""

    X: Any
    y: Any
    weights: Weights
    numbers: np.ndarray | None


def _in_use(X: Any, y: Any, weights: Weights) -> RowsInUse:
    """Rows and labels without those of weight zero, where they are in memory."""
    numbers = nonzero_weight_rows(X, weights)
    if numbers is None or y is None:
        return RowsInUse(X, y, weights, None)
    labels = label_values(y)
    if len(labels) != X.shape[0]:
        return RowsInUse(X, y, weights, None)  # the labels are refused later
    X, weights = drop_zero_weights(X, weights)
    return RowsInUse(X, labels[numbers], weights, numbers)


def _count(rows: np.ndarray, weights: Weights) -> int:
    return n_weighted_samples(None if weights is None else weights[rows], len(rows))


def _learns_gaps(learner: Any) -> bool:
    """Whether a learner takes rows with missing values as they are."""
    return getattr(learner, "_learns_gaps", False)


def kernel_of(learner: Any) -> Kernel | None:
    """The kernel of a kernel learner; None for a linear learner."""
    kernel = getattr(learner, "kernel", None)
    return None if kernel is None else resolve(kernel)


def _fitted_kernel(learner: Any) -> Kernel | None:
    """The same after a fit, with all parameters set."""
    return getattr(learner, "kernel_", None)


def with_one_kernel(learner: Any, X: Any, weights: Weights = None) -> Any:
    """The learner, its kernel's open parameters set from the rows of all classes.

    Residuals of several classes can be compared in one feature space only. Of blocks
    the first one decides, as in a feature map.
    """
    kernel = kernel_of(learner)
    if kernel is None:
        return learner
    bound = kernel.bound(first_block(X)[0], weights)
    check_kernel(bound, X)
    return learner if bound is kernel else clone(learner).set_params(kernel=bound)


def _softmax(temperature: float, residuals: Array) -> Array:  # (n, n_classes)
    xp = namespace(residuals)
    unit = max(temperature, float(xp.finfo(residuals.dtype).tiny) ** 0.5)
    excess = residuals - xp.min(residuals, axis=1, keepdims=True)
    with quiet():  # an overflow has weight 0
        weights = xp.exp(-excess / as_like(unit, residuals))
    return weights / xp.sum(weights, axis=1, keepdims=True)


def _seeds(learner: BaseEstimator, random_state: Any, n: int) -> list[int | None]:
    """Seeds for n clones of a learner that has no random state of its own."""
    params = learner.get_params(deep=False)
    if params.get("random_state", "none needed") is not None:
        return [None] * n
    return generator(random_state).integers(2**31, size=n).tolist()


def _seeded(learner: BaseEstimator, seed: int | None) -> Any:
    fitted = clone(learner)
    return fitted if seed is None else fitted.set_params(random_state=seed)


def _warn_of_small_classes(learner: BaseEstimator, counts: np.ndarray) -> None:
    """Once for all classes that have fewer samples than atoms were asked for.

    As many atoms as the largest class has samples ask for all samples of all classes.
    """
    wanted = learner.get_params(deep=False).get("n_components")
    small = counts[counts < (wanted or 0)]
    if not len(small) or wanted == counts.max():
        return
    who = "a class has" if len(small) == 1 else f"{len(small)} classes have"
    least, most = small.min(), small.max()
    numbers = f"{least}" if least == most else f"{least} to {most}"
    warnings.warn(
        f"{who} {numbers} samples, fewer than n_components={wanted}: such a class gets "
        "one atom per sample",
        stacklevel=3,
    )


def _fitted(prepared: Any, X: Any, weights: Weights) -> Any:
    """A learner fitted to a class, with the defaults of a classifier while it is."""
    own = () if weights is None else (None, weights)
    with trust_checked_rows(X):
        prepared.fit(X, *own)
    return prepared


def _prepared(learner: Any, n_samples: int, X: Any, weights: Weights) -> Any:
    """The learner with no more atoms (and non-zeros) than the class has samples."""
    params = learner.get_params(deep=False)
    for name in ("n_components", "n_nonzero_coefs"):
        if params.get(name) is not None and params[name] > n_samples:
            learner.set_params(**{name: n_samples})
    _set_defaults(learner, n_samples, X, weights)
    return learner


def _set_defaults(learner: Any, n_samples: int, X: Any, weights: Weights) -> None:
    """Set what is left open of the learner as the rows of its class suggest."""
    if not isinstance(learner, DictionaryLearner):
        return
    rows = X if hasattr(X, "shape") else first_block(X)[0]
    n_features = rows.shape[1] if rows.ndim == 2 else n_samples
    count = partial(_n_usable, kernel_of(learner), X, n_samples, weights)
    params = learner._class_defaults(count, n_features, FEW, WIDTH)
    learner.set_params(**params)


def _n_usable(kernel: Kernel | None, X: Any, n_samples: int, weights: Weights) -> int:
    """How many rows of a class can be atoms; those of blocks are not counted."""
    if is_blocks(X):
        return n_samples
    weights = weights_as_counts(weights)
    if kernel is None:
        return Usable.find(fill_rows_with_means(X, weights)).count(weights)
    energies = load_values(map_rows(kernel.diag, X, 8 * n_columns(X)))
    usable = to_numpy(energies > 0)
    return int(usable.sum() if weights is None else weights[usable].sum())
