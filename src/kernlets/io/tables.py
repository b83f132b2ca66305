"""`read_table`, `open_rows` and `write_rows`: a user's files as rows and labels.

Here are the choice of the reader, the array formats (.npz, .npy, .mat) and the checks
that all formats share. `text_files.py` reads .csv and .tsv, `parquet.py` Parquet, and
`image_folder.py` folders of images.
"""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from ..data.block_loop import stacked_rows
from ..data.lazy_rows import LazyRows
from ..data.rows import iter_blocks
from ..data.sparse_rows import as_dense
from ..data.stream import no_blocks_error
from ..numerics.arrays import as_float
from . import image_folder, parquet, text_files
from .atomic_write import atomic_write
from .data_file import (
    DataFileError,
    Request,
    Table,
    as_tuple,
    check_present,
    label_column,
    reading,
    refuse_large,
    refuse_special,
    text_array,
)
from .parquet import open_parquet, parquet_files
from .row_numbers import columns_to_use, position_names, positions, without_row_ids

HEADER_BYTES = 2**16  # that hold the header of an array file
#: Names under which array files usually keep (rows, labels), in order of preference.
ARRAY_NAMES = (("X", "y"), ("X_train", "y_train"), ("data", "target"), ("fea", "gnd"))


def read_table(
    path: str | Path,
    label: str | int | bool | None = None,
    *,
    key: str | None = None,
    size: tuple[int, int] | None = None,
    color: bool = False,
    header: bool | None = None,
    columns: Sequence[str] | None = None,
    gaps: bool = False,
    keep: Sequence[str] | None = None,
    drop: Sequence[str] = (),
) -> Table:
    """Read rows, and labels if there are any, from a file or a folder of images.

    Parameters
    ----------
    path : path
        `.npz`, `.npy` (memory-mapped), `.csv`, `.tsv`, `.parquet`, `.mat`, or a folder
        of images with one sub-folder per class.
    label : str, int, False or None
        Name or index of the label column (for `.npz` and `.mat`: name of the array, or
        column of X). None looks for the usual names, then for a last column of text
        that is no date; False reads no labels.
    key : str, optional
        `.npz` and `.mat`: name of the array of rows. Labels are then looked for under
        the same name with y in place of X ("X_test", "y_test").
    size : (height, width), optional
        Folders: resize all images to this shape.
    color : bool
        Folders: keep red, green and blue instead of grey.
    header : bool, optional
        `.csv` and `.tsv`: whether the first line names the columns. By default it does
        if it contains no number, or contains the name of the label column, or counts
        the columns (0, 1, 2, ...), or rises in equal steps over eight columns or more;
        the last case gives a warning.
    columns : names of features, optional
        Files with column names: the features, in this order. All must exist; others
        are dropped with a warning. Files without names are read unchanged. A name
        such as "sex=male" is, where no column is called so, 1 in the rows that hold
        "male" in the column "sex", NaN where that holds nothing, and else 0. With
        `keep` these are columns of the file, in its order, and no warning is given.
    gaps : bool
        `.csv`, `.tsv` and `.parquet`: whether cells without a value (empty, "NA", "?"
        and the like) become NaN, which means missing. By default they are an error.

    keep : names of features, optional
        Leave out columns that only number or name the rows, with a warning, but keep
        these (of columns without names, their index as text). Such are columns that
        hold another whole number in each row, if these rise from row to row or follow
        each other in some order (ten rows or more), or if the column is called id,
        index, row number and the like. `.csv`, `.tsv` and `.parquet`: a column of
        text becomes a column of 0 and 1 for each of its values, as in `columns`, if
        these are at most 20 and at most a tenth of the rows (or two), and is left out
        if there are more. None, the default, keeps all columns and refuses text.
    drop : names of columns
        `.csv`, `.tsv` and `.parquet`: leave out these columns.

    Returns
    -------
    Table
        `X`, `y` (or None), `feature_names`, `image_shape`. X is float32 or float64;
        a memory map keeps the type it is stored in.

    Raises
    ------
    DataFileError
        One line that names the file and the remedy.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernlets import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "iris.csv"
    ...     _ = path.write_text("length,width,kind\\n1.5,0.2,setosa\\n4.7,1.4,other\\n")
    ...     table = datasets.read_table(path)
    >>> table.X.tolist(), table.y.tolist(), table.feature_names
    ([[1.5, 0.2], [4.7, 1.4]], ['setosa', 'other'], ['length', 'width'])
    """
    path = Path(path)
    reader, columns = _reader(path), as_tuple(columns)
    with reading(path):
        keep = as_tuple(keep)
        request = Request(
            label, key, size, color, header, columns, gaps, keep, tuple(drop)
        )
        table = _check_table(path, reader(path, request))
    return without_row_ids(path, table, request)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read all arrays of an .npz file without running pickled code."""
    with reading(path), np.load(path, allow_pickle=False) as archive:
        members = {name: archive[name] for name in archive.files}
    # a member that is not an array comes as bytes
    return {name: a for name, a in members.items() if isinstance(a, np.ndarray)}


def _reader(path: Path) -> Callable[[Path, Request], Table]:
    if not path.exists():
        raise DataFileError(path, "does not exist: check the path")
    refuse_special(path)
    if path.is_dir():
        return image_folder.read_folder
    if path.suffix.lower() not in READERS:
        suffixes = ", ".join(READERS)
        raise DataFileError(path, f"is none of {suffixes} or a folder: convert it")
    if path.stat().st_size == 0:
        raise DataFileError(path, "is empty: write or download it again")
    return READERS[path.suffix.lower()]


def _check_table(path: Path, table: Table) -> Table:
    X, y, shape = table.X, table.y, table.image_shape
    if X.ndim < 2 or X.dtype.kind not in "fiub":
        raise DataFileError(
            path,
            f"has rows of shape {X.shape} and type {X.dtype}: needs a numeric matrix",
        )
    if X.size == 0:
        raise DataFileError(path, f"has shape {X.shape}: needs at least one number")
    if X.ndim > 2:
        X, shape = X.reshape(len(X), -1), X.shape[1:]
    if y is not None and len(y) != len(X):
        advice = "transpose it" if len(y) == X.shape[1] else "give one label per row"
        raise DataFileError(path, f"has {len(X)} rows but {len(y)} labels: {advice}")
    X = X if isinstance(X, np.memmap) else as_float(X)
    return table._replace(X=X, image_shape=shape)


def _read_npy(path: Path, request: Request) -> Table:
    return _split_column(path, np.lib.format.open_memmap(path, mode="r"), request)


def _read_npz(path: Path, request: Request) -> Table:
    with zipfile.ZipFile(path) as archive:
        headers = dict(_npz_headers(archive))

        def read(name: str) -> np.ndarray:
            with archive.open(f"{name}.npy") as member:
                return np.lib.format.read_array(member, allow_pickle=False)

        return _from_arrays(path, headers, read, request)


class _ArrayHeader(NamedTuple):
    """Shape and size of an array, from its header, before it is read."""

    shape: tuple[int, ...]
    item_bytes: int  # once it is read, when integers have become floats of eight bytes

    @property
    def n_bytes(self) -> int:
        """Memory of the array."""
        return math.prod(self.shape) * self.item_bytes


def _npz_headers(archive: zipfile.ZipFile) -> Iterator[tuple[str, _ArrayHeader]]:
    """Yield names and headers of the arrays in an archive without reading them."""
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    for name in archive.namelist():
        if name.endswith(".npy"):
            with archive.open(name) as member:
                start = io.BytesIO(member.read(HEADER_BYTES))
            version = np.lib.format.read_magic(start)
            if version in readers:  # the third is for columns with names of any script
                shape, _, dtype = readers[version](start)
                is_small_float = dtype in (np.float16, np.float32)
                size = 4 if is_small_float else max(dtype.itemsize, 8)
                yield name.removesuffix(".npy"), _ArrayHeader(shape, size)


def _read_mat(path: Path, request: Request) -> Table:
    from scipy.io import loadmat, whosmat

    try:
        headers = {
            name: _ArrayHeader(shape[:1], 4 * math.prod(shape[1:]))
            if kind == "char"  # SciPy turns rows of characters into texts
            else _ArrayHeader(shape, 4 if kind == "single" else 8)
            for name, shape, kind in whosmat(path)
        }
    except NotImplementedError as error:
        raise DataFileError(
            path, "is a MATLAB v7.3 file: save it again in MATLAB with the flag -v7"
        ) from error

    def read(name: str) -> np.ndarray:
        return np.asarray(as_dense(loadmat(path, variable_names=[name])[name]))

    return _from_arrays(path, headers, read, request)


def _from_arrays(
    path: Path,
    headers: dict[str, _ArrayHeader],
    read: Callable[[str], np.ndarray],
    request: Request,
) -> Table:
    """Read the arrays of rows and labels from a file, and no other arrays."""
    rows, labels = _array_names(path, headers, request.key)
    by_column = isinstance(request.label, int)  # includes False
    if request.label is not None and not by_column:
        labels = _check_name(path, headers, str(request.label))
    names = [rows] if by_column or labels not in headers else [rows, labels]
    refuse_large(path, sum(headers[name].n_bytes for name in names))
    if by_column:
        return _split_column(path, read(rows), request)
    X, y = read(rows), None
    if labels in names:
        y = read(labels).ravel()
        if y.dtype == object:  # MATLAB's cells of strings become strings
            y = text_array([str(np.squeeze(cell)) for cell in y])
        elif y.dtype.kind == "U":
            y = np.char.strip(y)
    return Table(X, y)


def _array_names(
    path: Path, headers: dict[str, _ArrayHeader], key: str | None
) -> tuple[str, str]:
    """Return the names of the array of rows and of its labels."""
    if key is not None:
        usual = key.replace("X", "y", 1) if "X" in key else "y"
        return _check_name(path, headers, key), dict(ARRAY_NAMES).get(key, usual)
    for names in ARRAY_NAMES:
        if names[0] in headers:
            return names
    shapes = {name: header.shape for name, header in headers.items()}
    matrices = [name for name, s in shapes.items() if len(s) > 1 and min(s) > 1]
    if len(matrices) == 1:
        return matrices[0], "y"
    raise DataFileError(
        path, f"has no array called X: name one of {_list_arrays(headers)} with key="
    )


def _check_name(path: Path, headers: dict[str, _ArrayHeader], name: str) -> str:
    if name not in headers:
        raise DataFileError(
            path, f"has no array {name!r}: choose from {_list_arrays(headers)}"
        )
    return name


def _list_arrays(headers: dict[str, _ArrayHeader]) -> str:
    return ", ".join(headers) or "(none)"


def _split_column(path: Path, X: np.ndarray, request: Request) -> Table:
    """Split the column of labels off X if the request gives its index."""
    n_columns = X.shape[1] if X.ndim == 2 else 0
    column = label_column(path, None, [True] * n_columns, request)
    if column is None:
        return Table(X, None)
    X = np.asarray(X)  # with a column removed it cannot remain a memory map
    return Table(np.delete(X, column, axis=1), X[:, column].copy())


READERS: dict[str, Callable[[Path, Request], Table]] = {
    ".npz": _read_npz,
    ".npy": _read_npy,
    ".csv": text_files.read_text,
    ".tsv": text_files.read_text,
    ".parquet": parquet.read_parquet,
    ".mat": _read_mat,
}


FIRST_ROWS = 10_000  # of a file, that tell whether a column numbers rows


def open_rows(
    path: str | Path,
    label: str | int | bool | None = None,
    *,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    drop: Sequence[str] = (),
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
        As in `read_table`; the first block of rows is looked at. Text is refused.
    drop : names of columns
        `.parquet`: leave out these columns.

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
        label, columns=as_tuple(columns), keep=as_tuple(keep), drop=tuple(drop)
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
        check_present(path, request.keep, [str(j) for j in range(len(feature_indices))])
        selected = columns_to_use(path, X[:FIRST_ROWS, feature_indices], None, request)
    y, row_bytes = None, X.dtype.itemsize * X.shape[1]
    if column is not None:
        y = stacked_rows(partial(_take_columns, column), X, row_bytes).astype(X.dtype)
    if len(selected) == X.shape[1]:
        return Table(X, y)
    names = None
    if len(selected) < len(feature_indices):
        all_names = position_names(len(feature_indices))
        names = [all_names[j] for j in selected]
    features = partial(_take_columns, [feature_indices[j] for j in selected])
    return Table(LazyRows(X, features, row_bytes), y, names)


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
