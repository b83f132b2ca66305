"""Checks, before any work is done, whether a file may be written.

Only regular files are ever replaced. An input, or a file that is not a model but would
be replaced by `fit`, is replaced only with ``--force``.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import typer

from ..backend.atomic import refuse_special, remove_abandoned
from ..backend.text import size_text
from ..persistence import is_model, save
from ..persistence.file import refuse_foreign_name

SUFFIXES = (".csv", ".npy", ".npz")
ROOM = 2**20  # bytes that a disk must have free for the smallest result


def check_model(path: Path, force: bool) -> None:
    """Refuse a place where no model can be saved, or a file that is not a model."""
    check_place(path)
    is_other = path.exists() and path.stat().st_size > 0 and not is_model(path)
    if is_other and not force:
        raise ValueError(
            f"{path}: exists and is not a model: name another file, or replace it "
            "with --force"
        )
    refuse_foreign_name(path)


def check_table(path: Path, inputs: Sequence[Path], force: bool) -> None:
    """Refuse a file name of unknown format, and the inputs."""
    if path.suffix.lower() not in SUFFIXES:
        raise typer.BadParameter(
            f"{path} must end in {', '.join(SUFFIXES)}, or be - for text on standard "
            "output",
            param_hint="--output",
        )
    check_place(path)
    check_inputs(path, inputs, force)


def check_inputs(path: Path, inputs: Sequence[Path], force: bool) -> None:
    """Refuse to replace a file that is read."""
    if any(_is_same(path, input_path) for input_path in inputs) and not force:
        raise ValueError(
            f"{path}: is read by this command: name another file, or replace it with "
            "--force"
        )


def check_place(path: Path) -> None:
    """Refuse a place where no file can be written."""
    refuse_special(path)
    folder = path.resolve().parent
    if not folder.is_dir():
        raise ValueError(f"{path}: no such folder: create {folder} first")
    if path.exists() and not os.access(path, os.W_OK):
        raise ValueError(f"{path}: is write-protected: name another file")
    _check_writable(folder, path)
    remove_abandoned(path)
    check_space(path, ROOM)


def check_checkpoints(folder: Path | None, files: Iterable[Path | None] = ()) -> None:
    """Refuse a folder for checkpoints that cannot be written, or is to be a file."""
    if folder is None:
        return
    if folder.resolve() in [file.resolve() for file in files if file is not None]:
        raise ValueError(
            f"--checkpoint {folder}: cannot be made a folder, because it is also named "
            "as a file: name another folder"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"--checkpoint {folder}: cannot be made a folder ({error.strerror})"
        ) from error
    _check_writable(folder, folder)


def _check_writable(folder: Path, path: Path) -> None:
    """Try to write, because permissions do not reveal read-only disks."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(
            f"{path}: cannot be written ({error.strerror}): choose another folder"
        ) from error


def check_space(path: Path, n_bytes: int) -> None:
    """Refuse a disk that has no room for this many bytes."""
    disk = shutil.disk_usage(path.resolve().parent)
    if disk.total and disk.free < n_bytes:  # some file systems do not report it
        raise ValueError(
            f"{path}: needs at least {size_text(n_bytes)}, its disk has "
            f"{size_text(disk.free)} left: make room, or choose another folder"
        )


def _is_same(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def save_or_rescue(model: Any, path: Path, notes: dict[str, str]) -> None:
    """Save a model; if that fails, save it in the folder for temporary files."""
    try:
        save(model, path, notes=notes)
    except OSError as error:
        rescued = Path(tempfile.mkdtemp(prefix="kernlets-")) / "rescued.model"
        try:
            save(model, rescued, notes=notes)
        except OSError:
            raise error from None
        raise ValueError(
            f"{path}: {error.strerror}; the model was saved as {rescued} instead: "
            "move it to where you want it"
        ) from error
