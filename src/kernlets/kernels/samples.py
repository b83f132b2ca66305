"""Samples of every kind that a kernel may take, in the one form that all code knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..backend.rows import spread_rows
from ..backend.samples import (
    as_bags,
    as_matrices,
    as_series,
    as_strings,
    as_type,
    listed,
    object_array,
)
from ..core import Array
from .graphs import Graph, as_graph


def as_graphs(X: Any) -> list[Graph]:
    """Graphs; see `graphs.as_graph` for the forms that they may have."""
    return [as_graph(sample, i) for i, sample in enumerate(X)]


PARSERS: dict[str, Callable[[Any], list[Any]]] = {
    "series": as_series,
    "bags": as_bags,
    "matrices": as_matrices,
    "strings": as_strings,
    "graphs": as_graphs,
}


def as_samples(kind: str, X: Any, like: Array | None = None) -> np.ndarray:  # (n,)
    """X as an array of samples of one kind, or an error that says what is wrong.

    Numbers get the type of `like`, an array of a fitted model, or stay float32 if all
    of them are.
    """
    found = PARSERS[kind](listed(kind, X))
    if like is not None and found and isinstance(found[0], np.ndarray):
        found = as_type(found, like.dtype)
    return object_array(found)


def spread_parts(samples: np.ndarray, m: int) -> np.ndarray:  # (at most m, p)
    """At most m vectors or steps, evenly taken from all bags or series, as float64."""
    ends = np.cumsum([len(sample) for sample in samples])
    places = spread_rows(int(ends[-1]), m)
    which = np.searchsorted(ends, places, side="right")
    offsets = places - ends[which]  # counted from the end of the sample
    chosen = [samples[i][j] for i, j in zip(which, offsets, strict=True)]
    return np.stack(chosen).astype(np.float64)
