"""Nearest neighbours by brute force, on NumPy arrays and torch tensors.

scikit-learn's neighbours need host memory, but codes may be on a GPU.
"""

from __future__ import annotations

import numpy as np

from ..backend.arrays import empty, index_like, is_torch, namespace, row_norms
from ..backend.rows import map_rows
from ..core import Array


def count_votes(
    Q: Array,  # (n, k)
    points: Array,  # (N, k)
    labels: np.ndarray,  # (N,) integers from 0
    n_neighbors: int,
) -> Array:  # (n, C)
    """For each row of Q, the number of nearest points with each label."""
    xp, place = namespace(Q), index_like(labels, Q)
    n_classes = int(labels.max()) + 1
    wide = xp.concat([points * -2, row_norms(points)[:, None]], axis=1).T

    def block(rows: Array) -> Array:
        ones = xp.ones_like(rows[:, :1])
        # ‖z‖² − 2qᵀz in one product; ‖q‖² is the same for all points and left out
        distances = xp.concat([rows, ones], axis=1) @ wide
        return _counts(place[smallest(distances, n_neighbors)], n_classes, rows)

    return map_rows(block, Q, 2 * points.shape[0] * Q.dtype.itemsize)


def _counts(found: Array, n_classes: int, like: Array) -> Array:  # (n, k) -> (n, C)
    xp = namespace(like)
    votes = empty((found.shape[0], n_classes), like=like)
    for c in range(n_classes):
        votes[:, c] = xp.sum(xp.astype(found == c, like.dtype), axis=1)
    return votes


def smallest(values: Array, count: int) -> Array:  # (n, count)
    """Indices of the `count` smallest values of each row, in no particular order."""
    if count == 1:
        return values.argmin(axis=1)[:, None]
    if is_torch(values):
        return values.topk(count, dim=1, largest=False, sorted=False).indices
    n, n_values = values.shape
    n_groups = int((n_values * count) ** 0.5)
    depth = n_values // n_groups
    if depth < 8:
        return np.argpartition(values, count - 1, axis=1)[:, :count]
    # The smallest are in the groups (columns j, j + n_groups, ...) with the smallest
    # minima, or in the last columns outside all groups. This takes a tenth of the time.
    groups = values[:, : depth * n_groups].reshape(n, depth, n_groups)
    best = np.argpartition(groups.min(axis=1), count - 1, axis=1)[:, :count]
    inside = best[:, :, None] + n_groups * np.arange(depth)
    rest = np.arange(depth * n_groups, n_values)
    places = np.hstack([inside.reshape(n, -1), np.tile(rest, (n, 1))])
    order = smallest(np.take_along_axis(values, places, axis=1), count)
    return np.take_along_axis(places, order, axis=1)
