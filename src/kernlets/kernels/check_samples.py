"""Checks of samples for a kernel: rows of numbers, or any sequence of objects."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..contracts import Array, Kernel
from ..data.check import check_features, check_rows, is_table, read_samples
from ..data.samples import object_array
from ..numerics.arrays import is_array, to_device
from .samples import as_samples
from .user_kernels import Precomputed, not_square


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
    They become an array along their first axis and are otherwise unchanged. Kernels of
    series, strings, graphs and matrices get an array of such samples, checked.
    """
    if kernel is not None and are_objects(X, kernel):
        if kernel.takes == "any":
            return as_sequence(X)
        parse = partial(as_samples, kernel.takes, like=like)
        samples = read_samples(X, parse, lazy)
        return _check_objects(estimator, samples, reset, ensure_min_samples)
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
        allow_nan=allow_nan and takes_missing(kernel),
    )
    if reset and isinstance(kernel, Precomputed) and X.shape[0] != X.shape[1]:
        raise ValueError(not_square(X))
    return X


def takes_rows(kernel: Kernel | None) -> bool:
    """Whether a kernel, or none for linear atoms, takes rows of numbers only."""
    return kernel is None or kernel.takes == "rows"


def are_objects(X: Any, kernel: Kernel) -> bool:
    """Whether X holds samples that are not rows of numbers, for this kernel."""
    return not takes_rows(kernel) and (kernel.takes != "any" or not is_table(X))


def _check_objects(
    estimator: Any, samples: Any, reset: bool, ensure_min_samples: int
) -> Any:  # (n,)
    """Check the number of samples, which scikit-learn sees as a column of objects."""
    if samples.shape[0] < ensure_min_samples:
        raise ValueError(
            f"X has {samples.shape[0]} sample(s), a minimum of {ensure_min_samples} is "
            f"required by {type(estimator).__name__}"
        )
    check_features(estimator, np.empty((1, 1)), reset)
    return samples


def takes_missing(kernel: Kernel | None) -> bool:
    """Whether a kernel, or none for linear atoms, is defined on rows with NaN."""
    return kernel is None or kernel.restrictable


def describe_input(tags: Any, kernel: Kernel | None, allow_nan: bool = False) -> Any:
    """Add to an estimator's scikit-learn tags which samples its kernel takes.

    With `allow_nan` samples may have NaN if the kernel is defined on them.
    """
    tags.input_tags.pairwise = isinstance(kernel, Precomputed)
    tags.input_tags.two_d_array = kernel is None or kernel.takes in ("rows", "any")
    tags.input_tags.sparse = getattr(kernel, "accept_sparse", False)
    tags.input_tags.allow_nan = allow_nan and takes_missing(kernel)
    return tags


def as_sequence(X: Any) -> Array:
    """An array of samples of any kind, one per entry along the first axis."""
    if is_array(X):
        return to_device(X)
    return object_array(list(X))
