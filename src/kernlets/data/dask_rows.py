"""Loop over the rows of Dask arrays and dataframes, as `rows.py` does in memory.

Each chunk of rows is processed like an array in memory, block by block, on the device
named in the options: a worker with its own GPU moves its chunks there.
`dask_tasks.py` sends the work to the chunks. Only `dask_*.py` import Dask.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import dask.array as da
import numpy as np

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
from .block_loop import stacked_rows, sum_blocks
from .dask_tasks import (
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
from .read_blocks import refuse_infinite, report_rows
from .samples import is_objects

__all__ = [
    "allow_missing",
    "as_rows",
    "cache_rows",
    "compute",
    "map_chunks",
    "map_rows",
    "slice_rows",
    "sum_rows",
    "take_rows",
]


def as_rows(X: Any, dtype: Any = None) -> da.Array:
    """Convert a Dask collection to chunks of whole rows whose lengths are known.

    The workers convert chunks to `dtype`, by default to the working dtype of X.
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
    if X.dtype == row_dtype:
        return X
    return da.map_blocks(_cast, X, row_dtype, dtype=row_dtype)


def _cast(chunk: np.ndarray, dtype: Any) -> np.ndarray:
    with quiet():  # overflow is refused when the chunk is checked
        return chunk.astype(dtype)


class ChunkWithMissing(np.ndarray):
    """A chunk in which NaN means missing; NaN in other chunks is refused."""


def allow_missing(X: da.Array) -> da.Array:
    """Return X with chunks marked as chunks in which NaN means missing."""
    source = origin_of(X)
    job = pack(_mark_missing_allowed)
    like = np.empty((0, *X.shape[1:]), X.dtype)
    return apply_maps(replace(source, maps=(*source.maps, job)), like)


def _mark_missing_allowed(chunk: np.ndarray, _: Any) -> np.ndarray:
    return np.asarray(chunk).view(ChunkWithMissing)


def _check_chunk(chunk: np.ndarray, rows: slice | None = None) -> None:
    if is_objects(chunk):
        return  # samples were checked when they were read
    refuse_infinite(chunk, rows, isinstance(chunk, ChunkWithMissing))


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


def map_rows(f: Callable[[Array], Array], X: da.Array, row_bytes: int) -> da.Array:
    """Apply f to the chunks lazily; the result is another Dask array."""
    like = _to_host(f(to_device(_example_row(X))))
    job = pack(partial(_map_chunk, f, row_bytes))
    source = origin_of(X)
    return apply_maps(replace(source, maps=(*source.maps, job), sample=None), like)


def _example_row(X: da.Array) -> np.ndarray:
    """Return a row of the shape and dtype of the rows of X."""
    if X.ndim > 1:
        return as_float(np.ones((1, X.shape[1]), X.dtype))
    sample = origin_of(X).sample
    return np.empty(0, dtype=object) if sample is None else sample


def _map_chunk(
    f: Callable[[Array], Array], row_bytes: int, chunk: np.ndarray, _: Any
) -> Array:
    _check_chunk(chunk)
    return _to_host(stacked_rows(f, _to_worker_device(chunk), row_bytes))


def _to_worker_device(chunk: np.ndarray) -> Array:
    """Move a chunk to the worker's device."""
    chunk = to_device(chunk)
    load_solvers(chunk)
    return chunk


def _to_host(rows: Array) -> Array:
    """Move rows to the host, because chunks of a Dask array are not tensors."""
    return to_numpy(rows) if is_torch(rows) else rows


def sum_rows(
    f: Callable[..., Any], X: da.Array, row_bytes: int, numbered: bool = False
) -> Any:
    """Return Σ f(block): workers sum within chunks, and then over chunks in a tree."""
    chunk_ends = np.cumsum(X.chunks[0]).tolist()
    spans = [
        (end - n, end) if n else None
        for end, n in zip(chunk_ends, X.chunks[0], strict=True)
    ]
    total = sum_chunks(partial(_sum_chunk, f, row_bytes, numbered), X, spans)
    report_rows(X.shape[0])
    return total


def _sum_chunk(
    f: Callable[..., Any],
    row_bytes: int,
    numbered: bool,
    chunk: np.ndarray,
    span: tuple[int, int],
) -> Any:
    _check_chunk(chunk, slice(*span))

    def apply_numbered(block: Array, number: int) -> Any:
        return f(block, span[0] + number)

    block_function = apply_numbered if numbered else f
    return sum_blocks(block_function, [_to_worker_device(chunk)], row_bytes, numbered)


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
    _check_chunk(chunk)
    return chunk[rows] if is_objects(chunk) else as_float(chunk[rows])
