"""Overlapping patches of an image as rows, and images averaged from patches."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..contracts import Array
from ..numerics.arrays import index_like, namespace
from ..numerics.pixels import window_starts, windows

BAND = 32_768  # patches that are estimated at once


def random_rows(
    image: Array,  # (h, w)
    size: int,
    count: int,
    rng: np.random.Generator,
) -> Array:  # (count, size²)
    """Draw patches at distinct random positions; take all if there are few."""
    view = windows(image, (size, size))
    n = view.shape[0] * view.shape[1]
    numbers = np.arange(n) if n <= count else rng.choice(n, count, replace=False)
    rows, cols = (
        index_like(indices, image) for indices in np.divmod(numbers, view.shape[1])
    )
    return view[rows, cols].reshape(len(numbers), -1)


def filter_patches(
    image: Array,  # (h, w)
    size: int,
    stride: int,
    estimate: Callable[[Array], tuple[Array, Array]],
    progress: Callable[[float], None],
) -> Array:  # (h, w)
    """The weighted mean, at each pixel, of all patches that `estimate` returns.

    `estimate` takes rows, (n, size²), and returns as many, with weights, (n,).
    """
    xp = namespace(image)
    total, total_weight = xp.zeros_like(image), xp.zeros_like(image)
    view = windows(image, (size, size))
    cols = window_starts(view.shape[1] - 1, stride)
    for rows in _bands(window_starts(view.shape[0] - 1, stride), len(cols)):
        block = view[index_like(rows, image)[:, None], index_like(cols, image)]
        estimates, weights = estimate(block.reshape(-1, size * size))
        grid = len(rows), len(cols)
        estimates = estimates.reshape(*grid, size, size) * weights.reshape(*grid, 1, 1)
        _add_patches(total, total_weight, estimates, weights.reshape(grid), rows, cols)
        progress((rows[-1] + 1) / view.shape[0])
    return total / total_weight


def _bands(rows: np.ndarray, n_cols: int) -> Iterator[np.ndarray]:
    """Rows of patches, as many at a time as a band may have."""
    step = max(1, BAND // n_cols)
    return (rows[first : first + step] for first in range(0, len(rows), step))


def _add_patches(
    total: Array,
    total_weight: Array,
    patches: Array,  # (r, c, size, size), weighted
    weights: Array,  # (r, c)
    rows: np.ndarray,
    cols: np.ndarray,
) -> None:
    """Add one pixel of all patches at a time, because its indices are distinct."""
    size = patches.shape[2]
    for down in range(size):
        for across in range(size):
            pixels = (
                index_like(rows + down, total)[:, None],
                index_like(cols + across, total),
            )
            total[pixels] += patches[:, :, down, across]
            total_weight[pixels] += weights
