"""The work of `kernlets denoise` and `inpaint`: check, read, restore, write."""

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
    """Which file becomes which."""

    path: Path
    output: Path | None
    force: bool = False
    quiet: bool = False

    def target(self, what: str) -> Path:
        """The file to write, by default beside the one that is read."""
        beside = self.path.with_name(f"{self.path.stem}-{what}{self.path.suffix}")
        return self.output or beside


def denoise_picture(
    job: PictureJob, sigma: float | None, quality: str, atoms: str
) -> None:
    """Remove noise from the picture in a file."""
    target = checked_target(job, "denoised")
    picture = read_picture(job.path)
    check_format(target, picture)
    known = estimate_noise(picture.pixels) if sigma is None else sigma

    def work(progress: Progress) -> np.ndarray:
        return denoise(
            picture.pixels, known, quality=quality, atoms=atoms, progress=progress
        )

    origin = "estimated" if sigma is None else "as given"
    facts = {"noise": f"deviation {known:.4g}, {origin}"}
    _restore(job, target, picture, "denoising", work, facts)


def inpaint_picture(job: PictureJob, mask: Path | None) -> None:
    """Fill in pixels of the picture in a file: those of a mask, and those NaN."""
    target = checked_target(job, "inpainted", *([] if mask is None else [mask]))
    picture = read_picture(job.path)
    check_format(target, picture)
    lost = _lost_pixels(job.path, picture, mask)

    def work(progress: Progress) -> np.ndarray:
        return inpaint(picture.pixels, lost, progress=progress)

    share = f"{lost.sum()} pixels, {lost.mean():.1%}"
    _restore(job, target, picture, "inpainting", work, {"lost": share})


def checked_target(job: PictureJob, what: str, *inputs: Path) -> Path:
    """The file to write, if it may be written and its name tells a format."""
    target = job.target(what)
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


def _lost_pixels(path: Path, picture: PictureFile, mask: Path | None) -> np.ndarray:
    shape = picture.pixels.shape[:2]
    nan = np.isnan(picture.pixels).reshape(*shape, -1).any(axis=2)
    lost = nan if mask is None else nan | read_mask(mask, shape)
    if not lost.any():
        raise ValueError(
            f"{mask or path}: no pixel is lost: give a --mask that is white where "
            "pixels are to be filled in"
        )
    return lost


def _restore(
    job: PictureJob,
    target: Path,
    picture: PictureFile,
    title: str,
    work: Callable[[Progress], np.ndarray],
    facts: dict[str, str],
) -> None:
    """Do the work with a progress bar, write the result, and tell about it."""
    began = time.perf_counter()
    with share_progress(title, job.quiet) as progress:
        found = work(progress)
    seconds = time.perf_counter() - began
    write_picture(target, picture.with_pixels(found))
    if not job.quiet:
        facts = {"picture": str(picture), **facts, "time": f"{seconds:.2f} s"}
        size = size_text(target.stat().st_size)
        show_facts({**facts, "output": f"{target} ({size})"})
