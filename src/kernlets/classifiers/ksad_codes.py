"""The codes and the alternation of K-SAD, computed by blocks of samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..contracts import Array
from ..data.rows import sum_rows
from ..io.checkpoint import fitting
from ..learners.loop import Alternation
from ..numerics.arrays import (
    as_like,
    double,
    empty,
    index_like,
    inner,
    namespace,
    row_norms,
)
from ..numerics.scaling import quiet
from ..schema import check
from ..updates.orthogonal import procrustes
from .scatter import Scatter


@dataclass(frozen=True)
class KSADSums:
    """Sums over samples and their codes, which can be added for several blocks."""

    cross: Array  # (m, k) QᵀΦ, float64
    l1_norm: float  # ‖Q‖₁
    scatter: Scatter

    def __add__(self, other: KSADSums) -> KSADSums:
        return KSADSums(
            self.cross + other.cross,
            self.l1_norm + other.l1_norm,
            self.scatter + other.scatter,
        )


class KSADCodes:
    """The codes Q of ‖Φ − QZ‖² + beta1‖Q‖₁ + beta2 G(Q), coded anew for each Z."""

    def __init__(
        self,
        F: Array,  # (n, k)
        labels: np.ndarray,  # (n,)
        beta1: float,
        beta2: float,
        scatter_class: type[Scatter] = Scatter,
    ) -> None:
        self.F, self.labels, self.scatter_class = F, labels, scatter_class
        self.beta1, self.beta2 = beta1, beta2
        self.n_classes = int(labels.max()) + 1
        self.codes = empty(F.shape, like=F)
        self._squared_norm = float(sum_rows(_squared_norm, F, 8 * F.shape[1]))

    def code(
        self,
        atoms: Array,  # (k, k)
        scatter: Scatter | None,  # of the current codes; None before the first
    ) -> KSADSums:
        """Q ← T(ΦZᵀ − ½ beta2 ∇G(Q)), K-SAD Proposition 1, and the sums over Q."""
        slopes = None
        if scatter is not None and self.beta2 > 0:
            slopes = [
                as_like(term * (self.beta2 / 2), atoms) for term in scatter.slope()
            ]

        def code_block(rows: Array) -> KSADSums:
            term = slice(int(rows[0]), int(rows[-1]) + 1)
            corr = self.F[term] @ atoms.T
            if slopes is not None:
                row_classes = index_like(self.labels[term], corr)
                corr -= self.codes[term] * slopes[0][row_classes][:, None]
                corr += slopes[1][row_classes]
            self.codes[term] = soft_threshold(corr, self.beta1 / 2)
            return self._block_sums(term)

        rows = index_like(np.arange(self.F.shape[0]), self.F)
        return sum_rows(code_block, rows, 4 * self.F.shape[1] * self.F.dtype.itemsize)

    def state(self, atoms: Array, scatter: Scatter | None) -> dict[str, Any]:
        """Return all that the next iteration depends on, for a checkpoint."""
        return {"atoms": atoms, "scatter": vars(scatter), "codes": self.codes}

    def resume(self, state: dict[str, Any], atoms: Array) -> tuple[Array, Scatter]:
        """Restore the codes of a `state`; return its atoms and scatter."""
        self.codes = fitting(state["codes"], self.codes)
        scatter = self.scatter_class(**state["scatter"])
        if check(scatter) != {"C": self.n_classes, "k": self.codes.shape[1]}:
            raise ValueError("it has sums over other classes")
        return fitting(state["atoms"], atoms), scatter

    def _block_sums(self, rows: slice) -> KSADSums:
        F, codes = self.F[rows], self.codes[rows]
        l1_norms = namespace(codes).abs(codes).sum(1)
        return KSADSums(
            cross=double(codes.T @ F),
            l1_norm=float(double(l1_norms).sum()),
            scatter=self.scatter_class.of(codes, self.labels[rows], self.n_classes),
        )

    def objective(self, sums: KSADSums, atoms: Array) -> float:
        """‖Φ − QZ‖² + beta1‖Q‖₁ + beta2 G(Q) for orthonormal Z, K-SAD eq. (5)."""
        energy = float(sums.scatter.energies.sum())
        error = self._squared_norm - 2 * inner(sums.cross, double(atoms)) + energy
        return error + self.beta1 * sums.l1_norm + self.beta2 * sums.scatter.ratio


class CodesThenAtoms(Alternation):
    """K-SAD Algorithm 1, stage 2: codes Q for the atoms Z, then Z for Q."""

    def __init__(self, codes: KSADCodes, atoms: Array) -> None:
        self._codes, self.atoms = codes, atoms
        self.scatter: Scatter | None = None  # of the codes, before the first None

    def current(self) -> Array:
        return self.atoms

    def step(self, keep: Callable[[], None]) -> dict[str, float]:
        if self.scatter is None:
            self.scatter = self._codes.code(self.atoms, None).scatter
        code_sums = self._codes.code(self.atoms, self.scatter)
        self.scatter = code_sums.scatter
        self.atoms = procrustes(code_sums.cross, self.atoms)
        with quiet():  # the loop checks that the objective is finite
            return {"objective": self._codes.objective(code_sums, self.atoms)}

    def codes(self) -> Array:  # (n, m)
        """Compute the codes of the samples over the last atoms."""
        self._codes.code(self.atoms, self.scatter)
        return self._codes.codes

    def state(self) -> dict[str, Any]:
        return self._codes.state(self.atoms, self.scatter)

    def resume(self, state: dict[str, Any]) -> None:
        self.atoms, self.scatter = self._codes.resume(state, self.atoms)


def _squared_norm(rows: Array) -> Array:
    return double(row_norms(rows)).sum()


def soft_threshold(values: Array, threshold: float) -> Array:
    """Apply the soft threshold, the proximal map of threshold · ‖·‖₁."""
    xp = namespace(values)
    threshold = min(float(threshold), float(xp.finfo(values.dtype).max))
    return values - xp.clip(values, -threshold, threshold)
