"""Where the rows are: one block loop for arrays, memory maps and blocks on disk.

`map_rows` and `sum_rows` are the only two loops over row blocks in the library.
A source of rows is an array, a memory map, or an iterable of such blocks.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from ..config import options
from ..core import Array
from .arrays import as_float, device_memory, empty, is_array, is_torch, to_device
from .threads import parallel

Result = TypeVar("Result")

CACHE_BYTES = 4 * 2**20  # blocks of about this size keep products near the caches
GPU_SHARE = 64  # a block with all that is derived from it takes this part of a GPU
MIN_ROWS = 512  # below this a matrix product is no longer efficient


def is_blocks(X: Any) -> bool:
    """Whether X is an iterable of row blocks rather than one array."""
    if is_array(X) or isinstance(X, (str, bytes)) or hasattr(X, "__array__"):
        return False
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(is_array(x) and x.ndim == 2 for x in X)
    return isinstance(X, Iterable) and not hasattr(X, "shape")


class Blocks:
    """Row blocks that can be read again: ``Blocks(read)`` with a function of nothing.

    For data larger than memory that are generated or read from files: `read` returns
    a fresh iterator of two-dimensional arrays at each pass.
    """

    def __init__(self, read: Callable[[], Iterable[Array]]) -> None:
        self.read = read

    def __iter__(self) -> Iterator[Array]:
        return iter(self.read())


def block_rows(row_bytes: int) -> int:
    """Rows per block when each row needs `row_bytes` of working memory."""
    if options.block_rows is not None:
        return options.block_rows
    afford = options.memory // (2 * options.n_threads * max(row_bytes, 1))
    return max(1, min(afford, max(MIN_ROWS, CACHE_BYTES // max(row_bytes, 1))))


def slices(n: int, row_bytes: int, like: Array | None = None) -> list[slice]:
    """Consecutive slices of 0..n, independent of the number of threads used.

    On a GPU (of `like`) blocks are as large as its memory allows.
    """
    step = block_rows(row_bytes)
    if options.block_rows is None and like is not None:
        room = device_memory(like) // GPU_SHARE
        step = max(step, room // max(row_bytes, 1))
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def iter_blocks(X: Any, row_bytes: int) -> Iterator[Array]:
    """Row blocks of any source, as floating-point arrays."""
    for part in _ahead(X) if is_blocks(X) else [X]:
        for rows in slices(part.shape[0], row_bytes, part):
            yield _read(part, rows)


def _ahead(blocks: Iterable[Array]) -> Iterator[Array]:
    """The same blocks, the next one being read while one is worked on."""
    source = iter(blocks)
    context = contextvars.copy_context()
    with ThreadPoolExecutor(1, thread_name_prefix="kernlets-reader") as reader:

        def read() -> Array | None:
            return context.run(next, source, None)

        coming = reader.submit(read)
        while (block := coming.result()) is not None:
            coming = reader.submit(read)
            yield block


def _read(X: Array, rows: slice) -> Array:
    """One block in floating point; a block from disk is checked as it is read.

    Samples that are not rows of numbers (row numbers, strings) stay as they are.
    """
    if X.ndim == 1:
        return X[rows]
    block = as_float(X[rows])
    if not isinstance(X, np.memmap):
        return block
    if not np.isfinite(block).all():
        raise ValueError(
            f"X contains NaN or infinity in rows {rows.start} to {rows.stop - 1}: "
            "remove or impute such values"
        )
    return to_device(block, streamed=True)


def map_blocks(f: Callable[[Array], Result], X: Array, row_bytes: int) -> list[Result]:
    """[f(block) for the blocks of rows of one array], on threads for NumPy arrays."""
    parts = slices(X.shape[0], row_bytes, X) or [slice(0, 0)]

    def run(rows: slice) -> Result:
        return f(_read(X, rows))

    # torch brings threads of its own
    return [run(rows) for rows in parts] if is_torch(X) else parallel(run, parts)


def map_rows(f: Callable[[Array], Array], X: Any, row_bytes: int) -> Any:
    """f over blocks of rows, results stacked in one array.

    For an iterable of blocks the result is a generator with one result per block.
    """
    if is_blocks(X):
        return (map_rows(f, block, row_bytes) for block in _ahead(X))
    stacked = _Stacked(X.shape[0])
    parts = slices(X.shape[0], row_bytes, X) or [slice(0, 0)]

    def run(rows: slice) -> None:
        stacked.put(rows, f(_read(X, rows)))

    if is_torch(X):
        for rows in parts:
            run(rows)
    else:
        parallel(run, parts)
    return stacked.array


class _Stacked:
    """An array filled block by block, allocated when the first block is known."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._lock = threading.Lock()
        self.array: Any = None

    def put(self, rows: slice, part: Array) -> None:
        with self._lock:
            if self.array is None:
                shape = (self._n, *part.shape[1:])
                self.array = empty(shape, like=part)
        self.array[rows] = part


def sum_rows(f: Callable[[Array], Any], X: Any, row_bytes: int) -> Any:
    """Σ f(block) over blocks of rows, added in the order of the rows."""
    total = None
    for batch in _batches(iter_blocks(X, row_bytes)):
        for part in parallel(f, batch):
            total = part if total is None else total + part
    return total


def _batches(blocks: Iterator[Array]) -> Iterator[list[Array]]:
    """Groups of blocks, one per thread, so that few are in memory at once."""
    group: list[Array] = []
    for block in blocks:
        group.append(block)
        if len(group) == options.n_threads:
            yield group
            group = []
    if group:
        yield group
