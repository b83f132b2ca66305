"""Finds out how a text file is written: delimiter, decimals, header and columns."""

from __future__ import annotations

import csv
import math
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import IO

import numpy as np

from .data_file import (
    LABEL_NAMES,
    DataFileError,
    Request,
    check_present,
    feature_columns,
    label_column,
    quote_cell,
)
from .row_numbers import position_names
from .text_columns import TextColumn, source_columns

#: Marks of missing values in files, in lower case.
MISSING = ("", "?", "-", "na", "n/a", "nan", "nil", "none", "null")
FIRST_LINES = 20  # lines that tell the layout
MIN_COUNTED = 3  # fewer columns than this may count up by chance
MIN_TICKS = 8  # fewer columns than this may rise in equal steps by chance
ZEROS = "bytes of zero, as no text has: save it as UTF-8"
NEVER_IN_LABELS = ("\n", "\r", "\0")
COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")  # 1,5
DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}\b")  # a time may follow
DOUBTFUL = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # 1,234 may be a thousand


@dataclass
class TextLayout:
    """The layout of a text file, and the labels and commas that parsing met."""

    delimiter: str
    names: list[str] | None
    titles: list[str]  # names of columns, or without a header their positions
    label: int | None
    features: list[int]
    request: Request
    unnamed: tuple[int, ...] = ()  # columns that number the rows, or have to be empty
    comma: bool = False  # whether decimals are written with a comma
    feature_names: tuple[str, ...] | None = None  # in the order of a model
    left_out: tuple[str, ...] = ()
    texts: dict[int, TextColumn] = field(default_factory=dict)  # columns of text
    codes: dict[str, int] = field(default_factory=dict)  # of labels
    doubtful: str = ""  # a number whose comma may mark thousands
    is_certain: bool = False  # whether the comma of another one can mark decimals only

    @property
    def gaps(self) -> bool:
        """Whether cells may be empty."""
        return self.request.gaps

    def converters(self, as_written: bool) -> dict[int | str, Callable[[str], float]]:
        """Return converters for NumPy's reader: labels become codes, row names NaN.

        Features are converted, too, if `as_written` is true: cells may then be empty,
        and decimals may be written with a comma.
        """
        ignored = set(range(len(self.titles))) - set(self.features)
        converters: dict[int | str, Callable[[str], float]]
        converters = dict.fromkeys(ignored, lambda cell: 0.0)
        for j in self.unnamed:
            converters[j] = _row_number if j == 0 else _require_empty
        if self.label is not None:
            converters[self.label] = self._label_code
        if as_written:
            converters.update(dict.fromkeys(self.features, self.number))
        for j in self.texts:
            converters[j] = partial(self._text_code, j)
        return converters

    def number(self, cell: str) -> float:
        """Return the number in a cell, or NaN for a mark of a missing value."""
        cell = cell.strip()
        if self.gaps and cell.lower() in MISSING:
            return np.nan
        if self.comma and "." in cell:
            raise ValueError("a decimal point beside decimal commas")
        if self.comma and COMMA.fullmatch(cell):
            if DOUBTFUL.fullmatch(cell):
                self.doubtful = self.doubtful or cell
            else:
                self.is_certain = True
            cell = cell.replace(",", ".")
        if not is_number(cell):
            raise ValueError("no number")
        return float(cell)

    def title(self, j: int) -> str:
        """Return the name of a column for a message, or its index."""
        return quote_cell(self.names[j]) if self.names else str(j)

    @property
    def other_label(self) -> str:
        """Advice for a column of text, which may hold the labels."""
        return ", or set label to the column of labels" if self.label is None else ""

    def _label_code(self, text: str) -> float:
        if any(mark in text for mark in NEVER_IN_LABELS):
            raise ValueError("a label on several lines")
        return self.codes.setdefault(text.strip(), len(self.codes))

    def _text_code(self, j: int, cell: str) -> float:
        cell = cell.strip()
        return np.nan if cell.lower() in MISSING else self.texts[j].code(cell)


def _row_number(cell: str) -> float:
    """Return the number of a row, or NaN if the row has a name."""
    return float(cell) if is_number(cell) else np.nan


def _require_empty(cell: str) -> float:
    if cell.strip():
        raise ValueError("a cell in a column without a name")
    return 0.0


def find_layout(path: Path, request: Request) -> TextLayout:
    """Find the layout of a file from its first lines and the options of reading."""
    delimiter = _find_delimiter(path)
    head = _first_rows(path, delimiter)
    comma = _has_decimal_commas(head, delimiter)
    if comma:
        head = [[_with_point(cell) for cell in row] for row in head]
    is_named = _has_header(path, head, request)
    data = head[is_named:]
    if not data:
        raise DataFileError(path, "has no rows of data: write or download it again")
    names = [name.strip() for name in head[0]] if is_named else None
    if any("\n" in name for name in names or []):
        raise DataFileError(path, "has a name on several lines: fix the header")
    if names is not None and len(names) != len(data[0]):
        raise DataFileError(
            path, f"names {len(names)} columns but has {len(data[0])}: fix the header"
        )
    # a single word, dates, or a column without a value do not make a column of labels
    no_words = [
        any(map(is_number, cells)) or all(map(_is_date_or_missing, cells))
        for cells in zip(*data, strict=False)
    ]
    titles, label = _find_label(path, names, no_words, request)
    sources: dict[str, list[str]] = {}
    feature_names = None
    if request.columns is not None and request.keep is None:  # those of a model
        sources = source_columns(request.columns, titles)
        if names is not None or sources.keys() <= {*titles}:
            feature_names = request.columns
            request = replace(request, columns=tuple(sources))
    used_names = titles if names is not None or feature_names is not None else None
    features = feature_columns(path, used_names, len(titles), label, request)
    if names is not None:
        check_present(path, request.keep, [names[j] for j in features])
    return TextLayout(
        delimiter,
        names,
        titles,
        label,
        features,
        request,
        tuple(j for j, n in enumerate(names or []) if not n and j != label),
        comma,
        feature_names,
        request.drop,
        {
            titles.index(name): TextColumn(name, values)
            for name, values in sources.items()
            if values
        },
    )


def _find_label(
    path: Path, names: list[str] | None, no_words: list[bool], request: Request
) -> tuple[list[str], int | None]:
    """Return names of columns, or without a header their positions, and the label."""
    if names is not None:
        features = tuple(source_columns(request.columns or (), names))
        request = replace(request, columns=features)
        return names, label_column(path, names, no_words, request)
    titles = position_names(len(no_words))
    features = request.columns or ()
    is_model = bool(features) and source_columns(features, titles).keys() <= {*titles}
    if is_model and request.label is None:  # the file has its columns and no other
        return titles, None
    label = label_column(path, None, no_words, request)
    if label is not None:
        titles = position_names(len(no_words) - 1)
        titles.insert(label, "")
    return titles, label


def _find_delimiter(path: Path) -> str:
    """Return the one of comma, semicolon and tab that gives the most numbers.

    If none gives any number, the most frequent one in the first line is returned.
    """
    with open_text(path) as file:
        first_line = file.readline()
    if "\0" in first_line:
        raise DataFileError(path, f"has {ZEROS}")

    def score_delimiter(mark: str) -> tuple[int, int]:
        cells = [cell for row in _first_rows(path, mark) for cell in row]
        if mark != ",":
            cells = [_with_point(cell) for cell in cells]
        return sum(map(is_number, cells)), first_line.count(mark)

    return max(",;\t", key=score_delimiter)


def _first_rows(path: Path, delimiter: str) -> list[list[str]]:
    """Read the first rows of cells."""
    with open_text(path) as file:
        return [row for _, row in islice(text_rows(file, delimiter), FIRST_LINES)]


def open_text(path: Path) -> IO[str]:
    with path.open("rb") as file:
        is_wide = file.read(2) in (b"\xff\xfe", b"\xfe\xff")
    return path.open(encoding="utf-16" if is_wide else "utf-8-sig", newline="")


def text_rows(file: IO[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, cells) of each line that is not blank."""
    reader = csv.reader(file, delimiter=delimiter)
    return ((reader.line_num, row) for row in reader if "".join(row).strip() or row[1:])


def _has_decimal_commas(head: list[list[str]], delimiter: str) -> bool:
    """Whether cells such as 1,5 are there and cells such as 1.5 are not."""
    cells = [cell.strip() for row in head for cell in row]
    if delimiter == "," or not any(map(COMMA.fullmatch, cells)):
        return False
    return not any("." in cell and is_number(cell) for cell in cells)


def _with_point(cell: str) -> str:
    is_decimal = COMMA.fullmatch(cell.strip())
    return cell.replace(",", ".") if is_decimal else cell


def _has_header(path: Path, lines: list[list[str]], request: Request) -> bool:
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
    names = set(first_line)
    if request.label in names or {name.lower() for name in names} & {*LABEL_NAMES}:
        return True
    features = request.columns or ()
    if features and names.issuperset(source_columns(features, first_line)):
        return True
    if not any(map(is_number, first_line)):
        n_missing = sum(cell.lower() in MISSING for cell in first_line)
        is_row_of_missing_values = n_missing >= max(2, len(first_line) - 1)
        return not is_row_of_missing_values
    is_alone = not any(_resembles(first_line, cells) for cells in later_lines)
    if not (later_lines and is_alone and _is_scale(first_line)):
        return False
    warnings.warn(
        f"{path}: line 1 is taken for a header, since its numbers rise in equal steps; "
        "say --no-header (header=False) if it is data, --header (header=True) if not",
        stacklevel=2,
    )
    return True


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


def _is_date_or_missing(cell: str) -> bool:
    cell = cell.strip().lower()
    return cell in MISSING or DATE.match(cell) is not None


def is_number(cell: str) -> bool:
    """Whether a cell can be read as a number, NaN and infinity included.

    Python also reads 1_000, and digits of other scripts; NumPy's reader does not.
    """
    try:
        float(cell)
    except ValueError:
        return False
    return cell.isascii() and "_" not in cell
