"""Orthogonal matching pursuit with one support for several samples."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..base.constraints import AT_LEAST_1
from ..contracts import Array, SparseCoder, SparseCodes
from ..numerics.arrays import as_like, double, eps, index_like, namespace, to_numpy
from .codes import refuse_unbounded
from .group import ROUNDING, densify, least_squares, slot_corr


class SimultaneousOMP(SparseCoder):
    """Greedy codes of groups of samples that use the same atoms: simultaneous OMP.

    argmin Σ‖xᵢ − Dγᵢ‖² over the samples of a group, with at most `n_nonzero_coefs`
    atoms for all of them. Each step takes the atom with the largest Σᵢ⟨rᵢ, d⟩², where
    rᵢ are the residuals, then solves least squares for each sample (Tropp, Gilbert and
    Strauss, 2006). It suits the channels of a pixel or of a sensor, and several
    measurements of one thing: what they have in common decides.

    Parameters
    ----------
    n_nonzero_coefs : int, optional
        Largest number of atoms per group. Default: a tenth of the atoms, at least 1.
    group_size : int, default=1
        Number of consecutive rows that are a group. With 1 it is `OMP`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import SimultaneousOMP
    >>> corr = np.array([[3.0, 2.0, 0.0], [0.0, 2.0, 2.5]])
    >>> coder = SimultaneousOMP(n_nonzero_coefs=1, group_size=2)
    >>> coder.solve(np.eye(3), corr, (corr**2).sum(1)).toarray().tolist()
    [[3.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_nonzero_coefs": [AT_LEAST_1, None],
        "group_size": [AT_LEAST_1],
    }

    def __init__(self, n_nonzero_coefs: int | None = None, group_size: int = 1) -> None:
        self.n_nonzero_coefs = n_nonzero_coefs
        self.group_size = group_size

    def solve(self, gram: Array, corr: Array, energy: Array) -> SparseCodes:
        (n, m), gram64, corr64 = corr.shape, double(gram), double(corr)
        n_groups, energy64 = self._n_groups(n), to_numpy(double(energy))
        stop = ROUNDING * eps(gram) * _sum_by_group(energy64, n_groups)
        slots = np.zeros((n, 0), dtype=np.int64)
        is_free, values, corr_residual = (
            np.ones((n_groups, m), dtype=bool),
            corr64[:, :0],
            corr64,
        )
        for _ in range(self._width(m)):
            fit = np.nan_to_num(to_numpy((values * slot_corr(corr64, slots)).sum(1)))
            is_live = _sum_by_group(energy64 - fit, n_groups) > stop
            best = _best_atoms(corr_residual, is_free & is_live[:, None])
            is_free[np.flatnonzero(best >= 0), best[best >= 0]] = False
            new_slots = np.repeat(best, self.group_size)[:, None]
            slots = np.concatenate([slots, new_slots], axis=1)
            values = least_squares(gram64, corr64, slots, eps(gram))
            corr_residual = corr64 - densify(values, slots, m) @ gram64
        fit = (values * slot_corr(corr64, slots)).sum(1)
        residual = namespace(fit).clip(double(energy) - fit, 0, None)
        codes = as_like(values, corr), m, as_like(residual, corr)
        return refuse_unbounded(SparseCodes(index_like(slots, corr), *codes))

    def _n_groups(self, n: int) -> int:
        if not self.group_size >= 1:
            raise ValueError(f"group_size={self.group_size!r} must be at least 1")
        if n % self.group_size:
            raise ValueError(
                f"{n} rows are no whole groups of group_size={self.group_size}: pass "
                "all rows of each group, one after the other, in the same block"
            )
        return n // self.group_size

    def _width(self, n_atoms: int) -> int:
        if self.n_nonzero_coefs is None:
            return max(1, n_atoms // 10)
        if not 1 <= self.n_nonzero_coefs <= n_atoms:
            raise ValueError(
                f"n_nonzero_coefs={self.n_nonzero_coefs!r} must be between 1 and the "
                f"number of atoms, {n_atoms}: lower it or raise n_components"
            )
        return int(self.n_nonzero_coefs)


def _sum_by_group(values: np.ndarray, n_groups: int) -> np.ndarray:  # (n_groups, …)
    """Return sums over the rows of each group."""
    shape = n_groups, len(values) // max(n_groups, 1), *values.shape[1:]
    return values.reshape(shape).sum(axis=1)


def _best_atoms(
    corr_residual: Array, is_free: np.ndarray
) -> np.ndarray:  # (n, m), (g, m) -> (g,)
    """Return the atom that explains most of each group, -1 where there is none."""
    energies = np.where(
        is_free, _sum_by_group(to_numpy(corr_residual * corr_residual), len(is_free)), 0
    )
    best = energies.argmax(axis=1)
    return np.where(energies.max(axis=1, initial=0) > 0, best, -1)
