"""The objective of Fisher discrimination dictionary learning, and its atoms.

With rows as samples, D_j the atoms of class j and Γ_i^j the codes of class i over them,
objective (7) of LKDL is

    J = Σ_i [‖X_i − Γ_i D‖² + ‖X_i − Γ_i^i D_i‖² + Σ_{j≠i} ‖Γ_i^j D_j‖²] + λ₁‖Γ‖₁
        + λ₂ [tr(S_W − S_B) + η‖Γ‖²].

This module has the penalties on codes and the sweep over atoms. The steps over codes
are in `fddl_codes`, and the classifier is in `fddl`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..contracts import Array
from ..data.block_loop import block_slices
from ..data.sparse_rows import as_dense
from ..loops.codes import to_csr
from ..numerics.arrays import double, inner, namespace, row_norms, zeros
from ..numerics.scaling import peaks, power_of_two
from .scatter import Sums

Sizes = Sequence[int] | np.ndarray


def consecutive_slices(sizes: Sizes) -> list[slice]:
    """Return consecutive slices of these lengths."""
    ends = np.cumsum(sizes).tolist()
    return [slice(a, b) for a, b in zip([0, *ends], ends, strict=False)]


@dataclass(frozen=True)
class ClassLayout:
    """The rows (samples) and columns (atoms) that belong to each class."""

    rows: list[slice]  # C
    columns: list[slice]  # C

    @classmethod
    def of(cls, counts: Sizes, sizes: Sizes) -> ClassLayout:
        """Lay out classes with `counts` samples and `sizes` atoms consecutively."""
        return cls(consecutive_slices(counts), consecutive_slices(sizes))

    @property
    def counts(self) -> np.ndarray:  # (C,)
        return np.array([rows.stop - rows.start for rows in self.rows])

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the codes: the numbers of samples and of atoms."""
        return self.rows[-1].stop, self.columns[-1].stop

    def blocks(self, like: Array) -> list[tuple[int, slice]]:
        """Return (class, rows) of blocks that each lie within one class."""
        row_bytes = 4 * self.shape[1] * like.dtype.itemsize
        return [
            (c, slice(rows.start + block.start, rows.start + block.stop))
            for c, rows in enumerate(self.rows)
            for block in block_slices(rows.stop - rows.start, row_bytes, like)
        ]


@dataclass(frozen=True)
class FisherSums(Sums):
    """Sums over codes in float64."""

    class_sums: Array  # (C, m) sums of the codes of each class
    absolute: float  # ‖Γ‖₁
    squares: float  # ‖Γ‖²
    data_terms: float  # the squared terms of J in the data, or 0 if not needed

    @classmethod
    def of(
        cls, codes: Array, c: int, n_classes: int, data_terms: float = 0.0
    ) -> FisherSums:
        """Sum over the codes (n, m) of samples of class c."""
        class_sums = zeros((n_classes, codes.shape[1]), double(codes[:0]))
        class_sums[c] = double(codes).sum(0)
        absolute = double(namespace(codes).abs(codes).sum(1)).sum()
        return cls(class_sums, float(absolute), inner(codes, codes), data_terms)


@dataclass(frozen=True)
class Penalties:
    """The terms of J that depend on the codes only.

    `n_total` is the n in n‖μ‖²: the number of all samples, including those of classes
    that are processed separately because their codes are zero on these atoms.
    """

    lambda1: float
    lambda2: float
    eta: float
    n_total: int

    def value(self, sums: FisherSums, counts: Array) -> float:
        """λ₁‖Γ‖₁ + λ₂[tr(S_W − S_B) + η‖Γ‖²]."""
        fisher = self.trace(sums, counts) + self.eta * sums.squares
        return self.lambda1 * sums.absolute + self.lambda2 * fisher

    def trace(self, sums: FisherSums, counts: Array) -> float:
        """tr(S_W − S_B) = ‖Γ‖² − 2 Σ_i n_i‖μ_i‖² + n‖μ‖², from eq. (6)."""
        class_terms = float((row_norms(sums.class_sums) / counts).sum())
        code_sum = sums.class_sums.sum(0)
        mean_term = float((code_sum * code_sum).sum()) / self.n_total
        return sums.squares - 2 * class_terms + mean_term

    def mean_terms(self, class_sums: Array, counts: Array) -> Array:  # (C, m)
        """λ₂(2μ_i − μ): half the slope of the Fisher term is λ₂(1 + η)γ less this."""
        mean = class_sums.sum(0) / self.n_total
        return self.lambda2 * (2 * class_sums / counts[:, None] - mean)


@dataclass(frozen=True)
class Moments:
    """Sums over samples and codes, which determine the update of the atoms."""

    gram: Array  # (m, m)   ΓᵀΓ
    cross: Array  # (m, p)   ΓᵀX
    own_cross: Array  # (m, p)   Γ_jᵀX_j for the atoms of class j over its samples only

    @classmethod
    def of(cls, X: Array, codes: Array, layout: ClassLayout) -> Moments:
        sparse_codes = to_csr(codes)
        gram = sparse_codes.T @ sparse_codes
        own_cross = [
            codes[rows, columns].T @ X[rows]
            for rows, columns in zip(layout.rows, layout.columns, strict=True)
        ]
        return cls(as_dense(gram), sparse_codes.T @ X, namespace(X).concat(own_cross))

    def data_terms(self, atoms: Array, layout: ClassLayout) -> float:
        """The squared terms of J in the data, less the energy 2‖X‖².

        Own and foreign samples of class j add up to ⟨Γ^jᵀΓ^j, D_jD_jᵀ⟩.
        """
        value = inner(self.gram, atoms @ atoms.T)
        for columns in layout.columns:
            D_j = atoms[columns]
            value += inner(self.gram[columns, columns], D_j @ D_j.T)
        return value - 2 * inner(self.cross + self.own_cross, atoms)


def improve_atoms(
    atoms: Array, moments: Moments, layout: ClassLayout
) -> Array:  # (m, p)
    """Replace each atom in turn, class by class, by the best one for fixed others.

    In atom k of class j, J is 2sₖₖ‖d‖² − 2⟨d, v⟩ with S = ΓᵀΓ, V = ΓᵀX + Γ_jᵀX_j and
    v = Vₖ − Σ_{l not in j} sₖₗdₗ − 2 Σ_{l≠k in j} sₖₗdₗ. The minimum over unit vectors
    is at v/‖v‖. S_j and V_j are the rows of class j, S_jj its block on the diagonal.
    """
    xp = namespace(atoms)
    atoms = xp.asarray(atoms, copy=True)
    V = moments.cross + moments.own_cross
    for columns in layout.columns:
        # Scaling each row avoids overflow of squares and does not change the atoms.
        S_j, V_j = moments.gram[columns], V[columns]
        scale = power_of_two(xp.maximum(peaks(S_j, 1), peaks(V_j, 1)))
        D_j, S_j, V_j = atoms[columns], S_j / scale, V_j / scale
        S_jj = S_j[:, columns]
        V_j = V_j - S_j @ atoms + S_jj @ D_j
        for k in range(D_j.shape[0]):
            v = V_j[k] - 2 * S_jj[k] @ D_j + 2 * S_jj[k, k] * D_j[k]
            norm = (v @ v) ** 0.5
            if norm > 0:  # otherwise no sample uses the atom, and it does not change
                D_j[k] = v / norm
    return atoms
