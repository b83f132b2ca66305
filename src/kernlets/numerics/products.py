"""Large matrix products, cut into tiles that do not depend on the number of threads.

Inside a block of rows a product is one tile, and plain ``@`` does the same.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .arrays import Array
from .threads import parallel

TILE = 512  # rows or columns that one thread works on: few enough for several threads


def matmul(A: Array, B: Array) -> Array:  # (n, k), (k, m) -> (n, m)
    """Return A @ B, in tiles over the longer side of the result."""
    if not (_is_dense(A) and _is_dense(B)) or max(A.shape[0], B.shape[1]) <= TILE:
        return A @ B
    out = np.empty((A.shape[0], B.shape[1]), np.result_type(A, B))
    if A.shape[0] >= B.shape[1]:
        parallel(lambda rows: np.matmul(A[rows], B, out=out[rows]), _tiles(len(A)))
    else:
        parallel(lambda j: np.matmul(A, B[:, j], out=out[:, j]), _tiles(B.shape[1]))
    return out


def cross(A: Array, B: Array) -> Array:  # (n, k), (n, m) -> (k, m)
    """A.T @ B, a sum over tiles of rows."""
    if not (_is_dense(A) and _is_dense(B)) or A.shape[0] <= TILE:
        return A.T @ B
    tile_products = parallel(lambda rows: A[rows].T @ B[rows], _tiles(len(A)))
    return sum(tile_products[1:], tile_products[0])


def outer_products(X: Array) -> Array:  # (n, k) -> (n, n)
    """Return X @ X.T, one half computed and the other mirrored."""
    if not _is_dense(X) or X.shape[0] <= TILE:
        return X @ X.T
    out = np.empty((X.shape[0], X.shape[0]), X.dtype)

    def from_diagonal_on(rows: slice) -> None:
        out[rows, rows] = X[rows] @ X[rows].T
        later_rows = slice(rows.stop, None)
        out[rows, later_rows] = X[rows] @ X[later_rows].T
        out[later_rows, rows] = out[rows, later_rows].T

    parallel(from_diagonal_on, _tiles(len(X)))
    return out


def signed_sums(
    X: Array,  # (n, p)
    columns: Array,  # (p,) of 0..k-1
    signs: Array,  # (p,)
    k: int,
) -> Array:  # (n, k)
    """Return the signed sums of the features that share a column."""
    if not isinstance(X, np.ndarray):
        return X.new_zeros((X.shape[0], k)).index_add(1, columns, X * signs)
    p = len(columns)
    signed_indicator = sparse.csr_array((signs, (columns, np.arange(p))), shape=(k, p))
    return (signed_indicator @ X.T).T


def tiles(rows: Array, n_rows: int) -> list[slice]:
    """Return slices of `n_rows` rows that stay in a cache; one slice for tensors."""
    n = max(rows.shape[0], 1)
    tile_rows = n_rows if isinstance(rows, np.ndarray) else n
    return [slice(i, i + tile_rows) for i in range(0, n, tile_rows)]


def _is_dense(A: Array) -> bool:
    return isinstance(A, np.ndarray) and A.ndim == 2


def _tiles(n: int) -> list[slice]:
    return [slice(i, min(i + TILE, n)) for i in range(0, n, TILE)]
