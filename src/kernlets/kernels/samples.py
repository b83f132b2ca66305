"""Samples of every kind that a kernel may take, in the one form that all code knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..backend.samples import (
    as_bags,
    as_matrices,
    as_series,
    as_strings,
    object_array,
    on_host,
)
from ..backend.validation import refuse_cluster
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
    refuse_cluster(
        X,
        f"X is a Dask collection, but a kernel of {kind} takes samples in memory: "
        "pass X.compute(), or transform its parts with a fitted NystroemMap",
    )
    if isinstance(X, (str, bytes, dict)) or not isinstance(X, Iterable):
        raise TypeError(
            f"X is a {type(X).__name__}, but a kernel of {kind} takes a list or an "
            "array with one entry for each sample"
        )
    found = PARSERS[kind](on_host(X))
    if like is not None and found and isinstance(found[0], np.ndarray):
        found = [sample.astype(like.dtype, copy=False) for sample in found]
    return object_array(found)
