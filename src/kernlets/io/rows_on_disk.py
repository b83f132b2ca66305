"""Opens files of rows that stay on disk, and writes rows to a file by blocks.

`read_table` in `tables.py` reads whole files instead, and more formats.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..data.block_loop import stacked_rows
from ..data.lazy_rows import LazyRows
from ..data.rows import iter_blocks
from ..data.stream import no_blocks_error
from .atomic_write import atomic_write
from .columns import (
    check_keep,
    columns_to_use,
    label_column,
    position_names,
    positions,
)
from .data_file import DataFileError, Request, Table, reading, refuse_special
from .parquet import open_parquet, parquet_files

FIRST_ROWS = 10_000  # of a file, that tell whether a column numbers rows


def open_rows(
    path: str | Path,
    label: str | int | bool | None = None,
    *,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
) -> Table:
    """Open a file that is larger than memory, to be read block by block.

    Parameters
    ----------
    path : path
        `.npy`; `.parquet`, or a folder of such files.
    label : str, int, False or None
        Label column, as in `read_table`.
    columns : names of features, optional
        As in `read_table`.
    keep : names of features, optional
        As in `read_table`; the first block of rows is looked at.

    Returns
    -------
    Table
        X is a memory map for `.npy` (`LazyRows` if a column is left out), and `Blocks`
        for Parquet. The labels are in memory.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernlets import MOD, datasets, options
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "huge.npy"
    >>> datasets.write_rows(path, datasets.load("digits").X_train)
    898
    >>> with options(memory="2GB"):
    ...     learner = MOD(20, random_state=0).fit(datasets.open_rows(path).X)
    >>> learner.components_.shape
    (20, 64)
    >>> folder.cleanup()
    """
    path = Path(path)
    request = Request(
        label,
        columns=None if columns is None else tuple(columns),
        keep=None if keep is None else tuple(keep),
    )
    with reading(path):
        if not path.exists():
            raise DataFileError(path, "does not exist: check the path")
        refuse_special(path)
        if path.suffix.lower() == ".npy":
            return _open_npy(path, request)
        files = parquet_files(path)
        if not files:
            raise DataFileError(
                path, "is not a .npy or .parquet file, nor a folder of .parquet files"
            )
        return open_parquet(path, files, request)


def _open_npy(path: Path, request: Request) -> Table:
    X = np.lib.format.open_memmap(path, mode="r")
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise DataFileError(path, f"holds {X.dtype} of shape {X.shape}: needs a matrix")
    column = label_column(path, None, [True] * X.shape[1], request)
    feature_indices = [j for j in range(X.shape[1]) if j != column]
    selected = positions(request.columns, len(feature_indices))
    if selected is None:
        check_keep(path, [str(j) for j in range(len(feature_indices))], request)
        selected = columns_to_use(path, X[:FIRST_ROWS, feature_indices], None, request)
    labels, row_bytes = None, X.dtype.itemsize * X.shape[1]
    if column is not None:
        labels = stacked_rows(partial(_take_columns, column), X, row_bytes).astype(
            X.dtype
        )
    if len(selected) == X.shape[1]:
        return Table(X, labels)
    names = (
        position_names(len(feature_indices))
        if len(selected) < len(feature_indices)
        else None
    )
    features = partial(_take_columns, [feature_indices[j] for j in selected])
    return Table(
        LazyRows(X, features, row_bytes), labels, names and [names[j] for j in selected]
    )


def _take_columns(columns: int | list[int], block: np.ndarray) -> np.ndarray:
    return block[:, columns].copy()


def write_rows(path: str | Path | IO[bytes], X: Any) -> int:
    """Write rows from any source to a `.npy` file, block by block.

    The file appears under its name only when it is complete.

    Parameters
    ----------
    path : path or open binary file
        Where to write.
    X : rows
        An array, a memory map, `LazyRows` (the result of `transform` for data larger
        than memory), an iterable of blocks, or a Dask array, whose chunks are written
        in turn.

    Returns
    -------
    int
        Number of rows.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from kernlets import datasets
    >>> file = io.BytesIO()
    >>> datasets.write_rows(file, [np.zeros((2, 3)), np.ones((1, 3))])
    3
    >>> _ = file.seek(0)
    >>> np.load(file).sum(axis=1).tolist()
    [0.0, 0.0, 3.0]
    """
    destination: AbstractContextManager[IO[bytes]] = (
        atomic_write(path) if isinstance(path, (str, Path)) else nullcontext(path)
    )
    with destination as file:
        start, n_rows, empty_block = file.tell(), 0, None
        for block in iter_blocks(X, row_bytes=64):
            block = np.ascontiguousarray(block)
            if empty_block is None:
                empty_block = block[:0]
                _write_header(file, empty_block, 0)
            n_rows += len(block)
            file.write(block.data)
        if empty_block is None:
            raise no_blocks_error()
        file.seek(start)
        # the first header left room for more digits
        _write_header(file, empty_block, n_rows)
        file.seek(0, os.SEEK_END)
    return n_rows


def _write_header(file: IO[bytes], empty_block: np.ndarray, n_rows: int) -> None:
    header = np.lib.format.header_data_from_array_1_0(empty_block)
    header["shape"] = (n_rows, *empty_block.shape[1:])
    np.lib.format.write_array_header_1_0(file, header)
