"""Features of one image without some of its patches, or without one of the atoms.

They tell how much a patch or an atom adds to whatever is computed from the features.
"""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np

from ..contracts import Array
from ..numerics.arrays import empty, namespace, to_numpy
from ..numerics.pixels import average_scores, windows
from .patch_map import PatchDictionaryMap
from .pooling import GridPool

MAX_GROUPS = 256  # groups of neighbouring patches, which are left out together


class PatchGroups(NamedTuple):
    """Groups of neighbouring patches, and the features of the image without each."""

    features: Array  # (g, k)
    corners: list[tuple[int, int]]  # the first patch of each group, on the grid
    side: int  # patches of a group along each axis
    grid: tuple[int, int]  # patches of the image


def without_patches(patches: PatchDictionaryMap, row: Array) -> PatchGroups:  # (1, p)
    """Pool the codes of an image again and again, each time without a few patches."""
    image = patches._padded(row)[0]
    views = windows(image, patches._patch_shape)[:: patches.stride, :: patches.stride]
    a, b = grid = tuple(views.shape[:2])
    Z = patches.whitening_._features(views.reshape(a * b, -1))
    signs = [part.reshape(a, b, -1) for part in patches._code(Z)]
    side = ceil((a * b / MAX_GROUPS) ** 0.5)
    corners = [(i, j) for i in range(0, a, side) for j in range(0, b, side)]
    features = empty((len(corners), patches._n_features_out), like=row)
    xp = namespace(row)
    for number, (i, j) in enumerate(corners):
        rest = [xp.asarray(part, copy=True) for part in signs]
        for part in rest:
            part[i : i + side, j : j + side] = 0
        features[number] = _pool(patches, rest)
    return PatchGroups(features, corners, side, grid)


def _pool(patches: PatchDictionaryMap, signs: list[Array]) -> Array:  # (k,)
    """Pool codes (a, b, q) of all patches of an image over the grids of the map."""
    xp, cells = namespace(signs[0]), []
    for n_cells in patches._grids:
        pools = [GridPool(part.shape[:2], n_cells, patches.pooling) for part in signs]
        for pool, part in zip(pools, signs, strict=True):
            pool.add(0, part)
        cells.append(xp.concat([pool.pooled for pool in pools], axis=2).reshape(-1))
    return xp.concat(cells)


def without_atoms(patches: PatchDictionaryMap, features: Array) -> Array:
    """Return the features (1, k) without each atom, (m, k); of a map there are none."""
    dictionary = getattr(patches.patch_learner_, "dictionary_", None)
    n_atoms = 0 if dictionary is None else dictionary.n_atoms
    xp = namespace(features)
    rest = xp.asarray(
        xp.broadcast_to(features, (n_atoms, features.shape[1])), copy=True
    )
    for atom in range(n_atoms):
        rest[atom, atom::n_atoms] = 0  # in all cells, and with both signs
    return rest


def on_pixels(
    patches: PatchDictionaryMap, groups: PatchGroups, weights: Any
) -> np.ndarray:  # (h, w)
    """Return at each pixel the mean weight of its patches; (g,) are those of groups."""
    on_grid = np.zeros(groups.grid)
    for (i, j), weight in zip(groups.corners, to_numpy(weights), strict=True):
        on_grid[i : i + groups.side, j : j + groups.side] = weight
    height, width = (n + 2 * patches.padding for n in patches.image_shape_[:2])
    starts = [patches.stride * np.arange(n) for n in groups.grid]
    framed = average_scores(on_grid, starts, patches._patch_shape, (height, width))
    inside = slice(patches.padding, height - patches.padding)
    return framed[inside, patches.padding : width - patches.padding]
