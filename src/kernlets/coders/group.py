"""Orthogonal matching pursuit over groups of atoms, and for groups of samples."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..base.constraints import AT_LEAST_1
from ..contracts import UNUSED, Array, SparseCoder, SparseCodes
from ..loops.codes import refuse_unbounded
from ..loops.omp.reference import least_independent
from ..numerics.arrays import as_like, double, eps, index_like, namespace, to_numpy

ROUNDING = 64  # times the rounding of the energy: smaller residuals count as zero


class GroupOMP(SparseCoder):
    """Greedy codes that use whole groups of atoms: argmin ‖x − Dγ‖², few groups.

    Each step takes the group whose span explains most of the residual, that with the
    largest cᵀ G⁺ c, where c are its correlations with the residual and G is its Gram
    matrix. Then it solves least squares on all groups taken. It suits atoms that belong
    together: colour channels, shifted or rotated copies, the images of one person.

    Parameters
    ----------
    n_groups : int, default=1
        Largest number of groups per sample.
    groups : array (m,) of int, optional
        The group of each atom. Default: each atom is a group, as in `OMP`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import GroupOMP
    >>> gram, corr = np.eye(4), np.array([[3.0, 0.0, 2.0, 2.5]])
    >>> coder = GroupOMP(n_groups=1, groups=[0, 0, 1, 1])
    >>> coder.solve(gram, corr, (corr**2).sum(1)).toarray().round(12).tolist()
    [[0.0, 0.0, 2.0, 2.5]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_groups": [AT_LEAST_1],
        "groups": ["array-like", None],
    }

    def __init__(self, n_groups: int = 1, groups: Any = None) -> None:
        self.n_groups = n_groups
        self.groups = groups

    def solve(self, gram: Array, corr: Array, energy: Array) -> SparseCodes:
        members = self._members(corr.shape[1])
        gram64, corr64, energy64 = double(gram), double(corr), to_numpy(double(energy))
        inverses = [_inverse(gram64, atoms, eps(gram)) for atoms in members]
        stop = ROUNDING * eps(gram) * energy64
        slots = np.zeros((corr.shape[0], 0), dtype=np.int64)
        values, corr_residual = corr64[:, :0], corr64
        is_free = np.ones((corr.shape[0], len(members)), dtype=bool)
        for _ in range(min(self.n_groups, len(members))):
            fit = np.nan_to_num(to_numpy((values * slot_corr(corr64, slots)).sum(1)))
            is_live = is_free & (energy64 - fit > stop)[:, None]
            best_atoms = _best_atoms(corr_residual, members, inverses, is_live)
            is_free &= best_atoms[:, :1] != [atoms[0] for atoms in members]
            slots = np.concatenate([slots, best_atoms], axis=1)
            values = least_squares(gram64, corr64, slots, eps(gram))
            corr_residual = corr64 - densify(values, slots, corr.shape[1]) @ gram64
        fit = (values * slot_corr(corr64, slots)).sum(1)
        residual = namespace(fit).clip(double(energy) - fit, 0, None)
        codes = as_like(values, corr), corr.shape[1], as_like(residual, corr)
        return refuse_unbounded(SparseCodes(index_like(slots, corr), *codes))

    def _members(self, m: int) -> list[np.ndarray]:
        """Return the atoms of each group."""
        if not self.n_groups >= 1:
            raise ValueError(f"n_groups={self.n_groups!r} must be at least 1")
        if self.groups is None:
            return [np.array([j]) for j in range(m)]
        groups = np.asarray(self.groups)
        if groups.shape != (m,) or groups.dtype.kind not in "iu":
            raise ValueError(
                f"groups must be {m} whole numbers, one for each atom, but it has the "
                f"shape {groups.shape} and the type {groups.dtype}"
            )
        return [np.flatnonzero(groups == group) for group in np.unique(groups)]


def _inverse(gram: Array, atoms: np.ndarray, precision: float) -> Array:  # (s, s)
    """Return the pseudo-inverse of the Gram matrix of one group."""
    rows, rtol = index_like(atoms, gram), least_independent(precision)
    return namespace(gram).linalg.pinv(gram[rows][:, rows], rtol=rtol)


def _best_atoms(
    corr_residual: Array,  # (n, m)
    members: list[np.ndarray],
    inverses: list[Array],
    is_live: np.ndarray,  # (n, groups)
) -> np.ndarray:  # (n, s)
    """Return the atoms of each sample's best group, or none if none explains it."""
    scores = np.empty((corr_residual.shape[0], len(members)))
    for g, (atoms, inverse) in enumerate(zip(members, inverses, strict=True)):
        group_corr = corr_residual[:, index_like(atoms, corr_residual)]
        scores[:, g] = to_numpy(((group_corr @ inverse) * group_corr).sum(1))
    atom_table = np.full((len(members) + 1, max(map(len, members))), UNUSED)
    for g, atoms in enumerate(members):
        atom_table[g, : len(atoms)] = atoms
    scores = np.where(is_live, scores, 0)
    is_empty = scores.max(axis=1) <= 0
    return atom_table[np.where(is_empty, len(members), scores.argmax(axis=1))]


def slot_corr(corr: Array, slots: np.ndarray) -> Array:  # (n, w)
    """Return the correlations with the atoms in the slots, zero in free ones."""
    atoms = index_like(np.where(slots >= 0, slots, 0), corr)
    is_used = as_like(slots >= 0, corr)
    return namespace(corr).take_along_axis(corr, atoms, axis=1) * is_used


def densify(values: Array, slots: np.ndarray, m: int) -> Array:  # (n, m)
    return SparseCodes(index_like(slots, values), values, m).toarray()


def least_squares(
    gram: Array, corr: Array, slots: np.ndarray, precision: float
) -> Array:  # (n, w)
    """Return coefficients of the atoms in the slots, zero in free ones."""
    xp = namespace(gram)
    atoms = index_like(np.where(slots >= 0, slots, 0), gram)
    are_used = (slots >= 0)[:, :, None] & (slots >= 0)[:, None, :]
    systems = gram[atoms[:, :, None], atoms[:, None, :]] * as_like(are_used, gram)
    inverse = xp.linalg.pinv(systems, rtol=least_independent(precision))
    return (inverse @ slot_corr(corr, slots)[:, :, None])[:, :, 0]


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
            best = _best_atom_per_group(corr_residual, is_free & is_live[:, None])
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


def _best_atom_per_group(
    corr_residual: Array, is_free: np.ndarray
) -> np.ndarray:  # (n, m), (g, m) -> (g,)
    """Return the atom that explains most of each group, -1 where there is none."""
    energies = np.where(
        is_free, _sum_by_group(to_numpy(corr_residual * corr_residual), len(is_free)), 0
    )
    best = energies.argmax(axis=1)
    return np.where(energies.max(axis=1, initial=0) > 0, best, -1)
