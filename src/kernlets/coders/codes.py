"""Functions of all pursuits: residuals, and codes in slots of fixed width."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..contracts import UNUSED, Array, SparseCodes
from ..numerics.arrays import empty, index_like, namespace, or_wider
from ..numerics.scaling import quiet

EXCESS = 1e4  # a code that explains this many times the energy has diverged


def concatenate(blocks: list[SparseCodes]) -> SparseCodes:
    """Join the codes of several blocks, padded to the width of the widest."""
    if len(blocks) == 1:
        return blocks[0]
    width = max(block.width for block in blocks)
    concat = namespace(blocks[0].values).concat
    return SparseCodes(
        indices=concat([pad_slots(block.indices, width, UNUSED) for block in blocks]),
        values=concat([pad_slots(block.values, width, 0) for block in blocks]),
        n_atoms=blocks[0].n_atoms,
        residual=concat([block.residual for block in blocks]),
    )


def replace_rows(
    codes: SparseCodes, rows: np.ndarray, new_codes: SparseCodes
) -> SparseCodes:
    """Return the codes, with `new_codes` in these rows."""
    width = max(codes.width, new_codes.width)
    copy = partial(namespace(codes.values).asarray, copy=True)
    indices = copy(pad_slots(codes.indices, width, UNUSED))
    values, residual = copy(pad_slots(codes.values, width, 0)), copy(codes.residual)
    row_numbers = index_like(rows, values)
    indices[row_numbers] = index_like(
        pad_slots(new_codes.indices, width, UNUSED), indices
    )
    values[row_numbers] = pad_slots(new_codes.values, width, 0)
    residual[row_numbers] = new_codes.residual
    return SparseCodes(indices, values, codes.n_atoms, residual)


def pad_slots(array: Array, width: int, fill: int) -> Array:  # (n, w)
    """Return the array with further columns for slots that are not used."""
    if array.shape[1] == width:
        return array
    padded = empty((array.shape[0], width), like=array)
    padded[:, : array.shape[1]] = array
    padded[:, array.shape[1] :] = fill
    return padded


def squared_residual(
    gram: Array,  # (m, m)
    corr: Array,  # (n, m)
    energy: Array,  # (n,)
    codes: Array,  # (n, m)
) -> Array:  # (n,)
    """Return ‖x − Dγ‖² = ‖x‖² − 2⟨γ, c⟩ + γᵀGγ, never below zero.

    The result is NaN where a code explains far more than the energy: it has diverged.
    """
    xp = namespace(corr)
    with quiet():
        explained = xp.sum(codes * (2 * corr - codes @ gram), axis=1)
        tiny = float(xp.finfo(explained.dtype).smallest_normal)
        is_possible = xp.isfinite(explained) & (explained <= EXCESS * energy + tiny)
        return xp.where(is_possible, xp.clip(energy - explained, 0, None), np.nan)


def refuse_unbounded(codes: SparseCodes) -> SparseCodes:
    """Return the codes, or an error if a residual is not a finite number."""
    xp = namespace(codes.residual)
    if not bool(xp.all(xp.isfinite(codes.residual))):
        dtype = codes.values.dtype
        raise ValueError(
            f"codes are not finite in {dtype}: the samples are too large, "
            "or the kernel is not positive semi-definite. Scale the samples, e.g. with "
            f"UnitNorm or StandardScaler{or_wider(dtype, ', pass float64')}, or use "
            "another kernel"
        )
    return codes


def side_by_side(dictionary_codes: list[SparseCodes]) -> SparseCodes:
    """Codes of the same samples over several dictionaries, as codes over all atoms."""
    xp, n_atoms, indices = namespace(dictionary_codes[0].values), 0, []
    for codes in dictionary_codes:
        indices.append(xp.where(codes.indices >= 0, codes.indices + n_atoms, UNUSED))
        n_atoms += codes.n_atoms
    values = xp.concat([codes.values for codes in dictionary_codes], axis=1)
    return SparseCodes(xp.concat(indices, axis=1), values, n_atoms)


def pack(dense: Array, residual: Array | None) -> SparseCodes:
    """Turn dense codes into sparse codes of fixed width, ordered by atom."""
    xp = namespace(dense)
    is_nonzero = dense != 0
    width = max(1, int(xp.max(xp.sum(xp.astype(is_nonzero, xp.int64), axis=1))))
    # a stable sort on "is zero" moves the non-zeros to the front and keeps their order
    order = xp.argsort(xp.astype(~is_nonzero, xp.int8), axis=1, stable=True)[:, :width]
    values = xp.take_along_axis(dense, order, axis=1)
    indices = xp.where(values != 0, order, UNUSED)
    return SparseCodes(indices, values, dense.shape[1], residual)
