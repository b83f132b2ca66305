"""Pooling: coefficients of the patches of an image become one for each of its cells."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..contracts import Array
from ..numerics.arrays import as_like, empty, namespace

POOLINGS = ("gaussian", "mean", "max")
WIDTH = 0.5  # standard deviation of normal weights, in cells


def cell_slices(n: int, cells: int) -> list[slice]:
    """Cut n positions into cells of nearly equal size, none of which is empty.

    Neighbouring cells share a position if n is no multiple of their number.
    """
    return [
        slice(i * n // cells, -((-(i + 1) * n) // cells))  # rounded down, and up
        for i in range(cells)
    ]


@lru_cache(maxsize=32)
def cell_weights(n: int, cells: int, pooling: str) -> np.ndarray:  # (cells, n)
    """Return the weights of n positions in each cell along one axis; they sum to 1."""
    positions, size = np.arange(n), n / cells
    if pooling == "gaussian":
        centres = (np.arange(cells) + 0.5) * size - 0.5
        weights = np.exp(-0.5 * ((positions - centres[:, None]) / (WIDTH * size)) ** 2)
    else:
        weights = np.zeros((cells, n))
        for cell, ends in enumerate(cell_slices(n, cells)):
            weights[cell, ends] = 1
    return weights / weights.sum(axis=1, keepdims=True)


class GridPool:
    """Coefficients of one image, pooled while they come in bands of patches."""

    def __init__(self, shape: tuple[int, int], cells: int, pooling: str) -> None:
        self.shape, self.cells, self.pooling = shape, cells, pooling
        self.pooled: Array = None  # (cells, cells, q)

    def add(self, first: int, codes: Array) -> None:  # (r, b, q)
        """Add the codes of patches from the row `first` on."""
        if self.pooling == "max":
            self._raise_maxima(first, codes)
            return
        across, down = (
            as_like(cell_weights(n, self.cells, self.pooling), codes)
            for n in reversed(self.shape)
        )
        n_rows, _, q = codes.shape
        rows = (across @ codes).reshape(n_rows, self.cells * q)
        sums = (down[:, first : first + n_rows] @ rows).reshape(self.cells, -1, q)
        self.pooled = sums if self.pooled is None else self.pooled + sums

    def _raise_maxima(self, first: int, codes: Array) -> None:
        xp = namespace(codes)
        if self.pooled is None:
            self.pooled = empty((self.cells, self.cells, codes.shape[2]), like=codes)
            self.pooled[...] = -np.inf
        columns = cell_slices(self.shape[1], self.cells)
        for i, down in enumerate(cell_slices(self.shape[0], self.cells)):
            rows = codes[max(0, down.start - first) : max(0, down.stop - first)]
            for j, across in enumerate(columns if len(rows) else []):
                largest = xp.max(rows[:, across], axis=(0, 1))
                self.pooled[i, j] = xp.maximum(self.pooled[i, j], largest)
