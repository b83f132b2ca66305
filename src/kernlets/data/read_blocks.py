"""Read and check one block of rows, release its pages, and report progress.

The loops over blocks are in `block_loop.py`.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from ..contracts import Array
from ..numerics.arrays import as_float, is_dask, namespace, to_device
from ..numerics.scaling import all_finite

Result = TypeVar("Result")

PAGE = mmap.PAGESIZE
CHECKED_ENTRIES = 2**22  # numbers that are checked for infinity at a time
_report: ContextVar[Callable[[int], Any] | None] = ContextVar("watch", default=None)
_CAN_RELEASE = hasattr(mmap.mmap, "madvise") and hasattr(mmap, "MADV_DONTNEED")


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
