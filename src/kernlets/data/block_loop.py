"""Read blocks of rows of arrays and memory maps, and loop over them in parallel.

`map_blocks`, `stacked_rows` and `sum_blocks` take arrays on this machine. `rows.py`
calls them for all other sources of rows, on a cluster by way of `on_dask.py`. A block
from disk is checked when it is read, and its pages are released after use.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from ..config import current_settings
from ..contracts import Array
from ..numerics.arrays import (
    as_float,
    empty,
    gpu_memory,
    is_dask,
    is_torch,
    namespace,
    to_device,
)
from ..numerics.scaling import all_finite
from ..numerics.threads import is_at_work, parallel
from .limits import gpu_memory_limit, gpu_of

Result = TypeVar("Result")

BLOCK_ROWS = 512  # enough for matrix products, and few enough to feed all threads
GPU_SHARE = 64  # a block and its results may take 1/64 of a GPU's memory
READERS = 3  # blocks in work at once: some are read while a GPU works on one
BLOCKS = 2 * READERS  # half of the GPU's memory limit is for sums and results
PAGE = mmap.PAGESIZE
CHECKED_ENTRIES = 2**22  # numbers that are checked for infinity at a time
_report: ContextVar[Callable[[int], Any] | None] = ContextVar("watch", default=None)
_CAN_RELEASE = hasattr(mmap.mmap, "madvise") and hasattr(mmap, "MADV_DONTNEED")


@dataclass(frozen=True)
class BlockPlan:
    """The number of rows in a block, and the number of blocks processed at once.

    A BLAS rounds products of other shapes differently. So blocks have `BLOCK_ROWS`
    rows whatever the number of threads, the memory option and the container. If
    memory is short, fewer blocks are processed at once. Blocks get fewer rows only if
    a single block does not fit. On a GPU blocks are as large as its memory allows; if
    they come from the host, one is read while another is processed.
    """

    rows: int
    at_once: int

    @classmethod
    def of(
        cls,
        row_bytes: int,
        source: Any = None,
        result_bytes: int = 0,
        group_size: int = 1,
    ) -> BlockPlan:
        """Plan blocks that need `row_bytes` of working memory for each row.

        `result_bytes` is the size of the result of a block, which waits to be added.
        Rows are cut only between groups of `group_size` rows.
        """
        bytes_per_row = max(1, row_bytes + source_bytes(source))
        settings, gpu = current_settings(), gpu_of(source)
        memory = settings.memory if gpu is None else gpu_memory_limit(gpu)
        gpu_bytes = 0 if gpu is None else gpu_memory(gpu).total
        if settings.block_rows is not None:
            rows = settings.block_rows
        elif gpu_bytes:
            rows = min(memory // BLOCKS, gpu_bytes // GPU_SHARE) // bytes_per_row
        else:
            rows = BLOCK_ROWS
            while rows > max(1, memory // (2 * bytes_per_row)):
                rows //= 2
        rows = group_size * max(1, rows // group_size)
        at_once = memory // (2 * (bytes_per_row * rows + result_bytes))
        readers = READERS if gpu_bytes else settings.n_threads
        return cls(rows, max(1, min(at_once, readers, settings.n_threads)))

    def slices(self, n: int) -> list[slice]:
        """Cut 0..n into consecutive slices."""
        return [slice(i, min(i + self.rows, n)) for i in range(0, n, self.rows)]

    def at_once_for(self, X: Array) -> int:
        """Return `at_once`, or 1 for a tensor, because torch has its own threads."""
        return 1 if is_torch(X) else self.at_once


def source_bytes(source: Any) -> int:
    """Return the memory that one row takes while it is read and converted."""
    if source is None or len(source.shape) < 2:
        return 0
    converted = 8 * prod(source.shape[1:])
    return converted + getattr(source, "reading_bytes", 0)


def block_slices(n: int, row_bytes: int, source: Any = None) -> list[slice]:
    """Cut 0..n into the slices of a `BlockPlan`."""
    return BlockPlan.of(row_bytes, source).slices(n)


def map_blocks(
    f: Callable[[Array], Result], X: Array, row_bytes: int, group_size: int = 1
) -> list[Result]:
    """Return [f(block)] for the blocks of one array; NumPy blocks run on threads."""
    plan = BlockPlan.of(row_bytes, X, group_size=group_size)
    row_slices = plan.slices(X.shape[0]) or [slice(0, 0)]
    return parallel(partial(apply_rows, f, X), row_slices, plan.at_once_for(X))


def stacked_rows(
    f: Callable[[Array], Array],
    X: Array,
    row_bytes: int,
    rows: np.ndarray | slice | None = None,
    group_size: int = 1,
) -> Array:
    """Apply f to blocks of the selected rows of one array and stack the results.

    `rows` are row numbers, or a slice of consecutive rows; None means all.
    """
    rows = slice(0, X.shape[0]) if rows is None else rows
    n = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
    plan = BlockPlan.of(row_bytes, X, group_size=group_size)
    if n <= plan.rows and is_at_work.get():
        return _copied(apply_rows(f, X, rows))
    stacked = _BlockStack(n)

    def run(block: slice) -> None:
        if isinstance(rows, slice):
            block_rows = slice(rows.start + block.start, rows.start + block.stop)
        else:
            block_rows = rows[block]
        stacked.put(block, apply_rows(f, X, block_rows))

    parallel(run, plan.slices(n) or [slice(0, 0)], plan.at_once_for(X))
    return stacked.result()


def _copied(block_rows: Array) -> Array:
    """Return a copy, since the result of a function may be a view of its input."""
    if is_torch(block_rows):
        return block_rows.clone()
    return block_rows.copy()


class _BlockStack:
    """Results of blocks in one array, which is allocated with the first result."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._lock = threading.Lock()
        self._array: Any = None
        self._sparse: dict[int, Any] = {}  # by first row; they are stacked at the end

    def put(self, rows: slice, block_rows: Array) -> None:
        if sparse.issparse(block_rows):
            self._sparse[rows.start] = block_rows
            return
        with self._lock:
            if self._array is None:
                shape = (self._n, *block_rows.shape[1:])
                self._array = empty(shape, like=block_rows)
        self._array[rows] = block_rows

    def result(self) -> Any:
        if not self._sparse:
            return self._array
        return sparse.vstack([self._sparse[i] for i in sorted(self._sparse)], "csr")


def sum_blocks(
    f: Callable[..., Any],
    arrays: Iterable[Array],
    row_bytes: int,
    numbered: bool = False,
    result_bytes: int = 0,
    group_size: int = 1,
) -> Any:
    """Return Σ f(block) over the blocks of several arrays; see `rows.sum_rows`."""

    def compute_block(item: tuple[Array, slice, int]) -> Any:
        array, rows, first = item
        extra = (first + rows.start,) if numbered else ()
        return apply_rows(lambda block: f(block, *extra), array, rows)

    total = None
    for group in _block_groups(arrays, row_bytes, result_bytes, group_size):
        for result in parallel(compute_block, group):
            total = result if total is None else _add(total, result)
    return total


def _add(total: Any, term: Any) -> Any:
    """Return total + term, and overwrite term if it is a NumPy array of that dtype."""
    may_overwrite = (
        type(total) is type(term) is np.ndarray and total.dtype == term.dtype
    )
    return np.add(total, term, out=term) if may_overwrite else total + term


def _block_groups(
    arrays: Iterable[Array], row_bytes: int, result_bytes: int, group_size: int
) -> Iterator[list[tuple[Array, slice, int]]]:
    """Yield blocks to process at once: array, rows in it, number of its first row."""
    group: list[tuple[Array, slice, int]] = []
    first = 0
    for array in arrays:
        plan = BlockPlan.of(row_bytes, array, result_bytes, group_size)
        for rows in plan.slices(array.shape[0]):
            group.append((array, rows, first))
            if len(group) >= plan.at_once:
                yield group
                group = []
        first += array.shape[0]
    if group:
        yield group


class HostRows(np.memmap):
    """An array in host memory whose blocks are moved to a GPU one by one."""


class MemmapWithMissing(np.memmap):
    """A memory map in which NaN means missing; other memory maps may have no NaN."""


def read_rows(X: Array, rows: slice | np.ndarray) -> Array:
    """Read a block as floating-point numbers; a block from disk is checked for NaN.

    Samples that are not rows of numbers (row numbers, strings) are not converted.
    """
    if X.ndim == 1:
        return X[rows]
    block = as_float(X[rows])
    if not isinstance(X, np.memmap):
        return block
    block = to_device(block, streamed=True)
    # after the move, because a GPU checks it faster
    refuse_infinite(block, rows, isinstance(X, MemmapWithMissing))
    return block


def empty_rows(X: Any) -> Array:  # (0, p)
    """Return an array without rows with the library, dtype and device of X's blocks."""
    if is_dask(X):
        return to_device(np.empty((0, *X.shape[1:]), X.dtype))
    return read_rows(X, slice(0, 0))


def refuse_infinite(
    block: Array, rows: slice | np.ndarray | None = None, allow_nan: bool = False
) -> None:
    """Raise if a block is not finite; the error names the rows if they are given."""
    numbers = block.data if sparse.issparse(block) else block
    if all_finite(numbers) or (allow_nan and not _any_infinite(numbers)):
        return
    location = ""
    if rows is not None:
        row_numbers = np.r_[rows]
        location = f" in rows {row_numbers[0]} to {row_numbers[-1]}"
    problem = "infinity" if allow_nan else "NaN or infinity"
    raise ValueError(
        f"X contains {problem}{location}, or numbers too large for {block.dtype}: "
        "remove, impute or scale such values"
    )


def _any_infinite(numbers: Array) -> bool:
    """Whether there is an infinity, tested without a mask as large as the numbers."""
    xp, step = (
        namespace(numbers),
        max(1, CHECKED_ENTRIES // max(1, *numbers.shape[1:], 1)),
    )
    slices = (numbers[i : i + step] for i in range(0, numbers.shape[0], step))
    return any(bool(xp.isinf(numbers_slice).any()) for numbers_slice in slices)


def apply_rows(f: Callable[[Array], Result], X: Array, rows: Any) -> Result:
    """Apply f to one block, and release the pages of a memory map after use."""
    report = _report.get()
    token = _report.set(None)  # loops inside f must not report these rows again
    try:
        result = f(read_rows(X, rows))
    finally:
        _report.reset(token)
        release_pages(X, rows)
    if report is not None:
        report(rows.stop - rows.start if isinstance(rows, slice) else len(rows))
    return result


@contextmanager
def report_rows_to(report: Callable[[int], Any]) -> Iterator[None]:
    """Call `report` with a number of rows whenever a loop inside has processed them."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


def report_rows(n: int) -> None:
    """Report n rows that were processed without `apply_rows`, e.g. on a cluster."""
    report = _report.get()
    if report is not None:
        report(n)


def release_pages(X: Any, rows: slice | np.ndarray) -> None:
    """Release the pages of rows of a memory map, so that memory in use stays small.

    The system reads them again from the file or its cache when they are needed. A
    private copy (mode "c") is not released, because it may have unsaved changes.
    """
    if not (_CAN_RELEASE and isinstance(X, np.memmap) and X.flags.c_contiguous):
        return
    buffer = getattr(X, "_mmap", None)
    if buffer is None or X.mode not in ("r", "r+") or not X.size:
        return
    if not isinstance(rows, slice):
        rows = slice(int(rows.min(initial=X.shape[0])), int(rows.max(initial=0)) + 1)
    first, last, _ = rows.indices(X.shape[0])
    array_offset = _address(X) - _address(np.frombuffer(buffer, np.uint8))
    row_bytes = X.nbytes // X.shape[0]
    start = (array_offset + first * row_bytes) // PAGE * PAGE
    stop = min(array_offset + last * row_bytes, len(buffer))
    if stop > start:
        buffer.madvise(mmap.MADV_DONTNEED, start, stop - start)


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]
