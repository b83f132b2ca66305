"""Checks of samples for a kernel: rows of numbers, or any sequence of objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backend.arrays import is_array, to_device
from ..backend.validation import check_rows, is_table
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
    allow_nan: bool = False,
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
        allow_nan=allow_nan and takes_gaps(kernel),
    )
    if reset and isinstance(kernel, Precomputed) and X.shape[0] != X.shape[1]:
        raise ValueError(
            f"Precomputed: X of shape {tuple(X.shape)} is not the square matrix "
            "K(X, X) of the training samples"
        )
    return X


def takes_gaps(kernel: Kernel | None) -> bool:
    """Whether a kernel, or none for linear atoms, is defined on a part of a row."""
    return kernel is None or kernel.restrictable


def describe_input(tags: Any, kernel: Kernel | None, allow_nan: bool = False) -> Any:
    """Add to an estimator's scikit-learn tags which samples its kernel takes.

    With `allow_nan` samples may have gaps, where the kernel is defined on them.
    """
    tags.input_tags.pairwise = isinstance(kernel, Precomputed)
    tags.input_tags.sparse = getattr(kernel, "accept_sparse", False)
    tags.input_tags.allow_nan = allow_nan and takes_gaps(kernel)
    return tags


def as_sequence(X: Any) -> Array:
    """An array of samples of any kind, one per entry along the first axis."""
    if is_array(X):
        return to_device(X)
    samples = np.empty(len(X), dtype=object)
    samples[:] = list(X)
    return samples
