"""Eigenfunctions of a kernel in the span of given functions, from a sample.

This module draws the sample, makes the functions orthonormal on it, and computes the
kernel as a small matrix in that basis. `ika.py` chooses the functions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..backend.arrays import double, eps, index_like, namespace
from ..backend.rows import is_blocks, n_rows_in_memory, sum_rows
from ..backend.scale import least_energy, lengths
from ..backend.threads import serial_blas
from ..core import Array, Kernel
from ..kernels.user_kernels import known_by_index
from ..landmarks.block_sample import BlockSample
from ..landmarks.select import choose

CUT = 1e-9  # singular values of B below this share of the largest are dropped


class Sample(NamedTuple):
    """Rows that stand for the distribution of the data."""

    rows: Array  # (S, p)
    points: Array  # the same as the second argument of the kernel
    energies: Array  # (S,) κ(x, x)


def gathered(
    rows: Any, n_samples: int, rng: np.random.Generator
) -> tuple[Array, np.ndarray | None]:
    """Random rows of a stream as one array, and their row numbers in the stream.

    An array is returned unchanged.
    """
    if not is_blocks(rows):
        return rows, None

    def take(block: Array, m: int) -> tuple[Array, np.ndarray]:
        chosen = np.sort(rng.choice(block.shape[0], m, replace=False))
        return block[index_like(chosen, block)], chosen

    pool = BlockSample(take, lambda n: min(n, n_samples), rng)
    for block in rows:
        pool.add(block)
    return pool.rows, pool.indices


def draw_sample(
    kernel: Kernel, X: Array, n_samples: int, rng: np.random.Generator
) -> Sample:
    """`n_samples` random rows of X, or all rows if there are fewer.

    From rows on disk it takes no more than fit into a part of the memory option.
    """
    n, room = X.shape[0], max(1, n_rows_in_memory(X, 32))
    n_samples = min(n_samples, room)
    chosen = np.sort(rng.choice(n, min(n_samples, n), replace=False))
    found = choose(chosen, kernel, X, None, rng)
    if known_by_index(kernel, X):
        energies = kernel.diag(X)[index_like(chosen, X)]
    else:
        energies = kernel.diag(found.rows)
    return Sample(found.rows, found.points, energies)


def orthonormal(B: Array) -> tuple[Array, Array]:  # (S, n) -> (S, r), (n, r)
    """U with orthonormal columns that span those of B, and R with U = B R, in float64.

    It uses the singular values of B with columns of unit length, because P = BᵀB/S is
    numerically singular for kernel functions and B much less so.
    """
    xp = namespace(B)
    cut, least = max(CUT, 10 * eps(B)), least_energy(B)
    B = double(B)
    sizes = lengths(B.T)
    known = sizes > least  # of what is smaller digits are lost
    B = xp.where(known, B, 0.0)
    sizes = xp.where(known, sizes, xp.ones_like(sizes))
    with serial_blas:  # threads of LAPACK mostly wait for each other here
        U, s, Vh = xp.linalg.svd(B / sizes, full_matrices=False)
    r = int((s > cut * s[0]).sum())
    if r == 0:
        raise ValueError(
            "all basis functions are zero on the sample: choose other landmarks, "
            "another basis, or check X for zero rows"
        )
    return U[:, :r], Vh[:r].T / s[:r] / sizes[:, None]


def projected_gram(kernel: Kernel, sample: Sample, U: Array) -> Array:  # (r, r)
    """UᵀGU in float64, from blocks of rows of G at and right of its diagonal."""
    S = U.shape[0]

    def upper(places: np.ndarray) -> Array:
        here, on = slice(places[0], places[-1] + 1), slice(places[0], S)
        K = kernel(sample.rows[here], sample.points[on])
        image = K @ U[on]
        image -= 0.5 * (K[:, : len(places)] @ U[here])  # counted twice below
        return double(U[here].T @ image)

    half = sum_rows(upper, np.arange(S), 2 * S * U.dtype.itemsize)
    return half + half.T
