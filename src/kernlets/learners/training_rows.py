"""Check training rows, and read the first rows of a stream to draw atoms from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from ..config import options
from ..contracts import Array
from ..data.check import check_block, check_rows
from ..data.stream import Blocks, concatenate_blocks, is_blocks, no_blocks_error

MANY_ROWS = 2000  # first rows of a stream if the number of atoms is not given


def training_rows(learner: Any, X: Any) -> tuple[Any, Array]:
    """Return X, checked, as array or blocks, and rows to draw the first atoms from."""
    if is_blocks(X):
        learner._check_blocks()
        return check_blocks(learner, X)
    X = learner._whole_rows(X)
    return X, X


def check_blocks(learner: Any, X: Any) -> tuple[Blocks, Array]:
    """Return blocks that are checked when read, and rows to draw the atoms from."""
    _refuse_single_use(X, learner.max_iter)
    is_single_use = isinstance(X, Iterator)
    first_blocks = _first_blocks(X, _n_first_rows(learner))
    first_rows = concatenate_blocks(_check_first_blocks(learner, first_blocks))
    if is_single_use and options.checkpoint is not None:
        raise ValueError(
            "X is an iterator that can be read only once, but a checkpoint reads "
            "the samples first: pass a list of blocks or kernlets.Blocks"
        )

    def checked_blocks() -> Iterator[Array]:
        blocks = chain(first_blocks, X) if is_single_use else X
        like = first_rows[:0]  # later blocks are converted to this type
        return (
            check_block(learner, block, False, like, learner._streams_missing)
            for block in blocks
        )

    return Blocks(checked_blocks), first_rows


def _refuse_single_use(X: Any, max_iter: int) -> None:
    """Refuse an iterator that would have to be read in every iteration."""
    if isinstance(X, Iterator) and max_iter > 1:
        raise ValueError(
            "X is an iterator that can be read only once: pass a list of blocks, "
            "or kernlets.Blocks(function) with a function that returns one, or set "
            "max_iter=1"
        )


def _check_first_blocks(learner: Any, blocks: list[Any]) -> list[Array]:
    """Check the first blocks of a stream, and convert all to the type of the first."""
    allow_nan = learner._streams_missing
    first_block = check_rows(learner, blocks[0], reset=True, allow_nan=allow_nan)
    other_blocks = (
        check_rows(learner, block, like=first_block[:0], allow_nan=allow_nan)
        for block in blocks[1:]
    )
    return [first_block, *other_blocks]


def _n_first_rows(learner: Any) -> int:
    """Return how many rows of a stream to choose the first atoms from."""
    if learner.n_components is None:
        return MANY_ROWS if isinstance(learner.init, str) else 1
    return 2 * int(learner.n_components)  # some rows may be zero


def _first_blocks(blocks: Iterable[Array], n_rows: int) -> list[Array]:
    """Read blocks until they have at least `n_rows` rows or the stream ends."""
    first_blocks, n_read = [], 0
    for block in blocks:
        first_blocks.append(block)
        n_read += block.shape[0]
        if n_read >= n_rows:
            break
    if not first_blocks:
        raise no_blocks_error()
    return first_blocks
