"""More images from few: shifts by one pixel, made as they are read.

NumPy arrays only; rows are flattened images.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

SHIFTS = tuple((dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1))


def shifted(X: ArrayLike, image_shape: tuple[int, int]) -> np.ndarray:
    """All rows nine times, (9 n, p): moved by one pixel each way, and as they are.

    What leaves the image is lost, what comes in is zero. Copies of the same shift
    stand together, so that labels become ``np.tile(y, 9)``.
    """
    images = _padded(X, image_shape)
    return np.concatenate([_moved(images, shift) for shift in SHIFTS])


def shifted_batches(
    X: ArrayLike,  # (n, p)
    y: ArrayLike,  # (n,)
    image_shape: tuple[int, int],
    n_batches: int = 9,
    random_state: int | np.random.Generator | None = None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The 9 n rows of `shifted` with their labels, mixed, in `n_batches` parts.

    The extended MNIST of LKDL, section V-A: only one part is in memory at a time.
    """
    images, labels = _padded(X, image_shape), np.asarray(y)
    copies = np.random.default_rng(random_state).permutation(9 * len(labels))
    for part in np.array_split(copies, n_batches):
        shift, row = np.divmod(part, len(labels))
        batch = np.empty((len(part), np.prod(image_shape)), images.dtype)
        for number, by in enumerate(SHIFTS):
            places = np.flatnonzero(shift == number)
            batch[places] = _moved(images[row[places]], by)
        yield batch, labels[row]


def _padded(X: ArrayLike, image_shape: tuple[int, int]) -> np.ndarray:
    """Images with a frame of zeros, (n, h + 2, w + 2)."""
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != np.prod(image_shape):
        raise ValueError(
            f"X of shape {X.shape} does not hold images of {image_shape} as rows: give "
            "image_shape as (height, width)"
        )
    return np.pad(X.reshape(len(X), *image_shape), ((0, 0), (1, 1), (1, 1)))


def _moved(padded: np.ndarray, shift: tuple[int, int]) -> np.ndarray:  # (n, p)
    """Rows of images whose content moves down by dy and to the right by dx."""
    (dy, dx), (_, height, width) = shift, padded.shape
    rows, columns = slice(1 - dy, height - 1 - dy), slice(1 - dx, width - 1 - dx)
    n_pixels = (height - 2) * (width - 2)
    return padded[:, rows, columns].reshape(len(padded), n_pixels)
