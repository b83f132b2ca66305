"""Reads .csv and .tsv text.

One column may hold the labels (see `label_column`). Columns of text are coded by
`text_columns.py` if the request says so, all others must be numbers.
A first column without a name is the row index that pandas and R write, and is left out.
Text is parsed by NumPy's compiled reader; a file that it refuses is read again, cell
by cell, to find the faulty cells.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from .data_file import (
    DataFileError,
    Request,
    Table,
    list_texts,
    quote_cell,
    text_array,
)
from .text_columns import (
    MAX_VALUES,
    TextColumn,
    assemble,
    check_text_column,
    max_values,
    warn_of_many_values,
)
from .text_layout import (
    COMMA,
    DOUBTFUL,
    MISSING,
    NEVER_IN_LABELS,
    ZEROS,
    TextLayout,
    find_layout,
    is_number,
    open_text,
    text_rows,
)

#: Marks of missing values that are never labels.
NO_LABELS = ("", "?", "nan")
WHOLE = re.compile(r"0|-?[1-9]\d{0,17}")  # as Python writes it, at most 18 digits
THOUSANDS = re.compile(r"[+-]?\d{1,3}([,.' ]\d{3})+([.,]\d+)?")
DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ].*)?")


def read_text(path: Path, request: Request) -> Table:
    """Read .csv or .tsv text; a header line and a label column are optional."""
    try:
        layout = find_layout(path, request)
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


def _parse(path: Path, layout: TextLayout) -> Table:
    try:
        cells = _read_cells(path, layout)
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # wrapped by NumPy
            raise error.__cause__ from None
        if layout.request.keep is not None and not layout.texts:
            coded_layout = _with_text_columns(path, layout)
            if coded_layout is not None:
                layout.codes.clear()
                return _parse(path, coded_layout)
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
    y = None
    if layout.label is not None:
        codes = cells[:, layout.label].astype(int)
        y = _decode_labels(path, codes, layout, layout.label)
        _mention_first_label(path, codes, layout)
    X = cells[:, layout.features]
    names = [layout.titles[j] for j in layout.features]
    if layout.texts:
        columns = [
            (layout.texts[j], cells[:, j]) if j in layout.texts else cells[:, j]
            for j in layout.features
        ]
        X, names = assemble(path, columns, names, layout.feature_names)
    is_bad = np.isinf(X) if layout.gaps else ~np.isfinite(X)
    if is_bad.any():
        _blame_cells(path, layout)
    label_name = None
    if layout.label is not None:
        label_name = layout.names[layout.label] if layout.names else str(layout.label)
    by_position = layout.names is None and layout.feature_names is None
    has_all_columns = not (layout.texts or layout.left_out)
    return Table(
        X,
        y,
        None if by_position and has_all_columns else names,
        label_name=label_name,
        text_columns={column.name: column.values for column in layout.texts.values()},
        left_out=layout.left_out,
    )


def _read_cells(path: Path, layout: TextLayout) -> np.ndarray:
    """Read all cells by the first way of writing numbers that fits them."""
    has_commas = layout.comma
    if not has_commas:
        try:
            return _loadtxt(path, layout, as_written=False)  # fast, by NumPy alone
        except ValueError:
            if not layout.gaps and layout.delimiter == ",":
                raise
            layout.codes.clear()
    if not has_commas and layout.gaps:
        try:
            return _loadtxt(path, layout, as_written=True)
        except ValueError:
            if layout.delimiter == ",":
                raise
            layout.codes.clear()
    layout.comma = True
    try:
        return _loadtxt(path, layout, as_written=True)
    except ValueError:
        layout.comma = has_commas
        raise


def _loadtxt(path: Path, layout: TextLayout, as_written: bool) -> np.ndarray:
    with open_text(path) as file:
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


def _decode_labels(
    path: Path, codes: np.ndarray, layout: TextLayout, column: int
) -> np.ndarray:
    """Return labels as integers if all are written as integers, else as text."""
    text = list(layout.codes)
    values = [label for label in text if label.lower() not in MISSING]
    are_whole = all(map(WHOLE.fullmatch, values)) and bool(values)
    missing_marks = MISSING if are_whole else NO_LABELS
    missing = [layout.codes[label] for label in text if label.lower() in missing_marks]
    if missing:
        row = int(np.flatnonzero(np.isin(codes, missing))[0])
        line, _ = next(_data_rows(path, layout, row))
        raise DataFileError(
            path,
            f"line {line} has no label in column {layout.title(column)}: fill it "
            "in or remove it, or name another column of labels",
            f"line {line} has no label in column {layout.title(column)}: fill it "
            "in or remove it, or name another column with --label; --keep makes it a "
            "feature",
        )
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
    """Yield (line number, cells) of the rows of data from `first_row` on."""
    with open_text(path) as file:
        rows = text_rows(file, layout.delimiter)
        yield from islice(rows, first_row + int(layout.names is not None), None)


MIN_TEXT_SHARE = 0.1  # of the cells of a column; fewer are mistakes among numbers


def _with_text_columns(path: Path, layout: TextLayout) -> TextLayout | None:
    """Return a layout in which columns of text are coded or left out, if there are any.

    A column holds text if none of its cells is a number, or if more than one, and more
    than a tenth, are neither a number nor a number that is written in another way.
    """
    kept = layout.request.kept
    values: dict[int, set[str]] = {j: set() for j in layout.features}
    n_cells, n_texts = dict.fromkeys(values, 0), dict.fromkeys(values, 0)
    n_rows = 0
    for line, row in _data_rows(path, layout):
        _check_row(path, layout, line, row)
        n_rows += 1
        for j in layout.features:
            cell = row[j].strip()
            if cell.lower() in MISSING:
                continue
            n_cells[j] += 1
            n_texts[j] += not _resembles_number(cell)
            if len(values[j]) <= MAX_VALUES or layout.titles[j] in kept:
                values[j].add(cell)
    texts, left_out = {}, []
    for j in (j for j in layout.features if n_texts[j]):
        has_numbers, title = n_texts[j] < n_cells[j], layout.titles[j]
        if has_numbers and n_texts[j] <= max(1, MIN_TEXT_SHARE * n_cells[j]):
            continue
        if title in kept or len(values[j]) <= max_values(n_rows):
            check_text_column(path, title, sorted(values[j]))
            texts[j] = TextColumn(title, sorted(values[j]))
        else:
            left_out.append(j)
    features = [j for j in layout.features if j not in left_out]
    if not features or not (texts or left_out):
        return None
    names = [layout.titles[j] for j in left_out]
    warn_of_many_values(path, names, n_rows)
    all_left_out = (*layout.left_out, *names)
    return replace(layout, features=features, texts=texts, left_out=all_left_out)


def _resembles_number(cell: str) -> bool:
    """Whether a cell is a number, or one with a decimal comma or marks of thousands."""
    return (
        is_number(cell)
        or COMMA.fullmatch(cell) is not None
        or THOUSANDS.fullmatch(cell) is not None
    )


def _blame_cells(path: Path, layout: TextLayout) -> None:
    """Raise for the first row that does not fit, all columns of text, or one cell."""
    first_problem: tuple[int, int, str] | None = None
    texts: dict[int, str] = {}
    in_first_line = True
    for line, row in _data_rows(path, layout):
        _check_row(path, layout, line, row)
        for j in layout.features:
            problem = _cell_problem(row[j].strip(), layout, j in layout.texts)
            if problem is None:
                continue
            first_problem = first_problem or (line, j, problem)
            if not is_number(row[j]) and row[j].strip().lower() not in MISSING:
                in_first_line &= line == 1 or j in texts
                texts.setdefault(
                    j, f"{layout.title(j)} (line {line}: {quote_cell(row[j])})"
                )
    if len(texts) > 1:
        raise DataFileError(
            path,
            f"columns {list_texts([*texts.values()])} hold something else than "
            f"numbers: encode them as numbers or remove them{layout.other_label}"
            + (", or header if line 1 names the columns" if in_first_line else ""),
        )
    if first_problem is not None:
        line, j, problem = first_problem
        raise DataFileError(path, f"column {layout.title(j)}, line {line}: {problem}")


def _check_row(path: Path, layout: TextLayout, line: int, row: list[str]) -> None:
    """Raise for a row of another width, or with a cell that cannot be where it is."""
    if len(row) != len(layout.titles):
        raise DataFileError(
            path,
            f"line {line} has {len(row)} cells instead of {len(layout.titles)}: "
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


def _cell_problem(cell: str, layout: TextLayout, is_text: bool) -> str | None:
    """Say what is wrong with the cell of a feature, or return None."""
    if cell.lower() in MISSING:
        if layout.gaps:
            return None
        if not cell:
            return "the cell is empty: fill it in or drop the row"
        return f"{quote_cell(cell)} stands for no value: fill it in or drop the row"
    if is_text or (layout.comma and COMMA.fullmatch(cell)):
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
    if THOUSANDS.fullmatch(cell):
        return "has marks of thousands: write it without them, and a decimal point"
    if DATE.fullmatch(cell):
        return "is a date: write a number, as of days since some date"
    return "is not a number: correct it"
