"""Files made of columns: .csv and .tsv text, Parquet.

One column may hold the labels (see `table.label_column`), all others must be numbers.
Columns without a name are the row index that pandas and R write, and are left out.
Text is parsed by NumPy's compiled reader; only when that refuses a file is it read
again cell by cell to name the culprit.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from kernlets.datasets.table import (
    LABEL_NAMES,
    DataFileError,
    Request,
    Table,
    label_column,
    optional_import,
)

_INDEX_NAMES = ("", "__index_level_0__")


@dataclass
class Layout:
    """How a text file is laid out, and the labels met while parsing it."""

    delimiter: str
    names: list[str] | None
    width: int
    label: int | None
    features: list[int]
    codes: dict[str, int] = field(default_factory=dict)

    def converters(self) -> dict[int | str, Callable[[str], float]]:
        """For NumPy's reader: labels become codes, index columns zeros."""
        ignored = set(range(self.width)) - set(self.features)
        return {j: self._code if j == self.label else _zero for j in ignored}

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
        head = [row for _, row in islice(_rows(file, delimiter), 3)]
    has_header = bool(head) and _is_header(head[0], request)
    data = head[has_header:]
    if not data:
        raise DataFileError(path, "has no rows of data: write or download it again")
    names = [name.strip() for name in head[0]] if has_header else None
    if names is not None and len(names) != len(data[0]):
        raise DataFileError(
            path, f"names {len(names)} columns but has {len(data[0])}: mend the header"
        )
    # A stray word in the first row alone does not make a column of labels.
    is_number = [any(map(_is_number, cells)) for cells in zip(*data[:2], strict=False)]
    label = label_column(path, names, is_number, request)
    features = _feature_columns(path, names, len(data[0]), label)
    return Layout(delimiter, names, len(data[0]), label, features)


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


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _zero(cell: str) -> float:
    return 0.0


def _is_header(cells: list[str], request: Request) -> bool:
    """No number at all, or the name of the label column among the cells."""
    names = [cell.strip() for cell in cells]
    if request.label in names or not any(map(_is_number, names)):
        return True
    return any(name.lower() in LABEL_NAMES for name in names)


def _feature_columns(
    path: Path, names: list[str] | None, width: int, label: int | None
) -> list[int]:
    index = [j for j, name in enumerate(names or []) if name in _INDEX_NAMES]
    features = [j for j in range(width) if j != label and j not in index]
    if not features:
        raise DataFileError(path, "has no column besides the labels: add features")
    return features


def _parse(path: Path, layout: Layout) -> Table:
    try:
        cells = _loadtxt(path, layout)
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        _blame_cell(path, layout)
        raise DataFileError(path, f"{error}: correct the file") from error
    names = layout.names and [layout.names[j] for j in layout.features]
    y = None if layout.label is None else _labels(path, cells[:, layout.label], layout)
    return Table(cells[:, layout.features], y, names)


def _loadtxt(path: Path, layout: Layout) -> np.ndarray:
    with _open_text(path) as file:
        lines = (line for line in file if line.strip(" \r\n"))
        return np.loadtxt(
            islice(lines, int(layout.names is not None), None),
            delimiter=layout.delimiter,
            converters=layout.converters(),
            comments=None,
            quotechar='"',
            ndmin=2,
            encoding=None,
        )


def _labels(path: Path, codes: np.ndarray, layout: Layout) -> np.ndarray:
    """Labels as integers if all are, else as floats, else as text."""
    if "" in layout.codes:
        row = int(np.flatnonzero(codes == layout.codes[""])[0]) + 1
        raise DataFileError(path, f"data row {row} has an empty label: fill it in")
    text = np.array(list(layout.codes))
    for kind in (np.int64, np.float64):
        try:
            return text.astype(kind)[codes.astype(int)]
        except ValueError:
            continue
    return text[codes.astype(int)]


def _blame_cell(path: Path, layout: Layout) -> None:
    """Raise for the first cell that is no number or the first row of another width."""
    with _open_text(path) as file:
        rows = _rows(file, layout.delimiter)
        for line, row in islice(rows, int(layout.names is not None), None):
            if len(row) != layout.width:
                raise DataFileError(
                    path,
                    f"line {line} has {len(row)} cells instead of {layout.width}: "
                    "complete or remove it",
                )
            for j in layout.features:
                if not _is_number(row[j]):
                    column = repr(layout.names[j]) if layout.names else str(j)
                    raise DataFileError(
                        path,
                        f"column {column}, line {line}: {row[j]!r} is not a number: "
                        "correct it, or name the label column with label=",
                    )


def read_parquet(path: Path, request: Request) -> Table:
    """Read Parquet columns; needs pyarrow."""
    parquet = optional_import("pyarrow.parquet", "parquet", path)
    table = parquet.read_table(path)
    for name, column in zip(table.column_names, table.columns, strict=True):
        _refuse_nulls(path, str(name), column)
    names, features, label = numeric_columns(path, table.schema, request)
    X = np.stack([table.column(name).to_numpy() for name in features], axis=1)
    y = None if label is None else column_labels(table.column(label))
    return Table(X, y, names)


def column_labels(column: Any) -> np.ndarray:
    """Labels of a Parquet column; numbers without a Python object for each."""
    y = column.to_numpy()
    wide = {"i": np.int64, "f": np.float64}.get(y.dtype.kind)
    return np.asarray(column.to_pylist()) if wide is None else y.astype(wide)


def numeric_columns(
    path: Path, schema: Any, request: Request
) -> tuple[list[str], list[str], str | None]:
    """Names of the features as text, those in the file, and that of the labels."""
    names = [str(name) for name in schema.names]
    is_number = [_is_numeric_type(kind) for kind in schema.types]
    label = label_column(path, names, is_number, request)
    features = _feature_columns(path, names, len(names), label)
    for j in features:
        if not is_number[j]:
            raise DataFileError(
                path,
                f"column {names[j]!r} holds {schema.types[j]}, not numbers: convert "
                "it, or name the label column with label=",
            )
    own = [schema.names[j] for j in features]
    labels = None if label is None else schema.names[label]
    return [names[j] for j in features], own, labels


def _is_numeric_type(kind: Any) -> bool:
    import pyarrow.types as types

    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def _refuse_nulls(path: Path, name: str, column: Any) -> None:
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise DataFileError(
            path, f"column {name!r}, row {row} is empty: fill it in or drop the row"
        )
