"""Labels of rows on a cluster: the rows of each class, and the share predicted right.

Labels may be on the cluster as well, or here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import delayed
from sklearn.utils.validation import column_or_1d

from .dask_rows import with_known_lengths
from .dask_tasks import Origin, apply_maps, compute, map_chunks, origin_of
from .labels import label_classes, label_values, refuse_continuous


def split_rows(X: da.Array, y: Any) -> tuple[np.ndarray, list[da.Array]]:
    """The labels that there are, (n_classes,), and the rows of each."""
    first = origin_of(X) if origin_of(X).chunk_slices is None else Origin(X)
    labels = _cut_like_rows(first.X, y, label_values)
    if isinstance(labels, da.Array):
        found = map_chunks(_count_labels, labels, [()] * len(labels.chunks[0]))
        own = labels.to_delayed().tolist()
        choose = delayed(_rows_with_label, pure=False)
    else:
        own, choose = labels, _rows_with_label
        found = [_count_labels(part, ()) for part in own]
    classes = label_classes([values for values, _ in found])
    chunks, width = first.X.to_delayed().ravel().tolist(), first.X.shape[1:]
    pick = delayed(operator.getitem, pure=False)

    def members(label: Any) -> da.Array:
        shapes = [(counts.get(label, 0), *width) for _, counts in found]
        parts = [
            da.from_delayed(pick(chunk, choose(mine, label)), shape, first.X.dtype)
            for chunk, mine, shape in zip(chunks, own, shapes, strict=True)
            if shape[0]
        ]
        like = np.empty((0, *X.shape[1:]), X.dtype)
        return apply_maps(Origin(da.concatenate(parts), first.maps), like)

    return classes, [members(label) for label in classes.tolist()]


def _count_labels(labels: np.ndarray, _: Any) -> tuple[np.ndarray, dict[Any, int]]:
    labels = label_values(labels)
    refuse_continuous(labels)
    values, counts = np.unique(labels, return_counts=True)
    return values, dict(zip(values.tolist(), counts.tolist(), strict=True))


def _rows_with_label(labels: np.ndarray, label: Any) -> np.ndarray:
    """Rows with this label; if the client has the labels, this is what is sent."""
    return np.flatnonzero(labels == label).astype(np.uint32)


def share_equal(found: da.Array, y: Any, weights: Any = None) -> float:
    """Weighted share of rows with the label that was found."""
    labels = _on_cluster(found, y, label_values)
    hits = da.map_blocks(_are_equal, found, labels, dtype=bool)
    if weights is None:
        return float(compute(hits.mean()))
    weights = _on_cluster(found, weights, np.asarray)
    return float(compute((hits * weights).sum() / weights.sum()))


def _are_equal(found: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return found == label_values(labels)


def _on_cluster(X: da.Array, y: Any, check: Callable[[Any], np.ndarray]) -> da.Array:
    parts = _cut_like_rows(X, y, check)
    if isinstance(parts, da.Array):
        return parts
    return da.from_array(np.concatenate(parts), chunks=(X.chunks[0],))


def _cut_like_rows(
    X: da.Array, y: Any, check: Callable[[Any], np.ndarray]
) -> da.Array | list[np.ndarray]:
    """What belongs to rows, cut as the rows are, where it is: checked if that is here.

    Chunks elsewhere are checked when they are made.
    """
    y = with_known_lengths(y) if dask.is_dask_collection(y) else check(y)
    if y.ndim == 2 and y.shape[1] == 1:
        column_or_1d(np.empty((1, 1)), warn=True)  # the same warning as for arrays
        y = y[:, 0]
    if y.shape != X.shape[:1]:
        raise ValueError(
            f"X has {X.shape[0]} samples but y has shape {y.shape}: give one label for "
            "each row"
        )
    if isinstance(y, da.Array):
        return y.rechunk((X.chunks[0],))
    return np.split(y, np.cumsum(X.chunks[0])[:-1])
