"""Rows that are not in memory: memory maps, and rows computed when they are read.

This module reads one block; the loops over blocks are in `rows.py`, and rows on a
cluster in `dask_rows.py`.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from ..config import options
from ..core import Array
from .arrays import as_float, is_dask, namespace, to_device

Result = TypeVar("Result")

PAGE = mmap.PAGESIZE
_watch: ContextVar[Callable[[int], Any] | None] = ContextVar("watch", default=None)
_CAN_RELEASE = hasattr(mmap.mmap, "madvise") and hasattr(mmap, "MADV_DONTNEED")


class LazyRows:
    """The rows f(source[i]), computed whenever they are read.

    What `map_rows` returns where the result would not fit into the memory option. It
    has a shape, and can be indexed by a slice or by row numbers, given to learners
    and maps, or made an array by ``np.asarray``.
    """

    def __init__(
        self,
        source: Any,  # (n, p) memory map or LazyRows
        f: Callable[[Array], Array] | None = None,  # rows -> rows, one by one
        row_bytes: int = 8,  # working memory of f for one row
        rows: np.ndarray | None = None,  # of the source, in order; all if None
    ) -> None:
        self.source, self._f, self._rows = source, f, rows
        self.row_bytes = row_bytes
        self._count = source.shape[0] if rows is None else len(rows)
        first = self[:1]
        self.shape = (self._count, *first.shape[1:])
        self.dtype = first.dtype

    def __len__(self) -> int:
        return self._count

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __getitem__(self, rows: slice | np.ndarray) -> Array:
        """Rows in memory."""
        from .rows import stacked_rows

        if isinstance(rows, slice):
            first, last, step = rows.indices(self._count)
            plain = step == 1 and first <= last
            rows = slice(first, last) if plain else np.arange(first, last, step)
        if self._rows is not None:
            rows = self._rows[rows]
        return stacked_rows(self._f or as_float, self.source, self.row_bytes, rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[:], dtype=dtype)

    def part(self, rows: slice) -> LazyRows:
        """Consecutive rows, still not computed."""
        if self._rows is None:
            source = self.source
            within = source.part(rows) if isinstance(source, LazyRows) else source[rows]
            return LazyRows(within, self._f, self.row_bytes)
        return LazyRows(self.source, self._f, self.row_bytes, self._rows[rows])


def is_stored(X: Any) -> bool:
    """Whether X has rows that are read when they are needed."""
    return isinstance(X, (np.memmap, LazyRows))


def is_elsewhere(X: Any) -> bool:
    """Whether X has rows that are on disk, on a cluster, or not made yet."""
    return is_stored(X) or is_dask(X)


def read_rows(X: Array, rows: slice | np.ndarray) -> Array:
    """One block in floating point; a block from disk is checked as it is read.

    Samples that are not rows of numbers (row numbers, strings) stay as they are.
    """
    if X.ndim == 1:
        return X[rows]
    block = as_float(X[rows])
    if not isinstance(X, np.memmap):
        return block
    refuse_infinite(block, rows)
    return to_device(block, streamed=True)


def no_rows(X: Any) -> Array:  # (0, p)
    """An array without rows, of the kind that the blocks of X are."""
    if is_dask(X):
        return np.empty((0, *X.shape[1:]), X.dtype)
    return read_rows(X, slice(0, 0))


def refuse_infinite(block: Array, rows: slice | np.ndarray | None = None) -> None:
    """Raise if a block, read from these rows where they are known, is not finite."""
    numbers = block.data if sparse.issparse(block) else block
    if bool(namespace(numbers).isfinite(numbers).all()):
        return
    where = ""
    if rows is not None:
        places = np.r_[rows]
        where = f" in rows {places[0]} to {places[-1]}"
    raise ValueError(
        f"X contains NaN or infinity{where}, or numbers too large for {block.dtype}: "
        "remove, impute or scale such values"
    )


def apply_rows(f: Callable[[Array], Result], X: Array, rows: Any) -> Result:
    """f of one block; pages of a memory map are given back after use."""
    watch = _watch.get()
    token = _watch.set(None)  # rows count once, not again inside f
    try:
        result = f(read_rows(X, rows))
    finally:
        _watch.reset(token)
        release(X, rows)
    if watch is not None:
        watch(rows.stop - rows.start if isinstance(rows, slice) else len(rows))
    return result


@contextmanager
def watching(watch: Callable[[int], Any]) -> Iterator[None]:
    """Call `watch` with the number of rows each time a loop has processed some."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def tell_rows(n: int) -> None:
    """Report n rows that were processed elsewhere to the watcher, if there is one."""
    watch = _watch.get()
    if watch is not None:
        watch(n)


def check_memory(X: Any, who: str) -> None:
    """Refuse rows that are needed at once but exceed the memory option."""
    if is_stored(X) and X.nbytes > options.memory:
        raise MemoryError(
            f"{who} needs all rows in memory, {X.nbytes / 1e9:.1f} GB, over the memory "
            f"option of {options.memory / 1e9:.1f} GB: raise it with "
            "kernlets.options(memory=...), or use MOD or KSVD(update='ksvd-parallel')"
        )


def release(X: Any, rows: slice | np.ndarray) -> None:
    """Give the pages of rows of a memory map back, so that memory in use stays small.

    They are read again from the file, or from the system's cache, when needed. A
    private copy (mode "c") may hold changes that are nowhere else, and is left alone.
    """
    if not (_CAN_RELEASE and isinstance(X, np.memmap) and X.flags.c_contiguous):
        return
    buffer = getattr(X, "_mmap", None)
    if buffer is None or X.mode not in ("r", "r+") or not X.size:
        return
    if not isinstance(rows, slice):
        rows = slice(int(rows.min(initial=X.shape[0])), int(rows.max(initial=0)) + 1)
    first, last, _ = rows.indices(X.shape[0])
    begin = _address(X) - _address(np.frombuffer(buffer, np.uint8))
    width = X.nbytes // X.shape[0]
    start = (begin + first * width) // PAGE * PAGE
    stop = min(begin + last * width, len(buffer))
    if stop > start:
        buffer.madvise(mmap.MADV_DONTNEED, start, stop - start)


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]
