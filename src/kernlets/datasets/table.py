"""What a read file gives (`Table`), what is asked of it (`Request`), how it fails."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

#: Names by which a label column is recognised when none is given.
LABEL_NAMES = ("label", "labels", "class", "target", "y")


class DataFileError(ValueError):
    """A data file that cannot be used: one line with the file and the remedy."""

    def __init__(self, path: Path | str, problem: str) -> None:
        super().__init__(" ".join(f"{path}: {problem}".split()))


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever a reader raises on a damaged file into a `DataFileError`."""
    try:
        yield
    except (DataFileError, ImportError):
        raise
    except Exception as error:  # the readers of other libraries raise all kinds
        raise DataFileError(path, _why_unreadable(error)) from error


def _why_unreadable(error: Exception) -> str:
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


class Table(NamedTuple):
    """Rows of a file, with labels, column names and image shape where it has them."""

    X: Any  # (n, p), float, or a memory map as stored; from `open_rows` also blocks
    y: np.ndarray | None  # (n,), numbers or strings
    feature_names: list[str] | None = None
    image_shape: tuple[int, ...] | None = None

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


def label_column(
    path: Path, names: list[str] | None, is_number: list[bool], request: Request
) -> int | None:
    """Index of the label column: as asked, by its usual names, or a last text column.

    `is_number` says for each column whether it holds numbers.
    """
    label, count = request.label, len(is_number)
    if label is False:
        return None
    if isinstance(label, int):
        return _column_at(path, label, count)
    if label is not None:
        return _column_called(path, str(label), names)
    usual = [j for j, name in enumerate(names or []) if name.lower() in LABEL_NAMES]
    if usual:
        return usual[0]
    return count - 1 if count > 1 and not is_number[-1] else None


def _column_at(path: Path, index: int, count: int) -> int:
    if not -count <= index < count:
        raise DataFileError(
            path, f"has {count} columns, so label={index} is outside: count from 0"
        )
    return index % count


def _column_called(path: Path, label: str, names: list[str] | None) -> int:
    if names is None:
        raise DataFileError(
            path, f"has no header, so label={label!r} names no column: give its index"
        )
    if label not in names:
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        close = get_close_matches(label, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"choose from {shown}"
        raise DataFileError(path, f"has no column {label!r}: {hint}")
    return names.index(label)


def optional_import(module: str, extra: str, path: Path) -> ModuleType:
    """Import a library that only some files need, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{path}: reading it needs {module.split('.')[0]}: "
            f"pip install 'kernlets[{extra}]'"
        ) from error
