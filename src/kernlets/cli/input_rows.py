"""Reads the rows of a command: from files, in memory, on disk or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..backend.arrays import is_dask
from ..backend.load_dask import dask_files
from ..backend.pipelines import takes_gaps
from ..backend.rows import count_rows, row_batches
from ..config import options
from ..datasets import DataFileError, Table, open_rows, read_table
from ..datasets.column_files import numeric_columns
from ..datasets.rows_on_disk import parquet_bytes, parquet_files
from ..datasets.table_types import Request, label_column, optional_import, refuse_gaps
from .model_parts import feature_names
from .progress import rows_progress
from .standard_input import as_file, is_stream, name_of

LARGE = 4  # files above this part of the memory option stay on disk
FOLDER = "folders of images"
READ_BY = {
    "key": (".npz", ".mat"),
    "size": (FOLDER,),
    "header": (".csv", ".tsv"),
}
"""Options of reading, and the kinds of data that they are for."""
BATCH_BYTES = 64 * 2**20  # of rows that are predicted or coded at a time


class Columns(NamedTuple):
    """The columns that a model expects."""

    n_features: int
    names: tuple[str, ...] | None = None  # None: matched by position
    gaps: bool = False  # whether cells may be empty

    @classmethod
    def of_model(cls, model: Any) -> Columns:
        """The columns that a model was fitted to."""
        return cls(model.n_features_in_, feature_names(model), takes_gaps(model))

    @classmethod
    def of_rows(cls, rows: Table, gaps: bool) -> Columns:
        """The columns of rows, by name if names are unique."""
        names = rows.feature_names
        is_unique = names is not None and len(set(names)) == len(names)
        return cls(width(rows), tuple(names) if names and is_unique else None, gaps)


@dataclass(frozen=True)
class Source:
    """Data to read, and how."""

    path: Path
    label: str | None = None
    key: str | None = None
    size: tuple[int, int] | None = None
    header: bool | None = None
    use_labels: bool = True
    on_cluster: bool = False
    keep: tuple[str, ...] | None = None  # features although they look like numbers

    @property
    def name(self) -> str:
        """What messages call it."""
        return name_of(self.path)

    def read(self, expected: Columns | None = None, labelled: bool = False) -> Table:
        """Rows, as a model expects them, and labels where there are any.

        To fit, cells may be empty: the model is chosen for that.
        """
        self._check_options()
        known = expected or Columns(0, gaps=True)
        keep = self.keep if expected is None else None
        with as_file(self.path) as path:
            rows = replace(self, path=path)._open(known.names, known.gaps, keep)
        found = width(rows)
        if expected is not None and found != expected.n_features:
            raise DataFileError(
                self.name,
                f"has {found} features, the model {expected.n_features}: give the same "
                "columns, and name the label column with --label",
            )
        if labelled and rows.y is None:
            raise DataFileError(self.name, "has no labels: name them with --label")
        return rows if self.use_labels else rows._replace(y=None)

    def beside(self, path: Path) -> Source:
        """Another file, read with those options that suit its kind."""
        other = replace(self, path=path)
        unsuited = {name: None for name in READ_BY if not other._suits(name)}
        return replace(other, **unsuited)  # type: ignore[arg-type]

    def _check_options(self) -> None:
        """Refuse options that would have no effect on a file of this kind."""
        for name, kinds in READ_BY.items():
            if getattr(self, name) is not None and not self._suits(name):
                raise DataFileError(
                    self.name, f"--{name} is for {', '.join(kinds)}: leave it out"
                )

    def _suits(self, name: str) -> bool:
        if self.path.is_dir():
            return FOLDER in READ_BY[name]
        suffix = ".csv" if is_stream(self.path) else self.path.suffix.lower()
        return suffix in READ_BY[name] or not self.path.exists()

    def _open(
        self,
        names: tuple[str, ...] | None,
        gaps: bool,
        keep: tuple[str, ...] | None,
    ) -> Table:
        column = _column(self.label)
        if self.on_cluster:
            return _open_on_cluster(self.path, Request(column, columns=names))
        if self._is_large():
            return open_rows(self.path, column, columns=names, keep=keep)
        how: Any = {"key": self.key, "size": self.size, "header": self.header}
        how["keep"] = keep
        rows = read_table(self.path, column, columns=names, gaps=gaps, **how)
        if not isinstance(rows.X, np.memmap):  # these are checked as they are read
            refuse_gaps(self.path, rows.X, rows.feature_names, gaps)
        return rows

    def _is_large(self) -> bool:
        size = sum(map(parquet_bytes, parquet_files(self.path)))
        if self.path.suffix.lower() == ".npy" and self.path.exists():
            size = self.path.stat().st_size
        return size > options.memory // LARGE


def _open_on_cluster(path: Path, request: Request) -> Table:
    """A file that the workers of a cluster read."""
    if path.suffix.lower() == ".npy" and path.exists():
        X = dask_files().open_npy(path)
        column = label_column(path, None, [True] * X.shape[1], request)
        if column is None:
            return Table(X, None)
        others = np.delete(np.arange(X.shape[1]), column)
        return Table(X[:, others], X[:, column])
    files = parquet_files(path)
    if not files or not files[0].exists():
        raise DataFileError(
            path, "cannot be read by a cluster: give a .npy file, or .parquet files"
        )
    parquet = optional_import("pyarrow.parquet", "parquet", path)
    schema = parquet.read_schema(files[0])
    names, features, labels = numeric_columns(path, schema, request)
    columns = features if labels is None else [*features, labels]
    table = dask_files().open_parquet(files, columns)
    return Table(table[features], None if labels is None else table[labels], names)


def _column(label: str | None) -> str | int | None:
    """A label column by index where it is a number, else by name."""
    if label is None or not label.removeprefix("-").isdecimal():
        return label
    return int(label)


def width(rows: Table) -> int:
    """Number of features."""
    names = rows.feature_names
    return rows.X.shape[1] if names is None else len(names)


def by_batches(f: Callable[[Any], Any], rows: Table, title: str) -> Iterator[Any]:
    """f of a few rows at a time, so that memory is bounded and progress can be seen.

    Rows on a cluster are processed there, all at once.
    """
    if is_dask(rows.X):
        yield f(rows.X)
        return
    step = max(1, BATCH_BYTES // (8 * width(rows)))
    with rows_progress(title, count_rows(rows.X)) as bar:
        for batch in row_batches(rows.X, step):
            yield f(batch)
            bar.advance(batch.shape[0])


@contextmanager
def connected(scheduler: str | None) -> Iterator[None]:
    """A client of a Dask cluster for the time of one command, if one is named."""
    if scheduler is None:
        yield
        return
    try:
        connect = dask_files().connect
    except ImportError:
        raise ImportError("--scheduler needs: pip install 'kernlets[dask]'") from None
    with connect(scheduler):
        yield
