"""The work of a cluster's workers: make a chunk, apply functions, cache chunks.

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
from .scale import quiet
from .work import at_work

SENT_OPTIONS = ("memory", "device_memory", "block_rows", "loops", "device")
CACHE_SHARE = 3  # a worker caches chunks up to this part of its memory


class Packed:
    """A function with its model, or the recipe of a chunk, as it was when packed.

    To Dask it has no size, so that work goes to the rows and not to the model.
    """

    def __init__(self, value: Any) -> None:
        self.data = cloudpickle.dumps(value)

    def __sizeof__(self) -> int:
        return 64

    def load(self) -> Any:
        return pickle.loads(self.data)


@dataclass(frozen=True)
class WithOptions:
    """The options that go with a function to the workers."""

    f: Callable[..., Any]
    option_values: dict[str, Any]

    def __call__(self, *args: Any) -> Any:
        """One thread, because Dask runs as many tasks at once as there are cores."""
        with options.here(n_threads=1, **self.option_values), at_work():
            return self.f(*args)


def _unchanged(rows: Any, _: Any) -> Any:
    return rows


UNCHANGED = Packed(_unchanged)


def pack(f: Callable[..., Any]) -> Packed:
    """f and the current options, ready to be sent."""
    return Packed(
        WithOptions(f, {name: getattr(options, name) for name in SENT_OPTIONS})
    )


def add_all(terms: list[Any]) -> Any:
    with quiet():  # who uses a sum looks at it
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
    """The last job on rows of a chunk to which all others were applied.

    That may have been long ago, if the chunk is in the cache at its place.
    """
    mapped = None if cache_key is None else _CACHE.get(cache_key)
    if mapped is None:
        mapped = dask.get(*chunk.load()) if isinstance(chunk, Packed) else chunk
        is_partial = (rows.start, rows.stop) != (0, len(mapped))
        if cache_key is None:
            mapped, rows = mapped[rows], slice(None)  # the others are not needed
        for job in jobs[:-1]:
            mapped = job.load()(mapped, ())
        if cache_key is not None:
            _CACHE.put(cache_key, mapped, is_sequential=is_partial)
    return jobs[-1].load()(mapped[rows], extra)


def map_chunk(jobs: list[Packed], chunk: Any, rows: slice) -> Any:
    return apply_jobs(chunk, [*jobs, UNCHANGED], (), rows)


class _Cache:
    """Chunks by place, up to a share of the worker's memory."""

    def __init__(self) -> None:
        self._chunks_by_key: dict[tuple[str, int], np.ndarray] = {}
        self._lock = threading.Lock()

    def get(self, key: tuple[str, int]) -> np.ndarray | None:
        return self._chunks_by_key.get(key)

    def put(self, key: tuple[str, int], chunk: np.ndarray, is_sequential: bool) -> None:
        """Keep a chunk if there is room.

        If chunks are read in order, part by part, the oldest make room. In passes
        over whole chunks they do not, because the oldest are needed next.
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


_CACHE = _Cache()


def drop_cached(token: str) -> None:
    _CACHE.forget(token)


def _worker_memory() -> int:
    from distributed import get_worker

    return get_worker().memory_manager.memory_limit or options.memory
