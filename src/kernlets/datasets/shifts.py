"""More training images by shifts of one pixel, computed as they are read.

Rows are flattened images in NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

SHIFTS = tuple((dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1))


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
