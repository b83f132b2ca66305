"""Sweeps over the atoms that need only sums over samples, never the samples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..contracts import Array
from ..data.limits import gpu_of
from ..numerics.arrays import (
    as_like,
    diagonal,
    double,
    index_like,
    inverse_triangle,
    is_torch,
    namespace,
    to_numpy,
)
from ..numerics.scaling import least_energy, unit_rows
from ..numerics.threads import parallel, serial_blas

BLOCK = 64  # atoms whose residuals come from one matrix product
COLUMNS = 1024  # columns swept at once, whatever the number of threads


def gauss_seidel(
    codes_gram: Array,  # (m, m)  ΓᵀΓ
    cross: Array,  # (m, r)  Γᵀ · coordinates(X)
    start: Array,  # (m, r)
    sweeps: int,
) -> Array:  # (m, r)
    """Update atoms by sweeps at fixed codes; atoms may have any length.

    A sweep moves the atoms in turn, dⱼ ← ((ΓᵀX)ⱼ − Σ_{k≠j} (ΓᵀΓ)ⱼₖ dₖ) / (ΓᵀΓ)ⱼⱼ. This
    is the best atom while the others are fixed, so the squared error never rises, for
    atoms of any coherence and codes of any scale. Every second sweep goes backwards. An
    atom without codes does not change.
    """
    xp, power = namespace(start), diagonal(codes_gram)
    is_used = (power > least_energy(codes_gram))[:, None]
    scale = xp.sqrt(xp.where(is_used, double(power)[:, None], 1.0))
    gram = xp.where(is_used & is_used.T, double(codes_gram) / scale / scale.T, 0.0)
    diagonal_indices = index_like(np.arange(len(gram)), gram)
    # atoms without codes get 1 as well, to divide by
    gram[diagonal_indices, diagonal_indices] = 1.0
    on_gpu = gpu_of(gram) is not None
    orders = _gpu_orders(gram, start.shape[1]) if on_gpu else _block_orders(gram, BLOCK)
    out = xp.asarray(start, copy=True)

    def sweep_columns(columns: slice) -> None:
        atoms = double(start[:, columns]) * scale
        rhs = xp.where(is_used, double(cross[:, columns]) / scale, 0.0)
        for sweep in range(sweeps):
            for block in orders[sweep % 2]:
                residual = rhs[block.atoms] - gram[block.atoms] @ atoms
                atoms[block.atoms] += block.solve(residual)
        moved = xp.where(is_used, atoms / scale, start[:, columns])
        out[:, columns] = as_like(moved, out)

    tiles = [slice(i, i + COLUMNS) for i in range(0, start.shape[1], COLUMNS)]
    if on_gpu:
        sweep_columns(slice(None))
    elif is_torch(out):
        list(map(sweep_columns, tiles))
    else:
        parallel(sweep_columns, tiles)
    return out


def positive_sweeps(
    codes_gram: Array,  # (m, m)
    cross: Array,  # (m, p)
    start: Array,  # (m, p), none negative
    sweeps: int,
) -> Array:  # (m, p)
    """`gauss_seidel` that cuts each atom off at zero, the best non-negative atom."""
    xp, power = namespace(start), diagonal(codes_gram)
    is_used = to_numpy(power > least_energy(codes_gram))
    gram, rhs, atoms = double(codes_gram), double(cross), double(start)
    atoms = xp.asarray(atoms, copy=True)
    orders = [np.flatnonzero(is_used), np.flatnonzero(is_used)[::-1]]
    with serial_blas:
        for sweep in range(sweeps):
            for j in orders[sweep % 2]:
                residual = rhs[j] - gram[j] @ atoms
                atoms[j] = xp.clip(atoms[j] + residual / gram[j, j], 0, None)
    return as_like(atoms, start)


def clip_negative(atoms: Array) -> Array:  # (m, p)
    """Set negative entries of atoms to 0, and scale atoms to unit norm.

    The sign of an atom without positive entries is changed first.
    """
    xp = namespace(atoms)
    has_positive = xp.any(atoms > 0, axis=1)[:, None]
    return unit_rows(xp.clip(xp.where(has_positive, atoms, -atoms), 0, None))


class _Block(NamedTuple):
    """Consecutive atoms, and the matrix that does one sweep over them."""

    atoms: slice
    inverse: Array  # of a triangle of the ΓᵀΓ of these atoms

    def solve(self, residual: Array) -> Array:
        return self.inverse @ residual


class _AllAtoms(NamedTuple):
    """All atoms, for a GPU: a triangular system is solved instead of inverted."""

    atoms: slice
    gram: Array  # only one triangle is read
    is_backward: bool

    def solve(self, residual: Array) -> Array:
        solve_triangular = namespace(residual).linalg.solve_triangular
        return solve_triangular(self.gram, residual, upper=self.is_backward)


def _gpu_orders(gram: Array, columns: int) -> list[list[Any]]:
    """One block of all atoms; its inverse pays if atoms have more columns than rows."""
    m = gram.shape[0]
    if columns > m:
        return _block_orders(gram, m)
    return [[_AllAtoms(slice(None), gram, backward)] for backward in (False, True)]


def _block_orders(gram: Array, block: int) -> list[list[_Block]]:
    """Blocks in forward and in backward order; the matrix is symmetric.

    The triangles make each atom use the new values of the atoms before it.
    """
    forward = []
    for begin in range(0, gram.shape[0], block):
        atoms = slice(begin, begin + block)
        forward.append(_Block(atoms, inverse_triangle(gram[atoms, atoms])))
    backward = [_Block(atoms, inverse.T) for atoms, inverse in reversed(forward)]
    return [forward, backward]
