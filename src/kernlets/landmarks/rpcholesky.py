"""Landmarks by randomly pivoted Cholesky, with many pivots at a time.

Chen, Epperly, Tropp and Webber, "Randomly pivoted Cholesky", 2022; Epperly, Tropp and
Webber, "Embrace rejection", 2024. LKDL does not have this sampler.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..contracts import Array
from ..data.memory_limits import OverMemory, memory_limit
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
    """m pivots, each drawn with probability ∝ its residual after the earlier ones.

    A round proposes `block` pivots from the residual diagonal d = diag(K − F Fᵀ) and
    accepts each with probability (its residual after the accepted ones) / (its d). This
    gives exactly the distribution of drawing one by one. Pivots are in the order of
    drawing. There are fewer than m if they explain all of K.

    An (n, m) matrix must fit in memory.
    """
    _check_memory(X, m)
    factor = _Factor(kernel, X, m)
    block = block or min(max(m // 10, 1), 200)
    while len(factor.pivots) < m and not factor.is_complete():
        proposals = factor.propose(block, rng)
        gram = factor.gram(proposals)
        accepted, lower = _accept(gram, factor.floor, rng)
        factor.extend(proposals[accepted], lower)
        factor.forget(proposals[gram.diagonal() <= factor.floor])
    return np.array(factor.pivots, dtype=np.intp)


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


class _Factor:
    """The growing factor F with K ≈ F Fᵀ, and the diagonal of the residual K − F Fᵀ."""

    def __init__(self, kernel: Kernel, X: Array, m: int) -> None:
        self._kernel, self._X = kernel, X
        energy = kernel.diag(X)
        refuse_negative_energy(kernel, energy)
        self._F = empty((X.shape[0], m), like=energy)
        self.pivots: list[int] = []
        self.residual = to_numpy(energy).astype(np.float64)
        self.floor = 10 * eps(energy) * float(self.residual.mean())  # rounding level

    def is_complete(self) -> bool:
        return bool(self.residual.mean() <= self.floor)

    def propose(self, block: int, rng: np.random.Generator) -> np.ndarray:
        share = self.residual / self.residual.sum()
        return rng.choice(len(share), block, p=share)

    def gram(self, rows: np.ndarray) -> np.ndarray:  # (b, b)
        """(K − F Fᵀ) at these rows and columns."""
        return to_numpy(double(self._residual_matrix(index_like(rows, self._X), rows)))

    def extend(self, pivots: np.ndarray, lower: np.ndarray) -> None:
        """Append the columns of new pivots, orthogonalised by L⁻ᵀ, up to m columns."""
        if not len(pivots):
            return
        start = len(self.pivots)
        pivots = pivots[: self._F.shape[1] - start]
        lower = lower[: len(pivots), : len(pivots)]
        whitened = as_like(np.linalg.inv(lower).T, self._F)
        new = matmul(self._residual_matrix(slice(None), pivots), whitened)
        self._F[:, start : start + len(pivots)] = new
        self.pivots += pivots.tolist()
        self.residual = np.maximum(self.residual - to_numpy(row_norms(new)), 0.0)
        self.forget(pivots)

    def forget(self, rows: np.ndarray) -> None:
        """Never draw these rows again: pivots, or rows whose residual is rounding."""
        self.residual[rows] = 0.0

    def _residual_matrix(self, rows: Any, columns: np.ndarray) -> Array:
        """(K − F Fᵀ) at these rows and columns."""
        indices = index_like(columns, self._X)
        F = self._F[:, : len(self.pivots)]
        K = self._kernel(self._X[rows], self._kernel.take(self._X, indices))
        return K - matmul(F[rows], F[indices].T)
