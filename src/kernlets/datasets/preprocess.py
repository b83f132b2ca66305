"""Row-wise preparation of images as in the papers' protocols (NumPy arrays only)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kernlets.backend import arrays

# A centred row below this many rounding errors of the row itself is a constant image.
_ROUNDING_ERRORS = 32


def as_float(X: ArrayLike) -> np.ndarray:
    """X in the type in which such rows are computed: float32, or float64."""
    return arrays.as_float(np.asarray(X))


def unit_norm(X: ArrayLike) -> np.ndarray:
    """x / ‖x‖₂ for each row; zero rows stay zero.

    Rows are divided by their largest entry first, so that squares of very small or
    large rows neither vanish nor overflow.
    """
    X = as_float(X)
    X = X / _nonzero(np.abs(X).max(axis=1, keepdims=True, initial=0.0))
    return X / _nonzero(np.linalg.norm(X, axis=1, keepdims=True))


def remove_mean_and_normalize(X: ArrayLike) -> np.ndarray:
    """(x - mean(x)) / ‖x - mean(x)‖₂ for each row; constant rows become zero."""
    X = as_float(X)
    centred = X - X.mean(axis=1, keepdims=True)
    floor = _ROUNDING_ERRORS * np.finfo(X.dtype).eps * np.abs(X).max(axis=1, initial=0)
    centred[np.abs(centred).max(axis=1, initial=0) <= floor] = 0
    return unit_norm(centred)


def _nonzero(scale: np.ndarray) -> np.ndarray:
    return np.where(scale == 0, np.ones_like(scale), scale)
