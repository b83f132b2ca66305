"""The number of atoms of each class, and their first atoms."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from ..backend.arrays import index_like, namespace
from ..backend.threads import parallel
from ..config import options
from ..core import Array
from ..learners.first_atoms import nonzero_rows
from ..persistence.checkpoint import branches


def class_sizes(
    wanted: int | None,
    default: Callable[[np.ndarray], np.ndarray],
    X: Array,  # (n, p)
    labels: np.ndarray,  # (n,) places of the classes
    classes: np.ndarray,  # (C,)
) -> np.ndarray:  # (C,)
    """Atoms of each class: `wanted`, or `default` of the numbers of non-zero samples.

    A class never gets more atoms than it has samples; a warning names the first class
    that gets fewer than `wanted`.
    """
    usable = np.bincount(labels[nonzero_rows(X)], minlength=len(classes))
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
    atoms_of: Callable[[Array, int, int], Array],
) -> Array:  # (m, p)
    """`atoms_of(rows, size, seed)` of each class, on threads, one below the other."""
    seeds = rng.integers(2**31, size=len(sizes)).tolist()
    folders = branches("class_atoms", len(sizes))

    def of_class(c: int) -> Array:
        rows = X[index_like(np.flatnonzero(labels == c), X)]
        with options(checkpoint=folders[c]):
            return atoms_of(rows, int(sizes[c]), seeds[c])

    return namespace(X).concat(parallel(of_class, range(len(sizes))))
