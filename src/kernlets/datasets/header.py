"""Decides whether the first line of a text file names its columns."""

from __future__ import annotations

import math
import warnings
from itertools import pairwise
from pathlib import Path

from .find_columns import LABEL_NAMES
from .table import Request

#: Marks of missing values in files, in lower case.
MISSING = ("", "?", "-", "na", "n/a", "nan", "nil", "none", "null")
LOOKED_AT = 20  # number of lines that are compared with the first
MIN_COUNTED = 3  # fewer columns than this may count up by chance
MIN_TICKS = 8  # fewer columns than this may rise in equal steps by chance


def has_header(path: Path, lines: list[list[str]], request: Request) -> bool:
    """Whether the first of these lines of cells is a header.

    It is one if it holds no number at all, but not marks of missing values alone, if
    it holds the name of the label column or of a column that is asked for, or if its
    numbers count the columns (0, 1, 2, ... or 1, 2, 3, ...) or rise in equal steps over
    at least eight columns, and no other line looks like that. The last kind is a guess
    and gives a warning.
    """
    if request.header is not None or not lines:
        return bool(request.header)
    first_line, later_lines = [cell.strip() for cell in lines[0]], lines[1:]
    if _has_expected_name(first_line, request):
        return True
    if not any(map(is_number, first_line)):
        n_missing = sum(cell.lower() in MISSING for cell in first_line)
        return n_missing < max(
            2, len(first_line) - 1
        )  # else it is a row of missing values
    is_alone = later_lines and not any(
        _resembles(first_line, cells) for cells in later_lines
    )
    if not (_is_scale(first_line) and is_alone):
        return False
    warnings.warn(
        f"{path}: line 1 is taken for a header, since its numbers rise in equal steps; "
        "say --no-header (header=False) if it is data, --header (header=True) if not",
        stacklevel=2,
    )
    return True


def is_number(cell: str) -> bool:
    """Whether a cell can be read as a number, NaN and infinity included.

    Python also reads 1_000, and digits of other scripts; NumPy's reader does not.
    """
    try:
        float(cell)
    except ValueError:
        return False
    return cell.isascii() and "_" not in cell


def _has_expected_name(names: list[str], request: Request) -> bool:
    if request.label in names or any(name.lower() in LABEL_NAMES for name in names):
        return True
    return request.columns is not None and set(request.columns) <= set(names)


def _is_scale(cells: list[str]) -> bool:
    """Whether the numbers among the cells count columns, or are ticks of an axis."""
    numbers, step = _numbers(cells), _step(cells)
    if step is None:
        return False
    if not (numbers[0] in (0, 1) and step == 1):
        return len(numbers) >= MIN_TICKS
    return len(numbers) >= MIN_COUNTED or "" in cells  # data have no empty cells


def _resembles(first_line: list[str], cells: list[str]) -> bool:
    """Whether another line has the steps, or a word, of the first line."""
    step, pairs = _step(cells), zip(first_line, cells, strict=False)
    are_equal_words = (a == b.strip() for a, b in pairs if a and not is_number(a))
    return (step is not None and step == _step(first_line)) or any(are_equal_words)


def _step(cells: list[str]) -> float | None:
    """Return the step by which the numbers among the cells rise, if it is constant."""
    steps = [b - a for a, b in pairwise(_numbers(cells))]
    if not steps or not steps[0] > 0:
        return None
    is_even = all(math.isclose(step, steps[0], rel_tol=1e-6) for step in steps)
    return steps[0] if is_even else None


def _numbers(cells: list[str]) -> list[float]:
    return [float(cell) for cell in cells if is_number(cell)]
