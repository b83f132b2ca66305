"""Eigenpairs of a kernel matrix: all of them, or the leading ones by block Krylov.

It needs only matrix products, Cholesky factors and one small eigenproblem, so the same
code runs on NumPy arrays and torch tensors.
"""

from __future__ import annotations

from numbers import Integral
from typing import NamedTuple

import numpy as np

from ..contracts import Array
from ..kernels.indefinite import refuse_negative
from ..numerics.arrays import (
    as_like,
    cholesky_or_none,
    diagonal,
    double,
    empty,
    eps,
    namespace,
    row_norms,
    to_numpy,
    with_fixed_signs,
    zeros,
)
from ..numerics.products import cross, matmul
from ..numerics.threads import threads_if_large

DEPTH = 9  # number of blocks in the Krylov space
SPARE = 8  # a block has this many columns more than a quarter of k
LARGE = 1500  # number of rows from which the randomized solver can be faster
ILL = 1e-5  # smallest ratio of pivots with which Cholesky factors are trusted


class Eigenpairs(NamedTuple):
    """Eigenpairs of a symmetric matrix, largest first, and its lowest eigenvalue.

    Of a Krylov space it is the lowest Ritz value. The signs of vectors are fixed.
    """

    values: Array  # (k,) float64
    vectors: Array  # (c, k)
    lowest: float


def all_eigenpairs(W: Array) -> Eigenpairs:  # (c, c)
    """Compute all eigenpairs of W in float64."""
    values, vectors = _eigh(double(W))
    return Eigenpairs(values, with_fixed_signs(vectors), float(values[-1]))


def leading_eigenpairs(W: Array, k: int, rng: np.random.Generator) -> Eigenpairs:
    """Compute the k largest eigenpairs by Rayleigh-Ritz on a block Krylov space.

    The space is spanned by Ω, WΩ, …, W⁸Ω for a random Ω of k/4 + 8 columns, about 2¼ k
    vectors. Every product with W serves both the space and the projection of W on it.
    Products run in the dtype of W; Gram matrices and the small eigenproblem in float64.
    Musco and Musco, "Randomized block Krylov methods", 2015.

    For a positive semi-definite W the captured trace never exceeds that of the exact
    pairs. It is less than 0.1 % below where eigenvalues fall like 1/i, and some
    per cent where they hardly fall, so that there is little to gain by the exact ones.
    """
    block = block_size(k)
    if DEPTH * block >= W.shape[0]:
        return _leading(all_eigenpairs(W), k)
    basis, projected = _krylov(W, block, rng)
    if not _is_orthonormal(basis, rng):
        return _leading(all_eigenpairs(W), k)
    values, vectors = _eigh(projected)
    ritz_vectors = matmul(basis, as_like(vectors[:, :k], basis))
    return Eigenpairs(values[:k], with_fixed_signs(ritz_vectors), float(values[-1]))


def block_size(k: int) -> int:
    """Return the columns of a Krylov block from which k eigenpairs are computed."""
    return -(-k // 4) + SPARE


def is_krylov_small(c: int, k: int) -> bool:
    """Whether the Krylov space is so much smaller than W that it saves time."""
    return c >= LARGE and 2 * DEPTH * block_size(k) <= c


def _leading(pairs: Eigenpairs, k: int) -> Eigenpairs:
    return Eigenpairs(pairs.values[:k], pairs.vectors[:, :k], pairs.lowest)


def _eigh(A: Array) -> tuple[Array, Array]:
    """Compute the eigenpairs of a symmetric matrix, largest first."""
    xp = namespace(A)
    with threads_if_large(A.shape[0]):
        values, vectors = xp.linalg.eigh(A)
    return xp.flip(values, axis=0), xp.flip(vectors, axis=1)


def _krylov(
    W: Array, block: int, rng: np.random.Generator
) -> tuple[Array, Array]:  # (c, d), (d, d)
    """Return an orthonormal basis B of the block Krylov space, and BᵀWB in float64.

    W times a block lies in the span of the blocks up to the next one, so that BᵀWB is
    block tridiagonal: each step only adds entries for the two latest blocks.
    """
    c, d = W.shape[0], DEPTH * block
    basis, projected = empty((c, d), like=W), zeros((d, d), like=double(W[:0]))
    Y, largest = _random_block(c, block, W, rng), 0.0
    for start in range(0, d, block):
        new = slice(start, start + block)
        two_latest = slice(max(0, start - block), start + block)
        # orthogonal to the basis but for rounding errors, so that once is enough
        Y, earlier = _orthonormal_basis(Y), basis[:, :start]
        basis[:, new] = _orthonormal_basis(Y - matmul(earlier, cross(earlier, Y)))
        Y = matmul(W, basis[:, new])
        overlaps = cross(basis[:, two_latest], Y)
        projected[two_latest, new], projected[new, two_latest] = overlaps, overlaps.T
        largest = max(largest, float(Y.max()), -float(Y.min()))
        Y -= matmul(basis[:, two_latest], overlaps)
        # at low rank only rounding errors remain; replace them by random numbers
        Y += (eps(W) * largest or 1.0) * _random_block(c, block, W, rng)
    return basis, projected


def _random_block(c: int, block: int, like: Array, rng: np.random.Generator) -> Array:
    """Draw numbers between -0.5 and 0.5; normal ones would take six times as long."""
    numbers = rng.random((c, block), dtype=np.float32)
    numbers -= 0.5
    return as_like(numbers, like)


def _orthonormal_basis(Y: Array) -> Array:  # (c, b)
    """Return an orthonormal basis of the columns of Y.

    Y L⁻ᵀ with L Lᵀ = YᵀY is four times as fast as Householder's QR, which is used if Y
    is too ill-conditioned for the squares in YᵀY.
    """
    xp = namespace(Y)
    Y64 = double(Y)
    L = _cholesky(cross(Y64, Y64))
    if L is None:
        return as_like(xp.linalg.qr(Y64)[0], Y)
    return matmul(Y, as_like(xp.linalg.inv(L).T, Y))


def _cholesky(gram: Array) -> Array | None:  # (b, b)
    """Return the Cholesky factor, or None if the matrix is ill-conditioned."""
    L = cholesky_or_none(gram)
    if L is None:
        return None
    xp, pivots = namespace(gram), diagonal(L)
    return L if float(xp.min(pivots)) > ILL * float(xp.max(pivots)) else None


def _is_orthonormal(basis: Array, rng: np.random.Generator) -> bool:
    """Whether BᵀB x = x for a random x, to half the digits of the dtype."""
    x = as_like(rng.standard_normal(basis.shape[1]), basis)
    difference = basis.T @ (basis @ x) - x
    return float(difference @ difference) <= eps(basis) * float(x @ x)


def choose_rank(
    values: Array,  # (c,) eigenvalues, largest first
    n_components: int | float | None,
    tolerance: float,
) -> int:
    """Return k of V_k and Σ_k: a count, a share of the trace, or the numerical rank.

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
    """Compute Σ(κ(x, x) − ‖f(x)‖²) / Σκ(x, x), at least 0."""
    total = float(double(energies).sum())
    explained = float(double(row_norms(F)).sum())
    return max(0.0, 1.0 - explained / total) if total > 0 else 0.0
