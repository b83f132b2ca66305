"""Rows that are computed when they are read, and tests for rows not in memory."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ..contracts import Array
from ..numerics.arrays import as_float, is_dask
from ..numerics.text import size_text
from .block_loop import source_bytes, stacked_rows
from .limits import OverMemory, gpu_of, memory_limit

COPIES = 3  # learning from all rows at once takes this number of arrays as large
GPU_PARTS = 4  # this number of parts, learned from at once, keeps a GPU busy


class LazyRows:
    """The rows f(source[i]), which are computed whenever they are read.

    `map_rows` returns them if its result would not fit into the memory option. They
    have a shape, can be indexed by a slice or by row numbers, and can be passed to
    learners and maps, or converted to an array by ``np.asarray``.
    """

    def __init__(
        self,
        source: Any,  # (n, p) memory map or LazyRows
        f: Callable[[Array], Array] | None = None,  # rows -> rows, one by one
        row_bytes: int = 8,  # working memory of f for one row
        rows: np.ndarray | None = None,  # row numbers in the source; None means all
        group_size: int = 1,  # f gets whole groups of so many rows
    ) -> None:
        self.source, self._f, self._rows = source, f, rows
        self.row_bytes, self._group_size = row_bytes, group_size
        self._count = source.shape[0] if rows is None else len(rows)
        first = self[:group_size]
        self.empty_rows = first[:0]  # with the library, dtype and device of the rows
        self.shape = (self._count, *first.shape[1:])
        self.dtype = first.dtype

    def __repr__(self) -> str:
        return f"<LazyRows {self.shape} of {self.dtype}, computed as they are read>"

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
        """Memory that one row takes while it is computed."""
        return self.row_bytes + source_bytes(self.source)

    def __getitem__(self, rows: slice | np.ndarray) -> Array:
        """Compute rows and return them in memory."""
        if isinstance(rows, slice):
            first, last, step = rows.indices(self._count)
            is_consecutive = step == 1 and first <= last
            rows = (
                slice(first, last) if is_consecutive else np.arange(first, last, step)
            )
        if self._rows is not None:
            rows = self._rows[rows]
        return stacked_rows(
            self._f or as_float, self.source, self.row_bytes, rows, self._group_size
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[:], dtype=dtype)

    def slice_rows(self, rows: slice) -> LazyRows:
        """Return consecutive rows without computing them."""
        if self._rows is None:
            source = self.source
            source_rows = (
                source.slice_rows(rows)
                if isinstance(source, LazyRows)
                else source[rows]
            )
            return LazyRows(
                source_rows, self._f, self.row_bytes, None, self._group_size
            )
        return LazyRows(
            self.source, self._f, self.row_bytes, self._rows[rows], self._group_size
        )


def is_lazy(X: Any) -> bool:
    """Whether the rows of X are read or computed only when they are needed."""
    return isinstance(X, (np.memmap, LazyRows))


def is_lazy_or_dask(X: Any) -> bool:
    """Whether the rows of X are on disk, not yet computed, or in a Dask collection."""
    return is_lazy(X) or is_dask(X)


def check_memory(X: Any, caller: str) -> None:
    """Refuse lazy rows that exceed the memory option with the arrays to learn from."""
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
    """Return how many parts of the rows to learn from at once, None for no limit.

    `share` is the largest part as a fraction of the rows. Parts of rows on disk must
    fit into memory with working space. `GPU_PARTS` parts keep a GPU busy; the threads
    of more parts would only wait for each other.
    """
    if is_lazy(X):
        return max(1, int(memory_limit(X) // (COPIES * share * X.nbytes)))
    return None if gpu_of(X) is None else GPU_PARTS
