"""From eigenpairs of a kernel matrix to a projection: rank cut, checks, truncation."""

from __future__ import annotations

from math import sqrt
from numbers import Integral

import numpy as np
from scipy import sparse

from ..backend.arrays import as_like, double, eps, namespace, row_norms, to_numpy
from ..core import Array, Kernel
from ..landmarks import Landmarks
from .spectral import Spectrum

CORNER = 500  # rows of W that are compared with its columns
ASYMMETRY = 1e-4  # relative difference beyond which they are not the same


def in_float64(found: Landmarks) -> Landmarks:
    """The same landmarks in float64, unless the kernel is precomputed anyway."""
    if found.points is not found.rows:
        return found
    rows = found.rows
    rows = rows.astype(np.float64) if sparse.issparse(rows) else double(rows)
    return Landmarks(rows, rows, found.indices)


def kernel_matrix(kernel: Kernel, found: Landmarks) -> Array:  # (c, c)
    """W, or an error if it is not symmetric."""
    W = kernel(found.rows, found.points)
    _check_symmetric(W)
    return W


def _check_symmetric(W: Array) -> None:
    """Raise if a kernel is not symmetric, judged by a corner of its matrix."""
    xp = namespace(W)
    corner = W[:CORNER, :CORNER]
    gap, size = xp.max(xp.abs(corner - corner.T)), xp.max(xp.abs(corner))
    if float(gap) > ASYMMETRY * float(size):
        raise ValueError(
            "kernel is not symmetric: κ(x, y) and κ(y, x) differ by up to "
            f"{float(gap):.2g}; use (κ(x, y) + κ(y, x))/2, or check the precomputed X"
        )


def rounding(W: Array, rows: Array | None = None) -> float:
    """Eigenvalues of W below this share of the largest are rounding errors.

    The share depends on the dtype of W, or of the rows if these have fewer digits.
    """
    coarse = eps(W) if rows is None else eps(as_like(0.0, rows))
    return max(sqrt(W.shape[0]) * eps(W), 10 * eps(W), coarse)


def n_kept(
    values: Array,  # (c,) eigenvalues, largest first
    n_components: int | float | None,
    tolerance: float,
) -> int:
    """How many eigenvalues to keep: a count, a share of their sum, or the rank."""
    values = np.maximum(to_numpy(values), 0.0)
    rank = int((values > tolerance * values[0]).sum())
    if n_components is None:
        return rank
    if isinstance(n_components, Integral):
        return min(int(n_components), rank)
    enough = int(np.searchsorted(np.cumsum(values), n_components * values.sum())) + 1
    return min(enough, rank)


def inverse_root(pairs: Spectrum, k: int, like: Array) -> Array:  # (c, k)
    """V_k Σ_k^(-1/2), computed in float64 and returned in the dtype of `like`."""
    return as_like(pairs.vectors[:, :k] / pairs.values[:k] ** 0.5, like)


def check_definite(pairs: Spectrum, tolerance: float, psd: bool = True) -> None:
    """Raise if W is zero, or has negative eigenvalues although it should have none."""
    largest, lowest = float(pairs.values[0]), pairs.lowest
    if psd and lowest < -100 * tolerance * max(largest, -lowest):
        raise ValueError(
            "kernel is not positive semi-definite: its matrix on the landmarks has "
            f"eigenvalues from {lowest:.3g} to {largest:.3g}; use a kernel such as RBF "
            "or Polynomial, or add a constant to the diagonal of a precomputed X"
        )
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
