"""The work of `kernlets denoise` and `inpaint` on a file."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer

from ..backend.text import size_text
from ..images import denoise, estimate_noise, inpaint
from .picture_files import (
    FORMATS,
    PictureFile,
    check_format,
    read_mask,
    read_picture,
    write_picture,
)
from .progress import share_progress
from .show import show_facts
from .targets import check_inputs, check_place

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
    check_place(target)
    check_inputs(target, (job.path, *inputs), job.force)
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
    with share_progress(title, job.quiet) as progress:
        restored = work(progress)
    seconds = time.perf_counter() - start
    write_picture(target, picture.with_pixels(restored))
    if not job.quiet:
        facts = {"picture": str(picture), **facts, "time": f"{seconds:.2f} s"}
        size = size_text(target.stat().st_size)
        show_facts({**facts, "output": f"{target} ({size})"})
