"""Preparation of images and series as rows: scaling, noise, holes, shifts, patches.

All of this is for NumPy arrays, as in the papers' protocols.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from ..data.samples import as_series
from ..numerics.arrays import as_float

RandomState = int | np.random.Generator | None

#: A row is constant if, without its mean, it is below this many rounding errors.
ROUNDING_ERRORS = 32
SHIFTS = tuple((dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1))


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
    X = as_float(np.asarray(X))
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
    X = as_float(np.asarray(X))
    centred = X - X.mean(axis=1, keepdims=True)
    floor = ROUNDING_ERRORS * np.finfo(X.dtype).eps * np.abs(X).max(axis=1, initial=0)
    centred[np.abs(centred).max(axis=1, initial=0) <= floor] = 0
    return unit_norm(centred)


def _nonzero(scale: np.ndarray) -> np.ndarray:
    return np.where(scale == 0, np.ones_like(scale), scale)


def add_noise(X: ArrayLike, s: float, random_state: RandomState = None) -> np.ndarray:
    """X + s·ε with ε ~ N(0, 1) independently for each pixel.

    Parameters
    ----------
    X : array (n, p)
        Rows of images.
    s : float
        Standard deviation of the noise.
    random_state : int, Generator or None
        Seed of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import datasets
    >>> noisy = datasets.add_noise(np.zeros((100, 50)), 0.5, random_state=0)
    >>> float(noisy.std().round(1))
    0.5
    """
    X = as_float(np.asarray(X))
    if not s >= 0:
        raise ValueError(f"s={s} is not a standard deviation: pass a number >= 0")
    noise = np.random.default_rng(random_state).standard_normal(X.shape, X.dtype)
    return X + X.dtype.type(s) * noise


def drop_pixels(
    X: ArrayLike, share: float, random_state: RandomState = None, value: float = 0.0
) -> np.ndarray:
    """Set round(share·p) random pixels of each row to zero, or to NaN: unknown.

    Parameters
    ----------
    X : array (n, p)
        Rows of images.
    share : float
        Share of pixels, from 0 to 1.
    random_state : int, Generator or None
        Seed of the choice of pixels.
    value : float
        What stands in their place.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import datasets
    >>> datasets.drop_pixels(np.ones((2, 10)), 0.3, random_state=0).sum(axis=1).tolist()
    [7.0, 7.0]
    """
    X = as_float(np.asarray(X)).copy()
    if not 0 <= share <= 1:
        raise ValueError(f"share={share} is not a share of pixels: pass 0 to 1")
    ranks = np.random.default_rng(random_state).random(X.shape, np.float32)
    order = ranks.argsort(axis=1)
    np.put_along_axis(X, order[:, : round(share * X.shape[1])], value, axis=1)
    return X


def shifted(X: ArrayLike, image_shape: tuple[int, int]) -> np.ndarray:
    """All rows nine times, (9 n, p): shifted by one pixel in each direction, or not.

    Pixels that leave the image are lost, and new pixels are zero. Copies with the same
    shift are contiguous, so labels become ``np.tile(y, 9)``.

    Parameters
    ----------
    X : array (n, p)
        Rows of images.
    image_shape : (height, width)
        Shape of an image.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import datasets
    >>> datasets.shifted(np.array([[1.0, 2.0, 3.0, 4.0]]), (2, 2)).shape
    (9, 4)
    """
    images = _pad_images(X, image_shape)
    return np.concatenate([_move_images(images, shift) for shift in SHIFTS])


def shifted_batches(
    X: ArrayLike,  # (n, p)
    y: ArrayLike,  # (n,)
    image_shape: tuple[int, int],
    n_batches: int = 9,
    random_state: int | np.random.Generator | None = None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The 9 n rows of `shifted` with their labels, shuffled, in `n_batches` parts.

    This gives the extended MNIST of LKDL, section V-A, with only one part in memory at
    a time.

    Parameters
    ----------
    X : array (n, p)
        Rows of images.
    y : array (n,)
        Labels.
    image_shape : (height, width)
        Shape of an image.
    n_batches : int
        Number of parts.
    random_state : int, Generator or None
        Seed of the order.

    Examples
    --------
    >>> from kernlets import datasets
    >>> digits = datasets.load("digits")
    >>> parts = datasets.shifted_batches(digits.X_train, digits.y_train, (8, 8))
    >>> sum(len(labels) for _, labels in parts) == 9 * len(digits.y_train)
    True
    """
    images, labels = _pad_images(X, image_shape), np.asarray(y)
    all_copies = np.random.default_rng(random_state).permutation(9 * len(labels))
    for copy_numbers in np.array_split(all_copies, n_batches):
        shift, row = np.divmod(copy_numbers, len(labels))
        batch = np.empty((len(copy_numbers), np.prod(image_shape)), images.dtype)
        for shift_number, offset in enumerate(SHIFTS):
            batch_rows = np.flatnonzero(shift == shift_number)
            batch[batch_rows] = _move_images(images[row[batch_rows]], offset)
        yield batch, labels[row]


def _pad_images(X: ArrayLike, image_shape: tuple[int, int]) -> np.ndarray:
    """Return images with a frame of zeros, (n, h + 2, w + 2)."""
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != np.prod(image_shape):
        raise ValueError(
            f"X of shape {X.shape} does not hold images of {image_shape} as rows: pass "
            "image_shape as (height, width)"
        )
    return np.pad(X.reshape(len(X), *image_shape), ((0, 0), (1, 1), (1, 1)))


def _move_images(padded: np.ndarray, shift: tuple[int, int]) -> np.ndarray:  # (n, p)
    """Move the content of images down by dy and right by dx; return them as rows."""
    (dy, dx), (_, height, width) = shift, padded.shape
    rows, columns = slice(1 - dy, height - 1 - dy), slice(1 - dx, width - 1 - dx)
    n_pixels = (height - 2) * (width - 2)
    return padded[:, rows, columns].reshape(len(padded), n_pixels)


def whitened_patches(
    images: Any,  # (n, height, width) or (n, height, width, colours)
    n_patches: int = 100_000,
    size: int = 7,
    random_state: RandomState = None,
) -> np.ndarray:  # (n_patches, size²), with colours that many times as long
    """Patches from random places in the images, whitened and of unit length.

    Contrast is normalized per image, all patches are whitened together by their
    principal components, and each is divided by its length.

    Parameters
    ----------
    images : array (n, height, width) or (n, height, width, colours)
        Pictures of one size, with levels from 0 to 255.
    n_patches : int
        Number of patches.
    size : int
        Height and width of a patch in pixels.
    random_state : int, Generator or None
        Seed of the places.

    Examples
    --------
    >>> from kernlets import datasets
    >>> digits = 255 * datasets.load("digits").X_train.reshape(-1, 8, 8)
    >>> datasets.whitened_patches(digits, 50, size=4, random_state=0).shape
    (50, 16)
    """
    images = np.asarray(images, dtype=np.float64)
    if images.ndim not in (3, 4):
        raise ValueError(
            f"images have the shape {images.shape}: pass an array (n, height, width) "
            "or (n, height, width, colours)"
        )
    rows = random_patches(normalize_contrast(images), n_patches, size, random_state)
    return unit_norm(whiten(rows)).astype(np.float32)


def normalize_contrast(images: np.ndarray) -> np.ndarray:  # (n, height, width, ...)
    """(I − mean(I)) / √(var(I) + 10) for each image, levels from 0 to 255.

    Mean and variance are over all pixels, and over all colours where there are some.
    """
    pixel_axes = tuple(range(1, images.ndim))
    mean = images.mean(axis=pixel_axes, keepdims=True)
    variance = images.var(axis=pixel_axes, keepdims=True)
    return (images - mean) / np.sqrt(variance + 10.0)


def random_patches(
    images: np.ndarray,  # (n, height, width) or (n, height, width, colours)
    n_patches: int,
    size: int,
    random_state: RandomState = None,
) -> np.ndarray:  # (n_patches, size²), with colours that many times as long
    """Square patches at random places of random images, as rows."""
    pixels = images.shape[1:3]
    if not 1 <= size <= min(pixels):
        raise ValueError(
            f"size={size} does not fit into images of {pixels} pixels: pass 1 to "
            f"{min(pixels)}"
        )
    windows = sliding_window_view(images, (size, size), axis=(1, 2))
    rng = np.random.default_rng(random_state)
    corners = tuple(rng.integers(limit, size=n_patches) for limit in windows.shape[:3])
    patches = windows[corners]  # colours are in front of the rows and columns
    if images.ndim > 3:
        patches = np.moveaxis(patches, 1, -1)
    return patches.reshape(n_patches, -1)


def whiten(X: np.ndarray) -> np.ndarray:  # (n, p)
    """(X − mean) V Λ^(-1/2) with the covariance V Λ Vᵀ: principal components scaled.

    Directions without variance become zero.
    """
    centred = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(X))
    has_variance = values > values[-1] * len(values) * np.finfo(np.float64).eps
    scales = np.where(has_variance, np.where(has_variance, values, 1.0) ** -0.5, 0.0)
    return centred @ (vectors * scales)


def distance_percentile(
    X: np.ndarray,
    percent: float = 10.0,
    n_pairs: int = 100_000,
    random_state: RandomState = None,
) -> float:
    """Percentile of ‖x − y‖² over random pairs of rows: σ² of the IKA experiments.

    Parameters
    ----------
    X : array (n, p)
        The rows.
    percent : float
        Which percentile, from 0 to 100.
    n_pairs : int
        Number of random pairs.
    random_state : int, Generator or None
        Seed of the pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import datasets
    >>> X = np.array([[0.0], [2.0]])
    >>> datasets.distance_percentile(X, percent=100.0, random_state=0)
    4.0
    """
    rng = np.random.default_rng(random_state)
    first, second = X[rng.integers(len(X), size=(2, n_pairs))]
    return float(np.percentile(((first - second) ** 2).sum(axis=1), percent))


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
