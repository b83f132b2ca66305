"""Finds the columns of labels and of features by their names, indices or content."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from ..base.names import guess
from .errors import DataFileError, list_names, printable
from .table import Request

#: Names by which a label column is recognised when none is given.
LABEL_NAMES = ("label", "labels", "class", "target", "y")
#: Names of columns that only number the rows, as pandas and R write them.
INDEX_NAMES = ("", "__index_level_0__")


def label_column(
    path: Path, names: list[str] | None, is_number: list[bool], request: Request
) -> int | None:
    """Find the label column: as given, by its usual names, or a last text column.

    `is_number` says for each column whether it holds numbers. Columns that are asked
    for as features are no labels, whatever their names.
    """
    label, count = request.label, len(is_number)
    if label is False:
        return None
    if isinstance(label, int):
        column = _column_by_index(path, label, count)
        if names and str(label) in names and names[column] != str(label):
            raise DataFileError(
                path,
                f"label={label} is the index of column {printable(names[column])!r}, "
                f"and another column is called {str(label)!r}: count from the end "
                f"(label={names.index(str(label)) - count}) or rename it",
            )
        return column
    if label is not None:
        return _column_by_name(path, str(label), names)
    features = set(request.columns or ())
    allowed = [
        j for j, name in enumerate(names or [""] * count) if name not in features
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
    is_text = count > 1 and not is_number[-1]
    return count - 1 if is_text and count - 1 in allowed else None


def feature_columns(
    path: Path,
    names: list[str] | None,
    n_columns: int,
    label: int | None,
    request: Request,
) -> list[int]:
    """Return the indices of features: the requested columns, or all but the labels."""
    unnamed = {j for j, name in enumerate(names or []) if name in INDEX_NAMES}
    feature_indices = [j for j in range(n_columns) if j != label and j not in unnamed]
    if not feature_indices:
        raise DataFileError(path, "has no column besides the labels: add features")
    if names is None or request.columns is None:
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
            f"lacks the model's columns {list_names(missing)}{instead}: rename or add "
            "them, or save it without a header to match columns by position",
        )
    refuse_equal_names(path, [name for name in names if name in expected_names])
    if extra:
        warnings.warn(
            f"{path}: columns that the model does not know are left out: "
            f"{list_names(extra)}",
            stacklevel=2,
        )


def refuse_equal_names(path: Path, names: list[str]) -> None:
    """Raise if two columns of features have the same name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise DataFileError(
                path, f"has {count} columns called {printable(name)!r}: rename them"
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
        column = repr(printable(names[j])) if names else str(j)
        raise DataFileError(
            path, f"column {column}, row {row} is {X[row, j]}: fill it in or drop it"
        )


def _column_by_index(path: Path, index: int, count: int) -> int:
    if not -count <= index < count:
        raise DataFileError(
            path, f"has {count} columns, so label={index} is outside: count from 0"
        )
    return index % count


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
