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
from ..datasets.pictures import has_transparency, opened_picture, read_pixels, turned
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
KEPT = ("icc_profile", "exif", "dpi")  # what is written as it was read
JPEG_QUALITY = 95


@dataclass(frozen=True)
class PictureFile:
    """What a file holds: colours or grey values, and what is left as it is."""

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
    """Read a file; palettes become colours, and EXIF data no longer say how to turn."""
    with _opened(path) as image:
        _refuse_unusual(path, image)
        image = turned(image)
        more = {key: image.info[key] for key in KEPT if key in image.info}
        return _decoded(path, _without_palette(image), more)


def read_mask(path: Path, shape: tuple[int, ...]) -> np.ndarray:  # (h, w) booleans
    """True where a picture is brighter than half of white."""
    with _opened(path) as image:
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
def _opened(path: Path) -> Iterator[Any]:
    """A picture that is read while it is open."""
    optional_import("PIL", "images", path)
    if not path.is_file():
        what = "is no file" if path.exists() else "does not exist"
        raise DataFileError(path, f"{what}: check the path")
    with reading(path), opened_picture(path) as image:
        yield image


def _refuse_unusual(path: Path, image: Any) -> None:
    frames = getattr(image, "n_frames", 1)
    if frames > 1:
        raise DataFileError(path, f"holds {frames} pictures: save one of them alone")
    raw = str(image.tile[0][3]) if image.tile else ""
    if image.mode in ("RGB", "RGBA", "CMYK") and "16" in raw:
        raise DataFileError(
            path,
            "has 16 bits for each colour, of which 8 would be lost: save it with 8, or "
            "pass it to kernlets.images as an array",
        )


def _without_palette(image: Any) -> Any:
    """Colours for a palette, and a channel for a colour that means transparency."""
    if image.mode in ("P", "PA", "L", "RGB") and has_transparency(image):
        return image.convert("LA" if image.mode == "L" else "RGBA")
    return image.convert("RGB") if image.mode == "P" else image


def _decoded(path: Path, image: Any, more: dict[str, Any]) -> PictureFile:
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
    image = _as_cmyk(pixels) if is_cmyk else Image.fromarray(pixels)
    how = {"quality": JPEG_QUALITY} if name == "JPEG" else {}
    with atomic_write(path) as file:
        image.save(file, format=name, **picture.more, **how)


def _as_cmyk(pixels: np.ndarray) -> Any:
    """Four channels of eight bits are transparent colours otherwise."""
    from PIL import Image

    return Image.frombytes("CMYK", pixels.shape[1::-1], pixels.tobytes())
