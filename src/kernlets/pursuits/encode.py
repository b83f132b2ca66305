"""Sparse codes of many samples, computed block by block, and their bookkeeping."""

from __future__ import annotations

import numpy as np

from ..backend.arrays import empty, namespace
from ..backend.rows import map_blocks
from ..backend.scale import quiet
from ..backend.threads import serial_blas
from ..core import UNUSED, Array, Dictionary, SparseCoder, SparseCodes

EXCESS = 1e4  # codes that explain more than this times the energy have diverged


def encode(dictionary: Dictionary, coder: SparseCoder, X: Array) -> SparseCodes:
    """Sparse codes of the rows of X.

    Correlations are held for one block at a time. The block is small enough to stay in
    cache between the matrix product and the pursuit.
    """

    def code(block: Array) -> SparseCodes:
        with quiet():  # the coder refuses residuals that overflowed
            corr, energy = dictionary.correlate(block), dictionary.energy(block)
            return coder.solve(gram, corr, energy)

    # BLAS threads started for the Gram matrix would compete with those of the blocks
    with serial_blas:
        gram = dictionary.gram()
        return concatenate(map_blocks(code, X, dictionary.row_bytes))


def concatenate(parts: list[SparseCodes]) -> SparseCodes:
    """Join the codes of several blocks, padded to the width of the widest."""
    if len(parts) == 1:
        return parts[0]
    width = max(part.width for part in parts)
    concat = namespace(parts[0].values).concat
    return SparseCodes(
        indices=concat([_widened(part.indices, width, UNUSED) for part in parts]),
        values=concat([_widened(part.values, width, 0) for part in parts]),
        n_atoms=parts[0].n_atoms,
        residual=concat([part.residual for part in parts]),
    )


def _widened(array: Array, width: int, fill: int) -> Array:
    if array.shape[1] == width:
        return array
    wide = empty((array.shape[0], width), like=array)
    wide[:, : array.shape[1]] = array
    wide[:, array.shape[1] :] = fill
    return wide


def squared_residual(
    gram: Array,  # (m, m)
    corr: Array,  # (n, m)
    energy: Array,  # (n,)
    codes: Array,  # (n, m)
) -> Array:  # (n,)
    """‖x − Dγ‖² = ‖x‖² − 2⟨γ, c⟩ + γᵀGγ, never below zero.

    NaN where a code explains far more than the energy, because it has diverged.
    """
    xp = namespace(corr)
    with quiet():
        fit = xp.sum(codes * (2 * corr - codes @ gram), axis=1)
        tiny = float(xp.finfo(fit.dtype).smallest_normal)
        possible = xp.isfinite(fit) & (fit <= EXCESS * energy + tiny)
        return xp.where(possible, xp.clip(energy - fit, 0, None), np.nan)


def refuse_unbounded(codes: SparseCodes) -> SparseCodes:
    """The codes, or an error if a residual is not a finite number."""
    xp = namespace(codes.residual)
    if not bool(xp.all(xp.isfinite(codes.residual))):
        raise ValueError(
            f"codes are not finite in {codes.values.dtype}: the samples are too large, "
            "or the kernel is not positive semi-definite. Scale the samples, e.g. with "
            "UnitNorm or StandardScaler, pass float64, or use another kernel"
        )
    return codes


def side_by_side(parts: list[SparseCodes]) -> SparseCodes:
    """Codes of the same samples over several dictionaries, as codes over all atoms."""
    xp, begin, indices = namespace(parts[0].values), 0, []
    for part in parts:
        indices.append(xp.where(part.indices >= 0, part.indices + begin, UNUSED))
        begin += part.n_atoms
    values = xp.concat([part.values for part in parts], axis=1)
    return SparseCodes(xp.concat(indices, axis=1), values, begin)


def pack(dense: Array, residual: Array | None) -> SparseCodes:
    """Turn dense codes into sparse codes of fixed width, ordered by atom."""
    xp = namespace(dense)
    live = dense != 0
    width = max(1, int(xp.max(xp.sum(xp.astype(live, xp.int64), axis=1))))
    # a stable sort on "is zero" moves the non-zeros to the front and keeps their order
    order = xp.argsort(xp.astype(~live, xp.int8), axis=1, stable=True)[:, :width]
    values = xp.take_along_axis(dense, order, axis=1)
    indices = xp.where(values != 0, order, UNUSED)
    return SparseCodes(indices, values, dense.shape[1], residual)
