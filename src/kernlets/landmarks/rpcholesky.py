"""Landmarks by randomly pivoted Cholesky, with many pivots at a time.

Chen, Epperly, Tropp and Webber, "Randomly pivoted Cholesky", 2022; Epperly, Tropp and
Webber, "Embrace rejection", 2024. LKDL does not have this sampler.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..contracts import Array
from ..data.limits import OverMemory, memory_limit
from ..kernels import Kernel
from ..kernels.indefinite import refuse_negative_energy
from ..numerics.arrays import (
    as_like,
    double,
    empty,
    eps,
    index_like,
    row_norms,
    to_numpy,
)
from ..numerics.products import matmul
from ..numerics.text import size_text


def rpcholesky(
    kernel: Kernel,
    X: Array,
    m: int,
    rng: np.random.Generator,
    *,
    block: int | None = None,
) -> np.ndarray:  # (≤ m,)
    """Draw m pivots, each with probability ∝ its residual after the earlier ones.

    A round proposes `block` pivots from the residual diagonal d = diag(K − F Fᵀ) and
    accepts each with probability (its residual after the accepted ones) / (its d). This
    gives exactly the distribution of drawing one by one. Pivots are in the order of
    drawing. There are fewer than m if they explain all of K.

    An (n, m) matrix must fit in memory.
    """
    _check_memory(X, m)
    energy = kernel.diag(X)
    refuse_negative_energy(kernel, energy)
    block = block or min(max(m // 10, 1), 200)
    F = empty((X.shape[0], m), like=energy)  # K ≈ F Fᵀ, a column for each pivot
    pivots: list[int] = []
    d = to_numpy(energy).astype(np.float64)
    floor = 10 * eps(energy) * float(d.mean())  # rounding errors

    def residual_matrix(rows: Any, columns: np.ndarray) -> Array:
        """Compute (K − F Fᵀ) at these rows and columns."""
        indices, filled = index_like(columns, X), F[:, : len(pivots)]
        K = kernel(X[rows], kernel.take(X, indices))
        return K - matmul(filled[rows], filled[indices].T)

    while len(pivots) < m and d.mean() > floor:
        proposals = rng.choice(len(d), block, p=d / d.sum())
        gram = residual_matrix(index_like(proposals, X), proposals)
        gram = to_numpy(double(gram))
        accepted, L = _accept(gram, floor, rng)
        new = proposals[accepted][: m - len(pivots)]
        if len(new):
            # the columns of new pivots, orthogonalised by L⁻ᵀ
            whitener = as_like(np.linalg.inv(L[: len(new), : len(new)]).T, F)
            columns = matmul(residual_matrix(slice(None), new), whitener)
            F[:, len(pivots) : len(pivots) + len(new)] = columns
            pivots += new.tolist()
            d = np.maximum(d - to_numpy(row_norms(columns)), 0.0)
        # pivots, and rows whose residual is rounding, are never drawn again
        d[new] = d[proposals[gram.diagonal() <= floor]] = 0.0
    return np.array(pivots, dtype=np.intp)


def _check_memory(X: Array, m: int) -> None:
    need, memory = X.shape[0] * m * X.dtype.itemsize, memory_limit(X)
    if need > memory:
        raise OverMemory(
            f"landmarks='rpcholesky' with n_landmarks={m} needs {size_text(need)}, "
            f"over the memory option of {size_text(memory)}",
            "lower n_landmarks, raise kernlets.options(memory=...), or use "
            "landmarks='leverage' or 'kmeans'",
            "lower --n-landmarks, raise --memory, or use --landmarks leverage or "
            "kmeans",
        )


def _accept(
    gram: np.ndarray,  # (b, b) residual kernel matrix of the proposals
    floor: float,
    rng: np.random.Generator,
) -> tuple[list[int], np.ndarray]:  # (a,), (a, a)
    """Choose the proposals that become pivots, with the Cholesky factor L of those."""
    residual, d = gram.copy(), gram.diagonal()
    accepted: list[int] = []
    columns = np.empty((len(gram), 0))
    for i, u in enumerate(rng.random(len(gram))):
        if residual[i, i] > floor and u * d[i] < residual[i, i]:
            column = residual[:, i] / np.sqrt(residual[i, i])
            residual -= np.outer(column, column)
            accepted.append(i)
            columns = np.column_stack([columns, column])
    return accepted, np.tril(columns[accepted])
