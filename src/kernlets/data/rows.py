"""Loop over blocks of rows in arrays, memory maps, streams and Dask arrays.

`map_rows` and `sum_rows` are the only two loops over row blocks in the library;
`row_batches` cuts any source into mini-batches, and each of them is a source again.
A source of rows is an array, a memory map, `LazyRows`, an iterable of blocks of rows,
or a Dask array. `block_loop.py` has the loops themselves, `dask_rows.py` those for
Dask.
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

from ..contracts import Array
from ..numerics.arrays import (
    as_float,
    index_like,
    is_array,
    is_dask,
    namespace,
    to_device,
    to_numpy,
)
from ..numerics.threads import is_inside, marked_inside
from .block_loop import block_slices, map_blocks, stacked_rows, sum_blocks
from .lazy_rows import LazyRows, check_memory, is_lazy, is_lazy_or_dask
from .load_dask import dask_rows
from .memory_limits import gpu_of, memory_limit
from .read_blocks import read_rows

Result = TypeVar("Result")

PROBE_ROWS = 2048  # errors are estimated on at most 2048 rows
MAPPED_BYTES = 2**21  # bytes of a file that are mapped around each row read


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
    """Whether X is one array in memory or on disk, neither blocks nor a Dask array."""
    return not (is_blocks(X) or is_dask(X))


def no_blocks_error() -> ValueError:
    """Return the error for an iterable that has no blocks."""
    return ValueError("X is an iterable without blocks: pass at least one")


def count_rows(X: Any) -> int | None:
    """Return the number of rows, or None if they must be read to be counted."""
    if is_blocks(X):
        return getattr(X, "n_rows", None)
    n = X.shape[0]
    # the length of a Dask dataframe is computed from its files
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
    >>> arrays = [rng.standard_normal((100, 8)) for _ in range(3)]
    >>> blocks = Blocks(lambda: iter(arrays), n_rows=300)
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
    """Blocks whose rows were counted in a pass, so that rows can be taken by number."""

    def __init__(
        self,
        read: Callable[[], Iterable[Array]],
        shape: tuple[int, int],
        has_missing: bool,
    ) -> None:
        super().__init__(read, shape[0])
        self.shape, self.has_missing = shape, has_missing

    def take(self, row_numbers: np.ndarray) -> Array:
        """Gather the rows with these numbers in one pass, which ends after the last."""
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
    """Yield the blocks of rows of any source as floating-point arrays."""
    for array in _arrays_of(X):
        for rows in block_slices(array.shape[0], row_bytes, array):
            yield read_rows(array, rows)


def _arrays_of(X: Any) -> Iterable[Array]:
    """Return the blocks of a stream, the computed chunks of Dask, or [X]."""
    if is_dask(X):
        return map(to_device, map(dask_rows().compute, X.blocks))
    return _read_ahead(X) if is_blocks(X) else [X]


def row_batches(X: Any, n_rows: int) -> Iterator[Array]:
    """Yield consecutive batches of `n_rows` rows, the last of which may be shorter.

    The batches do not depend on the blocks in which the rows come. Rows of a memory map
    are not read here.
    """
    for array in _regroup_blocks(X, n_rows) if is_blocks(X) else [X]:
        for begin in range(0, array.shape[0], n_rows):
            rows = slice(begin, min(begin + n_rows, array.shape[0]))
            yield slice_rows(array, rows)


def slice_rows(X: Any, rows: slice) -> Any:
    """Return consecutive rows as the same kind of source as X, without reading them."""
    if is_dask(X):
        return dask_rows().slice_rows(X, rows)
    return X.slice_rows(rows) if isinstance(X, LazyRows) else X[rows]


def _regroup_blocks(blocks: Iterable[Array], n_rows: int) -> Iterator[Array]:
    """Yield the rows in blocks of multiples of `n_rows`; the last may be different."""
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
    """Convert lists and dataframes to arrays; return other X unchanged."""
    is_source = is_array(X) or sparse.issparse(X) or is_lazy_or_dask(X)
    return X if is_source else np.asarray(X)


def host_rows(X: Any, error: str) -> Any:
    """Return rows that scikit-learn accepts, dense or sparse, on the host.

    Tensors are copied to the host. Rows that are not in memory are refused with a
    ValueError that has this text.
    """
    if sparse.issparse(X):
        return X
    if not is_array(X):
        raise ValueError(error)
    return to_numpy(X)


def row_diagonal(X: Any) -> Array:  # (n,)
    """Return the diagonal of a square matrix, which may be read block by block."""
    if not isinstance(X, LazyRows) and not is_dask(X):
        return X.diagonal()

    def block_diagonal(block: Array, first: int) -> list[Array]:
        indices = index_like(np.arange(block.shape[0]), block)
        return [block[indices, indices + first]]

    diagonals = sum_rows(block_diagonal, X, 8 * X.shape[1], numbered=True)
    return namespace(diagonals[0]).concat(diagonals)


def first_block(X: Any) -> tuple[Array, Any]:
    """Return the first block and a source of all rows; for one array, both are X.

    An iterator that can be read only once gets its first block back.
    """
    if not is_blocks(X):
        return X, X
    blocks = iter(X)
    first = next(blocks, None)
    if first is None:
        raise no_blocks_error()
    return first, chain([first], blocks) if blocks is X else X


def apply_to_source(f: Callable[[Any], Any], X: Any) -> Any:
    """Apply f to one array, or to each block of an iterable as it is read."""
    return apply_to_blocks(f, X) if is_blocks(X) else f(X)


def load_row_subset(X: Any, row_numbers: np.ndarray) -> tuple[Any, Array]:
    """Return an array in memory and the indices in it of the rows with these numbers.

    The array is X itself if X is in memory. Otherwise only these rows are read.
    """
    if not is_lazy_or_dask(X):
        return X, index_like(row_numbers, X)
    loaded_rows = take_rows(X, row_numbers)
    return loaded_rows, index_like(np.arange(len(row_numbers)), loaded_rows)


def select_rows(X: Any, row_numbers: np.ndarray) -> Any:
    """Select rows by number; the rows of a large array on disk are not read."""
    if is_lazy(X) and X.nbytes > memory_limit(X) // 4:
        # reading a block maps all rows between its first and its last one
        return LazyRows(X, None, X.nbytes // len(row_numbers), row_numbers)
    return X[index_like(row_numbers, X)]


def load_values(values: Any) -> Any:
    """Bring values into memory: compute Dask arrays and read `LazyRows`."""
    if isinstance(values, LazyRows):
        return values[:]
    return values.compute() if is_dask(values) else values


def comes_in_blocks(X: Any) -> bool:
    """Whether X can only be read in blocks: it is an iterable or a Dask array."""
    return is_dask(X) or is_blocks(X)


def fits_in_memory(X: Any, n_bytes: int) -> bool:
    """Whether a learner may store `n_bytes` that it computes from the rows of X.

    It always may if X is in memory itself, and never if X comes in blocks.
    """
    if comes_in_blocks(X):
        return False
    return not is_lazy(X) or n_bytes <= memory_limit(X)


def refuse_nan_on_disk(X: Any) -> None:
    """Refuse NaN in rows on disk, for callers that do not read them in blocks."""
    if is_lazy(X):
        map_blocks(lambda block: None, X, 8 * X.shape[1])


def with_selectable_columns(X: Any, caller: str) -> Any:
    """Read `LazyRows` into memory, because only arrays can be indexed by columns."""
    if not isinstance(X, LazyRows):
        return X
    check_memory(X, caller)
    return X[:]


def shuffled_batches(X: Any, n_rows: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield batches of an array in random order, and of blocks in the given order."""
    if is_blocks(X):
        yield from row_batches(X, n_rows)
        return
    order = rng.permutation(X.shape[0])
    for begin in range(0, len(order), n_rows):
        source, indices = load_row_subset(X, order[begin : begin + n_rows])
        yield source[indices]


def n_rows_in_memory(X: Any, share: int) -> int:
    """Return how many rows fit into 1/share of memory; all if X is in host memory."""
    if not is_lazy(X) and gpu_of(X) is None:
        return X.shape[0]
    return memory_limit(X) // (share * 8 * X.shape[1])


def evenly_spaced_sample(X: Any, n_rows: int) -> Any:
    """Read up to `n_rows` evenly spaced rows into memory."""
    if n_rows >= X.shape[0] and not is_lazy(X):
        return X
    return take_rows(X, evenly_spaced_rows(X.shape[0], n_rows))


def sample_objects(X: Any) -> Any:
    """Read up to 2048 evenly spaced samples if X is a Dask array of objects."""
    on_cluster = is_dask(X) and X.ndim == 1
    return take_rows(X, evenly_spaced_rows(X.shape[0])) if on_cluster else X


def n_columns(X: Any) -> int:
    """Return the number of columns, or 1 for samples that are not rows of numbers."""
    return X.shape[1] if X.ndim > 1 else 1


def concatenate_blocks(blocks: list[Array]) -> Array:
    """Concatenate blocks of rows in one array in memory."""
    if len(blocks) == 1:
        return blocks[0]
    float_blocks = [read_rows(block, slice(0, block.shape[0])) for block in blocks]
    return namespace(float_blocks[0]).concat(float_blocks)


def _read_ahead(blocks: Iterable[Array]) -> Iterator[Array]:
    """Yield the blocks, and read the next one while the caller processes one."""
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
    """Read the rows with these numbers into memory as floating-point numbers."""
    if is_dask(X):
        return dask_rows().take_rows(X, row_numbers)
    if isinstance(X, CountedBlocks):
        return X.take(row_numbers)
    if is_lazy(X):
        return stacked_rows(as_float, X, 8 * X.shape[1] + MAPPED_BYTES, row_numbers)
    selected_rows = X[index_like(row_numbers, X)]
    return as_float(selected_rows) if X.ndim > 1 else selected_rows


def evenly_spaced_rows(n: int, m: int = PROBE_ROWS) -> np.ndarray:
    """Return at most m row numbers that are evenly spaced in 0..n-1."""
    return np.unique(np.linspace(0, n - 1, min(n, m)).round().astype(np.intp))


def cache_rows(X: Any) -> AbstractContextManager[Any]:
    """Return a context manager that gives X, for code that reads X repeatedly.

    Within it the workers of a cluster cache the chunks of a Dask array.
    """
    if is_dask(X):
        return dask_rows().cache_rows(X)
    return nullcontext(X)


def map_rows(f: Callable[[Array], Array], X: Any, row_bytes: int) -> Any:
    """Apply f to blocks of rows and stack the results in one array.

    For an iterable of blocks the result is an iterable with one result per block, for
    a Dask array it is a Dask array. If X is not in memory and the result is larger
    than half of the memory option, it is `LazyRows`.
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
    """Apply f to all values in memory at once, and to others as `map_rows` does."""
    if is_blocks(values) or is_lazy_or_dask(values):
        return map_rows(f, values, row_bytes)
    return f(values)


def apply_to_blocks(f: Callable[[Array], Any], X: Iterable[Array]) -> Iterable[Any]:
    """Apply f to each block; the result can be read repeatedly if X can."""
    return map(f, X) if isinstance(X, Iterator) else Blocks(lambda: map(f, X))


def sum_rows(
    f: Callable[..., Any],
    X: Any,
    row_bytes: int,
    numbered: bool = False,
    result_bytes: int = 0,
) -> Any:
    """Return Σ f(block) over blocks of rows, added in the order of the rows.

    With `numbered` f gets the number of the first row of the block as a second
    argument. Pass the size of a result, `result_bytes`, if it is large.
    """
    if is_dask(X):
        return dask_rows().sum_rows(f, X, row_bytes, numbered)
    arrays = _read_ahead(X) if is_blocks(X) else [X]
    return sum_blocks(f, arrays, row_bytes, numbered, result_bytes)
