"""Reads the rows of a command, from files, standard input, pipes or a cluster.

Progress is shown meanwhile, in bars on standard error when that is a terminal.
"""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from ..base.pipelines import takes_missing
from ..config import options
from ..data.rows import count_rows, on_dask, row_batches
from ..datasets import DataFileError, Table, open_rows, read_table
from ..io.data_file import Request, label_column, optional_import, refuse_missing
from ..io.parquet import choose_columns, parquet_bytes, parquet_files
from ..numerics.arrays import is_dask
from .model_info import feature_names, image_shape

MEMORY_SHARE = 4  # files above this part of the memory option stay on disk
FOLDER = "folders of images"
KINDS_OF_OPTIONS = {
    "key": (".npz", ".mat"),
    "size": (FOLDER,),
    "color": (FOLDER,),
    "header": (".csv", ".tsv"),
    "columns": (".csv", ".tsv", ".parquet"),
    "drop": (".csv", ".tsv", ".parquet"),
}
"""Options of reading, and the kinds of data that they are for."""
BATCH_BYTES = 64 * 2**20  # of rows that are predicted or coded at a time


class Columns(NamedTuple):
    """The columns that a model expects."""

    n_features: int
    names: tuple[str, ...] | None = None  # None: matched by position
    allow_missing: bool = False  # whether cells may be empty
    image_shape: tuple[int, ...] | None = None

    @classmethod
    def of_model(cls, model: Any, path: Path) -> Columns:
        """The columns that a model, which a file holds, was fitted to."""
        return cls(
            model.n_features_in_,
            feature_names(model),
            takes_missing(model),
            image_shape(path),
        )

    @classmethod
    def of_rows(cls, source: str, rows: Table, allow_missing: bool) -> Columns:
        """The columns of rows, by name if names are unique, or else with a warning."""
        names = rows.feature_names
        if names is not None and len(set(names)) < len(names):
            names = None
            warnings.warn(
                f"{source}: some columns have the same name: the model will match "
                "columns by position"
            )
        names = tuple(names) if names else None
        return cls(count_features(rows), names, allow_missing, rows.image_shape)


@dataclass(frozen=True)
class Source:
    """A file or folder of data, and the options of reading it."""

    path: Path
    label: str | None = None
    key: str | None = None
    size: tuple[int, int] | None = None
    header: bool | None = None
    use_labels: bool = True
    on_cluster: bool = False
    keep: tuple[str, ...] | None = None  # features that look like row numbers
    columns: tuple[str, ...] | None = None  # the only features
    drop: tuple[str, ...] | None = None  # columns that are no features
    quiet: bool = False  # whether no progress is shown
    color: bool | None = None  # whether images keep their colours

    @property
    def name(self) -> str:
        """The name of the data in messages."""
        return name_of(self.path)

    def read(self, expected: Columns | None = None, labelled: bool = False) -> Table:
        """Read rows with the columns that a model expects, and labels if there are any.

        For a fit, cells may be empty: the model is then built for missing values.
        """
        for name, kinds in KINDS_OF_OPTIONS.items():  # that would have no effect
            if getattr(self, name) is not None and not self._is_for(name):
                raise DataFileError(
                    self.name, f"--{name} is for {', '.join(kinds)}: leave it out"
                )
        columns = expected or Columns(0, allow_missing=True)
        source = self
        if expected is not None:  # the columns were chosen when the model was fitted
            source = replace(self, keep=None, columns=columns.names, drop=None)
            if columns.image_shape is not None and self.path.is_dir():
                height, width, *channels = columns.image_shape
                size = self.size or (height, width)
                source = replace(source, size=size, color=bool(channels))
        with as_file(self.path) as path, rows_progress("reading", None, self.quiet):
            rows = replace(source, path=path)._open_table(columns.allow_missing)
        n_features = count_features(rows)
        if expected is not None and n_features != expected.n_features:
            raise DataFileError(
                self.name,
                f"has {n_features} features, the model {expected.n_features}: give the "
                "same columns, and name the label column with --label",
            )
        if labelled and rows.y is None:
            raise DataFileError(self.name, "has no labels: name them with --label")
        return rows if self.use_labels else rows._replace(y=None)

    def beside(self, path: Path) -> Source:
        """Return the source of another file, with the options that suit its kind."""
        other = replace(self, path=path)
        unsuited = {name: None for name in KINDS_OF_OPTIONS if not other._is_for(name)}
        return replace(other, **unsuited)  # type: ignore[arg-type]

    def _is_for(self, name: str) -> bool:
        if self.path.is_dir():
            return FOLDER in KINDS_OF_OPTIONS[name]
        suffix = ".csv" if is_stream(self.path) else self.path.suffix.lower()
        return suffix in KINDS_OF_OPTIONS[name] or not self.path.exists()

    def _open_table(self, allow_missing: bool) -> Table:
        label: str | int | None = self.label
        if self.label is not None and self.label.removeprefix("-").isdecimal():
            label = int(self.label)  # the index of a column
        columns, drop = self.columns, self.drop or ()
        if self.on_cluster:
            request = Request(label, columns=columns, drop=drop)
            return _open_on_cluster(self.path, request)
        if self._is_large():
            return open_rows(
                self.path, label, columns=columns, keep=self.keep, drop=drop
            )
        rows = read_table(
            self.path,
            label,
            key=self.key,
            size=self.size,
            color=bool(self.color),
            header=self.header,
            columns=columns,
            gaps=allow_missing,
            keep=self.keep,
            drop=drop,
        )
        if not isinstance(rows.X, np.memmap):  # these are checked as they are read
            refuse_missing(self.path, rows.X, rows.feature_names, allow_missing)
        return rows

    def _is_large(self) -> bool:
        size = sum(map(parquet_bytes, parquet_files(self.path)))
        if self.path.suffix.lower() == ".npy" and self.path.exists():
            size = self.path.stat().st_size
        return size > options.memory // MEMORY_SHARE


def _open_on_cluster(path: Path, request: Request) -> Table:
    """Open a file that the workers of a cluster read."""
    if path.suffix.lower() == ".npy" and path.exists():
        X = on_dask().open_npy(path)
        column = label_column(path, None, [True] * X.shape[1], request)
        if column is None:
            return Table(X, None)
        feature_indices = np.delete(np.arange(X.shape[1]), column)
        return Table(X[:, feature_indices], X[:, column])
    files = parquet_files(path)
    if not files or not files[0].exists():
        raise DataFileError(
            path, "cannot be read by a cluster: give a .npy file, or .parquet files"
        )
    parquet = optional_import("pyarrow.parquet", "parquet", path)
    schema = parquet.read_schema(files[0])
    features, label, _, left_out = choose_columns(path, schema, request)
    columns = features if label is None else [*features, label]
    table = on_dask().open_parquet(files, columns)
    y = None if label is None else table[label]
    return Table(table[features], y, features, label_name=label, left_out=left_out)


def count_features(rows: Table) -> int:
    """Return the number of features."""
    names = rows.feature_names
    return rows.X.shape[1] if names is None else len(names)


def apply_by_batches(f: Callable[[Any], Any], rows: Table, title: str) -> Iterator[Any]:
    """Apply f to a few rows at a time: memory is bounded, and progress is shown.

    Rows on a cluster are processed there, all at once.
    """
    if is_dask(rows.X):
        yield f(rows.X)
        return
    step = max(1, BATCH_BYTES // (8 * count_features(rows)))
    with rows_progress(title, count_rows(rows.X)) as bar:
        for batch in row_batches(rows.X, step):
            yield f(batch)
            bar.advance(batch.shape[0])


@contextmanager
def session(
    memory: str | None,
    threads: int | None,
    device: str | None = None,
    checkpoint: Path | None = None,
    scheduler: str | None = None,
) -> Iterator[None]:
    """Set the options of the library, and connect to a Dask cluster if one is named."""
    changes = {
        "memory": memory,
        "n_threads": threads,
        "device": device,
        "checkpoint": checkpoint,
    }
    set_options: Any = {name: v for name, v in changes.items() if v is not None}
    with options(**set_options), ExitStack() as stack:
        if scheduler is not None:
            try:
                connect = on_dask().connect
            except ImportError:
                raise ImportError(
                    "--scheduler needs: pip install 'kernlets[dask]'"
                ) from None
            stack.enter_context(connect(scheduler))
        yield


STANDARD = ("-", "/dev/stdin")
BINARY = (b"\x93NUMPY", b"PK\x03\x04", b"PAR1", b"MATLAB", b"\x89HDF")


def is_stream(path: Path) -> bool:
    """Whether data come from standard input or a pipe, which can be read once."""
    return str(path) in STANDARD or path.is_fifo()


def name_of(path: Path) -> str:
    """Return the name of a path in messages."""
    return "standard input" if str(path) in STANDARD else str(path)


@contextmanager
def as_file(path: Path) -> Iterator[Path]:
    """Yield a file with the data: a copy of a stream, which messages do not name."""
    if not is_stream(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="kernlets-") as folder:
        copy = Path(folder) / "stream.csv"
        standard_input = nullcontext(sys.stdin.buffer)
        opened = standard_input if str(path) in STANDARD else path.open("rb")
        with opened as stream, copy.open("w+b") as file:
            shutil.copyfileobj(stream, file)
            file.seek(0)
            is_text = not file.read(8).startswith(BINARY)
        if not is_text:
            raise DataFileError(
                name_of(path), "is no text: pipe CSV, or give the file by its name"
            )
        with _rename_in_messages(copy, name_of(path)):
            yield copy


@contextmanager
def _rename_in_messages(copy: Path, name: str) -> Iterator[None]:
    """Name the stream in errors and warnings in place of the copy."""
    with warnings.catch_warnings():
        show_warning = warnings.showwarning

        def show_renamed(message: Any, *args: Any, **keywords: Any) -> None:
            show_warning(str(message).replace(str(copy), name), *args, **keywords)

        warnings.showwarning = show_renamed
        try:
            yield
        except DataFileError as error:
            problem = str(error).removeprefix(f"{copy}: ")
            raise DataFileError(name, problem) from error


# ------------------------------------------------------------------------- progress

SPEED_UNITS = ((1, ""), (1e3, "k"), (1e6, "M"))


class RowsPerSecond(ProgressColumn):
    """Rows per second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        if speed is None:
            return Text("")
        factor, unit = max((u for u in SPEED_UNITS if u[0] <= speed), default=(1, ""))
        return Text(f"{speed / factor:.3g}{unit} rows/s")


class RowsBar:
    """A progress bar that counts rows."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task: TaskID | None = None

    def begin(self, title: str, total: int | None = None) -> None:
        """Replace the bar by a new one."""
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(title, total=total)

    def advance(self, n: int) -> None:
        """Count rows that were processed."""
        if self._task is not None:
            self._bar.advance(self._task, n)


@contextmanager
def rows_progress(
    title: str, total: int | None, quiet: bool = False
) -> Iterator[RowsBar]:
    """Yield a bar that counts rows, on standard error if that is a terminal."""
    with make_bar(quiet, RowsPerSecond()) as bar:
        rows = RowsBar(bar)
        rows.begin(title, total)
        yield rows


class _LogAboveBar(logging.Handler):
    """Prints what the library logs, such as that loops are compiled, above a bar."""

    def __init__(self, console: Console) -> None:
        super().__init__(logging.INFO)
        self.console = console

    def emit(self, record: logging.LogRecord) -> None:
        self.console.print(record.getMessage(), style="dim", highlight=False)


@contextmanager
def make_bar(quiet: bool, *speed: ProgressColumn) -> Iterator[Progress]:
    """Yield a bar with the log above it: on a terminal, unless it is quiet."""
    console = Console(stderr=True)
    is_shown = console.is_terminal and not quiet
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn("{task.percentage:>3.0f}%"),
        *speed,
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not is_shown,
    )
    log, handler = logging.getLogger("kernlets"), _LogAboveBar(console)
    level = log.level
    if is_shown:
        log.addHandler(handler)
        log.setLevel(logging.INFO)
    try:
        # rich 13.7 ends a bar that is not shown with an empty line, too
        with bar if is_shown else nullcontext():
            yield bar
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
