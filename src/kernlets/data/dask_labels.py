"""Split the rows of a Dask array by class, and compute the accuracy of labels.

Labels may be on the cluster as well, or in memory here.
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
    """Return the distinct labels, (n_classes,), and the rows of each class."""
    source = origin_of(X) if origin_of(X).chunk_slices is None else Origin(X)
    labels = _cut_like_rows(source.X, y, label_values)
    if isinstance(labels, da.Array):
        label_counts = map_chunks(_count_labels, labels, [()] * len(labels.chunks[0]))
        chunk_labels = labels.to_delayed().tolist()
        choose_rows = delayed(_rows_with_label, pure=False)
    else:
        chunk_labels, choose_rows = labels, _rows_with_label
        label_counts = [
            _count_labels(labels_of_chunk, ()) for labels_of_chunk in chunk_labels
        ]
    classes = label_classes([values for values, _ in label_counts])
    chunks, row_shape = source.X.to_delayed().ravel().tolist(), source.X.shape[1:]
    take_from_chunk = delayed(operator.getitem, pure=False)

    def class_rows(label: Any) -> da.Array:
        shapes = [(counts.get(label, 0), *row_shape) for _, counts in label_counts]
        class_chunks = [
            da.from_delayed(
                take_from_chunk(chunk, choose_rows(labels_of_chunk, label)),
                shape,
                source.X.dtype,
            )
            for chunk, labels_of_chunk, shape in zip(
                chunks, chunk_labels, shapes, strict=True
            )
            if shape[0]
        ]
        like = np.empty((0, *X.shape[1:]), X.dtype)
        return apply_maps(Origin(da.concatenate(class_chunks), source.maps), like)

    return classes, [class_rows(label) for label in classes.tolist()]


def _count_labels(labels: np.ndarray, _: Any) -> tuple[np.ndarray, dict[Any, int]]:
    labels = label_values(labels)
    refuse_continuous(labels)
    values, counts = np.unique(labels, return_counts=True)
    return values, dict(zip(values.tolist(), counts.tolist(), strict=True))


def _rows_with_label(labels: np.ndarray, label: Any) -> np.ndarray:
    """Return the numbers of the rows with this label in a compact type to send."""
    return np.flatnonzero(labels == label).astype(np.uint32)


def weighted_accuracy(predicted: da.Array, y: Any, weights: Any = None) -> float:
    """Return the weighted share of rows whose predicted label is right."""
    labels = _align_with_rows(predicted, y, label_values)
    hits = da.map_blocks(_are_equal, predicted, labels, dtype=bool)
    if weights is None:
        return float(compute(hits.mean()))
    weights = _align_with_rows(predicted, weights, np.asarray)
    return float(compute((hits * weights).sum() / weights.sum()))


def _are_equal(predicted: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return predicted == label_values(labels)


def _align_with_rows(
    X: da.Array, values: Any, check: Callable[[Any], np.ndarray]
) -> da.Array:
    aligned = _cut_like_rows(X, values, check)
    if isinstance(aligned, da.Array):
        return aligned
    return da.from_array(np.concatenate(aligned), chunks=(X.chunks[0],))


def _cut_like_rows(
    X: da.Array, values: Any, check: Callable[[Any], np.ndarray]
) -> da.Array | list[np.ndarray]:
    """Cut labels or weights into the chunks of X; check those that are in memory here.

    Chunks on a cluster are checked when they are computed.
    """
    values = (
        with_known_lengths(values) if dask.is_dask_collection(values) else check(values)
    )
    if values.ndim == 2 and values.shape[1] == 1:
        column_or_1d(np.empty((1, 1)), warn=True)  # the same warning as for arrays
        values = values[:, 0]
    if values.shape != X.shape[:1]:
        raise ValueError(
            f"X has {X.shape[0]} samples but y has shape {values.shape}: give one "
            "label for each row"
        )
    if isinstance(values, da.Array):
        return values.rechunk((X.chunks[0],))
    return np.split(values, np.cumsum(X.chunks[0])[:-1])
