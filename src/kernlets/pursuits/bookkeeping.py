"""What all pursuits share: residuals, and codes in slots of fixed width."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..backend.arrays import empty, index_like, namespace, or_wider
from ..backend.scale import quiet
from ..core import UNUSED, Array, SparseCodes

EXCESS = 1e4  # no code explains more than the energy, but this may be a typical one


def concatenate(parts: list[SparseCodes]) -> SparseCodes:
    """Join the codes of several blocks, padded to the width of the widest."""
    if len(parts) == 1:
        return parts[0]
    width = max(part.width for part in parts)
    concat = namespace(parts[0].values).concat
    return SparseCodes(
        indices=concat([widened(part.indices, width, UNUSED) for part in parts]),
        values=concat([widened(part.values, width, 0) for part in parts]),
        n_atoms=parts[0].n_atoms,
        residual=concat([part.residual for part in parts]),
    )


def replaced(codes: SparseCodes, rows: np.ndarray, others: SparseCodes) -> SparseCodes:
    """The codes with other ones in these rows."""
    width = max(codes.width, others.width)
    copy = partial(namespace(codes.values).asarray, copy=True)
    indices = copy(widened(codes.indices, width, UNUSED))
    values, residual = copy(widened(codes.values, width, 0)), copy(codes.residual)
    places = index_like(rows, values)
    indices[places] = index_like(widened(others.indices, width, UNUSED), indices)
    values[places] = widened(others.values, width, 0)
    residual[places] = others.residual
    return SparseCodes(indices, values, codes.n_atoms, residual)


def widened(array: Array, width: int, fill: int) -> Array:  # (n, w)
    """More slots that are not used."""
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

    NaN where a code explains far more than there is: it has grown without bound.
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
        dtype = codes.values.dtype
        raise ValueError(
            f"codes are not finite in {dtype}: the samples are too large, "
            "or the kernel is not positive semi-definite. Scale the samples, e.g. with "
            f"UnitNorm or StandardScaler{or_wider(dtype, ', pass float64')}, or use "
            "another kernel"
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
