"""Eigenfunctions of a kernel in the span of given functions, from a sample.

This module draws the sample, makes the functions orthonormal on it, and computes the
kernel as a small matrix in that basis. `ika.py` chooses the functions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..contracts import Array
from ..data.rows import map_rows, n_rows_in_memory, sum_rows
from ..data.stream import is_blocks
from ..kernels import Kernel
from ..landmarks.choose import BlockSample, choose
from ..landmarks.samplers import uniform
from ..numerics.arrays import (
    as_like,
    double,
    eps,
    index_like,
    inner,
    namespace,
    to_numpy,
)
from ..numerics.scaling import least_energy, lengths, quiet

CUT = 1e-9  # singular values of B below this share of the largest are dropped


class Sample(NamedTuple):
    """Rows that stand for the distribution of the data."""

    rows: Array  # (S, p)
    points: Array  # the same rows, as the second argument of the kernel
    energies: Array  # (S,) κ(x, x)


def gather_sample(
    kernel: Kernel, rows: Any, n_samples: int, rng: np.random.Generator
) -> tuple[Array, np.ndarray | None]:
    """Draw random rows of a stream; return them and their row numbers in the stream.

    An array that is no stream is returned unchanged.
    """
    if not is_blocks(rows):
        return rows, None
    sampled_rows = BlockSample(uniform, kernel, lambda n: min(n, n_samples), rng)
    for block in rows:
        sampled_rows.add(block)
    return sampled_rows.rows, sampled_rows.indices


def draw_sample(
    kernel: Kernel, X: Array, n_samples: int, rng: np.random.Generator
) -> Sample:
    """Draw `n_samples` random rows of X, or all rows if there are fewer.

    It draws only as many rows from disk as fit into a part of the memory option.
    """
    n, max_rows = X.shape[0], max(1, n_rows_in_memory(X, 32))
    n_samples = min(n_samples, max_rows)
    row_numbers = np.sort(rng.choice(n, min(n_samples, n), replace=False))
    landmarks = choose(row_numbers, kernel, X, None, rng)
    if kernel.by_index:
        energies = kernel.diag(X)[index_like(row_numbers, X)]
    else:
        energies = kernel.diag(landmarks.rows)
    return Sample(landmarks.rows, landmarks.points, energies)


def orthonormal(B: Array) -> tuple[Array, Array]:  # (S, n) -> (S, r), (n, r)
    """Return U, which has orthonormal columns and spans B, and R with U = B R.

    Both are in float64. They come from the singular values of B with columns of unit
    length, because P = BᵀB/S is numerically singular for kernel functions and B much
    less so.
    """
    xp = namespace(B)
    cutoff, smallest_length = max(CUT, 10 * eps(B)), least_energy(B)
    B = double(B)
    column_lengths = lengths(B.T)
    is_accurate = column_lengths > smallest_length  # shorter ones have lost digits
    B = xp.where(is_accurate, B, 0.0)
    column_lengths = xp.where(is_accurate, column_lengths, xp.ones_like(column_lengths))
    U, s, Vh = xp.linalg.svd(B / column_lengths, full_matrices=False)
    r = int((s > cutoff * s[0]).sum())
    if r == 0:
        raise ValueError(
            "all basis functions are zero on the sample: choose other landmarks, "
            "another basis, or check X for zero rows"
        )
    return U[:, :r], Vh[:r].T / s[:r] / column_lengths[:, None]


def projected_gram(kernel: Kernel, sample: Sample, U: Array) -> Array:  # (r, r)
    """Compute UᵀGU in float64, from blocks of G at and right of its diagonal."""
    S = U.shape[0]

    def block_product(indices: np.ndarray) -> Array:
        block, columns = slice(indices[0], indices[-1] + 1), slice(indices[0], S)
        K = kernel(sample.rows[block], sample.points[columns])
        KU = K @ U[columns]
        KU -= 0.5 * (K[:, : len(indices)] @ U[block])  # counted twice below
        return double(U[block].T @ KU)

    half_product = sum_rows(block_product, np.arange(S), 2 * S * U.dtype.itemsize)
    return half_product + half_product.T


def refine_filters(
    kernel: Kernel, sample: Array, filters: Array, max_iter: int
) -> Array:  # (S, p), (n, p) -> (n, p)
    """Return the filters after at most `max_iter` steps of L-BFGS on the sample error.

    It always computes in float64, because the error is a small difference of large
    numbers.
    """
    from scipy.optimize import minimize

    sample64, filters64 = double(sample), double(filters)
    gram_norm2 = _squared_norm(kernel, sample64)
    scale = gram_norm2 - captured_norm2(kernel, sample64, filters64)[0] or 1.0

    def error(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = captured_norm2(
            kernel, sample64, as_like(flat.reshape(shape), filters64)
        )
        return (gram_norm2 - value) / scale, -to_numpy(gradient).ravel() / scale

    shape = tuple(filters64.shape)
    options = {"maxiter": max_iter, "ftol": 0.0, "gtol": 0.0}
    flat_filters = to_numpy(filters64).ravel()
    result = minimize(error, flat_filters, jac=True, method="L-BFGS-B", options=options)
    return as_like(result.x.reshape(shape), filters)


def captured_norm2(
    kernel: Kernel, sample: Array, filters: Array
) -> tuple[float, Array]:  # (S, p), (n, p)
    """Compute ‖UᵀGU‖²_F and its gradient in the filters.

    The gradient in B is 4 (I − UUᵀ) G U (UᵀGU) Rᵀ with U = B R; the kernel's own
    gradient takes it to the filters.
    """
    U, R = orthonormal(kernel(sample, filters))
    row_bytes = 2 * sample.shape[0] * sample.dtype.itemsize
    GU = map_rows(lambda rows: kernel(rows, sample) @ U, sample, row_bytes)
    with quiet():  # the kernel refuses a slope that is not finite
        UtGU = U.T @ GU
        GU_UtGU = GU @ UtGU
        gradient_in_B = 4.0 * (GU_UtGU - U @ (U.T @ GU_UtGU)) @ R.T  # (S, n)
    return inner(UtGU, UtGU), kernel.pull(filters, sample, gradient_in_B.T)


def _squared_norm(kernel: Kernel, sample: Array) -> float:
    """Compute ‖G‖²_F, a block of rows at a time."""

    def squares(rows: Array) -> float:
        K = kernel(rows, sample)
        return inner(K, K)

    return sum_rows(squares, sample, 2 * sample.shape[0] * sample.dtype.itemsize)
