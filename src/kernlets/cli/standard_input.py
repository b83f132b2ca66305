"""Data from standard input or from a pipe: CSV text, copied to a file to be read."""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..datasets import DataFileError

STANDARD = ("-", "/dev/stdin")
BINARY = (b"\x93NUMPY", b"PK\x03\x04", b"PAR1", b"MATLAB", b"\x89HDF")


def is_stream(path: Path) -> bool:
    """Whether data come from standard input or a pipe, which can be read once."""
    return str(path) in STANDARD or path.is_fifo()


def name_of(path: Path) -> str:
    """Return the name of a path in messages."""
    return "standard input" if str(path) in STANDARD else str(path)


@contextmanager
def as_file(path: Path) -> Iterator[Path]:
    """Yield a file with the data: a copy of a stream, which messages do not name."""
    if not is_stream(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="kernlets-") as folder:
        copy = Path(folder) / "stream.csv"
        _copy(path, copy)
        with _rename_in_messages(copy, name_of(path)):
            yield copy


def _copy(path: Path, copy: Path) -> None:
    with copy.open("wb") as file:
        if str(path) in STANDARD:
            shutil.copyfileobj(sys.stdin.buffer, file)
        else:
            with path.open("rb") as stream:
                shutil.copyfileobj(stream, file)
    with copy.open("rb") as file:
        first = file.read(8)
    if first.startswith(BINARY):
        raise DataFileError(
            name_of(path), "is no text: pipe CSV, or give the file by its name"
        )


@contextmanager
def _rename_in_messages(copy: Path, name: str) -> Iterator[None]:
    """Name the stream in errors and warnings in place of the copy."""
    with warnings.catch_warnings():
        show_warning = warnings.showwarning

        def show_renamed(message: Any, *args: Any, **keywords: Any) -> None:
            show_warning(str(message).replace(str(copy), name), *args, **keywords)

        warnings.showwarning = show_renamed
        try:
            yield
        except DataFileError as error:
            problem = str(error).removeprefix(f"{copy}: ")
            raise DataFileError(name, problem) from error
