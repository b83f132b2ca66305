"""Row-wise preparation of images as in the papers' protocols (NumPy arrays only)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..numerics import arrays

# A centred row below this many rounding errors of the row itself is a constant image.
_ROUNDING_ERRORS = 32


def as_float(X: ArrayLike) -> np.ndarray:
    """X as floating-point numbers; float32 stays float32.

    Parameters
    ----------
    X : array
        Numbers of any type.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets.datasets import preprocess
    >>> preprocess.as_float(np.zeros(2, dtype=np.float32)).dtype
    dtype('float32')
    """
    return arrays.as_float(np.asarray(X))


def unit_norm(X: ArrayLike) -> np.ndarray:
    """x / ‖x‖₂ for each row; zero rows stay zero.

    Rows are divided by their largest entry first, so that squares of very small or
    large entries neither underflow nor overflow.

    Parameters
    ----------
    X : array (n, p)
        Rows to scale.

    Examples
    --------
    >>> from kernlets import datasets
    >>> datasets.unit_norm([[3.0, 4.0], [0.0, 0.0]]).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    X = as_float(X)
    X = X / _nonzero(np.abs(X).max(axis=1, keepdims=True, initial=0.0))
    return X / _nonzero(np.linalg.norm(X, axis=1, keepdims=True))


def remove_mean_and_normalize(X: ArrayLike) -> np.ndarray:
    """(x - mean(x)) / ‖x - mean(x)‖₂ for each row; constant rows become zero.

    Parameters
    ----------
    X : array (n, p)
        Rows to centre and scale.

    Examples
    --------
    >>> from kernlets import datasets
    >>> datasets.remove_mean_and_normalize([[1.0, 1.0, 4.0]]).round(3).tolist()
    [[-0.408, -0.408, 0.816]]
    """
    X = as_float(X)
    centred = X - X.mean(axis=1, keepdims=True)
    floor = _ROUNDING_ERRORS * np.finfo(X.dtype).eps * np.abs(X).max(axis=1, initial=0)
    centred[np.abs(centred).max(axis=1, initial=0) <= floor] = 0
    return unit_norm(centred)


def _nonzero(scale: np.ndarray) -> np.ndarray:
    return np.where(scale == 0, np.ones_like(scale), scale)
