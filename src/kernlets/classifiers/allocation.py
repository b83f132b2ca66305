"""The number of atoms of each class, and their first atoms."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from ..backend.arrays import index_like, namespace
from ..backend.threads import parallel
from ..backend.weights import Weights
from ..config import options
from ..core import Array
from ..learners.initial_atoms import nonzero_rows
from ..persistence.checkpoint import branches


def class_sizes(
    wanted: int | None,
    default: Callable[[np.ndarray], np.ndarray],
    X: Array,  # (n, p)
    labels: np.ndarray,  # (n,) places of the classes
    classes: np.ndarray,  # (C,)
    weights: Weights = None,
) -> np.ndarray:  # (C,)
    """Atoms of each class: `wanted`, or `default` of the numbers of non-zero samples.

    A class never gets more atoms than it has samples; a warning names the first class
    that gets fewer than `wanted`.
    """
    rows = nonzero_rows(X)
    often = None if weights is None else weights[rows]
    usable = np.bincount(labels[rows], often, len(classes)).astype(np.intp)
    empty = classes[usable == 0]
    if len(empty):
        raise ValueError(
            f"class {empty[0]} has only zero samples: remove it from X and y"
        )
    if wanted is None:
        return default(usable)
    short = classes[usable < wanted]
    if len(short):
        warnings.warn(
            f"{len(short)} of {len(classes)} classes, the first being {short[0]}, have "
            f"fewer samples than n_atoms_per_class={wanted} and get one atom per "
            "sample: lower n_atoms_per_class",
            stacklevel=3,
        )
    return np.minimum(wanted, usable)


def class_atoms(
    X: Array,  # (n, p)
    labels: np.ndarray,  # (n,) places of the classes
    sizes: np.ndarray,  # (C,)
    rng: np.random.Generator,
    atoms_of: Callable[[Array, int, int, Weights], Array],
    weights: Weights = None,
) -> Array:  # (m, p)
    """`atoms_of(rows, size, seed, weights)` of each class, one below the other."""
    seeds = rng.integers(2**31, size=len(sizes)).tolist()
    folders = branches("class_atoms", len(sizes))

    def of_class(c: int) -> Array:
        places = np.flatnonzero(labels == c)
        rows = X[index_like(places, X)]
        own = None if weights is None else weights[places]
        with options(checkpoint=folders[c]):
            return atoms_of(rows, int(sizes[c]), seeds[c], own)

    return namespace(X).concat(parallel(of_class, range(len(sizes))))
