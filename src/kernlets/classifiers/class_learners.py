"""Learners and atoms of classes: seeds, numbers of atoms and non-zeros, kernels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ..base.progress import part_of
from ..contracts import Array
from ..data.missing import fill_rows_with_means
from ..data.rows import load_values, map_rows, n_columns
from ..data.stream import first_block, is_blocks
from ..data.weights import Weights, weights_as_counts
from ..kernels import Kernel, Precomputed
from ..kernels.complete import completed_rows
from ..kernels.indefinite import check_kernel
from ..learners.base import DictionaryLearner
from ..learners.initial_atoms import NonzeroRows, nonzero_rows, start_atoms
from ..numerics.arrays import index_like, namespace, to_numpy
from ..numerics.random import generator
from ..numerics.text import printable
from .class_rows import ClassRows, fitted_kernel, kernel_of, map_classes

DEFAULT_NONZEROS = 10  # of a code over the dictionary of one class
DEFAULT_ATOMS = 30  # of a small class; a class with fewer samples keeps all of them


def bind_kernel(learner: Any, X: Any, weights: Weights = None) -> Any:
    """Set the open parameters of the learner's kernel from the rows of all classes.

    Residuals of several classes can be compared only in one feature space. If X is a
    stream of blocks, the first block determines the parameters, as in a feature map.
    """
    kernel = kernel_of(learner)
    if kernel is None:
        return learner
    rows = completed_rows(X, weights)
    bound = kernel.bound(first_block(rows)[0], weights)
    check_kernel(bound, rows)
    return learner if bound is kernel else clone(learner).set_params(kernel=bound)


def clone_per_class(learner: Any, n_classes: int, random_state: Any) -> list[Any]:
    """Return unfitted copies; those without a `random_state` of their own get seeds."""
    learners = [clone(learner) for _ in range(n_classes)]
    if learner.get_params(deep=False).get("random_state", "none needed") is None:
        seeds = generator(random_state).integers(2**31, size=n_classes).tolist()
        for class_learner, seed in zip(learners, seeds, strict=True):
            class_learner.set_params(random_state=seed)
    return learners


def warn_of_small_classes(learner: Any, counts: np.ndarray) -> None:
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


def fit_to_class(learner: Any, rows: ClassRows, c: int, classifier: Any) -> Any:
    """Fit a learner to the rows of a class, with no more atoms than samples."""
    X, n_samples, weights = rows.of_class(c), int(rows.counts[c]), rows.class_weights(c)
    params = learner.get_params(deep=False)
    for name in ("n_components", "n_nonzero_coefs"):
        if params.get(name) is not None and params[name] > n_samples:
            learner.set_params(**{name: n_samples})
    _set_defaults(learner, X, n_samples, weights)
    with part_of(classifier, c, f"class {rows.classes[c]}", learner):
        # only dictionary learners need take weights
        return learner.fit(X) if weights is None else learner.fit(X, None, weights)


def partial_fit_to_class(learner: Any, rows: ClassRows, c: int) -> None:
    """Let a learner learn from the next rows of a class, if there are any."""
    if not len(rows.row_numbers[c]):
        return
    X, weights = rows.of_class(c), rows.class_weights(c)
    if not hasattr(learner, "n_features_in_"):
        _set_defaults(learner, X, int(rows.counts[c]), weights)
    learner.partial_fit(X, None, weights)


def _set_defaults(learner: Any, X: Any, n_samples: int, weights: Weights) -> None:
    """Set the numbers of atoms and non-zeros that the learner leaves open.

    X are the rows of the class, or the first ones of a stream, and `n_samples` is the
    number of samples that they count for.
    """
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


def check_all_fitted(learners: list[Any], classes: np.ndarray) -> None:
    """Raise if a class of a stream does not have enough samples yet."""
    for label, learner in zip(classes, learners, strict=True):
        if not learner.__sklearn_is_fitted__():
            raise NotFittedError(
                f"class {printable(label)} has too few samples for a dictionary: "
                "call partial_fit with more of them before you predict"
            )


def is_of_matrix(learner: Any) -> bool:
    """Whether a fitted learner takes rows of a precomputed kernel matrix."""
    return isinstance(fitted_kernel(learner), Precomputed)


def class_sizes(
    n_atoms_per_class: int | None,
    default: Callable[[np.ndarray], np.ndarray],
    X: Array,  # (n, p)
    labels: np.ndarray,  # (n,) indices into classes
    classes: np.ndarray,  # (C,)
    weights: Weights = None,
) -> np.ndarray:  # (C,)
    """Return the number of atoms of each class.

    That is `n_atoms_per_class`, or if it is None, what `default` returns for the
    numbers of non-zero samples. A class never gets more atoms than it has samples; a
    warning names the first class that gets fewer than `n_atoms_per_class`.
    """
    row_numbers = nonzero_rows(X)
    row_weights = None if weights is None else weights[row_numbers]
    n_usable = np.bincount(labels[row_numbers], row_weights, len(classes)).astype(
        np.intp
    )
    empty_classes = classes[n_usable == 0]
    if len(empty_classes):
        raise ValueError(
            f"class {empty_classes[0]} has only zero samples: remove it from X and y"
        )
    if n_atoms_per_class is None:
        return default(n_usable)
    short_classes = classes[n_usable < n_atoms_per_class]
    if len(short_classes):
        warnings.warn(
            f"{len(short_classes)} of {len(classes)} classes, the first being "
            f"{short_classes[0]}, have fewer samples than "
            f"n_atoms_per_class={n_atoms_per_class} and get one atom per sample: lower "
            "n_atoms_per_class",
            stacklevel=3,
        )
    return np.minimum(n_atoms_per_class, n_usable)


def class_atoms(
    X: Array,  # (n, p)
    labels: np.ndarray,  # (n,) class indices
    sizes: np.ndarray,  # (C,)
    rng: np.random.Generator,
    learn_atoms: Callable[[Array, int, int, Weights], Array],
    weights: Weights = None,
) -> Array:  # (m, p)
    """Stack the atoms `learn_atoms(rows, size, seed, weights)` of each class."""
    seeds = rng.integers(2**31, size=len(sizes)).tolist()

    def learn_class(c: int) -> Array:
        class_rows = np.flatnonzero(labels == c)
        X_c = X[index_like(class_rows, X)]
        class_weights = None if weights is None else weights[class_rows]
        return learn_atoms(X_c, int(sizes[c]), seeds[c], class_weights)

    atoms = map_classes("class_atoms", learn_class, len(sizes))
    return namespace(X).concat(atoms)


def cluster_atoms(
    rows: Array, size: int, seed: int, weights: Weights = None
) -> Array:  # (m, p)
    """Return the centres of k-means clusters as first atoms of a class."""
    return start_atoms("kmeans", rows, size, np.random.default_rng(seed), weights)
