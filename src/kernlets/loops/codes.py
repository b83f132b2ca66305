"""Functions of sparse codes: products, sums, residuals, and slots of fixed width."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from ..contracts import UNUSED, Array, SparseCodes
from ..numerics.arrays import (
    as_like,
    double,
    empty,
    index_like,
    is_torch,
    namespace,
    or_wider,
    to_numpy,
)
from ..numerics.scaling import all_finite, quiet
from .table import code_cross, code_gram
from .updates.reference import code_slots

EXCESS = 1e4  # a code that explains this many times the energy has diverged


def codes_times(codes: SparseCodes, matrix: Array) -> Array:  # (n, ·)
    """Γ · matrix in float64."""
    if is_torch(matrix):
        return double(codes.toarray()) @ matrix
    return codes.tocsr().astype(np.float64) @ matrix


def codes_gram(codes: SparseCodes) -> Array:  # (m, m)
    """ΓᵀΓ, dense."""
    return code_gram(codes.indices, codes.values, codes.n_atoms)


def codes_cross(codes: SparseCodes, X: Array) -> Array:  # (m, p)
    """ΓᵀX, dense."""
    return code_cross(codes.indices, codes.values, X, codes.n_atoms)


def times_rows(codes: SparseCodes, factors: Array | None) -> SparseCodes:
    """The codes of each sample times its factor; None stands for ones."""
    if factors is None:
        return codes
    return replace(codes, values=codes.values * factors[:, None])


def weighted_uses(codes: SparseCodes, weights: np.ndarray | None) -> np.ndarray:  # (m,)
    """For each atom, the weight of the samples that use it."""
    if weights is None:
        return codes.uses()
    is_nonzero = to_numpy((codes.indices >= 0) & (codes.values != 0))
    slot_weights = np.broadcast_to(weights[:, None], is_nonzero.shape)[is_nonzero]
    return np.bincount(
        to_numpy(codes.indices)[is_nonzero], slot_weights, minlength=codes.n_atoms
    )


def to_csr(codes: Array) -> Array:  # (n, m)
    """Dense codes as CSR on NumPy, with which products are faster."""
    return codes if is_torch(codes) else sparse.csr_array(codes)


def summable(codes: SparseCodes) -> SparseCodes:
    """The codes with values whose sums do not depend on blocks: float64 on NumPy."""
    if is_torch(codes.values):
        return codes
    return replace(codes, values=double(codes.values))


def decode(weights: Array, codes: Any) -> Array:  # (m, r), (n, m) -> (n, r)
    """codes · weights of a user's codes, which must be finite numbers for m atoms."""
    matrix = _matrix(codes, weights)
    if matrix.ndim != 2 or matrix.shape[1] != weights.shape[0]:
        raise ValueError(
            f"codes have the shape {tuple(matrix.shape)}, but a column is needed for "
            f"each of the {weights.shape[0]} atoms: pass what transform returns"
        )
    product = as_like(matrix @ weights, weights)
    if not all_finite(product):
        raise ValueError(
            f"codes contain NaN or infinity, or numbers too large for {weights.dtype}: "
            "pass what transform returns"
        )
    return product


def _matrix(codes: Any, like: Array) -> Array:
    """Turn a user's codes (dense, sparse or SparseCodes) into a matrix to multiply."""
    if is_torch(like) and (sparse.issparse(codes) or isinstance(codes, SparseCodes)):
        codes = codes.toarray()
    if isinstance(codes, SparseCodes):
        return codes.tocsr()
    return codes if sparse.issparse(codes) else as_like(codes, like)


def concatenate(blocks: list[SparseCodes]) -> SparseCodes:
    """Join the codes of several blocks, padded to the width of the widest.

    The blocks are taken out of the list, the last one first, so that their memory is
    free again while the joined codes are written.
    """
    if len(blocks) == 1:
        return blocks[0]
    first, width = blocks[0], max(block.width for block in blocks)
    ends = np.cumsum([len(block) for block in blocks])
    indices = empty((int(ends[-1]), width), like=first.indices)
    values = empty((int(ends[-1]), width), like=first.values)
    residual = empty((int(ends[-1]),), like=first.residual)
    for end in map(int, ends[::-1]):
        block = blocks.pop()
        rows = slice(end - len(block), end)
        fill_slots(indices[rows], block.indices, UNUSED)
        fill_slots(values[rows], block.values, 0)
        residual[rows] = block.residual
    return SparseCodes(indices, values, first.n_atoms, residual)


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
    fill_slots(padded, array, fill)
    return padded


def fill_slots(slots: Array, array: Array, fill: int) -> None:  # (n, w), (n, ≤ w)
    """Write the array to the first columns of `slots`, and `fill` to the others."""
    slots[:, : array.shape[1]] = array
    slots[:, array.shape[1] :] = fill


def squared_residual(
    gram: Array,  # (m, m)
    corr: Array,  # (n, m)
    energy: Array,  # (n,)
    codes: Array,  # (n, m)
) -> Array:  # (n,)
    """Return ‖x − Dγ‖² = ‖x‖² − 2⟨γ, c⟩ + γᵀGγ, never below zero.

    The result is NaN where a code explains far more than the energy: it has diverged.
    """
    with quiet():
        explained = namespace(corr).sum(codes * (2 * corr - codes @ gram), axis=1)
    return unexplained(energy, explained)


def unexplained(energy: Array, explained: Array) -> Array:  # (n,), (n,) -> (n,)
    """Return energy − explained, never below zero, and NaN as `squared_residual`."""
    xp = namespace(energy)
    with quiet():
        tiny = float(xp.finfo(explained.dtype).smallest_normal)
        is_possible = xp.isfinite(explained) & (explained <= EXCESS * energy + tiny)
        return xp.where(is_possible, xp.clip(energy - explained, 0, None), np.nan)


def refuse_unbounded(codes: SparseCodes) -> SparseCodes:
    """Return the codes, or an error if a residual is not a finite number."""
    if not all_finite(codes.residual):
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
    indices, values = code_slots(dense)
    return SparseCodes(indices, values, dense.shape[1], residual)
