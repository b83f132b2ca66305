"""Small patches of photographs, prepared as in the IKA paper, section 4.1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .preprocess import unit_norm

RandomState = int | np.random.Generator | None


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
