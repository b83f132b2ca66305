"""The block loops over rows in arrays, memory maps, streams and clusters.

`map_rows` and `sum_rows` are the only two loops over row blocks in the library;
`row_batches` gives the mini-batches of a stream, each a source of rows for them.
A source of rows is an array, a memory map, `LazyRows`, an iterable of blocks of rows,
or a Dask array. The loops themselves are in `block_loop.py`, for Dask in
`dask_rows.py`.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from ..core import Array
from .arrays import (
    as_float,
    index_like,
    is_array,
    is_dask,
    namespace,
    to_device,
    to_numpy,
)
from .block_loop import block_slices, map_blocks, stacked_rows, sum_blocks
from .lazy_rows import LazyRows, check_memory, is_lazy, is_lazy_or_dask
from .load_dask import dask_rows
from .memory_limits import gpu_of, memory_limit
from .read_blocks import read_rows
from .threads import is_inside, marked_inside

Result = TypeVar("Result")

PROBE_ROWS = 2048  # rows on which an error is estimated
MAPPED_BYTES = 2**21  # bytes that a system may map around a row of a file that is read


def is_blocks(X: Any) -> bool:
    """Whether X is an iterable of row blocks rather than one array."""
    if isinstance(X, Blocks):
        return True
    if is_array(X) or is_dask(X) or isinstance(X, (str, bytes)):
        return False
    if hasattr(X, "__array__"):
        return False
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(is_array(x) and x.ndim == 2 for x in X)
    return isinstance(X, Iterable) and not hasattr(X, "shape")


def is_one_array(X: Any) -> bool:
    """Whether X is one array, in memory or on disk: no blocks, and not on a cluster."""
    return not (is_blocks(X) or is_dask(X))


def no_blocks_error() -> ValueError:
    """The error for an iterable that ends at once."""
    return ValueError("X is an iterable without blocks: pass at least one")


def count_rows(X: Any) -> int | None:
    """The number of rows, None if it is not known without reading them."""
    if is_blocks(X):
        return getattr(X, "n_rows", None)
    n = X.shape[0]
    # of a Dask dataframe from the files it is read from
    return int(n) if isinstance(n, Integral) else len(X)


class Blocks:
    """Row blocks that can be read repeatedly, for data larger than memory.

    Parameters
    ----------
    read : callable
        A function without arguments that returns a new iterator of two-dimensional
        arrays at each call, e.g. from files or a generator.
    n_rows : int, optional
        Total number of rows, used only for progress bars.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import MOD, Blocks
    >>> rng = np.random.default_rng(0)
    >>> parts = [rng.standard_normal((100, 8)) for _ in range(3)]
    >>> blocks = Blocks(lambda: iter(parts), n_rows=300)
    >>> MOD(10, random_state=0).fit(blocks).components_.shape
    (10, 8)
    """

    def __init__(
        self, read: Callable[[], Iterable[Array]], n_rows: int | None = None
    ) -> None:
        self.read = read
        self.n_rows = n_rows

    def __iter__(self) -> Iterator[Array]:
        return iter(self.read())


class CountedBlocks(Blocks):
    """Blocks whose rows have numbers, because they were counted in a pass."""

    def __init__(
        self,
        read: Callable[[], Iterable[Array]],
        shape: tuple[int, int],
        has_missing: bool,
    ) -> None:
        super().__init__(read, shape[0])
        self.shape, self.has_missing = shape, has_missing

    def take(self, row_numbers: np.ndarray) -> Array:
        """The rows with these numbers, gathered in a pass that ends after the last."""
        order = np.argsort(row_numbers, kind="stable")
        sorted_numbers, selected_blocks, first = row_numbers[order], [], 0
        for block in self:
            last = first + block.shape[0]
            numbers_in_block = (
                sorted_numbers[(first <= sorted_numbers) & (sorted_numbers < last)]
                - first
            )
            if len(numbers_in_block):
                selected_blocks.append(
                    as_float(block[index_like(numbers_in_block, block)])
                )
            if sorted_numbers[-1] < last:
                selected_rows = concatenate_blocks(selected_blocks)
                return selected_rows[index_like(np.argsort(order), selected_rows)]
            first = last
        raise ValueError(
            f"X had {self.n_rows} rows when they were counted, and {first} when they "
            "were read again: pass blocks that are the same in each pass"
        )


def iter_blocks(X: Any, row_bytes: int) -> Iterator[Array]:
    """Row blocks of any source, as floating-point arrays."""
    for array in _arrays_of(X):
        for rows in block_slices(array.shape[0], row_bytes, array):
            yield read_rows(array, rows)


def _arrays_of(X: Any) -> Iterable[Array]:
    """Blocks of a stream, chunks of a Dask array brought here, or X itself."""
    if is_dask(X):
        return map(to_device, map(dask_rows().compute, X.blocks))
    return _read_ahead(X) if is_blocks(X) else [X]


def row_batches(X: Any, n_rows: int) -> Iterator[Array]:
    """Consecutive batches of `n_rows` rows of any source, the last one shorter.

    They do not depend on the blocks in which the rows come. Rows of a memory map are
    not read here.
    """
    for array in _regroup_blocks(X, n_rows) if is_blocks(X) else [X]:
        for begin in range(0, array.shape[0], n_rows):
            rows = slice(begin, min(begin + n_rows, array.shape[0]))
            yield slice_rows(array, rows)


def slice_rows(X: Any, rows: slice) -> Any:
    """Consecutive rows, of the same kind as X and not read here."""
    if is_dask(X):
        return dask_rows().slice_rows(X, rows)
    return X.part(rows) if isinstance(X, LazyRows) else X[rows]


def _regroup_blocks(blocks: Iterable[Array], n_rows: int) -> Iterator[Array]:
    """The same rows in blocks of multiples of `n_rows`, but for the last block."""
    pending: list[Array] = []
    for block in _read_ahead(blocks):
        pending.append(block)
        n_pending = sum(pending_block.shape[0] for pending_block in pending)
        if n_pending >= n_rows:
            rows = concatenate_blocks(pending)
            n_complete = n_pending - n_pending % n_rows
            yield rows[:n_complete]
            pending = [rows[n_complete:]]
    if pending:
        yield concatenate_blocks(pending)


def as_source(X: Any) -> Any:
    """X if it is an array in memory, sparse or elsewhere, otherwise an array of it."""
    is_source = is_array(X) or sparse.issparse(X) or is_lazy_or_dask(X)
    return X if is_source else np.asarray(X)


def host_rows(X: Any, error: str) -> Any:
    """Rows for scikit-learn, dense or CSR, or a ValueError if they are not in memory.

    Tensors are copied to the host.
    """
    if sparse.issparse(X):
        return X
    if not is_array(X):
        raise ValueError(error)
    return to_numpy(X)


def row_diagonal(X: Any) -> Array:  # (n,)
    """The diagonal of a square matrix, which may be read block by block."""
    if not isinstance(X, LazyRows) and not is_dask(X):
        return X.diagonal()

    def block_diagonal(block: Array, first: int) -> list[Array]:
        indices = index_like(np.arange(block.shape[0]), block)
        return [block[indices, indices + first]]

    diagonals = sum_rows(block_diagonal, X, 8 * X.shape[1], numbered=True)
    return namespace(diagonals[0]).concat(diagonals)


def first_block(X: Any) -> tuple[Array, Any]:
    """The first block of rows, and a source of all rows; for one array, both are X.

    A source that can be read only once is continued; others start again.
    """
    if not is_blocks(X):
        return X, X
    blocks = iter(X)
    first = next(blocks, None)
    if first is None:
        raise no_blocks_error()
    return first, chain([first], blocks) if blocks is X else X


def apply_to_source(f: Callable[[Any], Any], X: Any) -> Any:
    """f of one array, or of each block of an iterable as it is read."""
    return apply_to_blocks(f, X) if is_blocks(X) else f(X)


def load_row_subset(X: Any, row_numbers: np.ndarray) -> tuple[Any, Array]:
    """An array in memory, and the places in it of the rows with these numbers.

    If X is elsewhere, only these rows are read.
    """
    if not is_lazy_or_dask(X):
        return X, index_like(row_numbers, X)
    loaded_rows = take_rows(X, row_numbers)
    return loaded_rows, index_like(np.arange(len(row_numbers)), loaded_rows)


def select_rows(X: Any, row_numbers: np.ndarray) -> Any:
    """The rows with these numbers; those of a large array on disk stay there."""
    if is_lazy(X) and X.nbytes > memory_limit(X) // 4:
        # all rows between the first and the last one of a block are mapped
        return LazyRows(X, None, X.nbytes // len(row_numbers), row_numbers)
    return X[index_like(row_numbers, X)]


def load_values(values: Any) -> Any:
    """Values in memory: those on a cluster are computed, and `LazyRows` are read."""
    if isinstance(values, LazyRows):
        return values[:]
    return values.compute() if is_dask(values) else values


def comes_in_blocks(X: Any) -> bool:
    """Whether rows can be had in blocks only: from an iterable, or on a cluster."""
    return is_dask(X) or is_blocks(X)


def fits_in_memory(X: Any, n_bytes: int) -> bool:
    """Whether a learner may hold rows made from X that need this memory.

    Those made from rows in memory it holds in any case.
    """
    if comes_in_blocks(X):
        return False
    return not is_lazy(X) or n_bytes <= memory_limit(X)


def refuse_nan_on_disk(X: Any) -> None:
    """Refuse NaN in rows on disk, for those who use them without reading blocks."""
    if is_lazy(X):
        map_blocks(lambda block: None, X, 8 * X.shape[1])


def with_selectable_columns(X: Any, caller: str) -> Any:
    """X in a form whose columns can be selected: `LazyRows` are read."""
    if not isinstance(X, LazyRows):
        return X
    check_memory(X, caller)
    return X[:]


def shuffled_batches(
    X: Any, n_rows: int, rng: np.random.Generator
) -> Iterator[Array]:
    """Batches of rows of an array in random order; blocks in their own order."""
    if is_blocks(X):
        yield from row_batches(X, n_rows)
        return
    order = rng.permutation(X.shape[0])
    for begin in range(0, len(order), n_rows):
        source, indices = load_row_subset(X, order[begin : begin + n_rows])
        yield source[indices]


def n_rows_in_memory(X: Any, share: int) -> int:
    """The number of rows that fit into this part of memory; all if X is on the host."""
    if not is_lazy(X) and gpu_of(X) is None:
        return X.shape[0]
    return memory_limit(X) // (share * 8 * X.shape[1])


def evenly_spaced_sample(X: Any, n_rows: int) -> Any:
    """Up to `n_rows` evenly spaced rows in memory; all of X if it has no more."""
    if n_rows >= X.shape[0] and not is_lazy(X):
        return X
    return take_rows(X, evenly_spaced_rows(X.shape[0], n_rows))


def sample_objects(X: Any) -> Any:
    """X, or up to 2048 evenly spaced samples of a Dask array of objects."""
    on_cluster = is_dask(X) and X.ndim == 1
    return take_rows(X, evenly_spaced_rows(X.shape[0])) if on_cluster else X


def row_width(X: Any) -> int:
    """The numbers in a row; 1 for samples that are not rows of numbers."""
    return X.shape[1] if X.ndim > 1 else 1


def concatenate_blocks(blocks: list[Array]) -> Array:
    """Blocks of rows as one array in memory."""
    if len(blocks) == 1:
        return blocks[0]
    float_blocks = [read_rows(block, slice(0, block.shape[0])) for block in blocks]
    return namespace(float_blocks[0]).concat(float_blocks)


def _read_ahead(blocks: Iterable[Array]) -> Iterator[Array]:
    """The same blocks; the next one is read while one is processed."""
    iterator = iter(blocks)
    context, inside = contextvars.copy_context(), is_inside()
    with ThreadPoolExecutor(1, thread_name_prefix="kernlets-reader") as executor:

        def read_next() -> Array | None:
            with marked_inside(inside):
                return context.run(next, iterator, None)

        next_block = executor.submit(read_next)
        while (block := next_block.result()) is not None:
            next_block = executor.submit(read_next)
            yield block


def take_rows(X: Any, row_numbers: np.ndarray) -> Array:
    """The rows with these numbers, in memory and in floating point."""
    if is_dask(X):
        return dask_rows().take_rows(X, row_numbers)
    if isinstance(X, CountedBlocks):
        return X.take(row_numbers)
    if is_lazy(X):
        return stacked_rows(as_float, X, 8 * X.shape[1] + MAPPED_BYTES, row_numbers)
    selected_rows = X[index_like(row_numbers, X)]
    return as_float(selected_rows) if X.ndim > 1 else selected_rows


def evenly_spaced_rows(n: int, m: int = PROBE_ROWS) -> np.ndarray:
    """At most m row numbers, evenly spread over 0..n-1."""
    return np.unique(np.linspace(0, n - 1, min(n, m)).round().astype(np.intp))


def cache_rows(X: Any) -> AbstractContextManager[Any]:
    """X, for a block in which its rows are read again and again.

    Of a Dask array, chunks then stay in the memory of the workers.
    """
    if is_dask(X):
        return dask_rows().cache_rows(X)
    return nullcontext(X)


def map_rows(f: Callable[[Array], Array], X: Any, row_bytes: int) -> Any:
    """f over blocks of rows, results stacked in one array.

    For an iterable of blocks the result is an iterable with one result per block, for
    a Dask array another one. Where X is not in memory and the result is larger than
    half of the memory option, it is `LazyRows`.
    """
    if is_dask(X):
        return dask_rows().map_rows(f, X, row_bytes)
    if is_blocks(X):
        if isinstance(X, Iterator):
            return (map_rows(f, block, row_bytes) for block in _read_ahead(X))
        return Blocks(lambda: map_rows(f, iter(X), row_bytes))
    if is_lazy(X):
        lazy_rows = LazyRows(X, f, row_bytes)
        if lazy_rows.ndim == 2 and lazy_rows.nbytes > memory_limit(lazy_rows) // 2:
            return lazy_rows
    return stacked_rows(f, X, row_bytes)


def apply_to_rows(f: Callable[[Any], Any], values: Any, row_bytes: int = 64) -> Any:
    """f of values that belong to rows: at once in memory, else as `map_rows` does."""
    if is_blocks(values) or is_lazy_or_dask(values):
        return map_rows(f, values, row_bytes)
    return f(values)


def apply_to_blocks(f: Callable[[Array], Any], X: Iterable[Array]) -> Iterable[Any]:
    """f of each block of an iterable, which can be read again if X can."""
    return map(f, X) if isinstance(X, Iterator) else Blocks(lambda: map(f, X))


def sum_rows(
    f: Callable[..., Any],
    X: Any,
    row_bytes: int,
    numbered: bool = False,
    result_bytes: int = 0,
) -> Any:
    """Σ f(block) over blocks of rows, added in the order of the rows.

    With `numbered`, Σ f(block, number of its first row). The size of a result,
    `result_bytes`, should be given if it is large.
    """
    if is_dask(X):
        return dask_rows().sum_rows(f, X, row_bytes, numbered)
    arrays = _read_ahead(X) if is_blocks(X) else [X]
    return sum_blocks(f, arrays, row_bytes, numbered, result_bytes)
