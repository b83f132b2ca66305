"""Pictures of any array library: windows as views, and types of pixels."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..numerics.arrays import (
    as_float,
    double,
    index_like,
    is_torch,
    namespace,
    numpy_dtype,
    to_numpy,
)
from .arrays import Array


def windows(image: Array, shape: tuple[int, ...]) -> Array:  # (a, b, ..., *shape)
    """Return all windows of this shape along the first axes of a picture, as a view."""
    if is_torch(image):
        for axis, length in enumerate(shape):
            image = image.unfold(axis, length, 1)
        return image
    return sliding_window_view(image, shape, axis=tuple(range(len(shape))))


def window_starts(last: int, stride: int) -> np.ndarray:
    """Return the starts of windows: 0, stride, 2 stride, ... and the last one."""
    return np.append(np.arange(0, last, stride), last)


def random_patches(
    image: Array,  # (a, b, ...)
    shape: tuple[int, ...],
    count: int,
    rng: np.random.Generator,
) -> Array:  # (count, ·)
    """Draw patches at distinct random positions as rows; take all if there are few."""
    view = windows(image, shape)
    grid = tuple(view.shape[: len(shape)])
    n = prod(grid)
    numbers = np.arange(n) if n <= count else rng.choice(n, count, replace=False)
    corners = [index_like(axis, image) for axis in np.unravel_index(numbers, grid)]
    return view[tuple(corners)].reshape(len(numbers), -1)


def average_scores(
    scores: np.ndarray,  # one per patch, on the grid of patches
    starts: list[np.ndarray],  # first pixels of patches along each axis
    shape: tuple[int, ...],  # of a patch
    image_shape: tuple[int, ...],
) -> np.ndarray:
    """Compute at each pixel the mean score of all patches that contain it, or 0."""
    total, count = np.zeros(image_shape), np.zeros(image_shape)
    for offset in np.ndindex(*shape):  # this pixel of all patches: indices are distinct
        pixels = np.ix_(*(a + step for a, step in zip(starts, offset, strict=True)))
        total[pixels] += scores
        count[pixels] += 1
    return total / np.maximum(count, 1)


def as_array(image: Any) -> Any:
    """Return a picture as an array of NumPy or torch with its own type."""
    return image if is_torch(image) else np.asarray(image)


def on_gpu(image: Array) -> bool:
    """Whether the pixels are on a GPU, which is slow with little work at a time."""
    return is_torch(image) and image.is_cuda


def as_pixels(image: Any) -> Array:
    """Return a picture as an array of floats in double precision.

    Its numbers must be integers or floats, (h, w) or (h, w, c).
    """
    pixels = as_array(image)
    if numpy_dtype(pixels).kind not in "uif":
        raise ValueError(
            f"image has pixels of type {pixels.dtype}: pass integers or floats"
        )
    return double(as_float(pixels))


def to_original_type(pixels: Any, original: Any) -> Any:
    """Pixels with the type and on the device of the original picture.

    Integers are rounded, and cut off at the ends of their type.
    """
    original = as_array(original)
    dtype = numpy_dtype(original)
    if dtype.kind in "ui":
        xp, info = namespace(pixels), np.iinfo(dtype)
        pixels = xp.clip(xp.round(pixels), float(info.min), float(info.max))
    if is_torch(original):
        return pixels.to(dtype=original.dtype, device=original.device)
    return to_numpy(pixels).astype(dtype)
