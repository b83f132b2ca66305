"""Loop over blocks of rows in arrays, memory maps, streams and Dask arrays.

`map_rows` and `sum_rows` are the only two loops over row blocks in the library;
`row_batches` cuts any source into mini-batches, and each of them is a source again.
A source of rows is an array, a memory map, `LazyRows`, an iterable of blocks of rows,
or a Dask array. `block_loop.py` has the loops themselves, `on_dask.py` those for
Dask.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from numbers import Integral
from typing import Any

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
from .block_loop import block_slices, map_blocks, read_rows, stacked_rows, sum_blocks
from .lazy_rows import LazyRows, check_memory, is_lazy, is_lazy_or_dask
from .limits import gpu_of, memory_limit
from .stream import (
    Blocks,
    CountedBlocks,
    comes_in_blocks,
    is_blocks,
    read_ahead,
    regroup_blocks,
)

PROBE_ROWS = 2048  # errors are estimated on at most 2048 rows
MAPPED_BYTES = 2**21  # bytes of a file that are mapped around each row read


def on_dask() -> Any:
    """Return the module `on_dask.py`; only then is Dask imported, which takes long."""
    return importlib.import_module(".on_dask", __package__)


def count_rows(X: Any) -> int | None:
    """Return the number of rows, or None if they must be read to be counted."""
    if is_blocks(X):
        return getattr(X, "n_rows", None)
    n = X.shape[0]
    # the length of a Dask dataframe is computed from its files
    return int(n) if isinstance(n, Integral) else len(X)


def iter_blocks(X: Any, row_bytes: int) -> Iterator[Array]:
    """Yield the blocks of rows of any source as floating-point arrays."""
    arrays: Iterable[Array]
    if is_dask(X):
        arrays = map(to_device, map(on_dask().compute, X.blocks))
    else:
        arrays = read_ahead(X) if is_blocks(X) else [X]
    for array in arrays:
        for rows in block_slices(array.shape[0], row_bytes, array):
            yield read_rows(array, rows)


def row_batches(X: Any, n_rows: int) -> Iterator[Array]:
    """Yield consecutive batches of `n_rows` rows, the last of which may be shorter.

    The batches do not depend on the blocks in which the rows come. Rows of a memory map
    are not read here.
    """
    for array in regroup_blocks(X, n_rows) if is_blocks(X) else [X]:
        for begin in range(0, array.shape[0], n_rows):
            rows = slice(begin, min(begin + n_rows, array.shape[0]))
            yield slice_rows(array, rows)


def slice_rows(X: Any, rows: slice) -> Any:
    """Return consecutive rows as the same kind of source as X, without reading them."""
    if is_dask(X):
        return on_dask().slice_rows(X, rows)
    return X.slice_rows(rows) if isinstance(X, LazyRows) else X[rows]


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


def take_rows(X: Any, row_numbers: np.ndarray) -> Array:
    """Read the rows with these numbers into memory as floating-point numbers."""
    if is_dask(X):
        return on_dask().take_rows(X, row_numbers)
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
        return on_dask().cache_rows(X)
    return nullcontext(X)


def map_rows(
    f: Callable[[Array], Array], X: Any, row_bytes: int, group_size: int = 1
) -> Any:
    """Apply f to blocks of rows and stack the results in one array.

    Rows are cut only between groups of `group_size` rows.

    For an iterable of blocks the result is an iterable with one result per block, for
    a Dask array it is a Dask array. If X is not in memory and the result is larger
    than half of the memory option, it is `LazyRows`.
    """
    if type(X) is np.ndarray:  # most rows are, and need no further questions
        return stacked_rows(f, X, row_bytes, None, group_size)
    if is_dask(X):
        return on_dask().map_rows(f, X, row_bytes, group_size)
    if is_blocks(X):
        if isinstance(X, Iterator):
            return (
                map_rows(f, block, row_bytes, group_size) for block in read_ahead(X)
            )
        return Blocks(lambda: map_rows(f, iter(X), row_bytes, group_size))
    if is_lazy(X):
        lazy_rows = LazyRows(X, f, row_bytes, None, group_size)
        if lazy_rows.ndim == 2 and lazy_rows.nbytes > memory_limit(lazy_rows) // 2:
            return lazy_rows
    return stacked_rows(f, X, row_bytes, None, group_size)


def apply_to_rows(f: Callable[[Any], Any], values: Any, row_bytes: int = 64) -> Any:
    """Apply f to all values in memory at once, and to others as `map_rows` does."""
    in_memory = type(values) is np.ndarray
    if not in_memory and (is_blocks(values) or is_lazy_or_dask(values)):
        return map_rows(f, values, row_bytes)
    return f(values)


def sum_rows(
    f: Callable[..., Any],
    X: Any,
    row_bytes: int,
    numbered: bool = False,
    result_bytes: int = 0,
    group_size: int = 1,
) -> Any:
    """Return Σ f(block) over blocks of rows, added in the order of the rows.

    With `numbered` f gets the number of the first row of the block as a second
    argument. Pass the size of a result, `result_bytes`, if it is large. Rows are cut
    only between groups of `group_size` rows.
    """
    if is_dask(X):
        return on_dask().sum_rows(f, X, row_bytes, numbered, group_size)
    arrays = read_ahead(X) if is_blocks(X) else [X]
    return sum_blocks(f, arrays, row_bytes, numbered, result_bytes, group_size)
