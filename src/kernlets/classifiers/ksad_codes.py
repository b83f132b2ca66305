"""K-SAD: the alternation between codes and atoms, and neighbours among codes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..contracts import Array
from ..data.rows import map_rows, sum_rows
from ..io.checkpoint import fitting
from ..learners.loop import Alternation
from ..numerics.argsmallest import smallest
from ..numerics.arrays import (
    as_like,
    double,
    empty,
    index_like,
    inner,
    namespace,
    row_norms,
)
from ..numerics.scaling import peaks, power_of_two, quiet
from ..schema import check
from ..updates.orthogonal import procrustes
from .scatter import Scatter, Sums


@dataclass(frozen=True)
class KSADSums(Sums):
    """Sums over samples and their codes."""

    cross: Array  # (m, k) QᵀΦ, float64
    l1_norm: float  # ‖Q‖₁
    scatter: Scatter


class CodesThenAtoms(Alternation):
    """K-SAD Algorithm 1, stage 2: codes Q for the atoms Z, then Z for Q.

    Together they minimise ‖Φ − QZ‖² + beta1‖Q‖₁ + beta2 G(Q), eq. (5).
    """

    def __init__(
        self,
        F: Array,  # (n, k) Φ
        labels: np.ndarray,  # (n,)
        atoms: Array,  # (k, k) Z
        beta1: float,
        beta2: float,
        scatter_class: type[Scatter] = Scatter,
    ) -> None:
        self.F, self.labels, self.atoms = F, labels, atoms
        self.beta1, self.beta2, self.scatter_class = beta1, beta2, scatter_class
        self.n_classes = int(labels.max()) + 1
        self.codes = empty(F.shape, like=F)
        self.scatter: Scatter | None = None  # of the codes, before the first None
        self._energy = float(
            sum_rows(lambda rows: double(row_norms(rows)).sum(), F, 8 * F.shape[1])
        )

    def current(self) -> Array:
        return self.atoms

    def step(self, keep: Callable[[], None]) -> dict[str, float]:
        """Lines 10 to 12: Q = T(ΦZᵀ, G(Q)), then Z = UVᵀ for QᵀΦ = UΣVᵀ."""
        if self.scatter is None:  # G is a function of codes, which are there after this
            self.code()
        sums = self.code()
        self.atoms = procrustes(sums.cross, self.atoms)
        with quiet():  # the loop checks that the objective is finite
            return {"objective": self.objective(sums)}

    def code(self) -> KSADSums:
        """Q ← T(ΦZᵀ − ½ beta2 ∇G(Q)), K-SAD Proposition 1, and the sums over Q."""
        slopes = None
        if self.scatter is not None and self.beta2 > 0:
            terms = self.scatter.slope()
            slopes = [as_like(term * (self.beta2 / 2), self.atoms) for term in terms]

        def code_block(row_numbers: Array) -> KSADSums:
            rows = slice(int(row_numbers[0]), int(row_numbers[-1]) + 1)
            F, labels = self.F[rows], self.labels[rows]
            corr = F @ self.atoms.T
            if slopes is not None:
                row_classes = index_like(labels, corr)
                corr -= self.codes[rows] * slopes[0][row_classes][:, None]
                corr += slopes[1][row_classes]
            codes = self.codes[rows] = soft_threshold(corr, self.beta1 / 2)
            return KSADSums(
                cross=double(codes.T @ F),
                l1_norm=float(double(namespace(codes).abs(codes).sum(1)).sum()),
                scatter=self.scatter_class.of(codes, labels, self.n_classes),
            )

        row_numbers = index_like(np.arange(self.F.shape[0]), self.F)
        row_bytes = 4 * self.F.shape[1] * self.F.dtype.itemsize
        sums: KSADSums = sum_rows(code_block, row_numbers, row_bytes)
        self.scatter = sums.scatter
        return sums

    def objective(self, sums: KSADSums) -> float:
        """‖Φ − QZ‖² + beta1‖Q‖₁ + beta2 G(Q) for orthonormal Z, K-SAD eq. (5)."""
        energy = float(sums.scatter.energies.sum())
        error = self._energy - 2 * inner(sums.cross, double(self.atoms)) + energy
        return error + self.beta1 * sums.l1_norm + self.beta2 * sums.scatter.ratio

    def state(self) -> dict[str, Any]:
        return {
            "atoms": self.atoms,
            "scatter": vars(self.scatter),
            "codes": self.codes,
        }

    def resume(self, state: dict[str, Any]) -> None:
        self.codes = fitting(state["codes"], self.codes)
        self.scatter = self.scatter_class(**state["scatter"])
        if check(self.scatter) != {"C": self.n_classes, "k": self.codes.shape[1]}:
            raise ValueError("it has sums over other classes")
        self.atoms = fitting(state["atoms"], self.atoms)


def soft_threshold(values: Array, threshold: float) -> Array:
    """Apply the soft threshold, the proximal map of threshold · ‖·‖₁."""
    xp = namespace(values)
    threshold = min(float(threshold), float(xp.finfo(values.dtype).max))
    return values - xp.clip(values, -threshold, threshold)


def count_votes(
    Q: Any,  # (n, k)
    points: Array,  # (N, k)
    labels: np.ndarray,  # (N,) integers from 0
    n_neighbors: int,
) -> Array:  # (n, C)
    """Count the labels among the nearest points of each row of Q, by brute force.

    scikit-learn's neighbours need host memory, but codes may be on a GPU.
    """
    xp, point_labels = namespace(points), index_like(labels, points)
    classes = range(int(labels.max()) + 1)
    factors = xp.concat([points * -2, row_norms(points)[:, None]], axis=1).T

    def votes_of_block(rows: Array) -> Array:
        # One product gives (‖z‖² − 2qᵀz) / scale. ‖q‖² is omitted because it is equal
        # for all points. The scale avoids overflow and does not change the order.
        scale = power_of_two(xp.clip(peaks(rows, axis=1), 1.0, None))
        distances = xp.concat([rows / scale, 1 / scale], axis=1) @ factors
        neighbors = point_labels[smallest(distances, n_neighbors)]
        is_class = [xp.astype(neighbors == c, rows.dtype) for c in classes]
        return xp.stack([xp.sum(votes, axis=1) for votes in is_class], axis=1)

    return map_rows(votes_of_block, Q, 2 * points.shape[0] * Q.dtype.itemsize)
