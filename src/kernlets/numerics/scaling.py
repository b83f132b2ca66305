"""Lengths of rows that neither overflow nor vanish, whatever the unit of the data.

Squares of float32 leave its range beyond 1e19 and below 1e-19. Divided by a power of
two first, which changes no digit, every row has an accurate length.
"""

from __future__ import annotations

import numpy as np

from .arrays import Array, is_torch, namespace, row_norms, scalers_for, to_numpy


def least_energy(like: Array) -> float:
    """Return the number below which squares have lost digits in this dtype."""
    info = namespace(like).finfo(like.dtype)
    return float(info.smallest_normal) / float(info.eps)


def power_of_two(size: Array) -> Array:
    """Return the largest power of two up to each number, and 1 where there is none.

    Never below the smallest normal number, so that its inverse is finite.
    """
    xp = namespace(size)
    is_usable = (size > 0) & xp.isfinite(size)
    size = xp.where(is_usable, size, xp.ones_like(size))
    size = xp.clip(size, float(xp.finfo(size.dtype).smallest_normal), None)
    mantissa = size.frexp().mantissa if is_torch(size) else np.frexp(size)[0]
    return size / (2 * mantissa)


def peaks(X: Array, axis: int) -> Array:
    """Return the largest |entry| along an axis, which becomes 1."""
    xp = namespace(X)
    return xp.max(xp.abs(X), axis=axis, keepdims=True)


def lengths(X: Array) -> Array:  # (n, p) -> (n,)
    """Euclidean norms of the rows."""
    scale = power_of_two(peaks(X, axis=1))
    return namespace(X).sqrt(row_norms(X / scale)) * scale[:, 0]


def check_range(X: Array, name: str = "X") -> None:
    """Raise an error with the remedy if sums of squares of X may overflow or vanish."""
    if 0 in X.shape:
        return
    low, high = X.aminmax() if is_torch(X) else (X.min(), X.max())
    peak = max(abs(float(low)), abs(float(high)))
    # 2³² squares of entries up to this one can be summed
    largest_entry = float(namespace(X).finfo(X.dtype).max) ** 0.5 / 2**16
    is_small = 0 < peak < least_energy(X) ** 0.5
    if is_small or not peak <= largest_entry:
        effect = "vanish" if is_small else "overflow"
        raise ValueError(
            f"{name} has entries up to {peak:.2g}, whose squares {effect} in "
            f"{X.dtype}: scale the samples, e.g. with {scalers_for(X.dtype)}"
        )


def typical_length(X: Array, weights: np.ndarray | None = None) -> float:
    """Return the root mean square of the lengths of the rows."""
    row_lengths = to_numpy(lengths(X)).astype(np.float64)
    scale = float(power_of_two(row_lengths.max(initial=0.0)))
    squares = np.square(row_lengths / scale)
    mean_square = (
        squares.mean() if weights is None else np.average(squares, weights=weights)
    )
    return scale * float(mean_square) ** 0.5


def all_finite(X: Array) -> bool:
    """Whether no entry is NaN or infinite, without a mask as large as X."""
    if 0 in X.shape:
        return True
    low, high = X.aminmax() if is_torch(X) else (X.min(), X.max())
    return bool((low > -np.inf) & (high < np.inf))


def unit_rows(X: Array) -> Array:  # (n, p)
    """Return the rows divided by their lengths; zero rows stay."""
    X = X / power_of_two(peaks(X, axis=1))
    norms = namespace(X).sqrt(row_norms(X))
    return X / namespace(X).where(norms > 0, norms, 1.0)[:, None]


def quiet() -> np.errstate:
    """Suppress NumPy's warnings where the result is checked."""
    return np.errstate(all="ignore")


def refuse_large_sums(sums: Array, sums_name: str) -> None:
    """Raise if sums in float64, of which there is no wider type, are not finite."""
    if not all_finite(sums):
        raise ValueError(
            f"{sums_name} in X overflow in float64: divide X by a power of ten first"
        )
