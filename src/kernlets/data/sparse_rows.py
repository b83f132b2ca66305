"""Functions that accept both dense and CSR rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..contracts import Array
from ..numerics.arrays import (
    as_float,
    double,
    is_array,
    is_torch,
    namespace,
    row_norms,
    to_numpy,
)
from ..numerics.scaling import lengths, power_of_two
from .limits import gpu_of
from .rows import sum_rows, take_rows
from .weights import Weights, weights_of_rows


def as_dense(X: Array) -> Array:
    """Convert X to a dense array; dense arrays are returned unchanged."""
    return X.toarray() if sparse.issparse(X) else X


def stored_entries(X: Array) -> Array:
    """Return all numbers of a dense array, or the stored ones of a sparse matrix."""
    return X.data if sparse.issparse(X) else X


def float_rows(X: Any, accept_sparse: bool, caller: str, name: str) -> Array:
    """Convert X to an array or CSR matrix of floating-point numbers."""
    if sparse.issparse(X):
        if accept_sparse:
            return as_float(X.tocsr())
        raise TypeError(f"{caller} accepts only dense rows; pass {name}.toarray()")
    return as_float(X if is_array(X) else np.asarray(X))


def refuse_sparse(error: str, *arrays: Array) -> None:
    """Raise a TypeError with this text if one of the arrays is sparse."""
    if any(map(sparse.issparse, arrays)):
        raise TypeError(error)


def centre_rows(X: Array, Y: Array) -> tuple[Array, Array]:
    """Shift both sets of rows so that the mean of Y is the origin.

    Sparse rows are not shifted, because they would become dense.
    """
    if sparse.issparse(X) or sparse.issparse(Y):
        return X, Y
    mean = namespace(Y).mean(Y, axis=0)
    centred_X = X - mean
    return centred_X, centred_X if Y is X else Y - mean


def row_lengths(X: Array) -> Array:  # (n,)
    """Return the Euclidean norms of the rows without overflow or underflow."""
    if not sparse.issparse(X):
        return lengths(X)
    scale = power_of_two(abs(X).max(axis=1).toarray().ravel())
    return np.sqrt(row_norms(scaled_rows(X, 1 / scale))) * scale


def scaled_rows(X: Array, factors: Array) -> Array:  # (n, p), (n,) -> (n, p)
    """Multiply each row by its factor."""
    if sparse.issparse(X):
        return sparse.csr_array(X).multiply(factors[:, None]).tocsr()
    return X * factors[:, None]


def column_sums(X: Array) -> np.ndarray:  # (n, p) -> (p,)
    """Return the sums of the columns in float64 on the host."""
    total = X.sum(0) if sparse.issparse(X) else double(X).sum(0)
    flat = np.asarray(to_numpy(total) if is_array(total) else total).ravel()
    return flat.astype(np.float64)


def stack_rows(first: Array, second: Array) -> Array:
    """Stack two sets of rows, or of samples of any kind, below each other."""
    if sparse.issparse(second):
        return sparse.vstack([first, second], format="csr")
    if is_torch(second):
        return namespace(second).concat([first, second])
    return np.concatenate([first, second])


def variance(X: Array, weights: Weights = None) -> float:
    """Return the variance of all entries of X, exactly 0 if they are all equal.

    A row of weight w counts as w rows.
    """
    if sparse.issparse(X):
        return _sparse_variance(X.tocsr(), weights)
    origin = take_rows(X, np.array([0]))[0, 0]
    if is_torch(X) and gpu_of(X) is None and weights is None:
        shifted = as_float(X) - origin
        scale = power_of_two(shifted.abs().amax())
        scaled_variance = float((shifted / scale).var(correction=0))
        return scaled_variance * float(scale) * float(scale)  # may be infinite

    def moments(block: Array, first: int = 0) -> Array:
        row_weights = weights_of_rows(weights, first, block.shape[0], double(block[:0]))
        if row_weights is not None:
            shifted = double(block) - origin
            sums = row_weights @ shifted, row_weights @ (shifted * shifted)
            return np.array([float(weighted_sum.sum()) for weighted_sum in sums])
        if is_torch(block):  # rows on a GPU, or moved there block by block
            shifted = double(block) - origin
            return np.array([float(shifted.sum()), float((shifted * shifted).sum())])
        shifted = np.subtract(block, origin, dtype=np.float64)
        return np.array([shifted.sum(), np.vdot(shifted, shifted)])

    n_entries = _weighted_count(X, weights) * X.shape[1]
    row_bytes, is_weighted = 16 * X.shape[1], weights is not None
    with np.errstate(over="ignore", invalid="ignore"):
        sums = sum_rows(moments, X, row_bytes, numbered=is_weighted)
        total, squares = sums / n_entries
        value = float(squares - total**2)
    return max(0.0, value) if np.isfinite(value) else np.inf


def _weighted_count(X: Array, weights: Weights) -> float:
    """Return the sum of the weights of the rows."""
    return X.shape[0] if weights is None else float(weights.sum())


def _sparse_variance(X: Any, weights: Weights) -> float:
    values, size = X.data.astype(np.float64), _weighted_count(X, weights) * X.shape[1]
    if values.size == X.shape[0] * X.shape[1]:  # no zero is implicit: shift
        values -= values[0]
    entry_weights = 1.0 if weights is None else np.repeat(weights, np.diff(X.indptr))
    with np.errstate(over="ignore", invalid="ignore"):
        weighted = values * entry_weights
        value = np.vdot(values, weighted) / size - np.square(weighted.sum() / size)
    return max(0.0, float(value)) if np.isfinite(value) else np.inf
