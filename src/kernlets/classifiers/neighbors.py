"""Nearest neighbours by brute force, on NumPy arrays and torch tensors.

scikit-learn's neighbours need host memory, but codes may be on a GPU.
"""

from __future__ import annotations

import numpy as np

from ..backend.arrays import empty, index_like, namespace, row_norms
from ..backend.rows import map_rows
from ..backend.smallest import smallest
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
