"""Sweeps over the atoms that need only sums over samples, never the samples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..backend.arrays import (
    as_like,
    diagonal,
    double,
    index_like,
    inverse_triangle,
    is_torch,
    namespace,
    to_numpy,
)
from ..backend.room import gpu_of
from ..backend.scale import least_energy, unit_rows
from ..backend.threads import parallel, serial_blas
from ..core import Array

BLOCK = 64  # atoms whose gaps are found by one matrix product
COLUMNS = 1024  # columns swept at once, whatever the number of threads


def gauss_seidel(
    codes_gram: Array,  # (m, m)  ΓᵀΓ
    cross: Array,  # (m, r)  Γᵀ · coordinates(X)
    start: Array,  # (m, r)
    sweeps: int,
) -> Array:  # (m, r)
    """Atoms of any length after some sweeps at fixed codes.

    A sweep moves the atoms in turn, dⱼ ← ((ΓᵀX)ⱼ − Σ_{k≠j} (ΓᵀΓ)ⱼₖ dₖ) / (ΓᵀΓ)ⱼⱼ. This
    is the best atom while the others are as they are, so the squared error never rises,
    however coherent the atoms are and whatever the scales of their codes. Every second
    sweep goes backwards. An atom without codes stays.
    """
    xp, power = namespace(start), diagonal(codes_gram)
    used = (power > least_energy(codes_gram))[:, None]
    scale = xp.sqrt(xp.where(used, double(power)[:, None], 1.0))
    gram = xp.where(used & used.T, double(codes_gram) / scale / scale.T, 0.0)
    places = index_like(np.arange(len(gram)), gram)
    gram[places, places] = 1.0  # also of atoms without codes: no zero to divide by
    whole = gpu_of(gram) is not None
    turns = _whole_turns(gram, start.shape[1]) if whole else _turns(gram, BLOCK)
    out = xp.asarray(start, copy=True)

    def swept(columns: slice) -> None:
        atoms = double(start[:, columns]) * scale
        right = xp.where(used, double(cross[:, columns]) / scale, 0.0)
        for sweep in range(sweeps):
            for part in turns[sweep % 2]:
                gap = right[part.atoms] - gram[part.atoms] @ atoms
                atoms[part.atoms] += part.solved(gap)
        moved = xp.where(used, atoms / scale, start[:, columns])
        out[:, columns] = as_like(moved, out)

    tiles = [slice(i, i + COLUMNS) for i in range(0, start.shape[1], COLUMNS)]
    if whole:
        swept(slice(None))
    elif is_torch(out):
        list(map(swept, tiles))
    else:
        parallel(swept, tiles)
    return out


def positive_sweeps(
    codes_gram: Array,  # (m, m)
    cross: Array,  # (m, p)
    start: Array,  # (m, p), none negative
    sweeps: int,
) -> Array:  # (m, p)
    """`gauss_seidel` with each atom cut off at zero: the best non-negative one."""
    xp, power = namespace(start), diagonal(codes_gram)
    used = to_numpy(power > least_energy(codes_gram))
    gram, right, atoms = double(codes_gram), double(cross), double(start)
    atoms = xp.asarray(atoms, copy=True)
    turns = [np.flatnonzero(used), np.flatnonzero(used)[::-1]]
    with serial_blas:
        for sweep in range(sweeps):
            for j in turns[sweep % 2]:
                gap = right[j] - gram[j] @ atoms
                atoms[j] = xp.clip(atoms[j] + gap / gram[j, j], 0, None)
    return as_like(atoms, start)


def nonnegative(atoms: Array) -> Array:  # (m, p)
    """Atoms of unit norm without their negative parts, or turned if all is negative."""
    xp = namespace(atoms)
    some = xp.any(atoms > 0, axis=1)[:, None]
    return unit_rows(xp.clip(xp.where(some, atoms, -atoms), 0, None))


class _Part(NamedTuple):
    """Some neighbouring atoms, and the sweep over them as one matrix."""

    atoms: slice
    inverse: Array  # of a triangle of their ΓᵀΓ

    def solved(self, gap: Array) -> Array:
        return self.inverse @ gap


class _Whole(NamedTuple):
    """All atoms, for a GPU: a triangle is solved, without a matrix for its inverse."""

    atoms: slice
    gram: Array  # of which one triangle is read
    is_backward: bool

    def solved(self, gap: Array) -> Array:
        solve = namespace(gap).linalg.solve_triangular
        return solve(self.gram, gap, upper=self.is_backward)


def _whole_turns(gram: Array, columns: int) -> list[list[Any]]:
    """One part with all atoms; the inverse pays where atoms have many columns."""
    m = gram.shape[0]
    if columns > m:
        return _turns(gram, m)
    return [[_Whole(slice(None), gram, backward)] for backward in (False, True)]


def _turns(gram: Array, block: int) -> list[list[_Part]]:
    """Parts from the first atoms to the last, and back; the matrix is symmetric.

    An atom sees those before it moved.
    """
    parts = []
    for begin in range(0, gram.shape[0], block):
        atoms = slice(begin, begin + block)
        parts.append(_Part(atoms, inverse_triangle(gram[atoms, atoms])))
    backward = [_Part(atoms, inverse.T) for atoms, inverse in reversed(parts)]
    return [parts, backward]
