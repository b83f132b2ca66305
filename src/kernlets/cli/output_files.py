"""Writes models, predictions and codes, each completely or not at all.

Whether a file may be written is checked before any work is done. Only regular files
are ever replaced. An input, or a file that is not a model but would be replaced by
`fit`, is replaced only with ``--force``.
"""

from __future__ import annotations

import codecs
import csv
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer
from scipy import sparse

from ..datasets import write_rows
from ..io import is_model, save
from ..io.atomic_write import atomic_write, refuse_special, remove_abandoned
from ..io.models import refuse_foreign_name
from ..numerics.text import size_text

STANDARD_OUTPUT = Path("-")


@dataclass(frozen=True)
class Predictions:
    """Labels of rows, with probabilities or scores if a model gives them.

    A table of them begins with the file of each row, or with its number.
    """

    labels: np.ndarray  # (n,)
    kind: str | None = None  # "proba", "score" or nothing
    numbers: np.ndarray | None = None  # (n, k)
    columns: tuple[str, ...] = ()  # (k,)
    reasons: np.ndarray | None = None  # (n,) text
    files: np.ndarray | None = None  # (n,) text

    @classmethod
    def concatenate(cls, batches: Iterable[Predictions]) -> Predictions:
        """Concatenate the predictions of several batches of rows."""
        first, *later = batches
        arrays: dict[str, Any] = {
            name: np.concatenate([array, *(getattr(batch, name) for batch in later)])
            for name, array in vars(first).items()
            if isinstance(array, np.ndarray)
        }
        return replace(first, **arrays)

    def rows(self) -> Iterator[list[str]]:
        """Yield a table of text: a header, then the cells of each row."""
        row_names = range(len(self.labels)) if self.files is None else self.files
        yield [
            "row" if self.files is None else "file",
            "label",
            *self.columns,
            *([] if self.reasons is None else ["reason"]),
        ]
        for i, (row_name, label) in enumerate(zip(row_names, self.labels, strict=True)):
            cells = [str(row_name), str(label)]
            if self.numbers is not None:
                number_format = _number_format(self.numbers.dtype)
                cells += [number_format % number for number in self.numbers[i]]
            if self.reasons is not None:
                cells.append(str(self.reasons[i]))
            yield cells


def print_predictions(predictions: Predictions) -> None:
    """Print one label on each line; if there are files or numbers, print a table."""
    if predictions.numbers is None and predictions.files is None:
        print("\n".join(map(str, predictions.labels)))
    else:
        print_table(predictions)


def print_table(predictions: Predictions) -> None:
    """Print a table in CSV with a header."""
    csv.writer(sys.stdout, lineterminator="\n").writerows(predictions.rows())


def write_predictions(path: Path, predictions: Predictions) -> None:
    """Write CSV with a header; or .npz with `y`, `proba` or `score`, `reason`, `files`.

    A .npy file gets one array: probabilities or scores if there are any, else labels.
    """
    labels = predictions.labels
    if labels.dtype == object:  # NumPy would pickle these
        labels = labels.astype(str)
    suffix, numbers = path.suffix.lower(), predictions.numbers
    if numbers is not None and predictions.kind == "score":
        numbers = numbers[:, 0]
    with atomic_write(path) as file:
        if suffix == ".csv":
            text = codecs.getwriter("utf-8")(file)
            csv.writer(text, lineterminator="\n").writerows(predictions.rows())
        elif suffix == ".npy":
            np.save(file, labels if numbers is None else numbers)
        else:
            arrays = {} if numbers is None else {str(predictions.kind): numbers}
            if predictions.reasons is not None:
                arrays["reason"] = predictions.reasons
            if predictions.files is not None:
                arrays["files"] = predictions.files.astype(str)
            np.savez(file, y=labels, **arrays)  # type: ignore[arg-type]


def _number_format(dtype: np.dtype) -> str:
    """Return a format with enough digits to read the same numbers back."""
    return f"%.{np.finfo(dtype).precision + 3}g"


def write_codes(path: Path, code_blocks: Iterable[sparse.csr_array]) -> None:
    """Write codes: sparse in SciPy's .npz, dense in .npy and .csv, block by block."""
    suffix = path.suffix.lower()
    with atomic_write(path) as file:
        if suffix == ".npz":
            sparse.save_npz(file, sparse.vstack(list(code_blocks), format="csr"))
        elif suffix == ".npy":
            write_rows(file, (block.toarray() for block in code_blocks))
        else:
            write_text(file, code_blocks)


def write_text(file: Any, code_blocks: Iterable[sparse.csr_array]) -> None:
    """Write dense codes in CSV."""
    for block in code_blocks:
        number_format = _number_format(block.dtype)
        np.savetxt(file, block.toarray(), fmt=number_format, delimiter=",")


SUFFIXES = (".csv", ".npy", ".npz")
ROOM = 2**20  # bytes that a disk must have free for the smallest result


def check_model(path: Path, force: bool) -> None:
    """Refuse a place where no model can be saved, or a file that is not a model."""
    _check_place(path)
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
    check_output(path, inputs, force)


def check_output(path: Path, inputs: Sequence[Path], force: bool) -> None:
    """Refuse a place where no file can be written, or a file that is read."""
    _check_place(path)
    is_input = path.exists() and any(p.exists() and path.samefile(p) for p in inputs)
    if is_input and not force:
        raise ValueError(
            f"{path}: is read by this command: name another file, or replace it with "
            "--force"
        )


def _check_place(path: Path) -> None:
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


def check_checkpoints(
    folder: Path | None, resume: bool, files: Iterable[Path | None]
) -> None:
    """Refuse a folder for checkpoints that is of no use to this command.

    It must not be one of the files that the command reads and writes, and must be
    writable. With the checkpoints of a fit in it, that fit has to be resumed.
    """
    if folder is None:
        if resume:
            raise typer.BadParameter("needs --checkpoint DIR", param_hint="--resume")
        return
    if not resume and next(folder.rglob("*.checkpoint"), None) is not None:
        raise ValueError(
            f"{folder}: holds the checkpoints of a fit: add --resume to go on with it, "
            "or name another folder"
        )
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
