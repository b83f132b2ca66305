"""Nearest neighbours by brute force, on whatever arrays the codes are.

scikit-learn's neighbours live in host memory; codes may be on a GPU.
"""

from __future__ import annotations

import numpy as np

from ..backend.arrays import empty, index_like, is_torch, namespace, row_norms
from ..backend.rows import map_rows
from ..core import Array


def count_votes(
    Q: Array,  # (n, k)
    points: Array,  # (N, k)
    labels: np.ndarray,  # (N,) whole numbers from 0
    n_neighbors: int,
) -> Array:  # (n, C)
    """How many of the points nearest to each row of Q have each label."""
    energy, place, n_classes = (
        row_norms(points),
        index_like(labels, Q),
        labels.max() + 1,
    )

    def block(rows: Array) -> Array:
        distances = rows @ points.T
        distances *= -2
        distances += energy  # the rest, ‖q‖², is the same for all points
        return _counts(place[smallest(distances, n_neighbors)], int(n_classes), rows)

    return map_rows(block, Q, 2 * points.shape[0] * Q.dtype.itemsize)


def smallest(values: Array, count: int) -> Array:  # (n, count)
    """Places of the `count` smallest values of each row, in no order."""
    if count == 1:
        return namespace(values).argmin(values, axis=1)[:, None]
    if is_torch(values):
        return values.topk(count, dim=1, largest=False, sorted=False).indices
    return np.argpartition(values, count - 1, axis=1)[:, :count]


def _counts(found: Array, n_classes: int, like: Array) -> Array:  # (n, k) -> (n, C)
    xp = namespace(like)
    votes = empty((found.shape[0], n_classes), like=like)
    for c in range(n_classes):
        votes[:, c] = xp.sum(xp.astype(found == c, like.dtype), axis=1)
    return votes
