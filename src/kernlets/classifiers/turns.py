"""K-SAD's codes: one pass over blocks of samples, with all sums that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..backend.arrays import (
    as_like,
    double,
    empty,
    index_like,
    inner,
    namespace,
    row_norms,
)
from ..backend.rows import sum_rows
from ..core import Array
from ..fields import check
from ..learners.checkpoint import fitting
from .scatter import Scatter


@dataclass(frozen=True)
class CodeSums:
    """Sums over coded samples."""

    cross: Array  # (m, k) QᵀΦ, float64
    size: float  # ‖Q‖₁
    scatter: Scatter

    def __add__(self, other: CodeSums) -> CodeSums:
        return CodeSums(
            self.cross + other.cross,
            self.size + other.size,
            self.scatter + other.scatter,
        )


class Turns:
    """The codes Q of ‖Φ − QZ‖² + beta1‖Q‖₁ + beta2 G(Q), recomputed for each Z."""

    def __init__(self, F: Array, labels: np.ndarray, beta1: float, beta2: float):
        self.F, self.labels = F, labels
        self.beta1, self.beta2 = beta1, beta2
        self.n_classes = int(labels.max()) + 1
        self.codes = empty(F.shape, like=F)
        self._energy = float(double(row_norms(F)).sum())

    def code(
        self,
        atoms: Array,  # (k, k)
        scatter: Scatter | None,  # of the current codes; None before the first
    ) -> CodeSums:
        """Q ← T(ΦZᵀ − ½ beta2 ∇G(Q)), K-SAD Proposition 1, and the sums over Q."""
        push = None
        if scatter is not None and self.beta2 > 0:
            push = [as_like(part * (self.beta2 / 2), atoms) for part in scatter.slope()]

        def block(rows: Array) -> CodeSums:
            part = slice(int(rows[0]), int(rows[-1]) + 1)
            corr = self.F[part] @ atoms.T
            if push is not None:
                place = index_like(self.labels[part], corr)
                corr -= self.codes[part] * push[0][place][:, None]
                corr += push[1][place]
            self.codes[part] = soft(corr, self.beta1 / 2)
            return self._sums(part)

        rows = index_like(np.arange(self.F.shape[0]), self.F)
        return sum_rows(block, rows, 4 * self.F.shape[1] * self.F.dtype.itemsize)

    def state(self, atoms: Array, scatter: Scatter) -> dict[str, Any]:
        """The state on which the next iteration depends, for a checkpoint."""
        return {"atoms": atoms, "scatter": vars(scatter), "codes": self.codes}

    def resume(self, state: dict[str, Any], atoms: Array) -> tuple[Array, Scatter]:
        """Restore the codes of a `state`; return its atoms and scatter."""
        self.codes = fitting(state["codes"], self.codes)
        scatter = Scatter(**state["scatter"])
        if check(scatter) != {"C": self.n_classes, "k": self.codes.shape[1]}:
            raise ValueError("it has sums over other classes")
        return fitting(state["atoms"], atoms), scatter

    def _sums(self, part: slice) -> CodeSums:
        F, codes = self.F[part], self.codes[part]
        size = namespace(codes).abs(codes).sum(1)
        return CodeSums(
            cross=double(codes.T @ F),
            size=float(double(size).sum()),
            scatter=Scatter.of(codes, self.labels[part], self.n_classes),
        )

    def objective(self, sums: CodeSums, atoms: Array) -> float:
        """‖Φ − QZ‖² + beta1‖Q‖₁ + beta2 G(Q) for orthonormal Z, K-SAD eq. (5)."""
        energy = float(sums.scatter.energies.sum())
        error = self._energy - 2 * inner(sums.cross, double(atoms)) + energy
        return error + self.beta1 * sums.size + self.beta2 * sums.scatter.ratio


def soft(values: Array, threshold: float) -> Array:
    """Soft threshold, the proximal map of threshold · |·|."""
    return values - namespace(values).clip(values, -threshold, threshold)
