"""Picture files, PNG, TIFF and JPEG, as arrays and back, with all that they hold.

Nothing is clipped or reduced silently: what Pillow would read with fewer bits, and what
a format cannot hold, is refused with advice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..backend.atomic import atomic_write
from ..datasets.pictures import (
    has_transparency,
    open_picture,
    read_pixels,
    turn_upright,
)
from ..datasets.table_types import DataFileError, optional_import, reading

FORMATS = {
    ".png": "PNG",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
}
MODES = {
    "PNG": ("L", "LA", "RGB", "RGBA", "I;16"),
    "JPEG": ("L", "RGB", "CMYK"),
    "TIFF": ("L", "LA", "RGB", "RGBA", "CMYK", "I;16", "I", "F"),
}
WITH_ALPHA = ("LA", "RGBA")
COPIED_METADATA = (
    "icc_profile",
    "exif",
    "dpi",
)  # metadata that are written as they were read
JPEG_QUALITY = 95


@dataclass(frozen=True)
class PictureFile:
    """The content of a file: colours or grey values, transparency and metadata."""

    pixels: np.ndarray  # (h, w) or (h, w, c)
    mode: str
    alpha: np.ndarray | None = None  # (h, w)
    more: dict[str, Any] = field(default_factory=dict)

    def with_pixels(self, pixels: np.ndarray) -> PictureFile:
        return PictureFile(pixels, self.mode, self.alpha, self.more)

    def __str__(self) -> str:
        height, width = self.pixels.shape[:2]
        kind = {"I;16": "grey, 16 bits", "L": "grey", "LA": "grey with alpha"}
        return f"{width} x {height} pixels, {kind.get(self.mode, self.mode)}"


def read_picture(path: Path) -> PictureFile:
    """Read a file; palettes become colours, and the picture is turned upright."""
    with _open_picture(path) as image:
        _refuse_unusual(path, image)
        image = turn_upright(image)
        more = {key: image.info[key] for key in COPIED_METADATA if key in image.info}
        return _decode(path, _without_palette(image), more)


def read_mask(path: Path, shape: tuple[int, ...]) -> np.ndarray:  # (h, w) booleans
    """Read a mask, which is true where a picture is brighter than half of white."""
    with _open_picture(path) as image:
        if has_transparency(image):
            raise DataFileError(
                path,
                "has transparent pixels, which are neither lost nor not: fill them",
            )
    grey = read_pixels(path)
    if grey.shape != shape:
        raise DataFileError(
            path,
            f"has {grey.shape[1]} x {grey.shape[0]} pixels, the picture {shape[1]} x "
            f"{shape[0]}: make a mask of the same size, white where pixels are lost",
        )
    return grey > 0.5


@contextmanager
def _open_picture(path: Path) -> Iterator[Any]:
    """Open a picture that is read inside the block; explain errors of reading."""
    optional_import("PIL", "images", path)
    if not path.is_file():
        reason = "is no file" if path.exists() else "does not exist"
        raise DataFileError(path, f"{reason}: check the path")
    with reading(path), open_picture(path) as image:
        yield image


def _refuse_unusual(path: Path, image: Any) -> None:
    n_frames = getattr(image, "n_frames", 1)
    if n_frames > 1:
        raise DataFileError(path, f"holds {n_frames} pictures: save one of them alone")
    raw_mode = str(image.tile[0][3]) if image.tile else ""
    if image.mode in ("RGB", "RGBA", "CMYK") and "16" in raw_mode:
        raise DataFileError(
            path,
            "has 16 bits for each colour, of which 8 would be lost: save it with 8, or "
            "pass it to kernlets.images as an array",
        )


def _without_palette(image: Any) -> Any:
    """Convert palettes to colours, and transparent colours to a channel."""
    if image.mode in ("P", "PA", "L", "RGB") and has_transparency(image):
        return image.convert("LA" if image.mode == "L" else "RGBA")
    return image.convert("RGB") if image.mode == "P" else image


def _decode(path: Path, image: Any, more: dict[str, Any]) -> PictureFile:
    mode, pixels = image.mode, np.array(image)
    if mode.startswith("I;16"):
        return PictureFile(pixels.astype(np.uint16), "I;16", None, more)
    if mode == "I" and pixels.min() >= 0 and pixels.max() < 2**16:
        return PictureFile(pixels.astype(np.uint16), "I;16", None, more)
    if mode not in ("L", "LA", "RGB", "RGBA", "CMYK", "I", "F"):
        raise DataFileError(
            path, f"has pixels of the kind {mode}: save it as grey values or as RGB"
        )
    if mode not in WITH_ALPHA:
        return PictureFile(pixels, mode, None, more)
    colours = pixels[..., 0] if mode == "LA" else pixels[..., :-1]
    return PictureFile(colours, mode, pixels[..., -1], more)


def check_format(path: Path, picture: PictureFile) -> None:
    """Refuse a format that cannot hold the picture."""
    name = FORMATS[path.suffix.lower()]
    if picture.mode not in MODES[name]:
        raise ValueError(
            f"{path}: {name} files cannot hold {picture}: write a .tif file"
        )


def write_picture(path: Path, picture: PictureFile) -> None:
    """Write a file completely or not at all."""
    from PIL import Image

    pixels, name = picture.pixels, FORMATS[path.suffix.lower()]
    if picture.alpha is not None:
        pixels = np.dstack([pixels, picture.alpha])
    is_cmyk = picture.mode == "CMYK"
    image = _to_cmyk(pixels) if is_cmyk else Image.fromarray(pixels)
    format_options = {"quality": JPEG_QUALITY} if name == "JPEG" else {}
    with atomic_write(path) as file:
        image.save(file, format=name, **picture.more, **format_options)


def _to_cmyk(pixels: np.ndarray) -> Any:
    """Make a CMYK image: Pillow takes four channels of eight bits for RGBA."""
    from PIL import Image

    return Image.frombytes("CMYK", pixels.shape[1::-1], pixels.tobytes())
