"""Products with sparse codes: in CSR form on NumPy, by `updates.torch` on torch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from ..contracts import Array, SparseCodes
from ..data.sparse_rows import as_dense
from ..numerics.arrays import as_like, double, is_torch, to_numpy
from ..numerics.scaling import all_finite


def codes_times(codes: SparseCodes, matrix: Array) -> Array:  # (n, ·)
    """Γ · matrix in float64."""
    if is_torch(matrix):
        return double(codes.toarray()) @ matrix
    return codes.tocsr().astype(np.float64) @ matrix


def codes_gram(codes: SparseCodes) -> Array:  # (m, m)
    """ΓᵀΓ, dense."""
    if is_torch(codes.values):
        from .updates.torch import code_gram

        return code_gram(codes.indices, codes.values, codes.n_atoms)
    Gamma = codes.tocsr()
    return as_dense(Gamma.T @ Gamma)


def codes_cross(codes: SparseCodes, X: Array) -> Array:  # (m, p)
    """ΓᵀX, dense."""
    if is_torch(X):
        from .updates.torch import code_cross

        return code_cross(codes.indices, codes.values, X, codes.n_atoms)
    return as_dense(codes.tocsr().T @ X)


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
