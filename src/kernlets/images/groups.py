"""Groups of similar patches: where they are, and images put together from them.

Patches that look alike are collected around each reference patch. What is done with
a group is in `wiener.py` and `holes.py`.

The image is cut into tiles of reference patches. Tiles do not depend on the number of
threads, and their results are added in order: neither does the image. Nothing but the
image itself, and sums and weights of its size, is larger than a few tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ..backend.arrays import as_like, empty, index_like, namespace
from ..backend.pixels import on_gpu, places, windows
from ..backend.smallest import smallest
from ..backend.threads import parallel
from ..core import Array

TILE = 16  # reference patches along each side of a tile
GPU_TILE = 48  # the same on a GPU
WAVE = 32  # tiles whose results are held at the same time
FAR = 1e3  # from pixels in [0, 1] or so


@dataclass(frozen=True)
class Grouping:
    """Which patches are looked at together."""

    size: int = 7  # of a patch, in pixels
    n_similar: int = 60
    reach: int = 12  # how far away from the reference similar patches are looked for
    stride: int = 3  # between reference patches


@dataclass(frozen=True)
class Tile:
    """Places of reference patches: all pairs of a row and a column."""

    rows: np.ndarray  # (r,)
    cols: np.ndarray  # (c,)

    def covers(self, size: int) -> tuple[slice, slice]:
        """All pixels of the reference patches."""
        return self.around(size, 0, (np.inf, np.inf))

    def around(
        self, size: int, reach: int, shape: tuple[float, ...]
    ) -> tuple[slice, slice]:
        """The pixels of all patches that can be similar, in an image of this shape."""
        down, across = (
            slice(max(0, int(at[0]) - reach), int(min(n, at[-1] + size + reach)))
            for at, n in zip((self.rows, self.cols), shape, strict=True)
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
    wanted: np.ndarray | None = None,  # (h, w) booleans
) -> Array:  # (c, h, w)
    """The weighted mean, at each pixel, of all estimates of it.

    Patches are similar if they are so in the first channel of the pilot. Tiles without
    a wanted pixel are left out; pixels that no estimate reaches stay as in the pilot.
    """
    xp = namespace(pilot)
    total, weight = xp.zeros_like(pilot), xp.zeros_like(pilot)
    tiles = [
        tile
        for tile in _tiles(pilot, grouping)
        if wanted is None or wanted[tile.covers(grouping.size)].any()
    ]

    def work(tile: Tile) -> tuple[tuple[slice, ...], Array, Array]:
        near = tile.around(grouping.size, grouping.reach, pilot.shape[1:])
        region = slice(None), *near
        local = Tile(tile.rows - near[0].start, tile.cols - near[1].start)
        parts = [image[region] for image in images]
        return region, *_filtered_tile(parts, pilot[region], grouping, estimate, local)

    for first in range(0, len(tiles), WAVE):
        for region, part, share in parallel(work, tiles[first : first + WAVE]):
            total[region] += part
            weight[region] += share
        progress(min(1.0, (first + WAVE) / len(tiles)))
    reached = weight > 0
    return xp.where(reached, total / xp.where(reached, weight, 1.0), pilot)


def _tiles(pilot: Array, grouping: Grouping) -> list[Tile]:  # (c, h, w)
    side = GPU_TILE if on_gpu(pilot) else TILE
    rows, cols = (places(n - grouping.size, grouping.stride) for n in pilot.shape[1:])
    return [
        Tile(rows[i : i + side], cols[j : j + side])
        for i in range(0, len(rows), side)
        for j in range(0, len(cols), side)
    ]


def _filtered_tile(
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
        groups = (gathered(image, rows, cols, size) for image in channel)
        patches, share = estimate(*groups)
        n = patches.shape[1]
        pixels = _pixels(rows[:, :n], cols[:, :n], size, pilot.shape[2])
        found = _scattered(patches, share, pixels, channel[0].shape)
        sums.append(found[0])
        weights.append(found[1])
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
    own = pilot[down, across]
    near = _framed(pilot, reach)[
        down.start : down.stop + 2 * reach, across.start : across.stop + 2 * reach
    ]
    distances = (windows(near, own.shape) - own) ** 2  # (a, b, h, w)
    pick_rows = as_like(_picks(tile.rows, size), own)
    pick_cols = as_like(_picks(tile.cols, size), own)
    sums = pick_rows @ distances @ pick_cols.T  # (a, b, r, c)
    sums[reach, reach] = -1  # others may be equal to it
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
    tile: Tile,
    reach: int,
    count: int,
) -> tuple[Array, Array]:  # (g, count), (g, count)
    xp, n_cols = namespace(sums), sums.shape[1]
    flat = sums.reshape(sums.shape[0] * n_cols, -1).T  # (g, shifts)
    chosen = smallest(flat, count)
    order = xp.argsort(xp.take_along_axis(flat, chosen, axis=1), axis=1)
    chosen = xp.take_along_axis(chosen, order, axis=1)
    rows = index_like(np.repeat(tile.rows, len(tile.cols)), sums)[:, None]
    cols = index_like(np.tile(tile.cols, len(tile.rows)), sums)[:, None]
    return rows + chosen // n_cols - reach, cols + chosen % n_cols - reach


def gathered(image: Array, rows: Array, cols: Array, size: int) -> Array:
    """Patches as rows, (g, k, size²)."""
    return windows(image, (size, size))[rows, cols].reshape(*rows.shape, -1)


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
