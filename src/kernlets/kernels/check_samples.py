"""Checks of samples for a kernel: rows of numbers, or any sequence of objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backend.arrays import is_array, is_torch, to_device
from ..backend.lazy_rows import is_elsewhere
from ..backend.validation import check_rows
from ..core import Array, Kernel
from .user_kernels import Callable, Precomputed


def check_samples(
    estimator: Any,
    X: Any,
    kernel: Kernel | None,
    *,
    reset: bool = False,
    ensure_min_samples: int = 1,
    lazy: bool = False,
    by_blocks: bool = False,
    whole: bool = False,
    like: Array | None = None,
) -> Array:
    """Check X for an estimator that uses `kernel`; options as in `check_rows`.

    A kernel given as a function takes samples of any kind (strings, graphs, matrices).
    They become an array along their first axis and are otherwise unchanged.
    """
    if isinstance(kernel, Callable) and not is_table(X):
        return as_sequence(X)
    X = check_rows(
        estimator,
        X,
        reset=reset,
        accept_sparse=getattr(kernel, "accept_sparse", False),
        ensure_min_samples=ensure_min_samples,
        lazy=lazy,
        by_blocks=by_blocks,
        whole=whole,
        like=like,
    )
    if reset and isinstance(kernel, Precomputed) and X.shape[0] != X.shape[1]:
        raise ValueError(
            f"Precomputed: X of shape {tuple(X.shape)} is not the square matrix "
            "K(X, X) of the training samples"
        )
    return X


def describe_input(tags: Any, kernel: Kernel | None) -> Any:
    """Add to an estimator's scikit-learn tags which samples its kernel takes."""
    tags.input_tags.pairwise = isinstance(kernel, Precomputed)
    tags.input_tags.sparse = getattr(kernel, "accept_sparse", False)
    return tags


def is_table(X: Any) -> bool:
    """Whether X can be read as rows of numbers."""
    if is_torch(X) or is_elsewhere(X):
        return X.ndim == 2
    if not is_array(X):
        X = np.asarray(X, dtype=None if _is_regular(X) else object)
    return X.dtype.kind in "fiub" and X.ndim == 2


def _is_regular(X: Any) -> bool:
    """Whether NumPy can make an array of X; it refuses samples of unequal length."""
    try:
        np.asarray(X)
    except ValueError:
        return False
    return True


def as_sequence(X: Any) -> Array:
    """An array of samples of any kind, one per entry along the first axis."""
    if is_array(X):
        return to_device(X)
    samples = np.empty(len(X), dtype=object)
    samples[:] = list(X)
    return samples
