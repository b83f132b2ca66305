"""Errors of reading data files, and the names and texts in their messages."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from ..config import options

MAX_NAMES = 5  # names of columns in a message
MAX_CHARACTERS = 60  # characters of a name in a message


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
    """List the first few names, and the number of the others."""
    first_names = ", ".join(repr(printable(name)) for name in names[:MAX_NAMES])
    return first_names + (
        f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    )


def printable(text: str) -> str:
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
    return repr(printable(cell.strip()))
