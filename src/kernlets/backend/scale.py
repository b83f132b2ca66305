"""Lengths of rows that neither overflow nor vanish, whatever the unit of the data.

Squares of float32 leave its range beyond 1e19 and below 1e-19. Divided by a power of
two first, which changes no digit, every row has a length that can be trusted.
"""

from __future__ import annotations

import numpy as np

from ..core import Array
from .arrays import is_torch, namespace, row_norms


def least_energy(like: Array) -> float:
    """Squares below this have lost digits in the dtype of `like`."""
    info = namespace(like).finfo(like.dtype)
    return float(info.smallest_normal) / float(info.eps)


def power_of_two(size: Array) -> Array:
    """The largest power of two up to each number, and 1 where there is none.

    Never below the smallest normal number, so that its inverse is finite.
    """
    xp = namespace(size)
    usable = (size > 0) & xp.isfinite(size)
    size = xp.where(usable, size, xp.ones_like(size))
    size = xp.clip(size, float(xp.finfo(size.dtype).smallest_normal), None)
    mantissa = size.frexp().mantissa if is_torch(size) else np.frexp(size)[0]
    return size / (2 * mantissa)


def peaks(X: Array, axis: int) -> Array:
    """The largest |entry| of each row (axis 1) or column (axis 0), as one more axis."""
    xp = namespace(X)
    return xp.max(xp.abs(X), axis=axis, keepdims=True)


def lengths(X: Array) -> Array:  # (n, p) -> (n,)
    """Euclidean norms of the rows."""
    unit = power_of_two(peaks(X, axis=1))
    return namespace(X).sqrt(row_norms(X / unit)) * unit[:, 0]


def unit_rows(X: Array) -> Array:  # (n, p)
    """The rows divided by their lengths; zero rows stay."""
    X = X / power_of_two(peaks(X, axis=1))
    norms = namespace(X).sqrt(row_norms(X))
    return X / namespace(X).where(norms > 0, norms, 1.0)[:, None]
