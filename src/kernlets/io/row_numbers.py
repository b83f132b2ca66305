"""Columns that only number the rows, and columns without names.

A classifier that uses numbers of rows as a feature learns the order of the file, in
which rows of a class often stand together. So `kernlets fit` leaves such columns out,
and says so.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .data_file import Request, Table, check_present, list_names

MIN_ROWS = 10  # rows; the numbers of fewer may rise, or follow each other, by chance
MIN_ROWS_FOR_WARNING = 100  # from which on different whole numbers give a warning
N_FIRST_ROWS = 64  # rows in which repeated numbers are looked for first
#: Names of columns that number rows: id, patient_id, PassengerId, index, row_nr, ...
NAME = re.compile(
    r"(?i:(.*[^a-z])?(id|ids|uuid|guid)|unnamed: \d+|"
    r"(row|sample|record|case|obs|observation)?[ _.-]?"
    r"(index|idx|key|nr|no|num|number|names?)|row|sample|case)|.*[a-z](Id|ID)"
)
POSITION = re.compile(r"column (\d+) of (\d+)")


def position_names(n_columns: int) -> list[str]:
    """Return names for columns without names, which tell their indices."""
    return [f"column {j} of {n_columns}" for j in range(n_columns)]


def row_ids(X: np.ndarray, names: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return indices of columns that number the rows, and of those that may do so.

    Both hold whole numbers, all different. Those of the first kind have the name of
    numbers of rows, or rise from row to row, or follow each other in some order.
    """
    certain, possible = [], []
    n = len(X)
    first_rows = np.sort(X[:N_FIRST_ROWS], axis=0)
    has_no_repeats = np.all(first_rows[1:] != first_rows[:-1], axis=0)
    for j in np.flatnonzero(has_no_repeats).tolist() if n > 1 else []:
        column = np.asarray(X[:, j], dtype=float)
        in_order = np.sort(column)
        if not (np.isfinite(column).all() and np.all(column % 1 == 0)):
            continue
        if not np.all(np.diff(in_order) > 0):
            continue
        rises = bool(np.all(np.diff(column) > 0)) or in_order[-1] - in_order[0] < n
        if NAME.fullmatch(names[j].strip()) or (n >= MIN_ROWS and rises):
            certain.append(j)
        elif n >= MIN_ROWS_FOR_WARNING:
            possible.append(j)
    return certain, possible


def are_positions(names: Sequence[str]) -> bool:
    """Whether names are those of `position_names`."""
    return all(map(POSITION.fullmatch, names))


def positions(names: Sequence[str] | None, n_columns: int) -> list[int] | None:
    """Return the indices in names of `position_names`, if all have this width."""
    matches = [POSITION.fullmatch(name) for name in names or []]
    numbers = [
        int(match[1]) for match in matches if match and int(match[2]) == n_columns
    ]
    return numbers if matches and len(numbers) == len(matches) else None


def columns_to_use(
    path: Path, X: np.ndarray, names: list[str] | None, request: Request
) -> list[int]:
    """Return the indices of columns that are features, and warn of all others."""
    n_columns = X.shape[1]
    if request.keep is None or n_columns == 1:
        return list(range(n_columns))
    certain, possible = row_ids(X, names or [""] * n_columns)
    titles = names or [str(j) for j in range(n_columns)]
    left_out = [j for j in certain if titles[j] not in request.kept]
    if len(left_out) == n_columns:
        return left_out
    warn_of_left_out(path, [titles[j] for j in left_out])
    doubtful = [titles[j] for j in possible if titles[j] not in request.kept]
    if doubtful:
        warnings.warn(
            f"{path}: every row has another whole number in {list_names(doubtful)}: "
            "remove what only numbers the rows, say --keep if it is a feature",
            stacklevel=2,
        )
    return [j for j in range(n_columns) if j not in left_out]


def warn_of_left_out(path: Path, titles: list[str]) -> None:
    """Warn that columns which only number the rows are left out."""
    if titles:
        is_one = len(titles) == 1
        subject = f"{'column' if is_one else 'columns'} {list_names(titles)}"
        verbs = "tells rows apart and is" if is_one else "tell rows apart and are"
        warnings.warn(
            f"{path}: {subject} only {verbs} left out: "
            f"--keep {titles[0]} makes it a feature",
            stacklevel=2,
        )


def without_row_ids(path: Path, table: Table, request: Request) -> Table:
    """Remove the columns that only number the rows from a table in memory."""
    names, n_columns = table.feature_names, table.X.shape[1]
    if names is None and request.keep:  # images may have millions of columns
        check_present(path, request.keep, [str(j) for j in range(n_columns)])
    if table.image_shape is not None:
        return table
    columns = positions(request.columns, n_columns) if names is None else None
    if columns is None:
        columns = columns_to_use(path, table.X, names, request)
    if len(columns) == n_columns:
        return table
    names = names or position_names(n_columns)
    return table._replace(
        X=np.asarray(table.X)[:, columns],
        feature_names=[names[j] for j in columns],
        left_out=(
            *table.left_out,
            *(name for j, name in enumerate(names) if j not in columns),
        ),
    )
