"""Inner products and distances between two sets of rows.

Every function takes NumPy arrays or torch tensors and keeps their dtype. NumPy results
are new arrays that the caller may overwrite; torch results keep autograd intact.
The kernels, which are functions of these numbers, are defined elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..contracts import Array
from ..data.rows import map_rows
from ..data.sparse_rows import as_dense, centre_rows
from ..loops import ops
from ..numerics.arrays import namespace, or_wider, row_norms
from ..numerics.overwrite import not_negative, zero_diagonal
from ..numerics.products import matmul, outer_products, tiles

TILE_ROWS = 64  # rows per step in loops over features, so that they stay in cache


def products(
    X: Array,  # (n, p), dense or CSR
    Y: Array,  # (m, p), dense or CSR
) -> Array:  # (n, m)
    """xᵢᵀyⱼ, dense; takes half the operations when X and Y are the same object."""
    return as_dense(outer_products(X) if Y is X else matmul(X, Y.T))


def squared_distances(
    X: Array,  # (n, p), dense or CSR
    Y: Array,  # (m, p), dense or CSR
) -> Array:  # (n, m)
    """|xᵢ - yⱼ|² by one matrix product, never negative.

    Dense rows are centred first: |x|² + |y|² - 2xᵀy then subtracts no large numbers
    when the data lie far from the origin.
    When X and Y are one object the product is symmetric, at half the operations, and
    the diagonal is exactly 0.
    """
    X, Y = centre_rows(X, Y)
    same = Y is X
    norms_X = row_norms(X)
    norms_Y = norms_X if same else row_norms(Y)
    _refuse_overflow(norms_X, norms_Y)
    if same:
        s = products(X, X)
        s *= -2.0
    else:
        s = products(X, Y * -2.0)
    s += norms_X[:, None]
    s += norms_Y
    s = not_negative(s)  # rounding can make a distance slightly negative
    if same:
        zero_diagonal(s)
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
        return xp.concat([tile(rows[span]) for span in tiles(rows, TILE_ROWS)])

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


def _refuse_overflow(*norms: Any) -> None:
    """With norms near the end of the dtype's range |x|² + |y|² - 2xᵀy is ∞ - ∞."""
    for values in norms:
        xp = namespace(values)
        if not bool(xp.all(values <= float(xp.finfo(values.dtype).max) / 8)):
            raise ValueError(
                f"squared distances overflow in {values.dtype}: scale the data, "
                f"e.g. with StandardScaler{or_wider(values.dtype)}"
            )
