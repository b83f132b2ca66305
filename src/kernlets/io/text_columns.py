"""Columns of text as features: one column of 0 and 1 for each of their values.

The columns for the values a and b of a column c are called "c=a" and "c=b". So the
names of a model's features also hold the values, and such a file can be read for the
model again. A missing value is NaN in all columns of c, and a value that the model does
not know is 0 in all of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .data_file import DataFileError, list_names, refuse_equal_names, refuse_large

MAX_VALUES = 20  # of a column of text, if it is a feature
MAX_SHARE = 0.1  # of the rows: at most so many values, or two


class TextColumn:
    """A column of text and the values for which there are columns of 0 and 1."""

    def __init__(self, name: str, values: Sequence[str]) -> None:
        self.name, self.values = name, list(values)
        self.unknown: set[str] = set()
        self._codes = {value: code for code, value in enumerate(self.values)}

    @property
    def feature_names(self) -> list[str]:
        """The names of the columns of 0 and 1."""
        return [f"{self.name}={value}" for value in self.values]

    def code(self, value: str) -> float:
        """Return the position of a value; -1 for one that is not known."""
        code = self._codes.get(value)
        if code is None:
            self.unknown.add(value)
            return -1
        return code

    def indicators(self, codes: np.ndarray) -> np.ndarray:  # (n,) -> (n, n_values)
        """Return columns of 0 and 1 for codes; rows of NaN where a code is NaN."""
        columns = (codes[:, None] == np.arange(len(self.values))).astype(float)
        columns[np.isnan(codes)] = np.nan
        return columns


def max_values(n_rows: int) -> int:
    """Return how many values a column of text may have to be a feature."""
    return min(MAX_VALUES, max(2, int(MAX_SHARE * n_rows)))


def source_columns(
    features: Sequence[str], names: Sequence[str]
) -> dict[str, list[str]]:
    """Return the columns of a file that features come from, with their values of text.

    >>> source_columns(["age", "sex=f", "sex=m"], ["sex", "age", "name"])
    {'age': [], 'sex': ['f', 'm']}
    """
    present = set(names)
    columns: dict[str, list[str]] = {}
    for feature in features:
        column, equals, value = feature.partition("=")
        if feature in present or not equals or column not in present:
            columns[feature] = []
        else:
            columns.setdefault(column, []).append(value)
    return columns


def check_text_column(path: Path, name: str, values: Sequence[str]) -> None:
    """Refuse a column of text whose columns of 0 and 1 could have no clear names."""
    if "=" in name:
        raise DataFileError(
            path, f"column {name!r} holds text: rename it without =, or --drop it"
        )
    for value in values:
        if not "".join(value.split()).isprintable():
            raise DataFileError(
                path,
                f"column {name!r} holds {value!r}, which has characters that cannot "
                "be shown: remove them, or --drop the column",
            )


def assemble(
    path: Path,
    columns: Sequence[np.ndarray | tuple[TextColumn, np.ndarray]],
    names: Sequence[str],
    order: Sequence[str] | None = None,
) -> tuple[np.ndarray, list[str]]:
    """Return features and their names: numbers as they are, codes of text as 0 and 1.

    `order` gives the names in the order in which they are wanted.
    """
    widths = [len(c[0].values) if isinstance(c, tuple) else 1 for c in columns]
    n_rows = len(columns[0][1] if isinstance(columns[0], tuple) else columns[0])
    refuse_large(path, 8 * n_rows * sum(widths))
    blocks, feature_names = [], []
    for name, column in zip(names, columns, strict=True):
        if isinstance(column, tuple):
            text_column, codes = column
            blocks.append(text_column.indicators(codes))
            feature_names += text_column.feature_names
            warn_of_unknown_values(path, text_column)
        else:
            blocks.append(column[:, None])
            feature_names.append(name)
    refuse_equal_names(path, feature_names)
    X = np.hstack(blocks)
    if order is not None and feature_names != [*order]:
        index_of = {name: j for j, name in enumerate(feature_names)}
        X, feature_names = X[:, [index_of[name] for name in order]], [*order]
    return X, feature_names


def warn_of_unknown_values(path: Path, column: TextColumn) -> None:
    """Warn of values for which the model has no column."""
    if column.unknown:
        warnings.warn(
            f"{path}: column {column.name!r} has values that the model does not know: "
            f"{list_names(sorted(column.unknown))}: they count as none of its values",
            stacklevel=2,
        )


def warn_of_many_values(path: Path, names: list[str], n_rows: int) -> None:
    """Warn that columns of text with many values are left out."""
    if names:
        is_one = len(names) == 1
        subject = f"{'column' if is_one else 'columns'} {list_names(names)}"
        verbs = ("holds", "is") if is_one else ("hold", "are")
        warnings.warn(
            f"{path}: {subject} {verbs[0]} text with more than {max_values(n_rows)} "
            f"values and {verbs[1]} left out: --keep {names[0]} makes each value a "
            "feature",
            stacklevel=2,
        )
