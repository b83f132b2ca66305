"""`LazyRows`, computed when they are read, and tests for rows not in memory."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ..core import Array
from .arrays import as_float, is_dask
from .block_loop import source_bytes, stacked_rows
from .memory_limits import OverMemory, gpu_of, memory_limit
from .text import size_text

COPIES = 3  # arrays as large as the rows, for those who learn from all rows at once
GPU_PARTS = 4  # parts of the rows that are learned from at once

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
        self.empty_rows = first[:0]  # of the kind that the rows are
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

    @property
    def reading_bytes(self) -> int:
        """Memory that one row takes while it is made."""
        return self.row_bytes + source_bytes(self.source)

    def __getitem__(self, rows: slice | np.ndarray) -> Array:
        """Rows in memory."""
        if isinstance(rows, slice):
            first, last, step = rows.indices(self._count)
            is_consecutive = step == 1 and first <= last
            rows = (
                slice(first, last) if is_consecutive else np.arange(first, last, step)
            )
        if self._rows is not None:
            rows = self._rows[rows]
        return stacked_rows(self._f or as_float, self.source, self.row_bytes, rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[:], dtype=dtype)

    def part(self, rows: slice) -> LazyRows:
        """Consecutive rows, still not computed."""
        if self._rows is None:
            source = self.source
            source_rows = (
                source.part(rows) if isinstance(source, LazyRows) else source[rows]
            )
            return LazyRows(source_rows, self._f, self.row_bytes)
        return LazyRows(self.source, self._f, self.row_bytes, self._rows[rows])


def is_lazy(X: Any) -> bool:
    """Whether X has rows that are read when they are needed."""
    return isinstance(X, (np.memmap, LazyRows))


def is_lazy_or_dask(X: Any) -> bool:
    """Whether X has rows that are on disk, on a cluster, or not made yet."""
    return is_lazy(X) or is_dask(X)


def check_memory(X: Any, caller: str) -> None:
    """Refuse rows that are needed all at once, but need more than the memory option."""
    if not is_lazy(X):
        return
    memory, needed_bytes = memory_limit(X), COPIES * X.nbytes
    if needed_bytes > memory:
        raise OverMemory(
            f"{caller} needs all rows in memory, with space to work in "
            f"{size_text(needed_bytes)}, over the memory option of {size_text(memory)}",
            "raise it with kernlets.options(memory=...), or use MOD or "
            "KSVD(update='ksvd-parallel')",
            "raise --memory, or use --method mod (with --map nystroem for a kernel), "
            "which reads rows in blocks",
        )


def n_parts_at_once(X: Any, share: float) -> int | None:
    """How many parts of the rows to learn from at once; None if there is no limit.

    Parts of rows on disk, of which `share` is the largest, must fit into memory with
    space to work in. Of those on a GPU, `ON_GPU` keep it busy, and more threads only
    wait for each other.
    """
    if is_lazy(X):
        return max(1, int(memory_limit(X) // (COPIES * share * X.nbytes)))
    return None if gpu_of(X) is None else GPU_PARTS
