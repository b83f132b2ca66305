"""Small grey pictures as PNG, without an imaging library."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from math import ceil

import numpy as np


def png(grey: np.ndarray) -> bytes:  # (height, width) in [0, 1]
    """An 8-bit grey PNG file."""
    pixels = np.round(255 * np.clip(grey, 0, 1)).astype(np.uint8)
    height, width = pixels.shape
    lines = np.pad(pixels, ((0, 0), (1, 0)))  # filter type 0 starts each line
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = zlib.compress(lines.tobytes(), 9)
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + check


def data_address(grey: np.ndarray) -> str:
    """The picture as the address of an image in a page."""
    return "data:image/png;base64," + b64encode(png(grey)).decode("ascii")


def tiles(
    atoms: np.ndarray,  # (m, p)
    image_shape: tuple[int, ...],
    n_columns: int | None = None,
) -> np.ndarray:
    """Atoms in one image, values in [0, 1]; 0.5 is zero, margins and NaN are white."""
    atoms = np.asarray(atoms, dtype=float)
    n_columns = n_columns or ceil(len(atoms) ** 0.5)
    n_rows = ceil(len(atoms) / n_columns)
    largest = np.nanmax(np.abs(atoms), axis=1, keepdims=True, initial=0.0)
    scaled = 0.5 + 0.5 * atoms / np.where(largest == 0, 1.0, largest)
    scaled = np.nan_to_num(scaled, nan=1.0).reshape(-1, *image_shape)
    height, width, *channels = image_shape
    shape = n_rows * (height + 1) - 1, n_columns * (width + 1) - 1
    picture = np.ones((*shape, *channels))
    for index, tile in enumerate(scaled):
        top, left = np.multiply(divmod(index, n_columns), (height + 1, width + 1))
        picture[top : top + height, left : left + width] = tile
    return picture
