"""Convert samples of every kind that a kernel may take to one form of each kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..contracts import Array
from ..data.rows import evenly_spaced_rows
from ..data.samples import (
    as_bags,
    as_matrices,
    as_sample_list,
    as_series,
    as_strings,
    convert_samples,
    object_array,
)
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
    """Convert X to an array of samples of one kind; raise if a sample is not valid.

    Numbers get the type of `like`, an array of a fitted model, or stay float32 if all
    of them are.
    """
    parsed = PARSERS[kind](as_sample_list(kind, X))
    if like is not None and parsed and isinstance(parsed[0], np.ndarray):
        parsed = convert_samples(parsed, like.dtype)
    return object_array(parsed)


def spread_parts(samples: np.ndarray, m: int) -> np.ndarray:  # (at most m, p)
    """At most m vectors or steps, evenly taken from all bags or series, as float64."""
    ends = np.cumsum([len(sample) for sample in samples])
    positions = evenly_spaced_rows(int(ends[-1]), m)
    sample_numbers = np.searchsorted(ends, positions, side="right")
    offsets = positions - ends[sample_numbers]  # counted from the end of the sample
    pairs = zip(sample_numbers, offsets, strict=True)
    return np.stack([samples[i][j] for i, j in pairs]).astype(np.float64)
