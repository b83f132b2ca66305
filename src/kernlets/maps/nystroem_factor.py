"""From eigenpairs of a kernel matrix to a projection: rank cut, checks, truncation."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from ..contracts import Array, Kernel
from ..data.samples import is_objects
from ..kernels.definite import check_symmetric, refuse_negative
from ..landmarks import Landmarks
from ..numerics.arrays import as_like, double, row_norms, to_numpy
from .spectral import Eigenpairs


def landmark_matrix(
    kernel: Kernel, landmarks: Landmarks, in_float64: bool
) -> Array:  # (c, c)
    """W = K(X_R, X_R), or an error if it is not symmetric.

    In float64 even its smallest eigenvalues, down to rounding errors, can be used.
    """
    rows, points = landmarks.rows, landmarks.points
    if in_float64 and points is rows and not is_objects(rows):
        rows = points = double(rows)
    W = kernel(rows, points)
    check_symmetric(W)
    return W


def choose_rank(
    values: Array,  # (c,) eigenvalues, largest first
    n_components: int | float | None,
    tolerance: float,
) -> int:
    """The k of V_k and Σ_k: a count, a share of the trace, or the numerical rank.

    It is never more than the numerical rank.
    """
    values = np.maximum(to_numpy(values), 0.0)
    rank = int((values > tolerance * values[0]).sum())
    if n_components is None:
        return rank
    if isinstance(n_components, Integral):
        return min(int(n_components), rank)
    k = int(np.searchsorted(np.cumsum(values), n_components * values.sum())) + 1
    return min(k, rank)


def inverse_root(pairs: Eigenpairs, k: int, like: Array) -> Array:  # (c, k)
    """V_k Σ_k^(-1/2), computed in float64 and returned in the dtype of `like`."""
    return as_like(pairs.vectors[:, :k] / pairs.values[:k] ** 0.5, like)


def check_definite(pairs: Eigenpairs, tolerance: float, psd: bool = True) -> None:
    """Raise if W is zero, or has negative eigenvalues although it should have none."""
    largest, lowest = float(pairs.values[0]), pairs.lowest
    if psd:
        refuse_negative(lowest, largest, tolerance)
    if largest <= 0:
        raise ValueError(
            "kernel is zero on all landmarks, so nothing can be learned from "
            "them: check X for zero rows, raise n_landmarks or use "
            "landmarks='diagonal'"
        )


def trace_error(energies: Array, F: Array) -> float:  # (n,), (n, k)
    """Σ(κ(x, x) − ‖f(x)‖²) / Σκ(x, x), at least 0."""
    total = float(double(energies).sum())
    explained = float(double(row_norms(F)).sum())
    return max(0.0, 1.0 - explained / total) if total > 0 else 0.0
