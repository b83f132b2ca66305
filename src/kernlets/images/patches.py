"""Images averaged from estimates of their patches, single or in groups of similar ones.

`filter_patches` estimates patches one by one, `filter_groups` those of a group
together: similar patches are collected around each reference patch, and `wiener.py`
and `inpainting.py` estimate them.

For groups the image is cut into tiles of reference patches. Tiles do not depend on the
number of threads, and their results are added in order, so that the image does not
depend on it either. Besides arrays of the size of the image, only a few tiles are in
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt, prod

import numpy as np

from ..contracts import Array
from ..numerics.arrays import as_like, empty, index_like, namespace, smallest
from ..numerics.pixels import on_gpu, window_starts, windows
from ..numerics.threads import parallel

BAND = 32_768  # single patches that are estimated at once
TILE = 16  # reference patches along each side of a tile
GPU_TILE = 48  # the same on a GPU
WAVE = 32  # tiles whose results are in memory at the same time
FAR = 1e3  # value of padding pixels, far from pixels of about [0, 1]


def filter_patches(
    image: Array,  # (h, w)
    size: int,
    stride: int,
    estimate: Callable[[Array], tuple[Array, Array]],
    progress: Callable[[float], None],
) -> Array:  # (h, w)
    """Return the weighted mean, at each pixel, of all patches that `estimate` returns.

    `estimate` takes rows, (n, size²), and returns as many, with weights, (n,).
    """
    xp = namespace(image)
    total, total_weight = xp.zeros_like(image), xp.zeros_like(image)
    view = windows(image, (size, size))
    all_rows, all_cols = (window_starts(n - 1, stride) for n in view.shape[:2])
    cols, n_rows = index_like(all_cols, image), max(1, BAND // len(all_cols))
    for first in range(0, len(all_rows), n_rows):
        band = all_rows[first : first + n_rows]
        rows = index_like(band, image)[:, None]
        estimates, weights = estimate(view[rows, cols].reshape(-1, size * size))
        weights = weights.reshape(-1, len(cols))
        patches = estimates.reshape(*weights.shape, size, size)
        patches = patches * weights[:, :, None, None]
        for down, across in np.ndindex(size, size):
            # One pixel of all patches at a time, because its indices are distinct
            total[rows + down, cols + across] += patches[:, :, down, across]
            total_weight[rows + down, cols + across] += weights
        progress((band[-1] + 1) / view.shape[0])
    return total / total_weight


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
        """Return slices with all pixels of the reference patches."""
        return self.around(size, 0, (np.inf, np.inf))

    def around(
        self, size: int, reach: int, shape: tuple[float, ...]
    ) -> tuple[slice, slice]:
        """Return slices with all patches that can be similar, in an image."""

        def span(starts: np.ndarray, n: float) -> slice:
            last = min(n, starts[-1] + size + reach)
            return slice(max(0, int(starts[0]) - reach), int(last))

        return span(self.rows, shape[0]), span(self.cols, shape[1])


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
    """Return the weighted mean, at each pixel, of all estimates of it.

    Similarity is measured in the first channel of the pilot. Tiles without a pixel of
    the mask are left out; pixels without an estimate stay as in the pilot.
    """
    xp, size = namespace(pilot), grouping.size
    total, weight = xp.zeros_like(pilot), xp.zeros_like(pilot)
    tiles = _tiles(pilot, grouping)
    if mask is not None:
        tiles = [tile for tile in tiles if mask[tile.covers(size)].any()]

    def work(tile: Tile) -> tuple[tuple[slice, ...], Array, Array]:
        window = tile.around(size, grouping.reach, pilot.shape[1:])
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
    """Return sums of the estimates around a tile, and of their weights."""
    size, xp = grouping.size, namespace(pilot)
    rows, cols = similar_patches(pilot[0], tile, grouping)
    sums, weights = [], []
    for channel in zip(*images, strict=True):
        views = (windows(image, (size, size)) for image in channel)
        groups = (view[rows, cols].reshape(*rows.shape, -1) for view in views)
        patches, group_weights = estimate(*groups)
        n = patches.shape[1]
        sum_and_weight = _sum_patches(
            patches, group_weights, rows[:, :n], cols[:, :n], channel[0].shape
        )
        sums.append(sum_and_weight[0])
        weights.append(sum_and_weight[1])
    return xp.stack(sums), xp.stack(weights)


def similar_patches(
    pilot: Array,  # (h, w)
    tile: Tile,
    grouping: Grouping,
) -> tuple[Array, Array]:  # (g, k), (g, k)
    """Return rows and columns of the patches most similar to each reference patch.

    The first is the reference patch itself.

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
    """Return indicators of the pixels of each patch along one axis."""
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


def _sum_patches(
    patches: Array,  # (g, k, size²)
    weights: Array,  # (g,)
    rows: Array,  # (g, k)
    cols: Array,  # (g, k)
    shape: tuple[int, ...],
) -> tuple[Array, Array]:
    """Sum all weighted patches that cover each pixel, and their weights."""
    xp, (height, width) = namespace(patches), shape
    step = index_like(np.arange(isqrt(patches.shape[2])), rows)
    inside = (step[:, None] * width + step).reshape(-1)
    pixels = ((rows * width + cols)[..., None] + inside).reshape(-1)
    pixel_weights = xp.broadcast_to(weights[:, None, None], patches.shape)
    values = (patches * pixel_weights).reshape(-1)
    total = xp.bincount(pixels, values, height * width)
    weight = xp.bincount(pixels, pixel_weights.reshape(-1), height * width)
    return total.reshape(shape), weight.reshape(shape)
