"""Streams: iterables of blocks of rows, for data larger than memory."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

import numpy as np

from ..contracts import Array
from ..numerics.arrays import (
    as_float,
    index_like,
    is_array,
    is_dask,
    namespace,
)
from ..numerics.threads import is_inside, marked_inside
from .block_loop import read_rows


def is_blocks(X: Any) -> bool:
    """Whether X is an iterable of row blocks rather than one array."""
    if isinstance(X, (np.ndarray, Blocks)):
        return isinstance(X, Blocks)
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
        if not callable(read):
            raise TypeError(
                f"Blocks: read is a {type(read).__name__}, not a function that returns "
                "a new iterator of blocks: write Blocks(lambda: iter(blocks)); a list "
                "of blocks needs no Blocks"
            )
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


def regroup_blocks(blocks: Iterable[Array], n_rows: int) -> Iterator[Array]:
    """Yield the rows in blocks of multiples of `n_rows`; the last may be different."""
    pending: list[Array] = []
    for block in read_ahead(blocks):
        pending.append(block)
        n_pending = sum(pending_block.shape[0] for pending_block in pending)
        if n_pending >= n_rows:
            rows = concatenate_blocks(pending)
            n_complete = n_pending - n_pending % n_rows
            yield rows[:n_complete]
            pending = [rows[n_complete:]]
    if pending:
        yield concatenate_blocks(pending)


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


def comes_in_blocks(X: Any) -> bool:
    """Whether X can only be read in blocks: it is an iterable or a Dask array."""
    return is_dask(X) or is_blocks(X)


def concatenate_blocks(blocks: list[Array]) -> Array:
    """Concatenate blocks of rows in one array in memory."""
    if len(blocks) == 1:
        return blocks[0]
    float_blocks = [read_rows(block, slice(0, block.shape[0])) for block in blocks]
    return namespace(float_blocks[0]).concat(float_blocks)


def read_ahead(blocks: Iterable[Array]) -> Iterator[Array]:
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


def apply_to_blocks(f: Callable[[Array], Any], X: Iterable[Array]) -> Iterable[Any]:
    """Apply f to each block; the result can be read repeatedly if X can."""
    return map(f, X) if isinstance(X, Iterator) else Blocks(lambda: map(f, X))
