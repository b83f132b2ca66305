"""Sums over coded samples, the input of least-squares updates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..backend.arrays import double, index_like, is_torch, namespace, to_numpy
from ..backend.rows import sum_rows
from ..backend.scale import all_finite, quiet
from ..core import Array, Dictionary, SparseCoder, SparseCodes, Statistics
from .encode import encode


class CodeSummary(NamedTuple):
    """Counts, errors and worst samples of a block of coded samples."""

    uses: np.ndarray  # (m,)
    error: float  # Σ squared residuals
    n_samples: float
    worst: Array  # (w, p) the worst represented samples, worst first
    worst_error: np.ndarray  # (w,)


def summarize_codes(X: Array, codes: SparseCodes) -> CodeSummary:
    """Uses, error and the worst samples of one block, as many as there are atoms."""
    errors = to_numpy(codes.residual)
    worst = np.argsort(-errors, kind="stable")[: codes.n_atoms]
    return CodeSummary(
        uses=codes.uses(),
        error=float(errors.sum(dtype=np.float64)),
        n_samples=len(codes),
        worst=X[index_like(worst, X)],
        worst_error=errors[worst],
    )


def statistics(dictionary: Dictionary, X: Array, codes: SparseCodes) -> Statistics:
    """ΓᵀΓ, Γᵀ·coordinates(X), uses, error and the worst samples of one block."""
    return Statistics(
        codes_gram=_codes_gram(codes),
        cross=dictionary.cross(codes, X),
        **summarize_codes(X, codes)._asdict(),
    )


def code_and_sum(dictionary: Dictionary, coder: SparseCoder, X: Any) -> Statistics:
    """Code the rows of X, in memory or elsewhere, and sum their `statistics`.

    Sums of NumPy arrays are computed in float64 and rounded once, so that the result
    does not depend on the blocks and chunks of the rows.
    """

    def block_sums(block: Array) -> Statistics:
        codes = encode(dictionary, coder, block)
        if not is_torch(codes.values):
            codes = replace(codes, values=double(codes.values))
        return statistics(dictionary, block, codes)

    m, r = dictionary.weights.shape
    result_bytes = 8 * m * (m + 2 * r)  # the sums, and the worst samples
    row_bytes = 4 * dictionary.row_bytes
    total = sum_rows(block_sums, X, row_bytes, result_bytes=result_bytes)
    astype, dtype = namespace(total.cross).astype, dictionary.weights.dtype
    with quiet():
        codes_gram = astype(total.codes_gram, dtype, copy=False)
        cross = astype(total.cross, dtype, copy=False)
    if not (all_finite(codes_gram) and all_finite(cross)):
        raise ValueError(
            f"sums over the samples overflow in {dtype}: scale the samples, e.g. with "
            "UnitNorm or StandardScaler, or pass float64"
        )
    return replace(total, codes_gram=codes_gram, cross=cross)


def without_atoms(
    coded: Statistics, dictionary: Dictionary, places: Array
) -> Statistics:
    """The sums as if the samples had no part along the atoms at `places`.

    These atoms can then be replaced: the sums no longer pull towards the old ones, and
    the other atoms do not take over what they represented.
    """
    xp = namespace(coded.cross)
    codes_gram = xp.asarray(coded.codes_gram, copy=True)
    cross = coded.cross - codes_gram[:, places] @ dictionary.weights[places]
    codes_gram[places, :] = 0.0
    codes_gram[:, places] = 0.0
    cross[places] = 0.0
    return replace(coded, codes_gram=codes_gram, cross=cross)


def _codes_gram(codes: SparseCodes) -> Array:  # (m, m)
    """ΓᵀΓ, with Γ kept sparse on NumPy."""
    if is_torch(codes.values):
        dense = codes.toarray()
        return dense.T @ dense
    sparse = codes.tocsr()
    return (sparse.T @ sparse).toarray()
