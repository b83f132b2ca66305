"""Files made of columns: .csv and .tsv text, Parquet.

One column may hold the labels (see `table.label_column`), all others must be numbers.
Columns without a name are the row index that pandas and R write, and are left out.
Text is parsed by NumPy's compiled reader; a file that it refuses is read again, cell
by cell, to find the faulty cell.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from kernlets.datasets.header import LOOKED_AT, has_header, is_number
from kernlets.datasets.table_types import (
    DataFileError,
    Request,
    Table,
    feature_columns,
    label_column,
    optional_import,
    printable,
    refuse_gaps,
    refuse_twins,
)

#: Marks of missing values in files, in lower case.
MISSING = ("", "?", "-", "na", "n/a", "nan", "nil", "none", "null")


@dataclass
class Layout:
    """The layout of a text file, and the labels found while parsing it."""

    delimiter: str
    names: list[str] | None
    width: int
    label: int | None
    features: list[int]
    gaps: bool = False
    codes: dict[str, int] = field(default_factory=dict)

    def converters(self, gaps: bool) -> dict[int | str, Callable[[str], float]]:
        """For NumPy's reader: labels become codes, index columns zeros."""
        ignored = set(range(self.width)) - set(self.features)
        found: dict[int | str, Callable[[str], float]] = {
            j: self._code if j == self.label else _zero for j in ignored
        }
        return {**found, **dict.fromkeys(self.features, _number)} if gaps else found

    def _code(self, text: str) -> float:
        return self.codes.setdefault(text.strip(), len(self.codes))


def read_text(path: Path, request: Request) -> Table:
    """Read .csv or .tsv text; a header line and a label column are optional."""
    try:
        layout = _layout(path, request)
        return _parse(path, layout)
    except UnicodeDecodeError as error:
        raise DataFileError(path, "is not UTF-8 text: save it as UTF-8") from error


def _layout(path: Path, request: Request) -> Layout:
    delimiter = _delimiter(path)
    with _open_text(path) as file:
        head = [row for _, row in islice(_rows(file, delimiter), LOOKED_AT)]
    is_named = has_header(path, head, request)
    data = head[is_named:]
    if not data:
        raise DataFileError(path, "has no rows of data: write or download it again")
    names = [name.strip() for name in head[0]] if is_named else None
    if names is not None and len(names) != len(data[0]):
        raise DataFileError(
            path, f"names {len(names)} columns but has {len(data[0])}: fix the header"
        )
    # a single word in the first row does not make a column of labels
    numeric = [any(map(is_number, cells)) for cells in zip(*data[:2], strict=False)]
    label = label_column(path, names, numeric, request)
    features = feature_columns(path, names, len(data[0]), label, request)
    return Layout(delimiter, names, len(data[0]), label, features, request.gaps)


def _open_text(path: Path) -> IO[str]:
    return path.open(encoding="utf-8-sig", newline="")


def _delimiter(path: Path) -> str:
    """The most frequent of comma, semicolon and tab in the first line."""
    with _open_text(path) as file:
        first = file.readline()
    return max(",;\t", key=first.count)


def _rows(file: IO[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """(line number, cells) of each line that is not blank."""
    reader = csv.reader(file, delimiter=delimiter)
    return ((reader.line_num, row) for row in reader if "".join(row).strip() or row[1:])


def _zero(cell: str) -> float:
    return 0.0


def _number(cell: str) -> float:
    """The number in a cell, NaN where it says that there is none."""
    return np.nan if cell.strip().lower() in MISSING else float(cell)


def _parse(path: Path, layout: Layout) -> Table:
    try:
        cells = _cells(path, layout)
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # wrapped by NumPy
            raise error.__cause__ from None
        _blame_cell(path, layout)
        raise DataFileError(path, f"{error}: correct the file") from error
    names = layout.names and [layout.names[j] for j in layout.features]
    y = None if layout.label is None else _labels(path, cells[:, layout.label], layout)
    X = cells[:, layout.features]
    bad = np.isinf(X) if layout.gaps else ~np.isfinite(X)
    gaps = np.flatnonzero(bad.any(axis=1))
    if len(gaps):
        _blame_cell(path, layout, int(gaps[0]))
    return Table(X, y, names)


def _cells(path: Path, layout: Layout) -> np.ndarray:
    """All cells; those without a value are looked for only where there are some."""
    try:
        return _loadtxt(path, layout, gaps=False)
    except ValueError:
        if not layout.gaps:
            raise
        layout.codes.clear()
        return _loadtxt(path, layout, gaps=True)


def _loadtxt(path: Path, layout: Layout, gaps: bool) -> np.ndarray:
    with _open_text(path) as file:
        lines = (line for line in file if line.strip(" \r\n"))
        return np.loadtxt(
            islice(lines, int(layout.names is not None), None),
            delimiter=layout.delimiter,
            converters=layout.converters(gaps),
            comments=None,
            quotechar='"',
            ndmin=2,
            encoding=None,
        )


def _labels(path: Path, codes: np.ndarray, layout: Layout) -> np.ndarray:
    """Labels as integers if all are, else as floats, else as text."""
    text = np.array(list(layout.codes))
    y = _as_numbers(text)
    missing = np.flatnonzero((text == "") | (y != y))
    if len(missing):
        row = int(np.flatnonzero(codes == missing[0])[0])
        line, _ = next(_data_rows(path, layout, row))
        raise DataFileError(path, f"line {line} has no label: fill it in or remove it")
    return y[codes.astype(int)]


def _as_numbers(text: np.ndarray) -> np.ndarray:
    for kind in (np.int64, np.float64):
        try:
            return text.astype(kind)
        except (ValueError, OverflowError):
            continue
    return text


def _data_rows(
    path: Path, layout: Layout, first: int = 0
) -> Iterator[tuple[int, list[str]]]:
    """(line number, cells) of the rows of data, from a given row on."""
    with _open_text(path) as file:
        rows = _rows(file, layout.delimiter)
        yield from islice(rows, first + int(layout.names is not None), None)


def _blame_cell(path: Path, layout: Layout, first: int = 0) -> None:
    """Raise for the first cell that is not a number or the first row of wrong width."""
    for line, row in _data_rows(path, layout, first):
        if len(row) != layout.width:
            raise DataFileError(
                path,
                f"line {line} has {len(row)} cells instead of {layout.width}: "
                "complete or remove it",
            )
        for j in layout.features:
            if layout.gaps and row[j].strip().lower() in MISSING:
                continue
            if not (is_number(row[j]) and np.isfinite(float(row[j]))):
                column = repr(printable(layout.names[j])) if layout.names else str(j)
                problem = _why_no_number(row[j].strip(), layout)
                raise DataFileError(path, f"column {column}, line {line}: {problem}")


def _why_no_number(cell: str, layout: Layout) -> str:
    if not cell:
        return "the cell is empty: fill it in or drop the row"
    found = repr(printable(cell))
    if cell.lower() in MISSING:
        return f"{found} stands for no value: fill it in or drop the row"
    if is_number(cell):
        return f"{found} is not finite: replace it or drop the row"
    other = "" if layout.label is not None else ", or set label to the column of labels"
    return f"{found} is not a number: correct it{other}"


def read_parquet(path: Path, request: Request) -> Table:
    """Read Parquet columns; needs pyarrow."""
    parquet = optional_import("pyarrow.parquet", "parquet", path)
    with parquet.ParquetFile(path) as file:
        names, features, label = numeric_columns(path, file.schema_arrow, request)
        used = features if label is None else [*features, label]
        table = file.read(columns=used)
    complete = used if not request.gaps else used[len(features) :]
    for name in complete:
        refuse_nulls(path, name, table.column(name))
    X = np.stack([table.column(name).to_numpy() for name in features], axis=1)
    refuse_gaps(path, X, names, request.gaps)
    y = None if label is None else column_labels(table.column(label))
    return Table(X, y, names)


def column_labels(column: Any) -> np.ndarray:
    """Labels of a Parquet column; numbers are not turned into Python objects."""
    y = column.to_numpy()
    wide = {"i": np.int64, "f": np.float64}.get(y.dtype.kind)
    return np.asarray(column.to_pylist()) if wide is None else y.astype(wide)


def numeric_columns(
    path: Path, schema: Any, request: Request
) -> tuple[list[str], list[str], str | None]:
    """Names of the features as text and as in the file, and that of the labels."""
    names = [str(name) for name in schema.names]
    numeric = [_is_numeric_type(kind) for kind in schema.types]
    label = label_column(path, names, numeric, request)
    features = feature_columns(path, names, len(names), label, request)
    refuse_twins(path, [names[j] for j in features])
    for j in features:
        if not numeric[j]:
            raise DataFileError(
                path,
                f"column {printable(names[j])!r} holds {schema.types[j]}, not numbers: "
                "convert it, or set label to the column of labels",
            )
    own = [schema.names[j] for j in features]
    labels = None if label is None else schema.names[label]
    return [names[j] for j in features], own, labels


def _is_numeric_type(kind: Any) -> bool:
    import pyarrow.types as types

    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def refuse_nulls(path: Path, name: str, column: Any, first: int = 0) -> None:
    """Raise if a column has empty cells; `first` is the number of its first row."""
    if column.null_count:
        row = first + column.is_null().to_pylist().index(True)
        raise DataFileError(
            path,
            f"column {printable(name)!r}, row {row} is empty: fill it in or drop it",
        )
