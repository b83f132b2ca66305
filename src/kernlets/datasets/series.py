"""Time series and signals: z-normalisation, and covariance matrices of channels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..data.samples import as_series

#: A series does not vary if its deviation is at most this share of its mean.
MIN_RELATIVE_STD = 1e-10


def z_normalize(X: Any) -> list[np.ndarray]:  # of (T, c)
    """(x - mean)/std of each series and channel; constant channels become zero.

    Parameters
    ----------
    X : list of arrays, or array (n, T) or (n, T, c)
        Series of any length; NaN at the end is padding and is cut off.

    Examples
    --------
    >>> from kernlets import datasets
    >>> datasets.z_normalize([[1.0, 2.0, 3.0]])[0].round(3).ravel().tolist()
    [-1.225, 0.0, 1.225]
    """
    return [_standardize(series) for series in as_series(X)]


def _standardize(series: np.ndarray) -> np.ndarray:
    mean, std = series.mean(axis=0), series.std(axis=0)
    varies = std > MIN_RELATIVE_STD * np.abs(mean)
    centred = np.where(varies, series - mean, 0.0)
    return (centred / np.where(varies, std, 1.0)).astype(series.dtype)


def covariances(X: Any, shrinkage: float = 0.0) -> np.ndarray:  # (n, c, c)
    """The covariance matrix of the channels of each signal.

    Parameters
    ----------
    X : list of arrays (T, c), or array (n, T, c)
        Signals of any length, steps first.
    shrinkage : float
        Share of the mean variance of the channels that the result has in place of the
        matrix, from 0 to 1. A little makes covariances of short signals definite.

    Examples
    --------
    >>> from kernlets import datasets
    >>> datasets.covariances([[[0.0, 1.0], [2.0, 1.0], [4.0, 4.0]]]).tolist()
    [[[4.0, 3.0], [3.0, 3.0]]]
    """
    if not 0 <= shrinkage <= 1:
        raise ValueError(f"shrinkage={shrinkage!r} must be from 0 to 1")
    matrices = []
    for i, signal in enumerate(as_series(X)):
        if len(signal) < 2:
            raise ValueError(f"series {i} has one step, a covariance needs two or more")
        centred = signal - signal.mean(axis=0)
        matrices.append(_shrink(centred.T @ centred / (len(signal) - 1), shrinkage))
    return np.stack(matrices) if matrices else np.empty((0, 1, 1))


def _shrink(matrix: np.ndarray, shrinkage: float) -> np.ndarray:
    level = shrinkage * np.trace(matrix) / len(matrix)
    return (1 - shrinkage) * matrix + level * np.eye(len(matrix), dtype=matrix.dtype)


def region_covariances(
    pictures: ArrayLike, shrinkage: float = 1e-3
) -> np.ndarray:  # (n, 5, 5)
    """Covariances over pixels of intensity and absolute first and second derivatives.

    Each picture, or region of one, becomes a 5 × 5 matrix of I, |I_x|, |I_y|, |I_xx|,
    |I_yy| (O. Tuzel et al., ECCV 2006, without the places of the pixels).

    Parameters
    ----------
    pictures : array (n, h, w)
        Grey pictures, at least 3 × 3.
    shrinkage : float
        As in `covariances`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import datasets
    >>> pictures = np.random.default_rng(0).random((2, 8, 8))
    >>> datasets.region_covariances(pictures).shape
    (2, 5, 5)
    """
    pictures = np.asarray(pictures)
    if pictures.ndim != 3 or min(pictures.shape[1:]) < 3:
        raise ValueError(
            f"pictures of shape {pictures.shape}: pass an array (n, h, w) of grey "
            "pictures of at least 3 × 3 pixels"
        )
    down, across = np.gradient(pictures.astype(float), axis=(1, 2))
    second = np.gradient(down, axis=1), np.gradient(across, axis=2)
    features = [pictures, np.abs(across), np.abs(down), *map(np.abs, second)]
    pixels = np.stack(features, axis=-1).reshape(len(pictures), -1, 5)
    return covariances(pixels, shrinkage)
