"""The work of `kernlets denoise` and `inpaint` on files: PNG, TIFF and JPEG.

Nothing is clipped or reduced silently: what Pillow would read with fewer bits, and what
a format cannot hold, is refused with advice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ..images import denoise, estimate_noise, inpaint
from ..io.atomic_write import atomic_write
from ..io.data_file import DataFileError, optional_import, reading
from ..io.image_folder import (
    has_transparency,
    open_picture,
    read_pixels,
    turn_upright,
)
from ..numerics.text import size_text
from .input_data import make_bar
from .model_info import show_facts
from .output_files import check_output

Progress = Callable[[float], Any]


@dataclass(frozen=True)
class PictureJob:
    """A picture to restore, and the file to write."""

    path: Path
    output: Path | None
    force: bool = False
    quiet: bool = False

    def target(self, suffix: str) -> Path:
        """Return the file to write, by default beside the one that is read."""
        default_path = self.path.with_name(
            f"{self.path.stem}-{suffix}{self.path.suffix}"
        )
        return self.output or default_path


def denoise_picture(
    job: PictureJob, sigma: float | None, quality: str, atoms: str
) -> None:
    """Remove noise from the picture in a file."""
    target = check_target(job, "denoised")
    picture = read_picture(job.path)
    check_format(target, picture)
    noise = estimate_noise(picture.pixels) if sigma is None else sigma

    def work(progress: Progress) -> np.ndarray:
        return denoise(
            picture.pixels, noise, quality=quality, atoms=atoms, progress=progress
        )

    origin = "estimated" if sigma is None else "as given"
    facts = {"noise": f"deviation {noise:.4g}, {origin}"}
    _restore(job, target, picture, "denoising", work, facts)


def inpaint_picture(job: PictureJob, mask: Path | None) -> None:
    """Fill in pixels of the picture in a file: those of a mask, and those NaN."""
    target = check_target(job, "inpainted", *([] if mask is None else [mask]))
    picture = read_picture(job.path)
    check_format(target, picture)
    is_missing = _missing_pixels(job.path, picture, mask)

    def work(progress: Progress) -> np.ndarray:
        return inpaint(picture.pixels, is_missing, progress=progress)

    share = f"{is_missing.sum()} pixels, {is_missing.mean():.1%}"
    _restore(job, target, picture, "inpainting", work, {"lost": share})


def check_target(job: PictureJob, suffix: str, *inputs: Path) -> Path:
    """Return the file to write if its name has a known format; else refuse it."""
    target = job.target(suffix)
    if job.output is None and target.suffix.lower() not in FORMATS:
        raise ValueError(
            f"{job.path}: does not end in {', '.join(FORMATS)}: give a picture; where "
            "it has another format, name the result with --output"
        )
    if target.suffix.lower() not in FORMATS:
        raise typer.BadParameter(
            f"{target} must end in {', '.join(FORMATS)}", param_hint="--output"
        )
    check_output(target, (job.path, *inputs), job.force)
    return target


def _missing_pixels(path: Path, picture: PictureFile, mask: Path | None) -> np.ndarray:
    shape = picture.pixels.shape[:2]
    nan = np.isnan(picture.pixels).reshape(*shape, -1).any(axis=2)
    is_missing = nan if mask is None else nan | read_mask(mask, shape)
    if not is_missing.any():
        raise ValueError(
            f"{mask or path}: no pixel is lost: give a --mask that is white where "
            "pixels are to be filled in"
        )
    return is_missing


def _restore(
    job: PictureJob,
    target: Path,
    picture: PictureFile,
    title: str,
    work: Callable[[Progress], np.ndarray],
    facts: dict[str, str],
) -> None:
    """Do the work with a progress bar, write the result, and print facts."""
    start = time.perf_counter()
    with make_bar(job.quiet) as bar:
        task = bar.add_task(title, total=1.0)
        restored = work(lambda share: bar.update(task, completed=share))
    seconds = time.perf_counter() - start
    write_picture(target, replace(picture, pixels=restored))
    if not job.quiet:
        facts = {"picture": str(picture), **facts, "time": f"{seconds:.2f} s"}
        size = size_text(target.stat().st_size)
        show_facts({**facts, "output": f"{target} ({size})"})


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
COPIED_METADATA = ("icc_profile", "exif", "dpi")  # these are written as they were read
JPEG_QUALITY = 95


@dataclass(frozen=True)
class PictureFile:
    """The content of a file: colours or grey values, transparency and metadata."""

    pixels: np.ndarray  # (h, w) or (h, w, c)
    mode: str
    alpha: np.ndarray | None = None  # (h, w)
    metadata: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        height, width = self.pixels.shape[:2]
        kind = {"I;16": "grey, 16 bits", "L": "grey", "LA": "grey with alpha"}
        return f"{width} x {height} pixels, {kind.get(self.mode, self.mode)}"


def read_picture(path: Path) -> PictureFile:
    """Read a file; palettes become colours, and the picture is turned upright."""
    with _open_picture(path) as image:
        _refuse_unusual(path, image)
        image = turn_upright(image)
        metadata = {
            key: image.info[key] for key in COPIED_METADATA if key in image.info
        }
        return _decode(path, _without_palette(image), metadata)


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


def _decode(path: Path, image: Any, metadata: dict[str, Any]) -> PictureFile:
    mode, pixels = image.mode, np.array(image)
    if mode.startswith("I;16"):
        return PictureFile(pixels.astype(np.uint16), "I;16", None, metadata)
    if mode == "I" and pixels.min() >= 0 and pixels.max() < 2**16:
        return PictureFile(pixels.astype(np.uint16), "I;16", None, metadata)
    if mode not in ("L", "LA", "RGB", "RGBA", "CMYK", "I", "F"):
        raise DataFileError(
            path, f"has pixels of the kind {mode}: save it as grey values or as RGB"
        )
    if mode not in WITH_ALPHA:
        return PictureFile(pixels, mode, None, metadata)
    colours = pixels[..., 0] if mode == "LA" else pixels[..., :-1]
    return PictureFile(colours, mode, pixels[..., -1], metadata)


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
    if picture.mode == "CMYK":  # Pillow takes four channels of eight bits for RGBA
        image = Image.frombytes("CMYK", pixels.shape[1::-1], pixels.tobytes())
    else:
        image = Image.fromarray(pixels)
    format_options = {"quality": JPEG_QUALITY} if name == "JPEG" else {}
    with atomic_write(path) as file:
        image.save(file, format=name, **picture.metadata, **format_options)
