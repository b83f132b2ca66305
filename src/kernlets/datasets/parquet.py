"""Reads columns of Parquet files; needs pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .errors import (
    MAX_NAMES,
    DataFileError,
    optional_import,
    printable,
    quote_cell,
    refuse_large,
)
from .find_columns import (
    feature_columns,
    label_column,
    refuse_equal_names,
    refuse_missing,
)
from .row_ids import are_row_names, check_keep, warn_of_left_out
from .table import Request, Table, text_array

TEXT_TYPES = ("string", "large_string")  # of Parquet


def read_parquet(path: Path, request: Request) -> Table:
    """Read Parquet columns; needs pyarrow."""
    parquet = optional_import("pyarrow.parquet", "parquet", path)
    schema = parquet.read_schema(path)
    row_names = columns_of_row_names(path, request)
    names, features, label = numeric_columns(path, schema, request, row_names)
    with parquet.ParquetFile(path, read_dictionary=text_columns(schema)) as file:
        used = features if label is None else [*features, label]
        refuse_large(path, 8 * file.metadata.num_rows * len(used))
        table = file.read(columns=used)
    complete = used if not request.gaps else used[len(features) :]
    for name in complete:
        refuse_nulls(path, name, table.column(name))
    X = np.stack([table.column(name).to_numpy() for name in features], axis=1)
    refuse_missing(path, X, names, request.gaps)
    y = None if label is None else column_labels(table.column(label))
    return Table(X, y, names)


def text_columns(schema: Any) -> list[str]:
    """Return the names of text columns, which are read as a dictionary and codes.

    A text that many rows have in common is then in memory only once.
    """
    columns = zip(schema.names, schema.types, strict=True)
    return [name for name, kind in columns if str(kind) in TEXT_TYPES]


def column_labels(column: Any) -> np.ndarray:
    """Return the labels of a Parquet column, without Python objects for numbers."""
    import pyarrow.types as types

    if types.is_dictionary(column.type) and str(column.type.value_type) in TEXT_TYPES:
        column = column.unify_dictionaries().combine_chunks()
        texts = text_array(column.dictionary.to_pylist())
        return texts[column.indices.to_numpy()]
    y = column.to_numpy()
    wide_type = {"i": np.int64, "f": np.float64}.get(y.dtype.kind)
    if wide_type is not None:
        return y.astype(wide_type)
    values = column.to_pylist()
    is_text = all(isinstance(value, str) for value in values)
    return text_array(values) if is_text else np.asarray(values)


def numeric_columns(
    path: Path, schema: Any, request: Request, row_names: Sequence[str] = ()
) -> tuple[list[str], list[str], str | None]:
    """Return the names of features as text and as in the file, and the label column.

    Columns whose names are in `row_names` are left out.
    """
    names = [str(name) for name in schema.names]
    if "" in names[1:]:
        raise DataFileError(
            path, f"column {names.index('', 1) + 1} has no name: name it, or remove it"
        )
    numeric = [_is_numeric_type(kind) for kind in schema.types]
    label = label_column(path, names, numeric, request)
    features = feature_columns(path, names, len(names), label, request)
    check_keep(path, [names[j] for j in features], request)
    refuse_equal_names(path, [names[j] for j in features])
    left_out = [names[j] for j in features if names[j] in row_names]
    if len(left_out) < len(features):
        warn_of_left_out(path, left_out)
        features = [j for j in features if names[j] not in left_out]
    texts = [
        f"{quote_cell(names[j])} ({schema.types[j]})"
        for j in features
        if not numeric[j]
    ]
    if texts:
        ending = f" and {len(texts) - MAX_NAMES} more" if len(texts) > MAX_NAMES else ""
        raise DataFileError(
            path,
            f"columns {', '.join(texts[:MAX_NAMES])}{ending} hold no numbers: encode "
            "them as numbers or remove them"
            + ("" if label is not None else ", or set label to the column of labels"),
        )
    raw_names = [schema.names[j] for j in features]
    labels = None if label is None else schema.names[label]
    return [names[j] for j in features], raw_names, labels


def columns_of_row_names(path: Path, request: Request) -> list[str]:
    """Return the names of Parquet columns that hold another text in every row."""
    if request.keep is None:
        return []
    parquet = optional_import("pyarrow.parquet", "parquet", path)
    texts = text_columns(parquet.read_schema(path))
    row_names = []
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        n_rows = file.metadata.num_rows
        for name in texts:
            if name not in request.keep and are_row_names(name, n_rows):
                column = file.read(columns=[name]).column(0)
                if column.null_count == 0 and len(column.unique()) == n_rows > 1:
                    row_names.append(name)
    return row_names


def _is_numeric_type(kind: Any) -> bool:
    import pyarrow.types as types

    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def refuse_nulls(path: Path, name: str, column: Any, first_row: int = 0) -> None:
    """Raise if a column has empty cells; `first` is the number of its first row."""
    if column.null_count:
        row = first_row + column.is_null().to_pylist().index(True)
        raise DataFileError(
            path,
            f"column {printable(name)!r}, row {row} is empty: fill it in or drop it",
        )
