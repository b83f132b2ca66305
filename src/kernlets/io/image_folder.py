"""A folder of images as rows: one sub-folder per class, or images without labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.text import printable
from .data_file import (
    DataFileError,
    Request,
    Table,
    list_names,
    optional_import,
    reading,
    refuse_large,
    refuse_special,
    text_array,
)

SUFFIXES = frozenset(
    ".png .jpg .jpeg .bmp .gif .pgm .ppm .pnm .tif .tiff .webp".split()
)
#: Kinds of pixels that Pillow turns into grey or RGB, and those with transparency.
EIGHT_BITS = frozenset("1 L P RGB RGBX CMYK YCbCr HSV LA La PA RGBA RGBa".split())
WITH_ALPHA = frozenset("LA La PA RGBA RGBa".split())
#: Folders that programs leave beside others, and such files.
NO_CLASSES = ("__MACOSX", "__pycache__")
NO_IMAGES = ("thumbs.db", "desktop.ini")
PIXEL_BYTES = 8  # what a pixel takes while it is read: its channels, and a float
#: Numbers of tags in TIFF files.
BITS, PHOTOMETRIC, ORIENTATION, SAMPLE_FORMAT = 258, 262, 274, 339


def read_folder(path: Path, request: Request) -> Table:
    """Read all images of a folder as float32 rows in [0, 1]; needs pillow.

    The names of the sub-folders are the labels. If there are no sub-folders with
    images, those in the folder itself are read, without labels. Images of several
    sizes are resized to their median height and width, with a warning.

    Pixels are what one sees: images are turned as their EXIF data say, and transparent
    ones lie on white. White is the largest number of the type that the file has (255,
    65535, 4294967295 or, of signed integers, 2147483647), and 1 for floats. Numbers
    outside, files with several images and files that are not regular are refused.
    """
    optional_import("PIL", "images", path)
    files = _image_files(path)
    labelled = files[0].parent != path
    size = request.size or _common_size(path, files)
    shape = (*size, 3) if request.color else size
    refuse_large(path, len(files) * 4 * prod(shape), "shrink images, --size 64x64")
    X = np.empty((len(files), *shape), dtype=np.float32)
    for number, file in enumerate(files):
        X[number] = read_pixels(file, request.color, size)
    has_labels = labelled and request.label is not False
    y = np.array([file.parent.name for file in files]) if has_labels else None
    names = [file.relative_to(path).as_posix() for file in files]
    files_array = text_array([n if n.isprintable() else printable(n) for n in names])
    return Table(X.reshape(len(X), -1), y, None, X.shape[1:], files_array)


def _image_files(path: Path) -> list[Path]:
    folders = sorted(
        entry
        for entry in path.iterdir()
        if entry.is_dir()
        and not entry.name.startswith(".")
        and entry.name not in NO_CLASSES
    )
    files = [file for folder in folders for file in _images_in(folder)]
    empty = [folder.name for folder in folders if not _images_in(folder)]
    if files and empty:
        raise DataFileError(path, f"has no image in {empty[0]!r}: fill or remove it")
    unsorted_files = _images_in(path)
    if files and unsorted_files:
        warnings.warn(
            f"{path}: images beside the sub-folders are left out: "
            f"{list_names([file.name for file in unsorted_files])}",
            stacklevel=2,
        )
    files = files or unsorted_files
    if not files:
        kinds = ", ".join(sorted(SUFFIXES))
        raise DataFileError(
            path, f"is a folder without images ({kinds}): make one sub-folder per class"
        )
    other_names = [
        name for folder in {f.parent for f in files} for name in _other_names(folder)
    ]
    if other_names:
        warnings.warn(
            f"{path}: files that are no images by their names are left out: "
            f"{list_names(sorted(other_names))}",
            stacklevel=2,
        )
    return files


def _common_size(path: Path, files: list[Path]) -> tuple[int, int]:
    """Return the height and width of all images, or the medians with a warning."""
    sizes = [_upright_size(file) for file in files]
    median_height, median_width = (
        sorted(lengths)[len(lengths) // 2] for lengths in zip(*sizes, strict=True)
    )
    n_sizes = len(set(sizes))
    if n_sizes > 1:
        smallest, largest = (
            size_in_pixels(choose(sizes, key=prod)) for choose in (min, max)
        )
        warnings.warn(
            f"{path}: images have {n_sizes} sizes, the smallest {smallest}, the "
            f"largest {largest}: all are resized to the median height and width, "
            f"{size_in_pixels((median_height, median_width))}",
            stacklevel=2,
        )
    return median_height, median_width


def size_in_pixels(size: tuple[int, ...]) -> str:
    """Return height and width in the form of the option ``--size``."""
    return "x".join(map(str, size))


def _upright_size(path: Path) -> tuple[int, int]:
    """Return height and width of an image as one sees it, from the head of its file."""
    with reading(path), open_picture(path) as image:
        is_turned = image.getexif().get(ORIENTATION, 1) != 1
        width, height = (turn_upright(image) if is_turned else image).size
    return height, width


def _other_names(folder: Path) -> list[str]:
    """Return the names of files in a folder of images that are no images."""
    return [
        file.name
        for file in folder.iterdir()
        if file.suffix.lower() not in SUFFIXES
        and not file.name.startswith(".")
        and not file.is_dir()
        and file.name.lower() not in NO_IMAGES
    ]


def _images_in(folder: Path) -> list[Path]:
    """Return image files in order; refuse pipes, since opening one waits for ever."""
    files = sorted(
        file
        for file in folder.iterdir()
        if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")
    )
    for file in files:
        refuse_special(file)
    return files


@contextmanager
def open_picture(path: Path) -> Iterator[Any]:
    """Open an image with Pillow, which decodes it later.

    Pillow is given a file in place of its name, since it would map that into memory,
    and reads TIFF files that are to be turned wrongly then.
    """
    from PIL import Image

    with path.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        with Image.open(file) as image:
            width, height = image.size
            refuse_large(path, PIXEL_BYTES * width * height)
            yield image


def read_pixels(
    path: Path, color: bool = False, size: tuple[int, int] | None = None
) -> np.ndarray:  # (h, w) or (h, w, 3), float32
    """Read one image as numbers in [0, 1] with white = 1; see `read_folder`."""
    from PIL import Image

    with reading(path), open_picture(path) as image:
        frames = getattr(image, "n_frames", 1)
        if frames > 1 and image.format != "MPO":  # whose other pictures are previews
            raise DataFileError(
                path, f"holds {frames} pictures: save one of them alone"
            )
        deep_grey = _DeepGrey.of(image)
        image = turn_upright(image)
        if deep_grey is None:
            image = _put_on_white(path, image).convert("RGB" if color else "L")
        else:
            image = Image.fromarray(deep_grey.shares_of_white(path, image))
        if size is not None:
            image = image.resize(size[::-1])
        pixels = np.array(image, dtype=np.float32)
    if deep_grey is None:
        pixels /= np.float32(255)
    else:
        pixels = pixels.clip(0, 1)  # interpolation goes beyond
        pixels = np.stack(3 * [pixels], axis=-1) if color else pixels
    return pixels


def turn_upright(image: Any) -> Any:
    """Turn an image as its EXIF data say; Pillow itself turns TIFF files."""
    from PIL import ImageOps

    image.load()
    return image if image.format == "TIFF" else ImageOps.exif_transpose(image)


def has_transparency(image: Any) -> bool:
    """Whether an image of Pillow has an alpha channel or a transparent colour."""
    return image.mode in WITH_ALPHA or "transparency" in image.info


def _put_on_white(path: Path, image: Any) -> Any:
    """Convert to eight bits, in grey or in colours, with white behind transparency."""
    from PIL import Image

    if image.mode not in EIGHT_BITS:
        raise DataFileError(
            path, f"has pixels of the kind {image.mode}: save it as grey or as RGB"
        )
    if has_transparency(image):
        layers = image.convert("LA") if image.mode == "La" else image
        layers = layers.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, layers)
    return image if image.mode in ("1", "L") else image.convert("RGB")


@dataclass(frozen=True)
class _DeepGrey:
    """How grey values of more than eight bits are stored."""

    bits: int = 16
    is_signed: bool = False
    is_float: bool = False
    white_is_zero: bool = False
    transparent: int | None = None  # the grey value that means transparency

    @classmethod
    def of(cls, image: Any) -> _DeepGrey | None:
        """Return how an opened image is stored, or None if it has eight bits."""
        if image.mode not in ("I", "F") and not image.mode.startswith("I;16"):
            return None
        transparent = image.info.get("transparency")
        tags = getattr(image, "tag_v2", None)
        if tags is None:  # PNG and PNM have at most 16 bits
            return cls(is_float=image.mode == "F", transparent=transparent)
        kind = tags.get(SAMPLE_FORMAT, (1,))[0]
        white_is_zero = tags.get(PHOTOMETRIC) == 0
        return cls(tags[BITS][0], kind == 2, kind == 3, white_is_zero)

    def shares_of_white(self, path: Path, image: Any) -> np.ndarray:  # (h, w), float32
        """Return grey values between 0, black, and 1, white."""
        pixels = np.asarray(image)
        if self.bits == 32 and not self.is_signed and not self.is_float:
            pixels = pixels.view(np.uint32)  # Pillow reads them as signed
        low, high = pixels.min(), pixels.max()
        white = 1 if self.is_float else 2 ** (self.bits - self.is_signed) - 1
        if not (low >= 0 and high <= white):  # also for NaN
            raise DataFileError(
                path,
                f"has grey values from {low} to {high}, which must be from 0, black, "
                f"to {white}, white: scale them",
            )
        if self.bits == 32 and not self.is_float and 0 < high < 2**16:
            raise DataFileError(
                path,
                f"has grey values up to {high}, nearly black where {white} is white: "
                "save it with 16 bits",
            )
        shares = (pixels / np.float64(white)).astype(np.float32)
        if self.white_is_zero:
            shares = 1 - shares
        if self.transparent is not None:
            shares[pixels == self.transparent] = 1
        return shares
