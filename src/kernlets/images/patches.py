"""Patches of an image: atoms to code them over, and images averaged from patches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..contracts import Array
from ..numerics.arrays import index_like, namespace
from ..numerics.pixels import window_starts, windows
from ..numerics.scaling import unit_rows

PATH = Path(__file__).with_name("atoms.npy")  # `benchmarks/patch_atoms.py` learns them
SIZE = 8  # pixels along a side of a patch of the bundled atoms
BAND = 32_768  # patches that are estimated at once


def bundled_atoms() -> np.ndarray:  # (256, 64)
    """Return atoms learned on eight photographs, without mean, of unit norm."""
    atoms = np.load(PATH).astype(np.float64)
    return unit_rows(atoms - atoms.mean(axis=1, keepdims=True))


def cosine_atoms(size: int, count: int) -> np.ndarray:  # (count, size²)
    """Return products of cosines of growing frequency, without mean, of unit norm."""
    per_axis = int(np.ceil(np.sqrt(count + 1)))
    frequencies = np.arange(per_axis) * np.pi / per_axis
    waves = np.cos((np.arange(size) + 0.5) * frequencies[:, None])
    waves[1:] -= waves[1:].mean(axis=1, keepdims=True)
    atoms = np.kron(waves, waves)
    order = np.add.outer(np.arange(per_axis), np.arange(per_axis)).ravel()
    atoms = atoms[np.argsort(order, kind="stable")][1 : count + 1]
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


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
