"""Rows, samples and labels in Dask collections, as `rows.py` treats them in memory.

Each chunk of rows is processed like an array in memory, block by block, on the device
named in the options: a worker with its own GPU moves its chunks there.
`dask_tasks.py` sends the work to the chunks. Only this file and `dask_*.py` import
Dask, which takes long to import and need not be installed; others call
`rows.on_dask()`.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.bag as db
import numpy as np
from dask.delayed import delayed
from sklearn.utils.validation import column_or_1d

from ..contracts import Array
from ..numerics.arrays import (
    as_float,
    is_torch,
    load_solvers,
    stored_dtype,
    to_device,
    to_numpy,
    working_dtype,
)
from ..numerics.scaling import quiet
from .block_loop import refuse_infinite, report_rows, stacked_rows, sum_blocks
from .dask_tasks import (
    Origin,
    apply_maps,
    await_workers,
    cache_rows,
    compute,
    map_chunks,
    origin_of,
    pack,
    slice_rows,
    sum_chunks,
)
from .labels import label_classes, label_values, refuse_continuous
from .samples import is_objects, object_array

__all__ = [
    "as_rows",
    "cache_rows",
    "compute",
    "map_chunks",
    "map_rows",
    "slice_rows",
    "sum_rows",
    "take_rows",
]


def as_rows(X: Any, dtype: Any = None, allow_nan: bool = False) -> da.Array:
    """Convert a Dask collection to chunks of whole rows whose lengths are known.

    The workers convert chunks to `dtype`, by default to the working dtype of X, and
    refuse infinity, and NaN unless it means missing.
    """
    _refuse_bag(X)
    stored = stored_dtype(X)
    if stored is not None and not isinstance(X, da.Array):
        # before the conversion, in which pandas makes objects of mixed columns
        X = X.astype(working_dtype(stored))
    X = with_known_lengths(X)
    row_dtype = working_dtype(X.dtype)  # raises if X has no numbers
    row_dtype = row_dtype if dtype is None else dtype
    if X.ndim == 2 and len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    if X.dtype != row_dtype:
        X = da.map_blocks(_cast, X, row_dtype, dtype=row_dtype)
    check = pack(partial(_check_chunk, allow_nan))
    return apply_maps(origin_of(X).then(check), np.empty((0, *X.shape[1:]), X.dtype))


def _cast(chunk: np.ndarray, dtype: Any) -> np.ndarray:
    with quiet():  # overflow is refused when the chunk is checked
        return chunk.astype(dtype)


def _check_chunk(allow_nan: bool, chunk: np.ndarray, _: Any) -> np.ndarray:
    refuse_infinite(chunk, allow_nan=allow_nan)
    return chunk


def with_known_lengths(X: Any) -> da.Array:
    _refuse_bag(X)
    if not isinstance(X, da.Array):
        with warnings.catch_warnings():  # text becomes objects, as it should
            warnings.filterwarnings("ignore", "Dask currently has limited support")
            X = X.to_dask_array()
    if any(np.isnan(length) for length in X.chunks[0]):
        await_workers()  # without a worker the next calls would wait forever
        X = X.copy()  # the lengths are stored in X itself
        X.compute_chunk_sizes()
    return X


def _refuse_bag(X: Any) -> None:
    if not isinstance(X, da.Array) and not hasattr(X, "to_dask_array"):
        raise TypeError(
            f"a Dask {type(X).__name__} is neither rows of numbers nor labels: pass a "
            "Dask array or dataframe, or what compute() gives"
        )


def map_rows(
    f: Callable[[Array], Array], X: da.Array, row_bytes: int, group_size: int = 1
) -> da.Array:
    """Apply f to the chunks lazily; the result is another Dask array."""
    like = _to_host(f(to_device(_example_rows(X, group_size))))
    job = pack(partial(_map_chunk, f, row_bytes, group_size))
    return apply_maps(replace(origin_of(X).then(job), sample=None), like)


def _example_rows(X: da.Array, n: int) -> np.ndarray:
    """Return rows of the shape and dtype of the rows of X."""
    if X.ndim > 1:
        return as_float(np.ones((n, X.shape[1]), X.dtype))
    sample = origin_of(X).sample
    return np.empty(0, dtype=object) if sample is None else sample


def _map_chunk(
    f: Callable[[Array], Array],
    row_bytes: int,
    group_size: int,
    chunk: np.ndarray,
    _: Any,
) -> Array:
    rows = _to_worker_device(chunk)
    return _to_host(stacked_rows(f, rows, row_bytes, None, group_size))


def _to_worker_device(chunk: np.ndarray) -> Array:
    """Move a chunk to the worker's device."""
    chunk = to_device(chunk)
    load_solvers(chunk)
    return chunk


def _to_host(rows: Array) -> Array:
    """Move rows to the host, because chunks of a Dask array are not tensors."""
    return to_numpy(rows) if is_torch(rows) else rows


def sum_rows(
    f: Callable[..., Any],
    X: da.Array,
    row_bytes: int,
    numbered: bool = False,
    group_size: int = 1,
) -> Any:
    """Return Σ f(block): workers sum within chunks, and then over chunks in a tree."""
    chunk_ends = np.cumsum(X.chunks[0]).tolist()
    spans = [
        (end - n, end) if n else None
        for end, n in zip(chunk_ends, X.chunks[0], strict=True)
    ]
    total = sum_chunks(
        partial(_sum_chunk, f, row_bytes, numbered, group_size), X, spans
    )
    report_rows(X.shape[0])
    return total


def _sum_chunk(
    f: Callable[..., Any],
    row_bytes: int,
    numbered: bool,
    group_size: int,
    chunk: np.ndarray,
    span: tuple[int, int],
) -> Any:

    def apply_numbered(block: Array, number: int) -> Any:
        return f(block, span[0] + number)

    block_function = apply_numbered if numbered else f
    arrays = [_to_worker_device(chunk)]
    return sum_blocks(
        block_function, arrays, row_bytes, numbered, group_size=group_size
    )


def take_rows(X: da.Array, row_numbers: np.ndarray) -> Array:
    """Gather the rows with these numbers in the given order."""
    row_numbers = np.asarray(row_numbers)
    order = np.argsort(row_numbers, kind="stable")
    chunk_ends = np.cumsum(X.chunks[0])
    cuts = np.searchsorted(row_numbers[order], chunk_ends)
    orders = np.split(order, cuts[:-1])
    numbers_in_chunks = [
        row_numbers[chunk_order] - (end - n) if len(chunk_order) else None
        for chunk_order, end, n in zip(orders, chunk_ends, X.chunks[0], strict=True)
    ]
    chunk_rows = map_chunks(_take_from_chunk, X, numbers_in_chunks)
    sorted_rows = (
        np.concatenate(chunk_rows)
        if chunk_rows
        else np.empty((0, *X.shape[1:]), X.dtype)
    )
    gathered = np.empty_like(sorted_rows)
    gathered[order] = sorted_rows
    return to_device(gathered)


def _take_from_chunk(chunk: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return chunk[rows] if is_objects(chunk) else as_float(chunk[rows])


NO_OBJECTS = np.empty(0, dtype=object)


def as_objects(X: Any, parse: Callable[[Any], np.ndarray]) -> da.Array:  # (n,)
    """Convert a Dask collection to chunks of checked samples.

    The first sample is read at once, because functions of samples are tried on it to
    see which type their results have.
    """
    X = with_known_lengths(_from_bag(X) if isinstance(X, db.Bag) else X)
    if X.ndim > 1:
        X = X.rechunk(dict.fromkeys(range(1, X.ndim), -1))
    source = Origin(X, (pack(partial(_parse_chunk, parse)),))
    first_chunk = next((i for i, n in enumerate(X.chunks[0]) if n), None)
    if first_chunk is None:
        return apply_maps(source, NO_OBJECTS)
    chunk_arguments = [
        () if i == first_chunk else None for i in range(len(X.chunks[0]))
    ]
    (sample,) = map_chunks(
        _first_sample, apply_maps(source, NO_OBJECTS), chunk_arguments
    )
    return apply_maps(replace(source, sample=sample), NO_OBJECTS)


def _from_bag(X: db.Bag) -> da.Array:
    """Convert the partitions of a bag to chunks, whose lengths are not known."""
    chunks = [
        da.from_delayed(
            delayed(_as_objects_chunk)(partition), (np.nan,), meta=NO_OBJECTS
        )
        for partition in X.to_delayed()
    ]
    return da.concatenate(chunks, allow_unknown_chunksizes=True)


def _as_objects_chunk(partition: Any) -> np.ndarray:
    return object_array(list(partition))


def _parse_chunk(parse: Callable[[Any], np.ndarray], chunk: Any, _: Any) -> np.ndarray:
    try:
        return parse(chunk)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error} (samples of a partition count from 0)") from None


def _first_sample(chunk: np.ndarray, _: Any) -> np.ndarray:
    return chunk[:1]


def split_rows(X: da.Array, y: Any) -> tuple[np.ndarray, list[da.Array]]:
    """Return the distinct labels, (n_classes,), and the rows of each class."""
    source = origin_of(X) if origin_of(X).chunk_slices is None else Origin(X)
    labels = _cut_like_rows(source.X, y, label_values)
    if isinstance(labels, da.Array):
        label_counts = map_chunks(_count_labels, labels, [()] * len(labels.chunks[0]))
        chunk_labels = labels.to_delayed().tolist()
        choose_rows = delayed(_rows_with_label, pure=False)
    else:
        chunk_labels, choose_rows = labels, _rows_with_label
        label_counts = [
            _count_labels(labels_of_chunk, ()) for labels_of_chunk in chunk_labels
        ]
    classes = label_classes([values for values, _ in label_counts])
    chunks, row_shape = source.X.to_delayed().ravel().tolist(), source.X.shape[1:]
    take_from_chunk = delayed(operator.getitem, pure=False)

    def class_rows(label: Any) -> da.Array:
        shapes = [(counts.get(label, 0), *row_shape) for _, counts in label_counts]
        class_chunks = [
            da.from_delayed(
                take_from_chunk(chunk, choose_rows(labels_of_chunk, label)),
                shape,
                source.X.dtype,
            )
            for chunk, labels_of_chunk, shape in zip(
                chunks, chunk_labels, shapes, strict=True
            )
            if shape[0]
        ]
        like = np.empty((0, *X.shape[1:]), X.dtype)
        return apply_maps(Origin(da.concatenate(class_chunks), source.maps), like)

    return classes, [class_rows(label) for label in classes.tolist()]


def _count_labels(labels: np.ndarray, _: Any) -> tuple[np.ndarray, dict[Any, int]]:
    labels = label_values(labels)
    refuse_continuous(labels)
    values, counts = np.unique(labels, return_counts=True)
    return values, dict(zip(values.tolist(), counts.tolist(), strict=True))


def _rows_with_label(labels: np.ndarray, label: Any) -> np.ndarray:
    """Return the numbers of the rows with this label in a compact type to send."""
    return np.flatnonzero(labels == label).astype(np.uint32)


def weighted_accuracy(predicted: da.Array, y: Any, weights: Any = None) -> float:
    """Return the weighted share of rows whose predicted label is right."""
    labels = _align_with_rows(predicted, y, label_values)
    hits = da.map_blocks(_are_equal, predicted, labels, dtype=bool)
    if weights is None:
        return float(compute(hits.mean()))
    weights = _align_with_rows(predicted, weights, np.asarray)
    return float(compute((hits * weights).sum() / weights.sum()))


def _are_equal(predicted: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return predicted == label_values(labels)


def _align_with_rows(
    X: da.Array, values: Any, check: Callable[[Any], np.ndarray]
) -> da.Array:
    aligned = _cut_like_rows(X, values, check)
    if isinstance(aligned, da.Array):
        return aligned
    return da.from_array(np.concatenate(aligned), chunks=(X.chunks[0],))


def _cut_like_rows(
    X: da.Array, values: Any, check: Callable[[Any], np.ndarray]
) -> da.Array | list[np.ndarray]:
    """Cut labels or weights into the chunks of X; check those that are in memory here.

    Chunks on a cluster are checked when they are computed.
    """
    values = (
        with_known_lengths(values) if dask.is_dask_collection(values) else check(values)
    )
    if values.ndim == 2 and values.shape[1] == 1:
        column_or_1d(np.empty((1, 1)), warn=True)  # the same warning as for arrays
        values = values[:, 0]
    if values.shape != X.shape[:1]:
        raise ValueError(
            f"X has {X.shape[0]} samples but y has shape {values.shape}: give one "
            "label for each row"
        )
    if isinstance(values, da.Array):
        return values.rechunk((X.chunks[0],))
    return np.split(values, np.cumsum(X.chunks[0])[:-1])


CHUNK_BYTES = 64 * 2**20
CONNECT_TIMEOUT = 10.0  # seconds to wait for a scheduler


def open_npy(path: Path) -> da.Array:  # (n, p)
    """Open a `.npy` file, which all workers see under this path, in chunks of rows."""
    X = np.lib.format.open_memmap(path, mode="r")
    n, p = X.shape
    step = max(1, CHUNK_BYTES // (X.dtype.itemsize * p))
    lengths = tuple(min(step, n - begin) for begin in range(0, n, step))
    name = str(path.resolve())
    return da.map_blocks(_read_npy, name, chunks=(lengths, (p,)), dtype=X.dtype)


def _read_npy(path: str, block_info: Any = None) -> np.ndarray:
    first, last = block_info[None]["array-location"][0]
    return np.array(np.lib.format.open_memmap(path, mode="r")[first:last])


def open_parquet(files: list[Path], columns: list[str]) -> Any:
    """Open columns of Parquet files, which all workers see under these paths."""
    import dask.dataframe as dd

    return dd.read_parquet([str(file.resolve()) for file in files], columns=columns)


@contextmanager
def connect(scheduler: str) -> Iterator[Any]:
    """Connect to the scheduler at this address; "local" starts workers here."""
    from distributed import Client

    if scheduler == "local":
        with Client(dashboard_address=":0") as client:
            yield client
        return
    try:
        client = Client(scheduler, timeout=CONNECT_TIMEOUT)
    except (OSError, ValueError) as error:
        reason = str(error) or f"no answer within {CONNECT_TIMEOUT:g} s"
        raise ValueError(
            f"--scheduler {scheduler}: {reason}; give an address such as "
            "tcp://host:8786, or local"
        ) from error
    with client:
        yield client
