"""A folder of images as rows: one sub-folder per class, or images without labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from kernlets.backend.text import printable
from kernlets.datasets.table_types import (
    DataFileError,
    Request,
    Table,
    optional_import,
    reading,
)

SUFFIXES = frozenset(
    ".png .jpg .jpeg .bmp .gif .pgm .ppm .pnm .tif .tiff .webp".split()
)


def read_folder(path: Path, request: Request) -> Table:
    """Read all images of a folder as float32 rows in [0, 1]; needs pillow.

    The names of the sub-folders are the labels. If there are no sub-folders with
    images, those in the folder itself are read, without labels.
    """
    optional_import("PIL", "images", path)
    files = _image_files(path)
    labelled = files[0].parent != path
    first = _pixels(files[0], request)
    X = np.empty((len(files), *first.shape), dtype=np.float32)
    for row, file in zip(X, files, strict=True):
        row[...] = _same_shape(file, _pixels(file, request), first.shape)
    has_labels = labelled and request.label is not False
    y = np.array([file.parent.name for file in files]) if has_labels else None
    names = [_shown(file.relative_to(path).as_posix()) for file in files]
    return Table(
        X.reshape(len(X), -1), y, None, first.shape, np.array(names, dtype=object)
    )


def _shown(name: str) -> str:
    """The name of a file, without characters that control a terminal."""
    return name if name.isprintable() else printable(name)


def _image_files(path: Path) -> list[Path]:
    folders = sorted(p for p in path.iterdir() if _is_class(p))
    files = [file for folder in folders for file in _images_in(folder)]
    empty = [folder.name for folder in folders if not _images_in(folder)]
    if files and empty:
        raise DataFileError(path, f"has no image in {empty[0]!r}: fill or remove it")
    files = files or _images_in(path)
    if not files:
        kinds = ", ".join(sorted(SUFFIXES))
        raise DataFileError(
            path, f"holds no image ({kinds}): make one sub-folder per class"
        )
    return files


def _is_class(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith((".", "__"))


def _images_in(folder: Path) -> list[Path]:
    return sorted(
        file
        for file in folder.iterdir()
        if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")
    )


def _pixels(file: Path, request: Request) -> np.ndarray:
    """One image as (height, width) or (height, width, 3), white = 1."""
    from PIL import Image

    with reading(file), Image.open(file) as image:
        return _decode(image, request)


def _decode(image: Any, request: Request) -> np.ndarray:
    white = 65535.0 if image.mode.startswith("I") else 255.0
    if white == 65535.0:  # 16 bits: Pillow would clip them to 8 when converting
        image = image.convert("F")
    else:
        image = image.convert("RGB" if request.color else "L")
    if request.size is not None:
        height, width = request.size
        image = image.resize((width, height))
    return np.asarray(image, dtype=np.float32) / np.float32(white)


def _same_shape(file: Path, pixels: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if pixels.shape != shape:
        problem = f"has shape {pixels.shape}, the first image {shape}: "
        problem += "make all images the same size or give "
        raise DataFileError(
            file, problem + "size=(height, width)", problem + "--size, e.g. 28x28"
        )
    return pixels
