"""Columns that number or name the rows, and say nothing about what is in them.

A classifier that is given one learns the order of the file: rows of a class often stand
together. `kernlets fit` therefore leaves such columns out, and says so.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kernlets.datasets.table_types import DataFileError, Request, Table, listed

from ..backend.names import guess

FEWEST = 10  # rows; the numbers of fewer may rise, or follow each other, by chance
MANY = 100  # rows, in which whole numbers that are all different are worth a word
SOME = 64  # rows that are looked at first
#: Names of columns that number rows: id, patient_id, PassengerId, index, row_nr, ...
NAME = re.compile(
    r"(?i:(.*[^a-z])?(id|ids|uuid|guid)|unnamed: \d+|"
    r"(row|sample|record|case|obs|observation)?[ _.-]?"
    r"(index|idx|key|nr|no|num|number|names?)|row|sample|case)|.*[a-z](Id|ID)"
)
POSITION = re.compile(r"column (\d+) of (\d+)")


def row_ids(X: np.ndarray, names: Sequence[str]) -> tuple[list[int], list[int]]:
    """Indices of the columns that number the rows, and of those that may do so.

    Both hold whole numbers, all different. Those of the first kind have the name of
    numbers of rows, or rise from row to row, or follow each other in some order.
    """
    certain, possible = [], []
    n = len(X)
    for j in _different(X[:SOME]) if n > 1 else []:
        column = np.asarray(X[:, j], dtype=float)
        in_order = np.sort(column)
        if not (np.isfinite(column).all() and np.all(column % 1 == 0)):
            continue
        if not np.all(np.diff(in_order) > 0):
            continue
        rises = bool(np.all(np.diff(column) > 0)) or in_order[-1] - in_order[0] < n
        if NAME.fullmatch(names[j].strip()) or (n >= FEWEST and rises):
            certain.append(j)
        elif n >= MANY:
            possible.append(j)
    return certain, possible


def _different(X: np.ndarray) -> list[int]:
    """Indices of the columns of some rows that hold no number twice."""
    in_order = np.sort(X, axis=0)
    return np.flatnonzero(np.all(in_order[1:] != in_order[:-1], axis=0)).tolist()


def are_row_names(name: str, n_rows: int) -> bool:
    """Whether text that is another one in each of n rows only names them."""
    return n_rows >= FEWEST or NAME.fullmatch(name.strip()) is not None


def position_names(width: int) -> list[str]:
    """Names for columns without names, of which some are left out."""
    return [f"column {j} of {width}" for j in range(width)]


def are_positions(names: Sequence[str]) -> bool:
    """Whether names are those of `position_names`."""
    return all(map(POSITION.fullmatch, names))


def positions(names: Sequence[str] | None, width: int) -> list[int] | None:
    """The indices that `position_names` put into names, if all are of such a width."""
    matches = [POSITION.fullmatch(name) for name in names or []]
    numbers = [int(match[1]) for match in matches if match and int(match[2]) == width]
    return numbers if matches and len(numbers) == len(matches) else None


def columns_to_use(
    path: Path, X: np.ndarray, names: list[str] | None, request: Request
) -> list[int]:
    """Indices of the columns that are features, with a word on all others."""
    width = X.shape[1]
    if request.keep is None or width == 1:
        return list(range(width))
    certain, possible = row_ids(X, names or [""] * width)
    titles = names or [str(j) for j in range(width)]
    out = [j for j in certain if titles[j] not in request.keep]
    if len(out) == width:
        return out
    tell_left_out(path, [titles[j] for j in out])
    asked = [titles[j] for j in possible if titles[j] not in request.keep]
    if asked:
        warnings.warn(
            f"{path}: every row has another whole number in {listed(asked)}: remove "
            "what only numbers the rows, say --keep if it is a feature",
            stacklevel=2,
        )
    return [j for j in range(width) if j not in out]


def tell_left_out(path: Path, titles: list[str]) -> None:
    """Say which columns only number or name the rows."""
    if titles:
        one = "column" if len(titles) == 1 else "columns"
        warnings.warn(
            f"{path}: {one} {listed(titles)} only tell rows apart and are left out: "
            f"--keep {titles[0]} makes one a feature",
            stacklevel=2,
        )


def check_keep(path: Path, titles: list[str], request: Request) -> None:
    """Raise if a column that is to be kept does not exist."""
    for name in request.keep or ():
        if name not in titles:
            hint = guess(name, titles).strip() or f"there are {listed(titles)}"
            raise DataFileError(path, f"has no column {name!r} to keep: {hint}")


def without_row_ids(path: Path, table: Table, request: Request) -> Table:
    """A table in memory without the columns that only number the rows."""
    names, width = table.feature_names, table.X.shape[1]
    if names is None:
        check_keep(path, [str(j) for j in range(width)], request)
    if table.image_shape is not None:
        return table
    columns = positions(request.columns, width) if names is None else None
    if columns is None:
        columns = columns_to_use(path, table.X, names, request)
    if len(columns) == width:
        return table
    names = names or position_names(width)
    return table._replace(
        X=np.asarray(table.X)[:, columns], feature_names=[names[j] for j in columns]
    )
