"""Inner products and distances between two sets of rows.

Every function takes NumPy arrays or torch tensors and keeps their dtype. NumPy results
are new arrays that the caller may overwrite; torch results keep autograd intact.
The kernels, which are functions of these numbers, are defined elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from ..backend import ops
from ..backend.arrays import is_torch, namespace, row_norms
from ..backend.products import matmul, outer_products
from ..backend.rows import map_rows
from ..core import Array

TILE_ROWS = 64  # rows per step in loops over features, so that they stay in cache


def products(
    X: Array,  # (n, p), dense or CSR
    Y: Array,  # (m, p), dense or CSR
) -> Array:  # (n, m)
    """xᵢᵀyⱼ, dense; takes half the operations when X and Y are the same object."""
    S = outer_products(X) if Y is X else matmul(X, Y.T)
    return S.toarray() if sparse.issparse(S) else S


def times(a: Array, b: Array | float) -> Array:
    """a · b; overwrites a NumPy array `a`, but no tensor that autograd may need."""
    return a * b if is_torch(a) else np.multiply(a, b, out=a)


def energies(X: Array) -> Array:  # (n,)
    """|xᵢ|² of dense or sparse rows."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return row_norms(X)


def zeros(X: Array) -> Array:  # (n,)
    """A zero for each row of X."""
    n = X.shape[0]
    return X.new_zeros(n) if is_torch(X) else np.zeros(n, dtype=X.dtype)


def centred(X: Array, Y: Array) -> tuple[Array, Array]:
    """Shift both sets of rows so that the mean of Y is the origin.

    Distances stay the same, but |x|² + |y|² - 2xᵀy no longer subtracts large numbers
    when the data lie far from the origin. Sparse rows are not shifted.
    """
    if sparse.issparse(X) or sparse.issparse(Y):
        return X, Y
    shift = namespace(Y).mean(Y, axis=0)
    moved = X - shift
    return moved, moved if Y is X else Y - shift


def squared_distances(
    X: Array,  # (n, p), dense or CSR
    Y: Array,  # (m, p), dense or CSR
) -> Array:  # (n, m)
    """|xᵢ - yⱼ|² by one matrix product, never negative.

    When X and Y are one object the product is symmetric, at half the operations, and
    the diagonal is exactly 0.
    """
    X, Y = centred(X, Y)
    same = Y is X
    own_X = energies(X)
    own_Y = own_X if same else energies(Y)
    _refuse_overflow(own_X, own_Y)
    if same:
        s = products(X, X)
        s *= -2.0
    else:
        s = products(X, Y * -2.0)
    s += own_X[:, None]
    s += own_Y
    s = _clipped(s)
    if same:
        _zero_diagonal(s)
    return s


def l1_distances(
    X: Array,  # (n, p)
    Y: Array,  # (m, p)
) -> Array:  # (n, m)
    """Σ |xᵢ - yⱼ|, in blocks of rows."""
    row_bytes = X.dtype.itemsize * Y.shape[0]
    return map_rows(lambda block: ops.l1_distances(block, Y), X, row_bytes)


def feature_sums(
    X: Array,  # (n, p)
    Y: Array,  # (m, p)
    term: Callable[[Array, Array], Array],
) -> Array:  # (n, m)
    """Σ over features of term(x, y), for terms that no matrix product gives."""
    xp = namespace(X)
    columns = xp.stack([Y[:, c] for c in range(Y.shape[1])])  # contiguous

    def tile(rows: Array) -> Array:
        total = 0.0
        for x, y in zip(rows.T, columns, strict=True):
            total += term(x[:, None], y)
        return total

    def block(rows: Array) -> Array:
        step = max(rows.shape[0], 1) if is_torch(rows) else TILE_ROWS
        starts = range(0, max(rows.shape[0], 1), step)
        return xp.concat([tile(rows[i : i + step]) for i in starts])

    return map_rows(block, X, row_bytes=Y.itemsize * Y.shape[0])


def feature_pull(
    X: Array,  # (n, p)
    Y: Array,  # (m, p)
    V: Array,  # (n, m)
    derivative: Callable[[Array, Array], Array],
) -> Array:  # (n, p)
    """Σⱼ Vᵢⱼ derivative(xᵢ, yⱼ) for each feature, with one (n, m) array at a time."""
    xp = namespace(X)
    columns = [
        xp.vecdot(V, derivative(X[:, c, None], Y[None, :, c]))
        for c in range(X.shape[1])
    ]
    return xp.stack(columns, axis=1)


def _clipped(s: Array) -> Array:
    """max(s, 0), because rounding can make a distance slightly negative."""
    return s.clamp(min=0) if is_torch(s) else np.maximum(s, 0, out=s)


def _zero_diagonal(s: Array) -> None:
    if is_torch(s):
        s.fill_diagonal_(0)
    else:
        np.fill_diagonal(s, 0)


def _refuse_overflow(*norms: Any) -> None:
    """With norms near the end of the dtype's range |x|² + |y|² - 2xᵀy is ∞ - ∞."""
    for values in norms:
        xp = namespace(values)
        if not bool(xp.all(values <= float(xp.finfo(values.dtype).max) / 8)):
            raise ValueError(
                f"squared distances overflow in {values.dtype}: scale the data, "
                "e.g. with StandardScaler, or pass float64"
            )
