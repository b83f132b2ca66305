"""Scatter within and between classes, and Fisher's directions.

This module has the ratio that K-SAD adds to its objective, its gradient, and the
directions that maximise Fisher's criterion. All of them are computed from sums over
the samples of each class. Labels are whole numbers from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..contracts import Array
from ..data.rows import sum_rows
from ..numerics.arrays import (
    as_like,
    double,
    empty,
    group_sums,
    namespace,
    row_norms,
    with_fixed_signs,
)
from ..numerics.scaling import quiet
from ..schema import Declared, Floats

if TYPE_CHECKING:
    from typing_extensions import Self


class Sums:
    """Sums over samples, the fields of a dataclass; those of blocks can be added."""

    def __add__(self, other: Self) -> Self:
        sums, others = vars(self), vars(other)
        return type(self)(**{name: sums[name] + others[name] for name in sums})


@dataclass(frozen=True)
class Scatter(Sums):
    """Sums over the samples of each class, in float64."""

    _declared: ClassVar[Declared] = {
        "counts": Floats("C"),
        "sums": Floats("C", "k"),
        "energies": Floats("C"),
    }

    counts: Array  # (C,)
    sums: Array  # (C, k)
    energies: Array  # (C,) Σ‖q‖²

    @classmethod
    def of(cls, Q: Array, labels: np.ndarray, n_classes: int) -> Scatter:
        """Sum over the rows of Q (n, k)."""
        wide = double(Q)
        with_energy = namespace(wide).concat([wide, row_norms(wide)[:, None]], axis=1)
        sums = group_sums(with_energy, labels, n_classes)
        counts = as_like(np.bincount(labels, minlength=n_classes), sums)
        return cls(counts, sums[:, :-1], sums[:, -1])

    @property
    def means(self) -> Array:  # (C, k)
        return self.sums / self.counts[:, None]

    @property
    def mean(self) -> Array:  # (k,)
        return self.sums.sum(0) / self.counts.sum()

    @property
    def offsets(self) -> Array:  # (C, k)
        """Class means relative to the mean of all samples."""
        return self.means - self.mean

    @property
    def within(self) -> float:
        """tr S_w = Σ_c v_c², the mean squared distances of classes from their means."""
        variances = self.energies / self.counts - row_norms(self.means)
        return max(0.0, float(variances.sum()))

    @property
    def between(self) -> float:
        """tr S_b = Σ_c K_c‖μ_c − μ‖², K_c the size of class c."""
        return float((self.counts * row_norms(self.offsets)).sum())

    @property
    def between_slopes(self) -> Array:  # (C, k)
        """Half of the gradient of `between` in a sample of each class."""
        return self.offsets

    @property
    def ratio(self) -> float:
        """G = tr S_w / tr S_b of K-SAD section III-B, 0 where all class means agree."""
        between = self.between
        return self.within / between if between > 0 else 0.0

    def slope(self) -> tuple[Array, Array]:  # (C,), (C, k)
        """Return s and t with ∂G/∂q = s_c q − t_c for a sample q of class c.

        ∂G/∂q = 2(q − μ_c)/(K_c tr S_b) − (tr S_w/tr S_b²) ∂(tr S_b)/∂q, where the last
        is 2(μ_c − μ), and 0 where all class means agree.
        """
        factor = 2 / (self.between or np.inf)
        s = factor / self.counts
        offset_terms = self.between_slopes * (factor * self.ratio)
        return s, s[:, None] * self.means + offset_terms


class NormScatter(Scatter):
    """Scatter whose S_b is the squared norm ‖Σ_c K_c (μ_c − μ)(μ_c − μ)ᵀ‖², as printed.

    The norm is that of all entries, as in the paper's other formulas with matrices.
    """

    @property
    def between(self) -> float:
        """S_b = Σ_cd K_c K_d ⟨μ_c − μ, μ_d − μ⟩²."""
        products = self.offsets @ self.offsets.T
        with quiet():
            squared_norm = float(self.counts @ products**2 @ self.counts)
        if not squared_norm < np.inf:
            raise ValueError(
                "between='norm' has the fourth power of the samples, which overflows: "
                "scale them, e.g. with UnitNorm, or set between='trace'"
            )
        return squared_norm

    @property
    def between_slopes(self) -> Array:  # (C, k)
        """2 B(μ_c − μ), where B is the matrix whose norm is taken."""
        products = self.offsets @ self.offsets.T
        return 2 * (products * self.counts) @ self.offsets


def scatter_of_rows(F: Any, labels: np.ndarray, n_classes: int) -> Scatter:
    """Compute `Scatter.of` by blocks of rows, which may be on disk."""

    def scatter_of_block(block: Array, first: int) -> Scatter:
        return Scatter.of(block, labels[first : first + block.shape[0]], n_classes)

    return sum_rows(scatter_of_block, F, 16 * F.shape[1], numbered=True)


def fisher_directions(
    F: Any,  # (n, k)
    scatter: Scatter,
    shrinkage: float,
) -> tuple[Array, float]:  # (d, k)
    """Return the atoms with the largest tr(S_w⁻¹S_b), S_w-orthonormal, and the trace.

    With S_w the mean scatter within classes plus `shrinkage` times its mean eigenvalue
    on the diagonal, and B the weighted offsets of the class means: the rows of
    Λ^(-1/2) Vᵀ B S_w⁻¹, where B S_w⁻¹ Bᵀ = V Λ Vᵀ. At most one less than classes.
    """
    xp, (n, k) = namespace(scatter.sums), F.shape
    moments = sum_rows(lambda block: double(block.T @ block), F, 4 * k)
    S_w = (moments - (scatter.sums.T / scatter.counts) @ scatter.sums) / n
    mean_eigenvalue = max(0.0, float(xp.linalg.trace(S_w)) / k)
    rounding = 4 * float(xp.finfo(F.dtype).eps) * float(xp.linalg.trace(moments)) / n
    ridge = max(shrinkage * mean_eigenvalue, rounding)  # S_w must be invertible
    S_w = S_w + as_like(np.eye(k) * (ridge or 1.0), S_w)
    B = scatter.offsets * xp.sqrt(scatter.counts / n)[:, None]
    S_w_inv_Bt = xp.linalg.solve(S_w, B.T)  # (k, C)
    values, vectors = xp.linalg.eigh(B @ S_w_inv_Bt)
    # The weighted offsets sum to zero, so the first eigenvalue is a rounding error.
    n_zero = max(1, int((values <= 1e-9 * values[-1]).sum()))
    vectors = with_fixed_signs(vectors)
    directions = (S_w_inv_Bt @ vectors[:, n_zero:]) / xp.sqrt(values[n_zero:])
    atoms = empty((directions.shape[1], k), like=F)  # row after row, as when loaded
    atoms[...] = as_like(xp.flip(directions, axis=1).T, F)
    return atoms, float(values[n_zero:].sum())
