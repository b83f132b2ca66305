"""A sample of rows from blocks that are read once: mini-batch LKDL, section IV-E.

`BlockSample` decides how many landmarks each block gives and which earlier ones they
replace. The sampler decides which rows of a block become landmarks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..contracts import Array
from ..numerics.arrays import index_like, namespace

Sample = Callable[[Array, int], tuple[Array, np.ndarray | None]]


class BlockSample:
    """A sample of `target(n)` of the first n rows, with a fair share of each block.

    When a block of b rows brings the number of rows to n, about b/n of the sample come
    from this block, and they replace random other rows of the sample.
    """

    def __init__(
        self,
        sample: Sample,  # (block, m) -> m rows, their indices in the block or None
        target: Callable[[int], int],
        rng: np.random.Generator,
    ) -> None:
        self._sample, self._target, self._rng = sample, target, rng
        self.rows: Array | None = None  # (m, p)
        self.indices: np.ndarray | None = np.empty(0, dtype=np.intp)
        self.n_seen = 0

    def __len__(self) -> int:
        return 0 if self.rows is None else self.rows.shape[0]

    def add(self, block: Array) -> None:
        """Take landmarks from one more block."""
        n_take, n_keep = self._shares(block.shape[0])
        retained = np.sort(self._rng.choice(len(self), n_keep, replace=False))
        if n_take:
            rows, indices = self._sample(block, n_take)
        else:
            rows, indices = block[:0], np.empty(0, dtype=np.intp)
        self._join(retained, rows, indices)
        self.n_seen += block.shape[0]

    def _shares(self, n_block: int) -> tuple[int, int]:
        """Numbers of rows to take from a block of this size, and to retain."""
        n = self.n_seen + n_block
        size = self._target(n)
        # random rounding, so that blocks of a single row get their share, too
        n_take = int(size * n_block / n + self._rng.random())
        n_keep = min(max(size - n_take, 0), len(self))
        return min(size - n_keep, n_block), n_keep

    def _join(
        self, retained: np.ndarray, rows: Array, indices: np.ndarray | None
    ) -> None:
        if self.rows is not None:
            old_rows = self.rows[index_like(retained, self.rows)]
            rows = namespace(rows).concat([old_rows, rows])
        self.rows = rows
        if indices is None or self.indices is None:
            self.indices = None  # points of a sampler such as k-means are no rows of X
        else:
            new_indices = indices + self.n_seen
            self.indices = np.concatenate([self.indices[retained], new_indices])
