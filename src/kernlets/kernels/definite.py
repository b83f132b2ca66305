"""Checks that a kernel is symmetric and positive semi-definite on samples.

Feature maps check the matrix that they factor. Learners and classifiers check a sample
of their rows, because residuals need a feature space.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

from ..backend.arrays import (
    as_like,
    diagonal,
    double,
    eps,
    factored,
    holds_floats,
    index_like,
    namespace,
)
from ..backend.rows import first_block, in_memory, spread_rows, take_rows
from ..backend.sparse_rows import entries
from ..core import Array, Kernel
from .user_kernels import Precomputed, length, not_square

CORNER = 500  # rows of a matrix that are compared with its columns
ASYMMETRY = 1e-4  # relative difference beyond which they are not the same
SAMPLE = 200  # samples whose kernel matrix a learner checks
BEYOND_ROUNDING = 100  # times the tolerance, from where on a value is not rounding


def rounding(W: Array, rows: Array | None = None) -> float:
    """Eigenvalues of W below this share of the largest are rounding errors.

    Of W itself, or of the dtype of the rows if these have fewer digits than W.
    """
    coarse = eps(W) if rows is None else eps(as_like(0.0, rows))
    return max(sqrt(W.shape[0]) * eps(W), 10 * eps(W), coarse)


def check_symmetric(W: Array) -> None:
    """Raise if a kernel is not symmetric, judged by a corner of its matrix."""
    xp = namespace(W)
    corner = W[:CORNER, :CORNER]
    gap, size = xp.max(xp.abs(corner - corner.T)), xp.max(xp.abs(corner))
    if float(gap) > ASYMMETRY * float(size):
        raise ValueError(
            "kernel is not symmetric: κ(x, y) and κ(y, x) differ by up to "
            f"{float(gap):.2g}; use (κ(x, y) + κ(y, x))/2, or check the precomputed X"
        )


def refuse_negative(
    lowest: float, largest: float, tolerance: float, where: str = "the landmarks"
) -> None:
    """Raise if the lowest eigenvalue of a kernel matrix is negative beyond rounding."""
    if lowest < -BEYOND_ROUNDING * tolerance * max(largest, -lowest):
        raise ValueError(
            f"kernel is not positive semi-definite: its matrix on {where} has "
            f"eigenvalues from {lowest:.3g} to {largest:.3g}; use a kernel such as RBF "
            "or Polynomial, or add a constant to the diagonal of a precomputed X"
        )


def refuse_negative_energy(kernel: Kernel, energy: Array) -> None:
    """Raise if κ(x, x) is negative for some sample."""
    if bool((energy < 0).any()):
        raise ValueError(
            f"kernel={kernel!r} is not positive semi-definite on these samples: "
            "κ(x, x) is negative for some; use another kernel"
        )


def check_matrix(
    kernel: Kernel,
    matrix: Array,  # (n, n)
    rows: Array | None = None,  # the rows, if their dtype is coarser
) -> None:
    """Raise if the matrix of some samples is not that of a kernel.

    Kernels that are known to be indefinite (``psd = False``) are left alone.
    """
    if not getattr(kernel, "psd", True):
        return
    some = index_like(spread_rows(matrix.shape[0], SAMPLE), matrix)
    W = matrix[some][:, some]
    check_symmetric(W)
    seen, tolerance = f"{W.shape[0]} samples", rounding(W, rows)
    wide = double(W)
    if _is_clearly_definite(wide, tolerance):
        return
    values = namespace(W).linalg.eigvalsh(wide)
    refuse_negative(float(values[0]), float(values[-1]), tolerance, seen)


def _is_clearly_definite(W: Array, tolerance: float) -> bool:
    """Whether a Cholesky factor shows that `refuse_negative` would pass.

    The largest diagonal entry is a lower bound of the largest eigenvalue. Eigenvalues
    are slow on a GPU, and needed only where there is no factor.
    """
    xp = namespace(W)
    shift = BEYOND_ROUNDING * tolerance * float(xp.max(diagonal(W)))
    places = index_like(np.arange(W.shape[0]), W)
    shifted = xp.asarray(W, copy=True)
    shifted[places, places] += shift
    return 0 < shift < inf and factored(shifted) is not None


def check_kernel(kernel: Kernel, X: Any) -> None:
    """`check_matrix` for at most `SAMPLE` rows of X, wherever these are.

    In a stream of blocks, only the first block is checked.
    """
    if not getattr(kernel, "psd", True):
        return
    X, _ = first_block(X)
    places = spread_rows(length(X), SAMPLE)
    if isinstance(kernel, Precomputed):
        if X.shape[1] < length(X):
            raise ValueError(not_square(X))
        rows = take_rows(X, places)
        check_matrix(kernel, rows[:, index_like(places, rows)])
    else:
        _check_samples(kernel, kernel.take(*in_memory(X, places)))


def _check_samples(kernel: Kernel, some: Any) -> None:
    """Rows of numbers are compared in float64, other samples as they are."""
    if holds_floats(some):
        check_matrix(kernel, kernel(double(some)), entries(some)[:0])
    else:
        check_matrix(kernel, kernel(some))
