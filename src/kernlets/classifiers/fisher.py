"""The objective of Fisher discrimination dictionary learning, and its atoms.

With rows as samples, D_j the atoms of class j and Γ_i^j the codes of class i over them,
objective (7) of LKDL is

    J = Σ_i [‖X_i − Γ_i D‖² + ‖X_i − Γ_i^i D_i‖² + Σ_{j≠i} ‖Γ_i^j D_j‖²] + λ₁‖Γ‖₁
        + λ₂ [tr(S_W − S_B) + η‖Γ‖²].

This module has the penalties on codes and the sweep over atoms. The steps over codes
are in `fisher_codes`, and the classifier is in `fddl`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..backend.arrays import (
    double,
    empty,
    inner,
    namespace,
    row_norms,
)
from ..backend.block_loop import block_slices
from ..backend.codes import compressed
from ..backend.scale import peaks, power_of_two
from ..backend.sparse_rows import as_dense
from ..core import Array

Sizes = Sequence[int] | np.ndarray


def bounds(sizes: Sizes) -> list[slice]:
    """Consecutive slices of these lengths."""
    ends = np.cumsum(sizes).tolist()
    return [slice(a, b) for a, b in zip([0, *ends], ends, strict=False)]


def zeros(shape: tuple[int, ...], like: Array) -> Array:
    """Zeros of the kind, dtype and device of `like`."""
    found = empty(shape, like=like)
    found[...] = 0
    return found


@dataclass(frozen=True)
class Layout:
    """The rows (samples) and columns (atoms) that belong to each class."""

    rows: list[slice]  # C
    columns: list[slice]  # C

    @classmethod
    def of(cls, counts: Sizes, sizes: Sizes) -> Layout:
        """Classes with `counts` samples and `sizes` atoms, one after the other."""
        return cls(bounds(counts), bounds(sizes))

    @property
    def counts(self) -> np.ndarray:  # (C,)
        return np.array([rows.stop - rows.start for rows in self.rows])

    @property
    def shape(self) -> tuple[int, int]:
        """Of the codes: samples and atoms."""
        return self.rows[-1].stop, self.columns[-1].stop

    def blocks(self, like: Array) -> list[tuple[int, slice]]:
        """Blocks of rows, each within one class, with the class."""
        width = 4 * self.shape[1] * like.dtype.itemsize
        return [
            (c, slice(rows.start + part.start, rows.start + part.stop))
            for c, rows in enumerate(self.rows)
            for part in block_slices(rows.stop - rows.start, width, like)
        ]


@dataclass(frozen=True)
class CodeSums:
    """Sums over codes in float64; those of several blocks of samples can be added."""

    classes: Array  # (C, m) sums of the codes of each class
    absolute: float  # ‖Γ‖₁
    squares: float  # ‖Γ‖²
    fit: float  # the squared terms of J in the data, where known

    @classmethod
    def of(cls, codes: Array, c: int, n_classes: int, fit: float = 0.0) -> CodeSums:
        """The sums over the codes (n, m) of samples of class c."""
        classes = zeros((n_classes, codes.shape[1]), double(codes[:0]))
        classes[c] = double(codes).sum(0)
        absolute = double(namespace(codes).abs(codes).sum(1)).sum()
        return cls(classes, float(absolute), inner(codes, codes), fit)

    def __add__(self, other: CodeSums) -> CodeSums:
        return CodeSums(
            self.classes + other.classes,
            self.absolute + other.absolute,
            self.squares + other.squares,
            self.fit + other.fit,
        )


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

    def value(self, sums: CodeSums, counts: Array) -> float:
        """λ₁‖Γ‖₁ + λ₂[tr(S_W − S_B) + η‖Γ‖²]."""
        fisher = self.trace(sums, counts) + self.eta * sums.squares
        return self.lambda1 * sums.absolute + self.lambda2 * fisher

    def trace(self, sums: CodeSums, counts: Array) -> float:
        """tr(S_W − S_B) = ‖Γ‖² − 2 Σ_i n_i‖μ_i‖² + n‖μ‖², from eq. (6)."""
        own = float((row_norms(sums.classes) / counts).sum())
        total = sums.classes.sum(0)
        return sums.squares - 2 * own + float((total * total).sum()) / self.n_total

    def pull(self, classes: Array, counts: Array) -> Array:  # (C, m)
        """λ₂(2μ_i − μ): half the slope of the Fisher term is λ₂(1 + η)γ less this."""
        mean = classes.sum(0) / self.n_total
        return self.lambda2 * (2 * classes / counts[:, None] - mean)


@dataclass(frozen=True)
class Moments:
    """Sums over samples and codes, on which alone the atoms depend."""

    gram: Array  # (m, m)   ΓᵀΓ
    cross: Array  # (m, p)   ΓᵀX
    own: Array  # (m, p)   Γ_jᵀX_j for the atoms of class j over its samples only

    @classmethod
    def of(cls, X: Array, codes: Array, layout: Layout) -> Moments:
        few = compressed(codes)
        gram = few.T @ few
        own = [
            codes[rows, columns].T @ X[rows]
            for rows, columns in zip(layout.rows, layout.columns, strict=True)
        ]
        return cls(as_dense(gram), few.T @ X, namespace(X).concat(own))

    def fit(self, atoms: Array, layout: Layout) -> float:
        """The squared terms of J in the data, less the energy 2‖X‖².

        Own and foreign samples of class j add up to ⟨Γ^jᵀΓ^j, D_jD_jᵀ⟩.
        """
        value = inner(self.gram, atoms @ atoms.T)
        for columns in layout.columns:
            part = atoms[columns]
            value += inner(self.gram[columns, columns], part @ part.T)
        return value - 2 * inner(self.cross + self.own, atoms)


def improved_atoms(atoms: Array, moments: Moments, layout: Layout) -> Array:  # (m, p)
    """Replace each atom in turn, class by class, by the best one for fixed others.

    J is 2sₖₖ‖d‖² − 2⟨d, v⟩ in atom k of class j, with s = ΓᵀΓ and v = (ΓᵀX + own)ₖ
    − Σ_{l not in j} sₖₗdₗ − 2 Σ_{l≠k in j} sₖₗdₗ: lowest at v/‖v‖ among unit vectors.
    """
    xp = namespace(atoms)
    atoms = xp.asarray(atoms, copy=True)
    target = moments.cross + moments.own
    for columns in layout.columns:
        # scale each row, so that squares do not overflow; the atoms stay the same
        mixed, goal = moments.gram[columns], target[columns]
        unit = power_of_two(xp.maximum(peaks(mixed, 1), peaks(goal, 1)))
        part, mixed, goal = atoms[columns], mixed / unit, goal / unit
        own = mixed[:, columns]
        _sweep(part, 2 * own, goal - mixed @ atoms + own @ part)
    return atoms


def _sweep(
    atoms: Array,  # (m, p) changed in place
    gram: Array,  # (m, m)
    target: Array,  # (m, p)
) -> None:
    """Block coordinate descent on ⟨gram, DDᵀ⟩ − 2⟨target, D⟩ over unit atoms."""
    for k in range(atoms.shape[0]):
        best = target[k] - gram[k] @ atoms + gram[k, k] * atoms[k]
        norm = (best @ best) ** 0.5
        if norm > 0:  # otherwise no sample uses the atom, and it stays
            atoms[k] = best / norm
