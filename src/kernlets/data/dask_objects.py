"""Read samples that are not rows of numbers from Dask bags and arrays of objects.

The result is a one-dimensional Dask array whose chunks are read and checked on the
workers that compute them. The loops over rows accept it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import dask.array as da
import dask.bag as db
import numpy as np
from dask.delayed import delayed

from .dask_rows import with_known_lengths
from .dask_tasks import Origin, apply_maps, map_chunks, pack
from .samples import object_array

NO_OBJECTS = np.empty(0, dtype=object)


def as_objects(X: Any, parse: Callable[[Any], np.ndarray]) -> da.Array:  # (n,)
    """Convert a Dask collection to chunks of checked samples.

    The first sample is read at once, because functions of samples are tried on it to
    see which type their results have.
    """
    X = with_known_lengths(_from_bag(X) if isinstance(X, db.Bag) else X)
    if X.ndim > 1:
        X = X.rechunk(dict.fromkeys(range(1, X.ndim), -1))
    source = Origin(X, (pack(partial(_parse_chunk, parse)),))
    first_chunk = next((i for i, n in enumerate(X.chunks[0]) if n), None)
    if first_chunk is None:
        return apply_maps(source, NO_OBJECTS)
    chunk_arguments = [
        () if i == first_chunk else None for i in range(len(X.chunks[0]))
    ]
    (sample,) = map_chunks(
        _first_sample, apply_maps(source, NO_OBJECTS), chunk_arguments
    )
    return apply_maps(replace(source, sample=sample), NO_OBJECTS)


def _from_bag(X: db.Bag) -> da.Array:
    """Convert the partitions of a bag to chunks, whose lengths are not known."""
    chunks = [
        da.from_delayed(
            delayed(_as_objects_chunk)(partition), (np.nan,), meta=NO_OBJECTS
        )
        for partition in X.to_delayed()
    ]
    return da.concatenate(chunks, allow_unknown_chunksizes=True)


def _as_objects_chunk(partition: Any) -> np.ndarray:
    return object_array(list(partition))


def _parse_chunk(parse: Callable[[Any], np.ndarray], chunk: Any, _: Any) -> np.ndarray:
    try:
        return parse(chunk)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error} (samples of a partition count from 0)") from None


def _first_sample(chunk: np.ndarray, _: Any) -> np.ndarray:
    return chunk[:1]
