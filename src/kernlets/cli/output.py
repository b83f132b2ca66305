"""Files that commands write: labels and codes. Each appears complete or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import typer
from scipy import sparse

from ..backend.atomic import atomic_write
from ..datasets import write_rows

SUFFIXES = (".csv", ".npy", ".npz")


def check_folder(path: Path) -> None:
    """Refuse a place where no file can be, before any work is done."""
    if path.is_dir():
        raise ValueError(f"{path}: is a folder, give the name of a file")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{path.parent}: no such folder, create it first")


def check_table(path: Path) -> None:
    """Refuse a file name that says nothing about its format, too."""
    if path.suffix.lower() not in SUFFIXES:
        raise typer.BadParameter(
            f"{path} must end in {', '.join(SUFFIXES)}", param_hint="--output"
        )
    check_folder(path)


def write_labels(path: Path, labels: np.ndarray) -> None:
    """One label per line under a header, or an array (in .npz it is called y)."""
    if labels.dtype == object:  # NumPy would pickle these
        labels = labels.astype(str)
    suffix = path.suffix.lower()
    with atomic_write(path) as file:
        if suffix == ".csv":
            file.write("\n".join(["label", *map(_cell, labels), ""]).encode())
        elif suffix == ".npy":
            np.save(file, labels)
        else:
            np.savez(file, y=labels)


def _cell(label: Any) -> str:
    """A cell of a CSV file, quoted where it must be."""
    text = str(label)
    is_plain = not any(mark in text for mark in ',"\r\n')
    return text if is_plain else '"' + text.replace('"', '""') + '"'


def write_codes(path: Path, parts: Iterable[sparse.csr_array]) -> None:
    """Sparse in .npz as SciPy stores it; dense in .npy and .csv, part by part."""
    suffix = path.suffix.lower()
    with atomic_write(path) as file:
        if suffix == ".npz":
            sparse.save_npz(file, sparse.vstack(list(parts), format="csr"))
        elif suffix == ".npy":
            write_rows(file, (part.toarray() for part in parts))
        else:
            for part in parts:
                digits = np.finfo(part.dtype).precision + 3  # enough to read them back
                np.savetxt(file, part.toarray(), fmt=f"%.{digits}g", delimiter=",")
