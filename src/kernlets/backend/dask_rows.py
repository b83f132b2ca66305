"""Rows on a cluster: the two loops of `rows.py` for Dask arrays and dataframes.

Each chunk of rows is worked on as an array in memory is, block by block. How the work
reaches the chunks is in `dask_tasks.py`; these are the only files that import Dask.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import delayed
from dask.sizeof import sizeof
from sklearn.utils.validation import column_or_1d

from ..core import Array, Statistics
from .arrays import as_float, stored_dtype, working_dtype
from .dask_tasks import (
    Origin,
    await_workers,
    computed,
    each_chunk,
    kept,
    mapped,
    origin,
    packed,
    part_of,
    sum_chunks,
)
from .labels import label_classes, label_values, refuse_continuous
from .lloyd import Clusters
from .rows import map_rows as map_local
from .rows import sum_rows as sum_local
from .stored import refuse_infinite, tell_rows

__all__ = [
    "as_rows",
    "computed",
    "each_chunk",
    "kept",
    "map_rows",
    "part_of",
    "share_equal",
    "split_rows",
    "sum_rows",
    "take_rows",
    "with_gaps",
]


@sizeof.register(Clusters)
@sizeof.register(Statistics)
def _size(sums: Any) -> int:
    """Bytes of all fields, by which Dask plans what travels and what is spilled."""
    return sum(sizeof(getattr(sums, field.name)) for field in fields(sums))


def as_rows(X: Any, dtype: Any = None) -> da.Array:
    """A Dask array or dataframe as chunks of whole rows whose lengths are known.

    Chunks are converted to `dtype`, or to that in which such rows are computed, where
    they are made.
    """
    stored = stored_dtype(X)
    if stored is not None and not isinstance(X, da.Array):
        # at once: pandas makes objects of columns of different kinds
        X = X.astype(working_dtype(stored))
    X = _with_lengths(X)
    computed = working_dtype(X.dtype)  # refuses what is not a number
    computed = computed if dtype is None else dtype
    if X.ndim == 2 and len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    return X if X.dtype == computed else X.astype(computed)


class Holed(np.ndarray):
    """A chunk whose NaN mean unknown; those of all others are refused."""


def with_gaps(X: da.Array) -> da.Array:
    """X with chunks in which NaN means unknown, marked where they are worked on."""
    first = origin(X)
    job = packed(_holed)
    like = np.empty((0, *X.shape[1:]), X.dtype)
    return mapped(replace(first, maps=(*first.maps, job)), like)


def _holed(chunk: np.ndarray, _: Any) -> np.ndarray:
    return np.asarray(chunk).view(Holed)


def _check(chunk: np.ndarray, rows: slice | None = None) -> None:
    refuse_infinite(chunk, rows, isinstance(chunk, Holed))


def _with_lengths(X: Any) -> da.Array:
    if not isinstance(X, da.Array):
        with warnings.catch_warnings():  # text becomes objects, as it should
            warnings.filterwarnings("ignore", "Dask currently has limited support")
            X = X.to_dask_array()
    if any(np.isnan(length) for length in X.chunks[0]):
        await_workers()  # what follows would wait for the first one for ever
        X = X.copy()  # lengths are noted in place
        X.compute_chunk_sizes()
    return X


def map_rows(f: Callable[[Array], Array], X: da.Array, row_bytes: int) -> da.Array:
    """f over the chunks, as another Dask array: nothing is computed here."""
    like = f(as_float(np.ones((1, X.shape[1]), X.dtype)))
    job = packed(partial(_map_chunk, f, row_bytes))
    first = origin(X)
    return mapped(replace(first, maps=(*first.maps, job)), like)


def _map_chunk(
    f: Callable[[Array], Array], row_bytes: int, chunk: np.ndarray, _: Any
) -> Array:
    _check(chunk)
    return map_local(f, chunk, row_bytes)


def sum_rows(
    f: Callable[..., Any], X: da.Array, row_bytes: int, numbered: bool = False
) -> Any:
    """Σ f(block) over all rows: chunk by chunk on the workers, then as a tree."""
    ends = np.cumsum(X.chunks[0]).tolist()
    spans = [
        (end - n, end) if n else None
        for end, n in zip(ends, X.chunks[0], strict=True)
    ]
    total = sum_chunks(partial(_sum_chunk, f, row_bytes, numbered), X, spans)
    tell_rows(X.shape[0])
    return total


def _sum_chunk(
    f: Callable[..., Any],
    row_bytes: int,
    numbered: bool,
    chunk: np.ndarray,
    span: tuple[int, int],
) -> Any:
    _check(chunk, slice(*span))

    def shifted(block: Array, number: int) -> Any:
        return f(block, span[0] + number)

    return sum_local(shifted if numbered else f, chunk, row_bytes, numbered)


def take_rows(X: da.Array, rows: np.ndarray) -> np.ndarray:
    """The rows with these numbers, gathered in the order asked for."""
    rows = np.asarray(rows)
    order = np.argsort(rows, kind="stable")
    ends = np.cumsum(X.chunks[0])
    cuts = np.searchsorted(rows[order], ends)
    parts = np.split(order, cuts[:-1])
    wanted = [
        rows[part] - (end - n) if len(part) else None
        for part, end, n in zip(parts, ends, X.chunks[0], strict=True)
    ]
    found = each_chunk(_take_from_chunk, X, wanted)
    taken = np.concatenate(found) if found else np.empty((0, X.shape[1]))
    gathered = np.empty_like(taken)
    gathered[order] = taken
    return gathered


def _take_from_chunk(chunk: np.ndarray, rows: np.ndarray) -> np.ndarray:
    _check(chunk)
    return as_float(chunk[rows])


def split_rows(X: da.Array, y: Any) -> tuple[np.ndarray, list[da.Array]]:
    """The labels that there are, (n_classes,), and the rows of each."""
    first = origin(X) if origin(X).parts is None else Origin(X)
    labels = _cut_as(first.X, y, label_values)
    if isinstance(labels, da.Array):
        found = each_chunk(_count_labels, labels, [()] * len(labels.chunks[0]))
        own = labels.to_delayed().tolist()
        choose = delayed(_places, pure=False)
    else:
        own, choose = labels, _places
        found = [_count_labels(part, ()) for part in own]
    classes = label_classes([values for values, _ in found])
    chunks, width = first.X.to_delayed().ravel().tolist(), first.X.shape[1]
    pick = delayed(operator.getitem, pure=False)

    def members(label: Any) -> da.Array:
        shapes = [(counts.get(label, 0), width) for _, counts in found]
        parts = [
            da.from_delayed(pick(chunk, choose(mine, label)), shape, first.X.dtype)
            for chunk, mine, shape in zip(chunks, own, shapes, strict=True)
            if shape[0]
        ]
        like = np.empty((0, *X.shape[1:]), X.dtype)
        return mapped(Origin(da.concatenate(parts), first.maps), like)

    return classes, [members(label) for label in classes.tolist()]


def _count_labels(labels: np.ndarray, _: Any) -> tuple[np.ndarray, dict[Any, int]]:
    labels = label_values(labels)
    refuse_continuous(labels)
    values, counts = np.unique(labels, return_counts=True)
    return values, dict(zip(values.tolist(), counts.tolist(), strict=True))


def _places(labels: np.ndarray, label: Any) -> np.ndarray:
    """Rows with this label; if the client has the labels, this is what is sent."""
    return np.flatnonzero(labels == label).astype(np.uint32)


def share_equal(found: da.Array, y: Any, weights: Any = None) -> float:
    """Weighted share of rows with the label that was found."""
    labels = _on_cluster(found, y, label_values)
    hits = da.map_blocks(_are_equal, found, labels, dtype=bool)
    if weights is None:
        return float(computed(hits.mean()))
    weights = _on_cluster(found, weights, np.asarray)
    return float(computed((hits * weights).sum() / weights.sum()))


def _are_equal(found: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return found == label_values(labels)


def _on_cluster(X: da.Array, y: Any, check: Callable[[Any], np.ndarray]) -> da.Array:
    parts = _cut_as(X, y, check)
    if isinstance(parts, da.Array):
        return parts
    return da.from_array(np.concatenate(parts), chunks=(X.chunks[0],))


def _cut_as(
    X: da.Array, y: Any, check: Callable[[Any], np.ndarray]
) -> da.Array | list[np.ndarray]:
    """What belongs to rows, cut as the rows are, where it is: checked if that is here.

    Chunks elsewhere are checked when they are made.
    """
    y = _with_lengths(y) if dask.is_dask_collection(y) else check(y)
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
