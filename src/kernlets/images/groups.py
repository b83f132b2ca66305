"""Search for groups of similar patches, and images averaged from estimates of them.

Similar patches are collected around each reference patch. `wiener.py` and `holes.py`
estimate the patches of a group.

The image is cut into tiles of reference patches. Tiles do not depend on the number of
threads, and their results are added in order, so that the image does not depend on it
either. Besides arrays of the size of the image, only a few tiles are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ..contracts import Array
from ..numerics.argsmallest import smallest
from ..numerics.arrays import as_like, empty, index_like, namespace
from ..numerics.pixels import on_gpu, window_starts, windows
from ..numerics.threads import parallel

TILE = 16  # reference patches along each side of a tile
GPU_TILE = 48  # the same on a GPU
WAVE = 32  # tiles whose results are in memory at the same time
FAR = 1e3  # value of padding pixels, far from pixels of about [0, 1]


@dataclass(frozen=True)
class Grouping:
    """Settings of the search for similar patches."""

    size: int = 7  # of a patch, in pixels
    n_similar: int = 60
    reach: int = 12  # largest distance of similar patches, in pixels
    stride: int = 3  # between reference patches


@dataclass(frozen=True)
class Tile:
    """Positions of reference patches: all pairs of a row and a column."""

    rows: np.ndarray  # (r,)
    cols: np.ndarray  # (c,)

    def covers(self, size: int) -> tuple[slice, slice]:
        """Slices with all pixels of the reference patches."""
        return self.around(size, 0, (np.inf, np.inf))

    def around(
        self, size: int, reach: int, shape: tuple[float, ...]
    ) -> tuple[slice, slice]:
        """Slices with all patches that can be similar, in an image of this shape."""
        down, across = (
            slice(
                max(0, int(starts[0]) - reach), int(min(n, starts[-1] + size + reach))
            )
            for starts, n in zip((self.rows, self.cols), shape, strict=True)
        )
        return down, across


#: Takes the patches of each group in each image, (g, k, p), and returns estimates of
#: all of them or of the most similar ones, with a weight for each group, (g,).
Estimate = Callable[..., tuple[Array, Array]]
Progress = Callable[[float], None]


def filter_groups(
    images: Sequence[Array],  # each (c, h, w)
    pilot: Array,  # (c, h, w)
    grouping: Grouping,
    estimate: Estimate,
    progress: Progress = lambda share: None,
    mask: np.ndarray | None = None,  # (h, w) booleans
) -> Array:  # (c, h, w)
    """The weighted mean, at each pixel, of all estimates of it.

    Similarity is measured in the first channel of the pilot. Tiles without a pixel of
    the mask are left out; pixels without an estimate stay as in the pilot.
    """
    xp = namespace(pilot)
    total, weight = xp.zeros_like(pilot), xp.zeros_like(pilot)
    tiles = [
        tile
        for tile in _tiles(pilot, grouping)
        if mask is None or mask[tile.covers(grouping.size)].any()
    ]

    def work(tile: Tile) -> tuple[tuple[slice, ...], Array, Array]:
        window = tile.around(grouping.size, grouping.reach, pilot.shape[1:])
        region = slice(None), *window
        local = Tile(tile.rows - window[0].start, tile.cols - window[1].start)
        regions = [image[region] for image in images]
        return region, *_filter_tile(regions, pilot[region], grouping, estimate, local)

    for first in range(0, len(tiles), WAVE):
        for region, sums, weights in parallel(work, tiles[first : first + WAVE]):
            total[region] += sums
            weight[region] += weights
        progress(min(1.0, (first + WAVE) / len(tiles)))
    has_estimate = weight > 0
    return xp.where(has_estimate, total / xp.where(has_estimate, weight, 1.0), pilot)


def _tiles(pilot: Array, grouping: Grouping) -> list[Tile]:  # (c, h, w)
    side = GPU_TILE if on_gpu(pilot) else TILE
    rows, cols = (
        window_starts(n - grouping.size, grouping.stride) for n in pilot.shape[1:]
    )
    return [
        Tile(rows[i : i + side], cols[j : j + side])
        for i in range(0, len(rows), side)
        for j in range(0, len(cols), side)
    ]


def _filter_tile(
    images: Sequence[Array],  # each (c, h, w)
    pilot: Array,  # (c, h, w)
    grouping: Grouping,
    estimate: Estimate,
    tile: Tile,
) -> tuple[Array, Array]:  # (c, h, w), (c, h, w)
    """Sums of the estimates around a tile, and of their weights."""
    size, stack = grouping.size, namespace(pilot).stack
    rows, cols = similar_patches(pilot[0], tile, grouping)
    sums, weights = [], []
    for channel in zip(*images, strict=True):
        groups = (gather_patches(image, rows, cols, size) for image in channel)
        patches, share = estimate(*groups)
        n = patches.shape[1]
        pixels = _pixels(rows[:, :n], cols[:, :n], size, pilot.shape[2])
        sums_and_weights = _sum_patches(patches, share, pixels, channel[0].shape)
        sums.append(sums_and_weights[0])
        weights.append(sums_and_weights[1])
    return stack(sums), stack(weights)


def similar_patches(
    pilot: Array,  # (h, w)
    tile: Tile,
    grouping: Grouping,
) -> tuple[Array, Array]:  # (g, k), (g, k)
    """Rows and columns of the patches most similar to each reference patch, itself
    first.

    Squared differences of the image and all its shifts are summed over patches by two
    products with matrices of zeros and ones.
    """
    size, reach = grouping.size, grouping.reach
    down, across = tile.covers(size)
    area = pilot[down, across]
    surroundings = _add_frame(pilot, reach)[
        down.start : down.stop + 2 * reach, across.start : across.stop + 2 * reach
    ]
    distances = (windows(surroundings, area.shape) - area) ** 2  # (a, b, h, w)
    pick_rows = as_like(_patch_indicators(tile.rows, size), area)
    pick_cols = as_like(_patch_indicators(tile.cols, size), area)
    sums = pick_rows @ distances @ pick_cols.T  # (a, b, r, c)
    # so that the reference is the first even among equal patches
    sums[reach, reach] = -1
    # the fewest patches are within reach of a patch in a corner
    offsets = [min(reach, n - size) + 1 for n in pilot.shape]
    return _nearest(sums, tile, reach, min(grouping.n_similar, prod(offsets)))


def _add_frame(image: Array, reach: int) -> Array:
    """Frame the image with values so large that no patch in the frame is similar."""
    height, width = image.shape
    frame = empty((height + 2 * reach, width + 2 * reach), like=image)
    frame[...] = FAR
    frame[reach : reach + height, reach : reach + width] = image
    return frame


def _patch_indicators(starts: np.ndarray, size: int) -> np.ndarray:  # (r, h)
    """Indicators of the pixels of each patch along one axis."""
    pixels = np.arange(starts[-1] - starts[0] + size) - (starts - starts[0])[:, None]
    return (pixels >= 0) & (pixels < size)


def _nearest(
    sums: Array,  # (a, b, r, c)
    tile: Tile,
    reach: int,
    count: int,
) -> tuple[Array, Array]:  # (g, count), (g, count)
    xp, n_cols = namespace(sums), sums.shape[1]
    flat = sums.reshape(sums.shape[0] * n_cols, -1).T  # (g, shifts)
    shifts = smallest(flat, count)
    order = xp.argsort(xp.take_along_axis(flat, shifts, axis=1), axis=1)
    shifts = xp.take_along_axis(shifts, order, axis=1)
    rows = index_like(np.repeat(tile.rows, len(tile.cols)), sums)[:, None]
    cols = index_like(np.tile(tile.cols, len(tile.rows)), sums)[:, None]
    return rows + shifts // n_cols - reach, cols + shifts % n_cols - reach


def gather_patches(image: Array, rows: Array, cols: Array, size: int) -> Array:
    """Patches as rows, (g, k, size²)."""
    return windows(image, (size, size))[rows, cols].reshape(*rows.shape, -1)


def _pixels(rows: Array, cols: Array, size: int, width: int) -> Array:  # (g·k·size²,)
    """Indices into the flat image of all pixels of all patches."""
    step = index_like(np.arange(size), rows)
    inside = (step[:, None] * width + step).reshape(-1)
    return ((rows * width + cols)[..., None] + inside).reshape(-1)


def _sum_patches(
    estimates: Array,  # (g, k, size²)
    weights: Array,  # (g,)
    pixels: Array,  # (g·k·size²,)
    shape: tuple[int, ...],
) -> tuple[Array, Array]:
    """Weighted sums at each pixel of all patches that cover it, and of the weights."""
    xp = namespace(estimates)
    pixel_weights = xp.broadcast_to(weights[:, None, None], estimates.shape)
    n_pixels = shape[0] * shape[1]
    total = xp.bincount(pixels, (estimates * pixel_weights).reshape(-1), n_pixels)
    weight = xp.bincount(pixels, pixel_weights.reshape(-1), n_pixels)
    return total.reshape(shape), weight.reshape(shape)
