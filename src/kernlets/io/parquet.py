"""Reads columns of Parquet files, whole or block by block; needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..config import options
from ..data.stream import Blocks
from .data_file import (
    DataFileError,
    Request,
    Table,
    are_row_names,
    check_keep,
    columns_to_use,
    feature_columns,
    label_column,
    list_texts,
    optional_import,
    quote_cell,
    refuse_equal_names,
    refuse_large,
    refuse_missing,
    refuse_special,
    short_text,
    text_array,
    warn_of_left_out,
)

TEXT_TYPES = ("string", "large_string")  # of Parquet
BLOCK_SHARE = 16  # a block read from a file takes this part of the memory option
WIDTH = 512  # assumed number of features per row after a map


def read_parquet(path: Path, request: Request) -> Table:
    """Read Parquet columns; needs pyarrow."""
    parquet = optional_import("pyarrow.parquet", "parquet", path)
    schema = parquet.read_schema(path)
    row_names = _columns_of_row_names(path, request)
    names, features, label = numeric_columns(path, schema, request, row_names)
    with parquet.ParquetFile(path, read_dictionary=_text_columns(schema)) as file:
        used = features if label is None else [*features, label]
        refuse_large(path, 8 * file.metadata.num_rows * len(used))
        table = file.read(columns=used)
    complete = used if not request.gaps else used[len(features) :]
    for name in complete:
        _refuse_nulls(path, name, table.column(name))
    X = np.stack([table.column(name).to_numpy() for name in features], axis=1)
    refuse_missing(path, X, names, request.gaps)
    y = None if label is None else _column_labels(table.column(label))
    return Table(X, y, names)


def _text_columns(schema: Any) -> list[str]:
    """Return the names of text columns, which are read as a dictionary and codes.

    A text that many rows have in common is then in memory only once.
    """
    columns = zip(schema.names, schema.types, strict=True)
    return [name for name, kind in columns if str(kind) in TEXT_TYPES]


def _column_labels(column: Any) -> np.ndarray:
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


def _columns_of_row_names(path: Path, request: Request) -> list[str]:
    """Return the names of Parquet columns that hold another text in every row."""
    if request.keep is None:
        return []
    parquet = optional_import("pyarrow.parquet", "parquet", path)
    texts = _text_columns(parquet.read_schema(path))
    row_names = []
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        n_rows = file.metadata.num_rows
        for name in texts:
            if name not in request.keep and are_row_names(name, n_rows):
                column = file.read(columns=[name]).column(0)
                if column.null_count == 0 and len(column.unique()) == n_rows > 1:
                    row_names.append(name)
    return row_names


def numeric_columns(
    path: Path, schema: Any, request: Request, row_names: Sequence[str] = ()
) -> tuple[list[str], list[str], str | None]:
    """Return the names of features as text and as in the file, and the label column.

    Columns whose names are in `row_names` are left out.
    """
    import pyarrow.types as types

    names = [str(name) for name in schema.names]
    if "" in names[1:]:
        raise DataFileError(
            path, f"column {names.index('', 1) + 1} has no name: name it, or remove it"
        )
    numeric = [
        types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        for kind in schema.types
    ]
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
        raise DataFileError(
            path,
            f"columns {list_texts(texts)} hold no numbers: encode them as numbers or "
            "remove them"
            + ("" if label is not None else ", or set label to the column of labels"),
        )
    raw_names = [schema.names[j] for j in features]
    labels = None if label is None else schema.names[label]
    return [names[j] for j in features], raw_names, labels


def _refuse_nulls(path: Path, name: str, column: Any, first_row: int = 0) -> None:
    """Raise if a column has empty cells; `first_row` is the number of its first row."""
    if column.null_count:
        row = first_row + column.is_null().to_pylist().index(True)
        raise DataFileError(
            path,
            f"column {short_text(name)!r}, row {row} is empty: fill it in or drop it",
        )


# ----------------------------------------------------------------------- in blocks


def parquet_files(path: Path) -> list[Path]:
    """Return the files of a table in Parquet: one, or all in a folder, by name."""
    files = [path] if path.suffix.lower() == ".parquet" else []
    if path.is_dir():
        files = sorted(path.glob("*.parquet"))
    for file in files:
        refuse_special(file)
    return files


def parquet_bytes(path: Path) -> int:
    """Return the bytes of a Parquet file in memory, or on disk if it is damaged."""
    try:
        parquet = optional_import("pyarrow.parquet", "parquet", path)
        metadata = parquet.read_metadata(path)
    except (DataFileError, OSError, ValueError):  # reading it will raise a better error
        return path.stat().st_size if path.exists() else 0
    return 8 * metadata.num_rows * metadata.num_columns


def open_parquet(path: Path, files: list[Path], request: Request) -> Table:
    """Return blocks of the numeric columns, and all labels."""
    parquet = optional_import("pyarrow.parquet", "parquet", path)
    schema = parquet.read_schema(files[0])
    row_names = _columns_of_row_names(files[0], request)
    names, features, label = numeric_columns(path, schema, request, row_names)
    n_rows = sum(parquet.read_metadata(file).num_rows for file in files)
    y = None
    if label is not None:
        read_options = {"columns": [label], "read_dictionary": _text_columns(schema)}
        tables = [parquet.read_table(file, **read_options) for file in files]
        y = np.concatenate([_column_labels(table.column(0)) for table in tables])
    first_block = (
        None if request.keep is None else next(_parquet_blocks(files, features), None)
    )
    if first_block is not None:
        selected = columns_to_use(path, first_block, names, request)
        names, features = [names[j] for j in selected], [features[j] for j in selected]
    return Table(Blocks(partial(_parquet_blocks, files, features), n_rows), y, names)


def _parquet_blocks(files: list[Path], features: list[str]) -> Iterator[np.ndarray]:
    """Yield blocks of rows of Parquet files."""
    parquet = optional_import("pyarrow.parquet", "parquet", files[0])
    n_features = max(len(features), WIDTH)
    step = max(1, options.memory // (BLOCK_SHARE * 8 * n_features))
    for file in files:
        first_row = 0
        with parquet.ParquetFile(file) as parquet_file:
            for batch in parquet_file.iter_batches(step, columns=features):
                yield _batch_matrix(file, batch, features, first_row)
                first_row += batch.num_rows


def _batch_matrix(
    path: Path, batch: Any, features: list[str], first_row: int
) -> np.ndarray:
    """Return the columns in the requested order, which may differ in a file."""
    columns, present = [], set(batch.schema.names)
    for name in features:
        if name not in present:
            raise DataFileError(
                path, f"lacks the column {name!r} of the other files: add it"
            )
        column = batch.column(name)
        _refuse_nulls(path, name, column, first_row)
        columns.append(column.to_numpy(zero_copy_only=False))
    return np.stack(columns, axis=1)
