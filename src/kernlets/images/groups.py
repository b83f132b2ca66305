"""Wiener filters over groups of similar patches.

Patches that look alike are collected around each reference patch. A first estimate of
the image, the pilot, gives their covariance C = V Λ Vᵀ almost without noise, and with
it the linear estimate of least mean squared error,

    x = m + C (C + σ²I)⁻¹ (y − m).

In other words, V is an orthonormal dictionary of the group alone, in which the
coefficients of a noisy patch y are shrunk by λ / (λ + σ²).

The image is cut into tiles of reference patches. Tiles do not depend on the number of
threads, and their results are added in order: neither does the image.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from ..backend.arrays import as_like, empty, index_like, namespace
from ..backend.pixels import windows
from ..backend.smallest import smallest
from ..backend.threads import parallel
from ..core import Array
from .patches import places

TILE = 16  # reference patches along each side of a tile
WAVE = 32  # tiles whose results are held at the same time
FAR = 1e3  # from pixels in [0, 1] or so


@dataclass(frozen=True)
class Grouping:
    """Which patches are filtered together."""

    size: int = 7  # of a patch, in pixels
    n_similar: int = 60
    reach: int = 12  # how far away from the reference similar patches are looked for
    stride: int = 3  # between reference patches


@dataclass(frozen=True)
class _Tile:
    """Places of reference patches: all pairs of a row and a column."""

    rows: np.ndarray  # (r,)
    cols: np.ndarray  # (c,)


Region = tuple[slice, ...]
Progress = Callable[[float], None]


def wiener_filter(
    noisy: Array,  # (c, h, w)
    pilot: Array,  # (c, h, w)
    sigma: float,
    grouping: Grouping,
    progress: Progress = lambda share: None,
) -> Array:  # (c, h, w)
    """The noisy image, filtered group by group with covariances of the pilot.

    Patches are similar if they are so in the first channel.
    """
    xp = namespace(noisy)
    total, weight = xp.zeros_like(noisy), xp.zeros_like(noisy)
    tiles = _tiles(noisy.shape[1:], grouping)

    def work(tile: _Tile) -> tuple[Region, Array, Array]:
        return _filtered_tile(noisy, pilot, sigma, grouping, tile)

    for first in range(0, len(tiles), WAVE):
        for region, part, share in parallel(work, tiles[first : first + WAVE]):
            total[region] += part
            weight[region] += share
        progress(min(1.0, (first + WAVE) / len(tiles)))
    return total / weight


def _tiles(shape: tuple[int, ...], grouping: Grouping) -> list[_Tile]:
    rows, cols = (places(n - grouping.size, grouping.stride) for n in shape)
    return [
        _Tile(rows[i : i + TILE], cols[j : j + TILE])
        for i in range(0, len(rows), TILE)
        for j in range(0, len(cols), TILE)
    ]


def _filtered_tile(
    noisy: Array, pilot: Array, sigma: float, grouping: Grouping, tile: _Tile
) -> tuple[Region, Array, Array]:
    """Where the tile reaches, sums of the estimates there, and of their weights."""
    size, reach = grouping.size, grouping.reach
    down, across = (
        slice(max(0, int(at[0]) - reach), min(n, int(at[-1]) + size + reach))
        for at, n in zip((tile.rows, tile.cols), noisy.shape[1:], strict=True)
    )
    region = slice(None), down, across
    noisy, pilot = noisy[region], pilot[region]
    local = _Tile(tile.rows - down.start, tile.cols - across.start)
    rows, cols = similar_patches(pilot[0], local, grouping)
    pixels = _pixels(rows, cols, size, noisy.shape[2])
    sums, weights = [], []
    for own, first in zip(noisy, pilot, strict=True):
        group = gathered(own, rows, cols, size)
        estimates = _estimates(group, gathered(first, rows, cols, size), sigma)
        found = _scattered(*estimates, pixels, own.shape)
        sums.append(found[0])
        weights.append(found[1])
    stack = namespace(noisy).stack
    return region, stack(sums), stack(weights)


def similar_patches(
    pilot: Array,  # (h, w)
    tile: _Tile,
    grouping: Grouping,
) -> tuple[Array, Array]:  # (g, k), (g, k)
    """Rows and columns of the patches most similar to each reference patch.

    Squared differences of the image and all its shifts are summed over patches by two
    products with matrices of zeros and ones.
    """
    size, reach = grouping.size, grouping.reach
    top, left = int(tile.rows[0]), int(tile.cols[0])
    bottom, right = int(tile.rows[-1]) + size, int(tile.cols[-1]) + size
    own = pilot[top:bottom, left:right]
    near = _framed(pilot, reach)[top : bottom + 2 * reach, left : right + 2 * reach]
    distances = (windows(near, own.shape) - own) ** 2  # (a, b, h, w)
    pick_rows = as_like(_picks(tile.rows, size), own)
    pick_cols = as_like(_picks(tile.cols, size), own)
    sums = pick_rows @ distances @ pick_cols.T  # (a, b, r, c)
    # a patch in a corner has the fewest others around it
    around = [min(reach, n - size) + 1 for n in pilot.shape]
    return _nearest(sums, tile, reach, min(grouping.n_similar, prod(around)))


def _framed(image: Array, reach: int) -> Array:
    """The image in a frame so far from all pixels that no patch outside is similar."""
    height, width = image.shape
    frame = empty((height + 2 * reach, width + 2 * reach), like=image)
    frame[...] = FAR
    frame[reach : reach + height, reach : reach + width] = image
    return frame


def _picks(places: np.ndarray, size: int) -> np.ndarray:  # (r, h)
    """Ones where the pixels of each patch are, along one axis."""
    pixels = np.arange(places[-1] - places[0] + size) - (places - places[0])[:, None]
    return (pixels >= 0) & (pixels < size)


def _nearest(
    sums: Array,  # (a, b, r, c)
    tile: _Tile,
    reach: int,
    count: int,
) -> tuple[Array, Array]:  # (g, count), (g, count)
    n_cols = sums.shape[1]
    flat = sums.reshape(sums.shape[0] * n_cols, -1).T  # (g, shifts)
    chosen = smallest(flat, count)
    rows = index_like(np.repeat(tile.rows, len(tile.cols)), sums)[:, None]
    cols = index_like(np.tile(tile.cols, len(tile.rows)), sums)[:, None]
    return rows + chosen // n_cols - reach, cols + chosen % n_cols - reach


def gathered(image: Array, rows: Array, cols: Array, size: int) -> Array:
    """Patches as rows, (g, k, size²)."""
    return windows(image, (size, size))[rows, cols].reshape(*rows.shape, -1)


def _estimates(
    noisy: Array,  # (g, k, p)
    pilot: Array,  # (g, k, p)
    sigma: float,
) -> tuple[Array, Array]:  # (g, k, p), (g,)
    """Filtered patches, and a weight for each group: who keeps less, counts more.

    The mean m is that of the noisy patches, whose noise is σ²/k only, and not that of
    the pilot, which has lost detail.
    """
    xp = namespace(noisy)
    _, count, length = pilot.shape
    mean = xp.mean(noisy, axis=1, keepdims=True)
    centred = pilot - xp.mean(pilot, axis=1, keepdims=True)
    covariance = xp.matrix_transpose(centred) @ centred / count
    noise = sigma**2 * xp.eye(length, dtype=noisy.dtype)
    gain = xp.linalg.solve(covariance + as_like(noise, noisy), covariance)
    estimates = mean + (noisy - mean) @ gain
    kept = xp.sum(gain * xp.matrix_transpose(gain), axis=(1, 2)) / length
    return estimates, 1 / (kept + 1 / count)


def _pixels(rows: Array, cols: Array, size: int, width: int) -> Array:  # (g·k·size²,)
    """Where each pixel of each patch is in the flat image."""
    step = index_like(np.arange(size), rows)
    inside = (step[:, None] * width + step).reshape(-1)
    return ((rows * width + cols)[..., None] + inside).reshape(-1)


def _scattered(
    estimates: Array,  # (g, k, size²)
    weights: Array,  # (g,)
    pixels: Array,  # (g·k·size²,)
    shape: tuple[int, ...],
) -> tuple[Array, Array]:
    """Weighted sums of all patches at their places, and of the weights."""
    xp = namespace(estimates)
    spread = xp.broadcast_to(weights[:, None, None], estimates.shape)
    n_pixels = shape[0] * shape[1]
    total = xp.bincount(pixels, (estimates * spread).reshape(-1), n_pixels)
    weight = xp.bincount(pixels, spread.reshape(-1), n_pixels)
    return total.reshape(shape), weight.reshape(shape)
