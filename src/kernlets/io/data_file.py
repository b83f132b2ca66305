"""What all readers of data files share: `Table`, `Request`, errors and their texts."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..config import options

MAX_NAMES = 5  # names of columns in a message
MAX_CHARACTERS = 60  # characters of a name in a message


class Table(NamedTuple):
    """Rows of a file, with labels, column names and image shape if it has them.

    Parameters
    ----------
    X : array (n, p)
        Floats, or a memory map in its stored type; from `open_rows` also blocks.
    y : array (n,) or None
        Labels, numbers or strings.
    feature_names : list of str, optional
        Column names.
    image_shape : tuple of int, optional
        Shape of an image.
    files : array (n,), optional
        Of a folder of images the file of each row, from the folder on.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import datasets
    >>> datasets.Table(np.zeros((2, 3)), np.array(["no", "yes"])).class_names
    ['no', 'yes']
    """

    X: Any  # (n, p), float, or a memory map as stored; from `open_rows` also blocks
    y: np.ndarray | None  # (n,), numbers or strings
    feature_names: list[str] | None = None
    image_shape: tuple[int, ...] | None = None
    files: np.ndarray | None = None  # (n,) text

    @property
    def class_names(self) -> list[str] | None:
        """The distinct labels in sorted order, as text."""
        return None if self.y is None else [str(label) for label in np.unique(self.y)]


@dataclass(frozen=True)
class Request:
    """Options of `read_table`, handed to every reader."""

    label: str | int | bool | None = None
    key: str | None = None
    size: tuple[int, int] | None = None
    color: bool = False
    header: bool | None = None
    columns: tuple[str, ...] | None = None  # the features, in this order
    gaps: bool = False  # whether cells without a value are NaN, or an error
    keep: tuple[str, ...] | None = None  # features, though they look like row numbers


def text_array(text: list[str]) -> np.ndarray:
    """Make an array of objects of texts, so that a long one does not widen all."""
    texts = np.empty(len(text), dtype=object)
    texts[:] = text
    return texts


class DataFileError(ValueError):
    """A data file that cannot be used: one line with the file and the remedy.

    `in_shell` is the same with the remedy in the words of the command line.
    """

    def __init__(
        self, path: Path | str, problem: str, in_shell: str | None = None
    ) -> None:
        super().__init__(" ".join(f"{path}: {problem}".split()))
        self.in_shell = " ".join(f"{path}: {in_shell or problem}".split())


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn any error of a reader on a damaged file into a `DataFileError`."""
    try:
        yield
    except (DataFileError, ImportError):
        raise
    except Exception as error:  # readers of other libraries raise many kinds of errors
        raise DataFileError(path, _explain_unreadable(error)) from error


def refuse_special(path: Path) -> None:
    """Raise for a pipe, a socket or a device, which may be waited for without end."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataFileError(path, "is not a regular file: save it as one, or remove it")


def refuse_large(path: Path, n_bytes: int) -> None:
    """Raise if what is to be read takes more memory than the memory option.

    A small file may hold a lot: zeros compress well, and sparse matrices become dense.
    """
    if n_bytes > options.memory:
        raise DataFileError(
            path,
            f"takes {n_bytes / 2**20:.3g} MiB in memory, more than the memory option, "
            f"{options.memory / 2**20:.3g} MiB: raise it with --memory "
            "(kernlets.options(memory=...)), or save less in it",
        )


def _explain_unreadable(error: Exception) -> str:
    if type(error).__name__ == "DecompressionBombError":
        return "has more pixels than PIL.Image.MAX_IMAGE_PIXELS allows: save fewer"
    if isinstance(error, MemoryError):
        return f"does not fit into memory ({error}): save fewer rows or use .npy"
    if re.search("pickle|Python objects", str(error)):
        return (
            "is no NumPy file of plain numbers (Python objects are not read): "
            "save numeric arrays with numpy.save or numpy.savez"
        )
    return (
        f"cannot be read ({type(error).__name__}: {error}): it seems damaged or cut "
        "short, write or download it again"
    )


def list_names(names: list[str]) -> str:
    """List the first few names in quotation marks, and the number of the others."""
    return list_texts([repr(short_text(name)) for name in names])


def list_texts(texts: list[str], at_most: int = MAX_NAMES) -> str:
    """List the first few texts, and the number of the others."""
    n_more = len(texts) - at_most
    return ", ".join(texts[:at_most]) + (f" and {n_more} more" if n_more > 0 else "")


def short_text(text: str) -> str:
    """Shorten text from a file, and replace its control characters."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}..."


def optional_import(module: str, extra: str, path: Path) -> ModuleType:
    """Import a library that only some files need, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{path}: reading it needs {module.split('.')[0]}: "
            f"pip install 'kernlets[{extra}]'"
        ) from error


def quote_cell(cell: str) -> str:
    """Return the content of a cell in quotation marks, fit for a message."""
    return repr(short_text(cell.strip()))
