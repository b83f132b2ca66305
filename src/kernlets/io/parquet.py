"""Reads columns of Parquet files, whole or block by block; needs pyarrow.

Columns of text are coded by `text_columns.py` where the file is read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..config import options
from ..data.stream import Blocks
from .data_file import (
    DataFileError,
    Request,
    Table,
    check_present,
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
)
from .row_numbers import columns_to_use
from .text_columns import (
    TextColumn,
    assemble,
    check_text_column,
    max_values,
    source_columns,
    warn_of_many_values,
)
from .text_layout import MISSING

TEXT_TYPES = ("string", "large_string")  # of Parquet
BLOCK_SHARE = 16  # a block read from a file takes this part of the memory option
WIDTH = 512  # assumed number of features per row after a map


def read_parquet(path: Path, request: Request) -> Table:
    """Read Parquet columns; needs pyarrow."""
    parquet = optional_import("pyarrow.parquet", "parquet", path)
    schema = parquet.read_schema(path)
    chosen = choose_columns(path, schema, request, may_code=True)
    names, label = chosen.features, chosen.label
    with parquet.ParquetFile(path, read_dictionary=_text_columns(schema)) as file:
        used = names if label is None else [*names, label]
        refuse_large(path, 8 * file.metadata.num_rows * len(used))
        table = file.read(columns=used)
    complete = used if not request.gaps else used[len(names) :]
    for name in complete:
        _refuse_nulls(path, name, table.column(name))
    texts = {
        name: _text_column(path, table.column(name), name, values)
        for name, values in chosen.values.items()
    }
    columns = [texts.get(name, table.column(name).to_numpy()) for name in names]
    order = request.columns if request.keep is None else None
    X, feature_names = assemble(path, columns, names, order)
    refuse_missing(path, X, feature_names, request.gaps)
    return Table(
        X,
        None if label is None else _column_labels(table.column(label)),
        feature_names,
        label_name=label,
        text_columns={name: text.values for name, (text, _) in texts.items()},
        left_out=chosen.left_out,
    )


def _text_column(
    path: Path, column: Any, name: str, values: list[str]
) -> tuple[TextColumn, np.ndarray]:
    """Return a column of text and its codes (n,), for given values or its own."""
    texts = ["" if cell is None else str(cell).strip() for cell in column.to_pylist()]
    cells = [None if text.lower() in MISSING else text for text in texts]
    if not values:
        values = sorted({cell for cell in cells if cell is not None})
        check_text_column(path, name, values)
    text_column = TextColumn(name, values)
    codes = [np.nan if cell is None else text_column.code(cell) for cell in cells]
    return text_column, np.array(codes)


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


class ParquetColumns(NamedTuple):
    """The columns of a Parquet file that are read."""

    features: list[str]
    label: str | None
    values: dict[str, list[str]]  # of features that are coded, those of the model
    left_out: tuple[str, ...]


def choose_columns(
    path: Path, schema: Any, request: Request, may_code: bool = False
) -> ParquetColumns:
    """Choose the columns of features and labels, and refuse text that is not coded.

    If `request.keep` is not None, text and dates with many values are left out.
    """
    import pyarrow.types as types

    names = list(schema.names)
    if "" in names[1:]:
        raise DataFileError(
            path, f"column {names.index('', 1) + 1} has no name: name it, or remove it"
        )
    sources: dict[str, list[str]] = {}
    if request.columns is not None and request.keep is None:
        sources = source_columns(request.columns, names)
        request = replace(request, columns=tuple(sources))
    numeric = [
        types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        for kind in schema.types
    ]
    is_text = [_is_text(kind) for kind in schema.types]
    no_words = [
        is_number or types.is_temporal(kind)
        for is_number, kind in zip(numeric, schema.types, strict=True)
    ]
    label = label_column(path, names, no_words, request)
    features = feature_columns(path, names, len(names), label, request)
    check_present(path, request.keep, [names[j] for j in features])
    refuse_equal_names(path, [names[j] for j in features])
    texts, left_out, n_rows = [], list[str](), 0
    if request.keep is not None:
        texts = [names[j] for j in features if is_text[j]]
        left_out, n_rows = _columns_of_many_values(
            path, schema, {*texts} - request.kept
        )
    if len(left_out) < len(features):
        warn_of_many_values(path, left_out, n_rows)
        features = [j for j in features if names[j] not in left_out]
    coded = {name: values for name, values in sources.items() if values}
    if request.keep is not None:
        coded = {name: [] for name in texts if name not in left_out}
    if not may_code:
        coded = {}
    refused = [
        f"{quote_cell(names[j])} ({schema.types[j]})"
        for j in features
        if not (numeric[j] or names[j] in coded)
    ]
    if refused:
        raise DataFileError(
            path,
            f"columns {list_texts(refused)} hold no numbers: encode them as numbers or "
            "remove them (--drop)"
            + ("" if label is not None else ", or set label to the column of labels"),
        )
    return ParquetColumns(
        [names[j] for j in features],
        None if label is None else names[label],
        coded,
        (*request.drop, *left_out),
    )


def _is_text(kind: Any) -> bool:
    """Whether a column of this type holds text, or dates, which are read as text."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return str(kind) in TEXT_TYPES or types.is_temporal(kind)


def _columns_of_many_values(
    path: Path, schema: Any, names: set[str]
) -> tuple[list[str], int]:
    """Return those of the columns with too many values to be coded, and the rows."""
    parquet = optional_import("pyarrow.parquet", "parquet", path)
    left_out = []
    with parquet.ParquetFile(path, read_dictionary=_text_columns(schema)) as file:
        n_rows = file.metadata.num_rows
        for name in schema.names:
            if name in names:
                values = file.read(columns=[name]).column(0).drop_null().unique()
                if len(values) > max_values(n_rows):
                    left_out.append(name)
    return left_out, n_rows


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
    chosen = choose_columns(files[0], schema, request)
    names, label, left_out = chosen.features, chosen.label, chosen.left_out
    n_rows = sum(parquet.read_metadata(file).num_rows for file in files)
    y = None
    if label is not None:
        read_options = {"columns": [label], "read_dictionary": _text_columns(schema)}
        tables = [parquet.read_table(file, **read_options) for file in files]
        y = np.concatenate([_column_labels(table.column(0)) for table in tables])
    first_block = (
        None if request.keep is None else next(_parquet_blocks(files, names), None)
    )
    if first_block is not None:
        selected = columns_to_use(path, first_block, names, request)
        left_out += tuple(n for j, n in enumerate(names) if j not in selected)
        names = [names[j] for j in selected]
    blocks = Blocks(partial(_parquet_blocks, files, names), n_rows)
    return Table(blocks, y, names, label_name=label, left_out=left_out)


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
