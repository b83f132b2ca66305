"""Sums over coded samples, the input of least-squares updates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..backend import ops
from ..backend.arrays import index_like, namespace, to_numpy
from ..backend.codes import codes_gram, summable
from ..backend.masks import filled, has_gaps, split
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


def completed(dictionary: Dictionary, codes: SparseCodes, X: Array) -> Array:  # (n, p)
    """Rows with gaps, filled in by their codes: what every update may learn from.

    With x̂ = x where observed and γD elsewhere, Σ‖x̂ − γD'‖² is an upper bound of the
    error of atoms D' over what was observed, and equal to it at D' = D. So an update
    that lowers the first lowers the second.
    """
    if not has_gaps(X):
        return X
    rows, atoms = split(X).rows, dictionary.weights
    left = ops.subtract_codes(rows, codes.indices, codes.values, atoms)
    return filled(X, rows - left)


def statistics(dictionary: Dictionary, X: Array, codes: SparseCodes) -> Statistics:
    """ΓᵀΓ, Γᵀ·coordinates(X), uses, error and the worst samples of one block."""
    return Statistics(
        codes_gram=codes_gram(codes),
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
        block, codes = completed(dictionary, codes, block), summable(codes)
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
