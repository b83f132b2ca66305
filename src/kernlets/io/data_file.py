"""What all readers of data files share: `Table`, `Request`, errors, and columns."""

from __future__ import annotations

import importlib
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..base.names import guess
from ..config import options
from ..numerics.text import field_text

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
    label_name : str, optional
        Name of the column of labels.
    text_columns : dict, optional
        Values of the columns of text that are coded, by name.
    left_out : tuple of str
        Names of the columns that `keep` or `drop` leave out.

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
    label_name: str | None = None
    text_columns: dict[str, list[str]] | None = None
    left_out: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return field_text(self)

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
    drop: tuple[str, ...] = ()  # columns that are no features

    @property
    def kept(self) -> set[str]:
        """The columns that are features whatever they look like."""
        return {*(self.keep or ()), *(self.columns or ())}


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


def refuse_large(path: Path, n_bytes: int, remedy: str = "save less in it") -> None:
    """Raise if what is to be read takes more memory than the memory option.

    A small file may hold a lot: zeros compress well, and sparse matrices become dense.
    """
    if n_bytes > options.memory:
        raise DataFileError(
            path,
            f"takes {n_bytes / 2**20:.3g} MiB in memory, more than the memory option, "
            f"{options.memory / 2**20:.3g} MiB: raise it with --memory "
            f"(kernlets.options(memory=...)), or {remedy}",
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


#: Names by which a label column is recognised when none is given.
LABEL_NAMES = ("label", "labels", "class", "target", "y")
#: Names of columns that only number the rows, as pandas and R write them.
INDEX_NAMES = ("", "__index_level_0__")


def as_tuple(names: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return names that a user gave as any sequence, for a `Request`."""
    return None if names is None else tuple(names)


def label_column(
    path: Path, names: list[str] | None, no_words: list[bool], request: Request
) -> int | None:
    """Find the label column: as given, by its usual names, or a last text column.

    `no_words` says for each column whether it holds numbers or dates. Columns that are
    asked for as features are no labels, whatever their names.
    """
    label, count = request.label, len(no_words)
    if label is False:
        return None
    if isinstance(label, int):
        if not -count <= label < count:
            raise DataFileError(
                path, f"has {count} columns, so label={label} is outside: count from 0"
            )
        column = label % count
        if names and str(label) in names and names[column] != str(label):
            raise DataFileError(
                path,
                f"label={label} is the index of column {short_text(names[column])!r}, "
                f"and another column is called {str(label)!r}: count from the end "
                f"(label={names.index(str(label)) - count}) or rename it",
            )
        return column
    if label is not None:
        return _column_by_name(path, str(label), names)
    no_labels = request.kept | {*request.drop}
    allowed = [
        j for j, name in enumerate(names or [""] * count) if name not in no_labels
    ]
    usual_columns = [j for j in allowed if names and names[j].lower() in LABEL_NAMES]
    if usual_columns:
        if names and len(usual_columns) > 1:
            warnings.warn(
                f"{path}: {names[usual_columns[0]]!r} is taken for the labels, and "
                f"{list_names([names[j] for j in usual_columns[1:]])} for features: "
                "name the label column, and remove others that tell the same",
                stacklevel=2,
            )
        return usual_columns[0]
    has_words = count > 1 and not no_words[-1]
    return count - 1 if has_words and count - 1 in allowed else None


def _column_by_name(path: Path, label: str, names: list[str] | None) -> int:
    if names is None:
        raise DataFileError(
            path, f"has no header, so label={label!r} names no column: give its index"
        )
    if label not in names:
        hint = guess(label, names).strip() or f"there are {list_names(names)}"
        raise DataFileError(path, f"has no column {label!r}: {hint}")
    refuse_equal_names(path, [name for name in names if name == label])
    return names.index(label)


def feature_columns(
    path: Path,
    names: list[str] | None,
    n_columns: int,
    label: int | None,
    request: Request,
) -> list[int]:
    """Return the indices of features: the requested columns, or all but the labels."""
    if names is None and request.drop:
        raise DataFileError(
            path, f"has no header, so {request.drop[0]!r} names no column to drop"
        )
    check_present(path, request.drop, names or [], "drop")
    left_out = {*INDEX_NAMES, *request.drop}
    feature_indices = [
        j
        for j in range(n_columns)
        if j != label and (names is None or names[j] not in left_out)
    ]
    if not feature_indices:
        raise DataFileError(path, "has no column besides the labels: add features")
    if request.columns is None:
        return feature_indices
    if request.keep is not None:  # columns that a user chose, not those of a model
        if names is None:
            raise DataFileError(
                path, f"has no header, so {request.columns[0]!r} names no column to use"
            )
        check_present(path, request.columns, names, "use")
        return [j for j in feature_indices if names[j] in request.columns]
    if names is None:
        return feature_indices
    if label is not None and names[label] in request.columns:
        raise DataFileError(
            path, f"{names[label]!r} is a feature of the model: give another label"
        )
    check_names(path, [names[j] for j in feature_indices], request.columns)
    index_of = {names[j]: j for j in feature_indices}
    return [index_of[name] for name in request.columns]


def check_names(path: Path, names: list[str], expected: tuple[str, ...]) -> None:
    """Raise for columns that are missing or not unique; warn of ignored columns."""
    expected_names, present_names = set(expected), set(names)
    missing = [name for name in expected if name not in present_names]
    extra = [name for name in names if name not in expected_names]
    if missing:
        instead = f", but has {list_names(extra)}" if extra else ""
        raise DataFileError(
            path,
            f"lacks the model's columns {list_names(_without_values(missing))}"
            f"{instead}: rename or add "
            "them, or save it without a header to match columns by position",
        )
    refuse_equal_names(path, [name for name in names if name in expected_names])
    if extra:
        warnings.warn(
            f"{path}: columns that the model does not know are left out: "
            f"{list_names(extra)}",
            stacklevel=2,
        )


def _without_values(names: list[str]) -> list[str]:
    """Name a column of text once, in place of all its columns of 0 and 1.

    >>> _without_values(["age", "sex=f", "sex=m", "a=b"])
    ['age', 'sex', 'a=b']
    """
    columns = [name.partition("=")[0] for name in names]
    counts, pairs = Counter(columns), zip(columns, names, strict=True)
    return list(dict.fromkeys(c if counts[c] > 1 else name for c, name in pairs))


def refuse_equal_names(path: Path, names: list[str]) -> None:
    """Raise if two columns of features have the same name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise DataFileError(
                path, f"has {count} columns called {short_text(name)!r}: rename them"
            )


def refuse_missing(
    path: Path, X: np.ndarray, names: list[str] | None = None, allow_nan: bool = False
) -> None:
    """Raise if a matrix in memory holds NaN or infinity, for the first such cell."""
    if X.dtype.kind != "f":
        return
    bad_cells = np.argwhere(np.isinf(X) if allow_nan else ~np.isfinite(X))
    if len(bad_cells):
        row, j = map(int, bad_cells[0])
        column = repr(short_text(names[j])) if names else str(j)
        raise DataFileError(
            path, f"column {column}, row {row} is {X[row, j]}: fill it in or drop it"
        )


def check_present(
    path: Path, names: Sequence[str] | None, titles: list[str], purpose: str = "keep"
) -> None:
    """Raise if a column that a user names does not exist."""
    for name in names or ():
        if name not in titles:
            hint = guess(name, titles).strip() or f"there are {list_names(titles)}"
            raise DataFileError(path, f"has no column {name!r} to {purpose}: {hint}")
