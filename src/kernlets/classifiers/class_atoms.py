"""The number of atoms of each class, and their first atoms."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from ..contracts import Array
from ..data.weights import Weights
from ..learners.initial_atoms import nonzero_rows, start_atoms
from ..numerics.arrays import index_like, namespace
from .class_rows import map_classes


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
