"""Small grey pictures as PNG inside the page, without an imaging library."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode

import numpy as np

from .html import Html, tag


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


def picture(grey: np.ndarray, alt: str, width: int) -> Html:
    """An image element, enlarged to `width` pixels without smoothing."""
    source = "data:image/png;base64," + b64encode(png(grey)).decode("ascii")
    height = round(width * grey.shape[0] / grey.shape[1])
    image = tag("img", src=source, alt=alt, width=width, height=height)
    return Html(image.removesuffix("</img>"))
