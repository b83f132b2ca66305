"""Compute chunks on the workers of a cluster, apply functions to them, cache them.

`dask_tasks.py` decides which chunks and functions go to which worker.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import cloudpickle
import dask
import numpy as np

from ..config import options
from ..numerics.scaling import quiet
from .limits import at_work

SENT_OPTIONS = ("memory", "device_memory", "block_rows", "loops", "device")
CACHE_SHARE = 3  # a worker caches chunks up to 1/3 of its memory


class Packed:
    """A serialized function with its model, or a serialized recipe of a chunk.

    Dask takes it for small, so that tasks are sent to the rows and not to the model.
    """

    def __init__(self, value: Any) -> None:
        self.data = cloudpickle.dumps(value)

    def __sizeof__(self) -> int:
        return 64

    def load(self) -> Any:
        return pickle.loads(self.data)


@dataclass(frozen=True)
class WithOptions:
    """A function that runs with the options of the client."""

    f: Callable[..., Any]
    option_values: dict[str, Any]

    def __call__(self, *args: Any) -> Any:
        """Run f on one thread, because Dask runs one task on each core."""
        with options.here(n_threads=1, **self.option_values), at_work():
            return self.f(*args)


def _unchanged(rows: Any, _: Any) -> Any:
    return rows


UNCHANGED = Packed(_unchanged)


def pack(f: Callable[..., Any]) -> Packed:
    """Serialize f and the current options."""
    return Packed(
        WithOptions(f, {name: getattr(options, name) for name in SENT_OPTIONS})
    )


def add_all(terms: list[Any]) -> Any:
    with quiet():  # callers check sums for overflow
        return reduce(add, terms)


def identity(value: Any) -> Any:
    return value


def apply_jobs(
    chunk: Packed | np.ndarray,
    jobs: list[Packed],
    extra: Any,
    rows: slice,
    cache_key: tuple[str, int] | None = None,
) -> Any:
    """Apply all jobs to a chunk, the last one only to `rows` of it.

    With a `cache_key`, the chunk after all jobs but the last one is cached.
    """
    mapped = None if cache_key is None else _CACHE.get(cache_key)
    if mapped is None:
        mapped = dask.get(*chunk.load()) if isinstance(chunk, Packed) else chunk
        is_partial = (rows.start, rows.stop) != (0, len(mapped))
        if cache_key is None:
            mapped, rows = mapped[rows], slice(None)  # no later call needs other rows
        for job in jobs[:-1]:
            mapped = job.load()(mapped, ())
        if cache_key is not None:
            _CACHE.put(cache_key, mapped, is_sequential=is_partial)
    return jobs[-1].load()(mapped[rows], extra)


def map_chunk(jobs: list[Packed], chunk: Any, rows: slice) -> Any:
    return apply_jobs(chunk, [*jobs, UNCHANGED], (), rows)


class WorkerCache:
    """Chunks by key, (token, number of the chunk), in part of the worker's memory."""

    def __init__(self) -> None:
        self._chunks_by_key: dict[tuple[str, int], np.ndarray] = {}
        self._lock = threading.Lock()

    def get(self, key: tuple[str, int]) -> np.ndarray | None:
        return self._chunks_by_key.get(key)

    def put(self, key: tuple[str, int], chunk: np.ndarray, is_sequential: bool) -> None:
        """Store a chunk if there is enough memory for it.

        If chunks are read piece by piece in order, the oldest ones are dropped for it.
        In passes over whole chunks they are not, because they are needed next.
        """
        free_bytes = _worker_memory() // CACHE_SHARE - chunk.nbytes
        with self._lock:
            for old_key in (
                list(self._chunks_by_key) if is_sequential and free_bytes >= 0 else ()
            ):
                if self._n_bytes() > free_bytes:
                    del self._chunks_by_key[old_key]
            if self._n_bytes() <= free_bytes:
                self._chunks_by_key[key] = chunk

    def _n_bytes(self) -> int:
        return sum(chunk.nbytes for chunk in self._chunks_by_key.values())

    def forget(self, token: str) -> None:
        with self._lock:
            for key in [key for key in self._chunks_by_key if key[0] == token]:
                del self._chunks_by_key[key]


_CACHE = WorkerCache()


def drop_cached(token: str) -> None:
    _CACHE.forget(token)


def _worker_memory() -> int:
    from distributed import get_worker

    return get_worker().memory_manager.memory_limit or options.memory
