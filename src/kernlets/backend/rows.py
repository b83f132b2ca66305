"""Where the rows are: one block loop for arrays, memory maps, streams and clusters.

`map_rows` and `sum_rows` are the only two loops over row blocks in the library;
`row_batches` gives the mini-batches of a stream, each a source of rows for them.
A source of rows is an array, a memory map, `LazyRows`, an iterable of blocks of rows,
or a Dask array, whose part of both loops is in `dask_rows.py`.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from ..config import options
from ..core import Array
from .arrays import (
    as_float,
    device_memory,
    empty,
    index_like,
    is_array,
    is_dask,
    is_torch,
    namespace,
)
from .stored import PAGE, LazyRows, apply_rows, is_stored, read_rows
from .threads import is_inside, marked_inside, parallel

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


def count_rows(X: Any) -> int | None:
    """How many rows there are, where that is known without reading them."""
    if is_blocks(X):
        return getattr(X, "n_rows", None)
    n = X.shape[0]
    # of a Dask dataframe from the files it is read from
    return int(n) if isinstance(n, Integral) else len(X)


class Blocks:
    """Row blocks that can be read again: ``Blocks(read)`` with a function of nothing.

    For data larger than memory that are generated or read from files: `read` returns
    a fresh iterator of two-dimensional arrays at each pass. How many rows there are,
    if that is known, is for progress bars only.
    """

    def __init__(
        self, read: Callable[[], Iterable[Array]], n_rows: int | None = None
    ) -> None:
        self.read = read
        self.n_rows = n_rows

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
    for part in _parts(X):
        for rows in slices(part.shape[0], row_bytes, part):
            yield read_rows(part, rows)


def _parts(X: Any) -> Iterable[Array]:
    """Blocks of a stream, chunks of a Dask array brought here, or X itself."""
    if is_dask(X):
        from . import dask_rows

        return map(dask_rows.computed, X.blocks)
    return _ahead(X) if is_blocks(X) else [X]


def row_batches(X: Any, n_rows: int) -> Iterator[Array]:
    """Consecutive batches of `n_rows` rows of any source, the last one shorter.

    They do not depend on the blocks in which the rows come. Rows of a memory map are
    not read here.
    """
    for part in _regrouped(X, n_rows) if is_blocks(X) else [X]:
        for begin in range(0, part.shape[0], n_rows):
            rows = slice(begin, min(begin + n_rows, part.shape[0]))
            yield part_rows(part, rows)


def part_rows(X: Any, rows: slice) -> Any:
    """Consecutive rows, of the same kind as X and not read here."""
    if is_dask(X):
        from . import dask_rows

        return dask_rows.part_of(X, rows)
    return X.part(rows) if isinstance(X, LazyRows) else X[rows]


def _regrouped(blocks: Iterable[Array], n_rows: int) -> Iterator[Array]:
    """The same rows in blocks of multiples of `n_rows`, but for the last block."""
    held: list[Array] = []
    for block in _ahead(blocks):
        held.append(block)
        count = sum(part.shape[0] for part in held)
        if count >= n_rows:
            rows = joined(held)
            whole = count - count % n_rows
            yield rows[:whole]
            held = [rows[whole:]]
    if held:
        yield joined(held)


def joined(parts: list[Array]) -> Array:
    """Blocks of rows as one array in memory."""
    if len(parts) == 1:
        return parts[0]
    read = [read_rows(part, slice(0, part.shape[0])) for part in parts]
    return namespace(read[0]).concat(read)


def _ahead(blocks: Iterable[Array]) -> Iterator[Array]:
    """The same blocks, the next one being read while one is worked on."""
    source = iter(blocks)
    context, inside = contextvars.copy_context(), is_inside()
    with ThreadPoolExecutor(1, thread_name_prefix="kernlets-reader") as reader:

        def read() -> Array | None:
            with marked_inside(inside):
                return context.run(next, source, None)

        coming = reader.submit(read)
        while (block := coming.result()) is not None:
            coming = reader.submit(read)
            yield block


def take_rows(X: Any, rows: np.ndarray) -> Array:
    """The rows with these numbers, in memory and in floating point."""
    if is_dask(X):
        from . import dask_rows

        return dask_rows.take_rows(X, rows)
    if is_stored(X):
        # a row that is touched maps pages around it, too
        return stacked_rows(as_float, X, 8 * X.shape[1] + 16 * PAGE, rows)
    return as_float(X[index_like(rows, X)])


def kept(X: Any) -> AbstractContextManager[Any]:
    """X, for a block in which its rows are read again and again.

    Of a Dask array, chunks then stay in the memory of the workers.
    """
    if is_dask(X):
        from . import dask_rows

        return dask_rows.kept(X)
    return nullcontext(X)


def map_blocks(f: Callable[[Array], Result], X: Array, row_bytes: int) -> list[Result]:
    """[f(block) for the blocks of rows of one array], on threads for NumPy arrays."""
    parts = slices(X.shape[0], row_bytes, X) or [slice(0, 0)]

    def run(rows: slice) -> Result:
        return apply_rows(f, X, rows)

    # torch brings threads of its own
    return [run(rows) for rows in parts] if is_torch(X) else parallel(run, parts)


def map_rows(f: Callable[[Array], Array], X: Any, row_bytes: int) -> Any:
    """f over blocks of rows, results stacked in one array.

    For an iterable of blocks the result is an iterable with one result per block, for
    a Dask array another one. Where X is not in memory and the result is larger than
    half of the memory option, it is `LazyRows`.
    """
    if is_dask(X):
        from . import dask_rows

        return dask_rows.map_rows(f, X, row_bytes)
    if is_blocks(X):
        if isinstance(X, Iterator):
            return (map_rows(f, block, row_bytes) for block in _ahead(X))
        return Blocks(lambda: map_rows(f, iter(X), row_bytes))
    if is_stored(X):
        lazy = LazyRows(X, f, row_bytes)
        if lazy.ndim == 2 and lazy.nbytes > options.memory // 2:
            return lazy
    return stacked_rows(f, X, row_bytes)


def over_rows(f: Callable[[Array], Any], values: Any) -> Any:
    """f of values that belong to rows: at once in memory, else as `map_rows` does."""
    return f(values) if is_array(values) else map_rows(f, values, row_bytes=64)


def over_blocks(f: Callable[[Array], Any], X: Iterable[Array]) -> Iterable[Any]:
    """f of each block of an iterable, which can be read again if X can."""
    return map(f, X) if isinstance(X, Iterator) else Blocks(lambda: map(f, X))


def stacked_rows(
    f: Callable[[Array], Array],
    X: Array,
    row_bytes: int,
    rows: np.ndarray | slice | None = None,
) -> Array:
    """f over blocks of some rows of one array, in memory."""
    n = X.shape[0] if rows is None else _count(rows)
    stacked = _Stacked(n)

    def run(part: slice) -> None:
        stacked.put(part, apply_rows(f, X, _within(rows, part)))

    parts = slices(n, row_bytes, X) or [slice(0, 0)]
    if is_torch(X):
        for part in parts:
            run(part)
    else:
        parallel(run, parts)
    return stacked.result()


def _count(rows: np.ndarray | slice) -> int:
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def _within(rows: np.ndarray | slice | None, part: slice) -> slice | np.ndarray:
    """A part of rows that are given by their numbers, or are consecutive."""
    if rows is None:
        return part
    if isinstance(rows, slice):
        return slice(rows.start + part.start, rows.start + part.stop)
    return rows[part]


class _Stacked:
    """An array filled block by block, allocated when the first block is known."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._lock = threading.Lock()
        self._array: Any = None
        self._sparse: dict[int, Any] = {}  # blocks that have to wait for all others

    def put(self, rows: slice, part: Array) -> None:
        if sparse.issparse(part):
            self._sparse[rows.start] = part
            return
        with self._lock:
            if self._array is None:
                shape = (self._n, *part.shape[1:])
                self._array = empty(shape, like=part)
        self._array[rows] = part

    def result(self) -> Any:
        if not self._sparse:
            return self._array
        return sparse.vstack([self._sparse[i] for i in sorted(self._sparse)], "csr")


def sum_rows(
    f: Callable[..., Any], X: Any, row_bytes: int, numbered: bool = False
) -> Any:
    """Σ f(block) over blocks of rows, added in the order of the rows.

    With `numbered`, Σ f(block, number of its first row).
    """
    if is_dask(X):
        from . import dask_rows

        return dask_rows.sum_rows(f, X, row_bytes, numbered)

    def run(piece: tuple[Array, slice, int]) -> Any:
        part, rows, first = piece
        extra = (first + rows.start,) if numbered else ()
        return apply_rows(lambda block: f(block, *extra), part, rows)

    total = None
    for batch in _batches(_pieces(X, row_bytes)):
        for part in parallel(run, batch):
            total = part if total is None else total + part
    return total


def _pieces(X: Any, row_bytes: int) -> Iterator[tuple[Array, slice, int]]:
    """Parts of a source, slices of them, and the number of the parts' first row."""
    first = 0
    for part in _ahead(X) if is_blocks(X) else [X]:
        for rows in slices(part.shape[0], row_bytes, part):
            yield part, rows, first
        first += part.shape[0]


def _batches(pieces: Iterator[Result]) -> Iterator[list[Result]]:
    """Groups of pieces, one per thread, so that few are in memory at once."""
    group: list[Result] = []
    for piece in pieces:
        group.append(piece)
        if len(group) == options.n_threads:
            yield group
            group = []
    if group:
        yield group
