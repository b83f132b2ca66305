"""Reads .csv and .tsv text.

One column may hold the labels (see `label_column`), all others must be numbers.
A first column without a name is the row index that pandas and R write, and is left out.
Text is parsed by NumPy's compiled reader; a file that it refuses is read again, cell
by cell, to find the faulty cells.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from .errors import MAX_NAMES, DataFileError, quote_cell
from .find_columns import feature_columns, label_column
from .header import LOOKED_AT, MISSING, has_header, is_number
from .row_ids import are_row_names, check_keep, warn_of_left_out
from .table import Request, Table, text_array

#: Marks of missing values that are never labels.
NO_LABELS = ("", "?", "nan")
ZEROS = "bytes of zero, as no text has: save it as UTF-8"
NEVER_IN_LABELS = ("\n", "\r", "\0")
WHOLE = re.compile(r"0|-?[1-9]\d{0,17}")  # as Python writes it, at most 18 digits
COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")  # 1,5
DOUBTFUL = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # 1,234: of a thousand, or of one
DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ].*)?")


@dataclass
class TextLayout:
    """The layout of a text file, and the labels and commas that parsing met."""

    delimiter: str
    names: list[str] | None
    n_columns: int
    label: int | None
    features: list[int]
    gaps: bool = False
    unnamed: tuple[int, ...] = ()  # columns that number the rows, or have to be empty
    comma: bool = False  # whether decimals are written with a comma
    keep: tuple[str, ...] | None = None  # as in a `Request`, of a file with names
    codes: dict[str, int] = field(default_factory=dict)
    doubtful: str = ""  # a number whose comma may be one of thousands ...
    is_certain: bool = False  # ... unless another one cannot be

    def converters(self, as_written: bool) -> dict[int | str, Callable[[str], float]]:
        """Return converters for NumPy's reader: labels become codes, row names NaN.

        Features are converted, too, if `as_written` is true: cells may then be empty,
        and decimals may be written with a comma.
        """
        converters: dict[int | str, Callable[[str], float]] = {
            j: _ignore_cell for j in range(self.n_columns) if j not in self.features
        }
        for j in self.unnamed:
            converters[j] = _row_number if j == 0 else _require_empty
        if self.label is not None:
            converters[self.label] = self._label_code
        return (
            {**converters, **dict.fromkeys(self.features, self.number)}
            if as_written
            else converters
        )

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
        advice = ", or set label to the column of labels"
        return advice if self.label is None else ""

    def _label_code(self, text: str) -> float:
        if any(mark in text for mark in NEVER_IN_LABELS):
            raise ValueError("a label on several lines")
        return self.codes.setdefault(text.strip(), len(self.codes))


def read_text(path: Path, request: Request) -> Table:
    """Read .csv or .tsv text; a header line and a label column are optional."""
    try:
        layout = _find_layout(path, request)
        return _parse(path, layout)
    except UnicodeDecodeError as error:
        raise DataFileError(
            path, "is neither UTF-8 text nor UTF-16 text with a mark: save it as UTF-8"
        ) from error
    except csv.Error as error:
        if "NUL" in str(error):  # before Python 3.11
            raise DataFileError(path, f"has {ZEROS}") from error
        raise DataFileError(
            path, f"has a cell that is no table's ({error}): close its quotation mark"
        ) from error


def _find_layout(path: Path, request: Request) -> TextLayout:
    delimiter = _find_delimiter(path)
    head = _first_rows(path, delimiter)
    comma = _has_decimal_commas(head, delimiter)
    if comma:
        head = [[_with_point(cell) for cell in row] for row in head]
    is_named = has_header(path, head, request)
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
    # a single word, or a column without a value, does not make a column of labels
    numeric = [
        any(map(is_number, cells)) or all(c.strip().lower() in MISSING for c in cells)
        for cells in zip(*data, strict=False)
    ]
    label = label_column(path, names, numeric, request)
    features = feature_columns(path, names, len(data[0]), label, request)
    if names is not None:
        check_keep(path, [names[j] for j in features], request)
    n_columns, keep = len(data[0]), request.keep if names else None
    unnamed = tuple(j for j, n in enumerate(names or []) if not n and j != label)
    return TextLayout(
        delimiter, names, n_columns, label, features, request.gaps, unnamed, comma, keep
    )


def _open_text(path: Path) -> IO[str]:
    with path.open("rb") as file:
        is_wide = file.read(2) in (b"\xff\xfe", b"\xfe\xff")
    return path.open(encoding="utf-16" if is_wide else "utf-8-sig", newline="")


def _first_rows(path: Path, delimiter: str) -> list[list[str]]:
    """Read the first rows of cells."""
    with _open_text(path) as file:
        return [row for _, row in islice(_text_rows(file, delimiter), LOOKED_AT)]


def _find_delimiter(path: Path) -> str:
    """Return the one of comma, semicolon and tab that gives the most numbers.

    If none gives any number, the most frequent one in the first line is returned.
    """
    with _open_text(path) as file:
        first_line = file.readline()
    if "\0" in first_line:
        raise DataFileError(path, f"has {ZEROS}")

    def score_delimiter(mark: str) -> tuple[int, int]:
        cells = [cell for row in _first_rows(path, mark) for cell in row]
        if mark != ",":
            cells = [_with_point(cell) for cell in cells]
        return sum(map(is_number, cells)), first_line.count(mark)

    return max(",;\t", key=score_delimiter)


def _has_decimal_commas(head: list[list[str]], delimiter: str) -> bool:
    """Whether cells such as 1,5 are there and cells such as 1.5 are not."""
    cells = [cell.strip() for row in head for cell in row]
    if delimiter == "," or not any(map(COMMA.fullmatch, cells)):
        return False
    return not any("." in cell and is_number(cell) for cell in cells)


def _with_point(cell: str) -> str:
    is_decimal = COMMA.fullmatch(cell.strip())
    return cell.replace(",", ".") if is_decimal else cell


def _text_rows(file: IO[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, cells) of each line that is not blank."""
    reader = csv.reader(file, delimiter=delimiter)
    return ((reader.line_num, row) for row in reader if "".join(row).strip() or row[1:])


def _ignore_cell(cell: str) -> float:
    return 0.0


def _row_number(cell: str) -> float:
    """Return the number of a row, or NaN if the row has a name."""
    return float(cell) if is_number(cell) else np.nan


def _require_empty(cell: str) -> float:
    if cell.strip():
        raise ValueError("a cell in a column without a name")
    return 0.0


def _parse(path: Path, layout: TextLayout) -> Table:
    try:
        cells = _read_cells(path, layout)
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # wrapped by NumPy
            raise error.__cause__ from None
        features = _without_row_names(path, layout)
        if features != layout.features:
            layout.codes.clear()
            return _parse(path, replace(layout, features=features))
        _blame_cells(path, layout)
        raise DataFileError(path, f"{error}: correct the file") from error
    if layout.doubtful and not layout.is_certain:
        raise DataFileError(
            path,
            f"has numbers such as {layout.doubtful!r}, whose comma may mark decimals "
            "or thousands: write decimals with a point, and thousands without a mark",
        )
    if 0 in layout.unnamed:
        _check_row_numbers(path, cells[:, 0])
    names = layout.names and [layout.names[j] for j in layout.features]
    y = None
    if layout.label is not None:
        codes = cells[:, layout.label].astype(int)
        y = _decode_labels(path, codes, layout)
        _mention_first_label(path, codes, layout)
    X = cells[:, layout.features]
    is_bad = np.isinf(X) if layout.gaps else ~np.isfinite(X)
    if is_bad.any():
        _blame_cells(path, layout)
    return Table(X, y, names)


def _read_cells(path: Path, layout: TextLayout) -> np.ndarray:
    """Read all cells by the first way of writing numbers that fits them."""
    commas_in_head = layout.comma
    ways = [] if commas_in_head else [(False, False)]  # the fast one, by NumPy alone
    ways += [(False, True)] if layout.gaps and not commas_in_head else []
    ways += [(True, True)] if layout.delimiter != "," else []
    for layout.comma, as_written in ways[:-1]:
        try:
            return _loadtxt(path, layout, as_written)
        except ValueError:
            layout.codes.clear()
    layout.comma, as_written = ways[-1]
    try:
        return _loadtxt(path, layout, as_written)
    except ValueError:
        layout.comma = commas_in_head
        raise


def _loadtxt(path: Path, layout: TextLayout, as_written: bool) -> np.ndarray:
    with _open_text(path) as file:
        lines = (line for line in file if line.strip(" \r\n"))
        return np.loadtxt(
            islice(lines, int(layout.names is not None), None),
            delimiter=layout.delimiter,
            converters=layout.converters(as_written),
            comments=None,
            quotechar='"',
            ndmin=2,
            encoding=None,
        )


def _check_row_numbers(path: Path, column: np.ndarray) -> None:
    """Refuse a first column that lost its name; warn if it may be a feature."""
    numbers = column[~np.isnan(column)]
    if np.any((numbers < 0) | (numbers % 1 != 0)):
        raise DataFileError(
            path,
            "the first column has no name, and does not number the rows: name it in "
            "line 1, or remove it",
        )
    if len(numbers) and np.any(np.diff(numbers) != 1):
        warnings.warn(
            f"{path}: the first column has no name and is left out, as numbers of "
            "rows: name it if it is a feature",
            stacklevel=2,
        )


def _decode_labels(path: Path, codes: np.ndarray, layout: TextLayout) -> np.ndarray:
    """Return labels as integers if all are written as integers, else as text."""
    text = list(layout.codes)
    values = [label for label in text if label.lower() not in MISSING]
    are_whole = all(map(WHOLE.fullmatch, values)) and bool(values)
    missing_marks = MISSING if are_whole else NO_LABELS
    missing = [layout.codes[label] for label in text if label.lower() in missing_marks]
    if missing:
        row = int(np.flatnonzero(np.isin(codes, missing))[0])
        line, _ = next(_data_rows(path, layout, row))
        raise DataFileError(path, f"line {line} has no label: fill it in or remove it")
    y = np.array([*map(int, text)]) if are_whole else text_array(text)
    return y[codes]


def _mention_first_label(path: Path, codes: np.ndarray, layout: TextLayout) -> None:
    """Warn if the first line, which was read as a row, may name the columns."""
    counts = np.bincount(codes)
    if layout.names is None and counts[0] == 1 and np.all(counts[1:] > 1):
        label = quote_cell(next(iter(layout.codes)))
        if len(counts) > 1 and not is_number(label.strip("'")):
            warnings.warn(
                f"{path}: line 1 is taken for a row, the only one of class {label}: "
                "say --header (header=True) if it names the columns",
                stacklevel=2,
            )


def _data_rows(
    path: Path, layout: TextLayout, first_row: int = 0
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, cells) of the rows of data from the row `first` on."""
    with _open_text(path) as file:
        rows = _text_rows(file, layout.delimiter)
        yield from islice(rows, first_row + int(layout.names is not None), None)


def _blame_cells(path: Path, layout: TextLayout) -> None:
    """Raise for the first row that does not fit, all columns of text, or one cell."""
    first_problem: tuple[int, int, str] | None = None
    texts: dict[int, str] = {}
    in_first_line = True
    for line, row in _data_rows(path, layout):
        _check_row(path, layout, line, row)
        for j in layout.features:
            problem = _cell_problem(row[j].strip(), layout)
            if problem is None:
                continue
            first_problem = first_problem or (line, j, problem)
            if not is_number(row[j]) and row[j].strip().lower() not in MISSING:
                in_first_line &= line == 1 or j in texts
                texts.setdefault(
                    j, f"{layout.title(j)} (line {line}: {quote_cell(row[j])})"
                )
    if len(texts) > 1:
        ending = f" and {len(texts) - MAX_NAMES} more" if len(texts) > MAX_NAMES else ""
        raise DataFileError(
            path,
            f"columns {', '.join([*texts.values()][:MAX_NAMES])}{ending} hold "
            f"something else than numbers: encode them as numbers or remove "
            f"them{layout.other_label}"
            + (", or header if line 1 names the columns" if in_first_line else ""),
        )
    if first_problem is not None:
        line, j, problem = first_problem
        raise DataFileError(path, f"column {layout.title(j)}, line {line}: {problem}")


def _without_row_names(path: Path, layout: TextLayout) -> list[int]:
    """Return the features without columns of distinct texts, and warn of those."""
    if layout.keep is None or layout.names is None:
        return layout.features
    cells: dict[int, set[str]] = {
        j: set() for j in layout.features if layout.names[j] not in layout.keep
    }
    n_rows = 0
    for _, row in _data_rows(path, layout):
        n_rows += 1
        for j, texts in list(cells.items()):
            text = row[j].strip() if len(row) == layout.n_columns else ""
            if text in texts or is_number(text) or text.lower() in MISSING:
                del cells[j]
            else:
                texts.add(text)
    left_out = [j for j in cells if are_row_names(layout.names[j], n_rows)]
    if len(left_out) == len(layout.features):
        return layout.features
    warn_of_left_out(path, [layout.names[j] for j in left_out])
    return [j for j in layout.features if j not in left_out]


def _check_row(path: Path, layout: TextLayout, line: int, row: list[str]) -> None:
    """Raise for a row of another width, or with a cell that cannot be where it is."""
    if len(row) != layout.n_columns:
        raise DataFileError(
            path,
            f"line {line} has {len(row)} cells instead of {layout.n_columns}: "
            "complete or remove it",
        )
    if layout.label is not None:
        if any(mark in row[layout.label] for mark in NEVER_IN_LABELS):
            raise DataFileError(
                path,
                f"line {line}: a label runs over several lines: close its quotation "
                f"mark; or has {ZEROS}",
            )
    for j in layout.unnamed:
        if j > 0 and row[j].strip():
            raise DataFileError(
                path,
                f"column {j + 1} has no name in line 1, but {quote_cell(row[j])} in "
                f"line {line}: name it, or remove it",
            )


def _cell_problem(cell: str, layout: TextLayout) -> str | None:
    """Say what is wrong with the cell of a feature, or return None."""
    if cell.lower() in MISSING:
        if layout.gaps:
            return None
        if not cell:
            return "the cell is empty: fill it in or drop the row"
        return f"{quote_cell(cell)} stands for no value: fill it in or drop the row"
    if layout.comma and COMMA.fullmatch(cell):
        return None
    if not is_number(cell):
        return f"{quote_cell(cell)} {_why_no_number(cell, layout)}{layout.other_label}"
    if layout.comma and "." in cell:
        return (
            f"{quote_cell(cell)} has a decimal point, other cells a comma: use one of "
            "them"
        )
    if not np.isfinite(float(cell)):
        return f"{quote_cell(cell)} is not finite: replace it or drop the row"
    return None


def _why_no_number(cell: str, layout: TextLayout) -> str:
    if COMMA.fullmatch(cell) and not DOUBTFUL.fullmatch(cell):
        return "has a decimal comma: write a decimal point"
    if re.fullmatch(r"[+-]?\d{1,3}([,.' ]\d{3})+([.,]\d+)?", cell):
        return "has marks of thousands: write it without them, and a decimal point"
    if DATE.fullmatch(cell):
        return "is a date: write a number, as of days since some date"
    return "is not a number: correct it"
