"""Sums over coded samples that least-squares updates work from."""

from __future__ import annotations

import numpy as np

from ..backend.arrays import index_like, is_torch, to_numpy
from ..core import Array, Dictionary, SparseCodes, Statistics


def statistics(dictionary: Dictionary, X: Array, codes: SparseCodes) -> Statistics:
    """ΓᵀΓ, Γᵀ·coordinates(X), uses, error and the worst samples of one block."""
    errors = to_numpy(codes.residual)
    worst = np.argsort(-errors, kind="stable")[: codes.n_atoms]
    return Statistics(
        codes_gram=_codes_gram(codes),
        cross=dictionary.cross(codes, X),
        uses=codes.uses(),
        error=float(errors.sum(dtype=np.float64)),
        n_samples=len(codes),
        worst=X[index_like(worst, X)],
        worst_error=errors[worst],
    )


def _codes_gram(codes: SparseCodes) -> Array:  # (m, m)
    """ΓᵀΓ, with Γ kept sparse on NumPy."""
    if is_torch(codes.values):
        dense = codes.toarray()
        return dense.T @ dense
    sparse = codes.tocsr()
    return (sparse.T @ sparse).toarray()
