"""Conversion of pixels of any type to channels of float32, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.fft import dct

from ..contracts import Array
from ..numerics.arrays import as_like, double, namespace, to_device
from ..numerics.pixels import as_pixels, to_original_type

MOST_CHANNELS = 64


@dataclass(frozen=True)
class Picture:
    """An image as channels of float32 whose pixels span at most [0, 1] times √c.

    Colours are multiplied by an orthonormal matrix, the cosine transform over channels:
    the first channel is their mean, the others are differences, and white noise stays
    white with the same deviation. Eight or sixteen bits need no more than float32.
    """

    channels: Array  # (c, h, w)
    unit: float
    """The difference in pixels of the input that is 1 in the channels."""
    offset: float
    shape: tuple[int, ...]

    @classmethod
    def of(cls, image: Any) -> Picture:
        """Check and convert."""
        pixels = check_pixels(image)
        xp = namespace(pixels)
        if not bool(xp.all(xp.isfinite(pixels))):
            raise ValueError(
                "image has NaN or infinite pixels: restore them first, with "
                "kernlets.images.inpaint"
            )
        low, high = float(xp.min(pixels)), float(xp.max(pixels))
        unit = high - low if high > low else 1.0
        planes = xp.astype((pixels - low) / unit, xp.float32)
        return cls(to_channels(planes), unit, low, tuple(pixels.shape))

    def to_image(self, channels: Array, like: Any) -> Any:  # (c, h, w)
        """Convert channels to an image of the input's shape, unit and type.

        Integers are rounded, and clipped to the range of their type.
        """
        pixels = double(from_channels(channels)).reshape(self.shape)
        return to_original_type(pixels * self.unit + self.offset, like)


def to_channels(planes: Array) -> Array:  # (h, w) or (h, w, c) -> (c, h, w)
    """Convert pixels to decorrelated channels."""
    planes = planes if planes.ndim == 3 else planes[..., None]
    channels = planes @ as_like(_cosine_transform(planes.shape[2]).T, planes)
    return namespace(planes).permute_dims(channels, (2, 0, 1))


def from_channels(channels: Array) -> Array:  # (c, h, w) -> (h, w, c)
    """Return the inverse of `to_channels`."""
    planes = namespace(channels).permute_dims(channels, (1, 2, 0))
    return planes @ as_like(_cosine_transform(planes.shape[2]), planes)


def _cosine_transform(n_channels: int) -> np.ndarray:  # (c, c)
    """Return the matrix of the cosine transform; its first row is constant."""
    return dct(np.eye(n_channels), axis=0, norm="ortho")


def check_pixels(image: Any) -> Array:
    """Check pixels, (h, w) or (h, w, c), and move them to the device of the options."""
    pixels = as_pixels(image)
    if pixels.ndim not in (2, 3) or 0 in pixels.shape:
        raise ValueError(
            f"image has the shape {tuple(pixels.shape)}: pass (height, width) or "
            "(height, width, channels), one image at a time"
        )
    if pixels.ndim == 3 and pixels.shape[2] > MOST_CHANNELS:
        raise ValueError(
            f"image has the shape {tuple(pixels.shape)}, so {pixels.shape[2]} "
            "channels: the channels come last; of a stack pass one image at a time"
        )
    return to_device(pixels)


def check_size(shape: tuple[int, ...], patch_size: int) -> None:
    """Refuse an image, (h, w), that is smaller than a patch."""
    if min(shape) < patch_size:
        raise ValueError(
            f"image has {shape[0]} x {shape[1]} pixels, fewer than a patch of "
            f"{patch_size}: lower patch_size to {min(shape)}"
        )
