"""Nearest neighbours by brute force, on NumPy arrays and torch tensors.

scikit-learn's neighbours need host memory, but codes may be on a GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..contracts import Array
from ..data.rows import map_rows
from ..numerics.argsmallest import smallest
from ..numerics.arrays import empty, index_like, namespace, row_norms
from ..numerics.scaling import peaks, power_of_two


def count_votes(
    Q: Any,  # (n, k)
    points: Array,  # (N, k)
    labels: np.ndarray,  # (N,) integers from 0
    n_neighbors: int,
) -> Array:  # (n, C)
    """Count the labels among the nearest points of each row of Q."""
    xp, point_labels = namespace(points), index_like(labels, points)
    n_classes = int(labels.max()) + 1
    factors = xp.concat([points * -2, row_norms(points)[:, None]], axis=1).T

    def votes_of_block(rows: Array) -> Array:
        # One product gives (‖z‖² − 2qᵀz) / scale. ‖q‖² is omitted because it is equal
        # for all points. The scale avoids overflow and does not change the order.
        scale = power_of_two(xp.clip(peaks(rows, axis=1), 1.0, None))
        distances = xp.concat([rows / scale, 1 / scale], axis=1) @ factors
        return _count_labels(
            point_labels[smallest(distances, n_neighbors)], n_classes, rows
        )

    return map_rows(votes_of_block, Q, 2 * points.shape[0] * Q.dtype.itemsize)


def _count_labels(
    neighbor_labels: Array, n_classes: int, like: Array
) -> Array:  # (n, k) -> (n, C)
    xp = namespace(like)
    votes = empty((neighbor_labels.shape[0], n_classes), like=like)
    for c in range(n_classes):
        votes[:, c] = xp.sum(xp.astype(neighbor_labels == c, like.dtype), axis=1)
    return votes
