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
        has_gaps: bool,
    ) -> None:
        super().__init__(read, shape[0])
        self.shape, self.has_missing = shape, has_gaps

    def take(self, rows: np.ndarray) -> Array:
        """The rows with these numbers, gathered in a pass that ends after the last."""
        order = np.argsort(rows, kind="stable")
        wanted, parts, first = rows[order], [], 0
        for block in self:
            last = first + block.shape[0]
            inside = wanted[(first <= wanted) & (wanted < last)] - first
            if len(inside):
                parts.append(as_float(block[index_like(inside, block)]))
            if wanted[-1] < last:
                found = concatenate_blocks(parts)
                return found[index_like(np.argsort(order), found)]
            first = last
        raise ValueError(
            f"X had {self.n_rows} rows when they were counted, and {first} when they "
            "were read again: pass blocks that are the same in each pass"
        )


def iter_blocks(X: Any, row_bytes: int) -> Iterator[Array]:
    """Row blocks of any source, as floating-point arrays."""
    for part in _arrays_of(X):
        for rows in block_slices(part.shape[0], row_bytes, part):
            yield read_rows(part, rows)


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
    for part in _regroup_blocks(X, n_rows) if is_blocks(X) else [X]:
        for begin in range(0, part.shape[0], n_rows):
            rows = slice(begin, min(begin + n_rows, part.shape[0]))
            yield slice_rows(part, rows)


def slice_rows(X: Any, rows: slice) -> Any:
    """Consecutive rows, of the same kind as X and not read here."""
    if is_dask(X):
        return dask_rows().slice_rows(X, rows)
    return X.part(rows) if isinstance(X, LazyRows) else X[rows]


def _regroup_blocks(blocks: Iterable[Array], n_rows: int) -> Iterator[Array]:
    """The same rows in blocks of multiples of `n_rows`, but for the last block."""
    held: list[Array] = []
    for block in _read_ahead(blocks):
        held.append(block)
        count = sum(part.shape[0] for part in held)
        if count >= n_rows:
            rows = concatenate_blocks(held)
            whole = count - count % n_rows
            yield rows[:whole]
            held = [rows[whole:]]
    if held:
        yield concatenate_blocks(held)


def as_source(X: Any) -> Any:
    """X if it is an array in memory, sparse or elsewhere, otherwise an array of it."""
    known = is_array(X) or sparse.issparse(X) or is_lazy_or_dask(X)
    return X if known else np.asarray(X)


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

    def part(block: Array, first: int) -> list[Array]:
        own = index_like(np.arange(block.shape[0]), block)
        return [block[own, own + first]]

    found = sum_rows(part, X, 8 * X.shape[1], numbered=True)
    return namespace(found[0]).concat(found)


def first_block(X: Any) -> tuple[Array, Any]:
    """The first block of rows, and a source of all rows; for one array, both are X.

    A source that can be read only once is continued; others start again.
    """
    if not is_blocks(X):
        return X, X
    source = iter(X)
    head = next(source, None)
    if head is None:
        raise no_blocks_error()
    return head, chain([head], source) if source is X else X


def apply_to_source(f: Callable[[Any], Any], X: Any) -> Any:
    """f of one array, or of each block of an iterable as it is read."""
    return apply_to_blocks(f, X) if is_blocks(X) else f(X)


def load_row_subset(X: Any, rows: np.ndarray) -> tuple[Any, Array]:
    """An array in memory, and the places in it of the rows with these numbers.

    If X is elsewhere, only these rows are read.
    """
    if not is_lazy_or_dask(X):
        return X, index_like(rows, X)
    read = take_rows(X, rows)
    return read, index_like(np.arange(len(rows)), read)


def select_rows(X: Any, rows: np.ndarray) -> Any:
    """The rows with these numbers; those of a large array on disk stay there."""
    if is_lazy(X) and X.nbytes > memory_limit(X) // 4:
        # all rows between the first and the last one of a block are mapped
        return LazyRows(X, None, X.nbytes // len(rows), rows)
    return X[index_like(rows, X)]


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


def with_selectable_columns(X: Any, who: str) -> Any:
    """X in a form whose columns can be selected: `LazyRows` are read."""
    if not isinstance(X, LazyRows):
        return X
    check_memory(X, who)
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
        source, places = load_row_subset(X, order[begin : begin + n_rows])
        yield source[places]


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


def concatenate_blocks(parts: list[Array]) -> Array:
    """Blocks of rows as one array in memory."""
    if len(parts) == 1:
        return parts[0]
    read = [read_rows(part, slice(0, part.shape[0])) for part in parts]
    return namespace(read[0]).concat(read)


def _read_ahead(blocks: Iterable[Array]) -> Iterator[Array]:
    """The same blocks; the next one is read while one is processed."""
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
        return dask_rows().take_rows(X, rows)
    if isinstance(X, CountedBlocks):
        return X.take(rows)
    if is_lazy(X):
        return stacked_rows(as_float, X, 8 * X.shape[1] + MAPPED_BYTES, rows)
    found = X[index_like(rows, X)]
    return as_float(found) if X.ndim > 1 else found


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
        lazy = LazyRows(X, f, row_bytes)
        if lazy.ndim == 2 and lazy.nbytes > memory_limit(lazy) // 2:
            return lazy
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
    parts = _read_ahead(X) if is_blocks(X) else [X]
    return sum_blocks(f, parts, row_bytes, numbered, result_bytes)
