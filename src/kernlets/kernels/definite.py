"""Checks that a kernel is symmetric and positive semi-definite on samples.

Feature maps check the matrix that they factor. Learners and classifiers check a sample
of their rows, because residuals need a feature space.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

from ..contracts import Array, Kernel
from ..data.rows import evenly_spaced_rows, first_block, load_row_subset, take_rows
from ..data.sparse_rows import stored_entries
from ..numerics.arrays import (
    as_like,
    cholesky_or_none,
    diagonal,
    double,
    eps,
    holds_floats,
    index_like,
    namespace,
)
from .user_kernels import Precomputed, length, not_square

CORNER = 500  # rows of a matrix that are compared with its columns
ASYMMETRY = 1e-4  # relative difference from which on a matrix is not symmetric
SAMPLE = 200  # samples whose kernel matrix a learner checks
BEYOND_ROUNDING = 100  # values beyond so many tolerances are no rounding errors


def rounding(W: Array, rows: Array | None = None) -> float:
    """Eigenvalues of W below this share of the largest are rounding errors.

    They come from the dtype of W, or from that of the rows if it is less precise.
    """
    coarse = eps(W) if rows is None else eps(as_like(0.0, rows))
    return max(sqrt(W.shape[0]) * eps(W), 10 * eps(W), coarse)


def check_symmetric(W: Array) -> None:
    """Raise if a kernel is not symmetric, judged by a corner of its matrix."""
    xp = namespace(W)
    corner = W[:CORNER, :CORNER]
    worst, size = xp.max(xp.abs(corner - corner.T)), xp.max(xp.abs(corner))
    if float(worst) > ASYMMETRY * float(size):
        raise ValueError(
            "kernel is not symmetric: κ(x, y) and κ(y, x) differ by up to "
            f"{float(worst):.2g}; use (κ(x, y) + κ(y, x))/2, or check the precomputed X"
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
    """Raise if a kernel matrix is not symmetric or not positive semi-definite.

    Kernels that say that they are indefinite (``psd = False``) are not checked.
    """
    if not getattr(kernel, "psd", True):
        return
    indices = index_like(evenly_spaced_rows(matrix.shape[0], SAMPLE), matrix)
    W = matrix[indices][:, indices]
    check_symmetric(W)
    where, tolerance = f"{W.shape[0]} samples", rounding(W, rows)
    W64 = double(W)
    if _is_clearly_definite(W64, tolerance):
        return
    values = namespace(W).linalg.eigvalsh(W64)
    refuse_negative(float(values[0]), float(values[-1]), tolerance, where)


def _is_clearly_definite(W: Array, tolerance: float) -> bool:
    """Whether a Cholesky factor shows that `refuse_negative` would pass.

    The largest diagonal entry is a lower bound of the largest eigenvalue. Eigenvalues
    are slow on a GPU, and needed only where there is no factor.
    """
    xp = namespace(W)
    shift = BEYOND_ROUNDING * tolerance * float(xp.max(diagonal(W)))
    diagonal_indices = index_like(np.arange(W.shape[0]), W)
    shifted = xp.asarray(W, copy=True)
    shifted[diagonal_indices, diagonal_indices] += shift
    return 0 < shift < inf and cholesky_or_none(shifted) is not None


def check_kernel(kernel: Kernel, X: Any) -> None:
    """Call `check_matrix` for at most `SAMPLE` rows of X, in memory or on disk.

    In a stream of blocks, only the first block is checked.
    """
    if not getattr(kernel, "psd", True):
        return
    X, _ = first_block(X)
    indices = evenly_spaced_rows(length(X), SAMPLE)
    if isinstance(kernel, Precomputed):
        if X.shape[1] < length(X):
            raise ValueError(not_square(X))
        rows = take_rows(X, indices)
        check_matrix(kernel, rows[:, index_like(indices, rows)])
    else:
        _check_samples(kernel, kernel.take(*load_row_subset(X, indices)))


def _check_samples(kernel: Kernel, samples: Any) -> None:
    """Check the matrix of some samples; for rows of numbers it is made in float64."""
    if holds_floats(samples):
        check_matrix(kernel, kernel(double(samples)), stored_entries(samples)[:0])
    else:
        check_matrix(kernel, kernel(samples))
