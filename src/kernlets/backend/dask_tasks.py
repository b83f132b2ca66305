"""Work on the chunks of a Dask array, so that no chunk ever travels.

On a cluster a chunk is made and worked on in one task, which returns what is asked for
and nothing else: it gets the recipe of the chunk (a small graph) and the functions to
apply. Chunks that are read again and again stay in a cache of the worker that made
them, and tasks go where the cache is. A worker that dies takes nothing along that
could not be made again. Without a cluster Dask's threads do the same.

What the functions do is in `dask_rows.py`.
"""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any
from uuid import uuid4

import cloudpickle
import dask
import dask.array as da
import numpy as np
from dask.core import flatten
from dask.delayed import delayed
from dask.optimization import cull

from ..config import options
from .threads import serial_blas

FAN_IN = 8  # sums that are added in one task
CACHE_SHARE = 3  # a worker caches chunks up to this part of its memory
LARGE_RECIPE = 10**6  # bytes; such a chunk was given by the client and is sent once


class Packed:
    """A function with its model as bytes, as it was when it was packed.

    To Dask it has no size: work goes where the rows are, not where the model is.
    """

    def __init__(self, value: Any) -> None:
        self.data = cloudpickle.dumps(value)

    def __sizeof__(self) -> int:
        return 64

    def load(self) -> Any:
        return pickle.loads(self.data)


@dataclass(frozen=True)
class Origin:
    """What rows on a cluster are made of: chunks, and functions applied to each."""

    X: da.Array
    maps: tuple[Packed, ...] = ()


@dataclass(frozen=True)
class Under:
    """The options that go with a function to the workers."""

    f: Callable[..., Any]
    memory: int
    block_rows: int | None
    loops: str

    def __call__(self, *args: Any) -> Any:
        """One thread: Dask runs as many tasks beside each other as there are cores."""
        with options(
            n_threads=1,
            memory=self.memory,
            block_rows=self.block_rows,
            loops=self.loops,
        ), serial_blas:
            return self.f(*args)


def packed(f: Callable[..., Any]) -> Packed:
    """f and the current options, ready to be sent."""
    return Packed(Under(f, options.memory, options.block_rows, options.loops))


@dataclass
class Kept:
    """A promise to read the same chunks again: where they are cached, what was sent."""

    token: str = field(default_factory=lambda: uuid4().hex)
    sent: dict[int, Any] = field(default_factory=dict)  # futures of packed maps


@dataclass
class Notes:
    """What this library knows of a Dask array, kept on the object itself."""

    name: str  # of the array when the notes were taken: assignment changes it
    origin: Origin | None = None
    kept: Kept | None = None
    recipes: list[bytes] | None = None


def _notes(X: da.Array) -> Notes:
    notes = vars(X).get("_kernlets")
    if notes is None or notes.name != X.name:
        notes = vars(X)["_kernlets"] = Notes(X.name)
    return notes


def origin(X: da.Array) -> Origin:
    """Where the rows of X come from, as far as this library has made them."""
    return _notes(X).origin or Origin(X)


def mapped(first: Origin, like: np.ndarray) -> da.Array:
    """All maps on all chunks as a Dask array with rows like these, not computed yet.

    Each chunk is made, mapped and done with in one task here, too.
    """
    if not first.maps:
        return first.X
    jobs = [delayed(job, pure=False, traverse=False) for job in first.maps]
    work = delayed(_mapped_chunk, pure=False)
    parts = [
        da.from_delayed(work(jobs, chunk), (n, *like.shape[1:]), meta=like[:0])
        for chunk, n in zip(_sources(first.X), first.X.chunks[0], strict=True)
    ]
    result = da.concatenate(parts)
    _notes(result).origin = first
    return result


def sum_chunks(f: Callable[..., Any], X: da.Array, extras: Sequence[Any]) -> Any:
    """Σ f(chunk, extra) as a tree whose shape depends on the chunks alone.

    Chunks without an `extra` (None) are left out.
    """
    with _runner() as runner:
        parts = runner.each(f, X, extras)
        while len(parts) > 1:
            groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
            parts = [runner.submit(_added, group) for group in groups]
        return runner.gather(parts)[0] if parts else None


def each_chunk(
    f: Callable[..., Any], X: da.Array, extras: Sequence[Any]
) -> list[Any]:
    """[f(chunk, extra)], the results brought here."""
    with _runner() as runner:
        return runner.gather(runner.each(f, X, extras))


def _added(parts: list[Any]) -> Any:
    return reduce(add, parts)


@contextmanager
def kept(X: da.Array) -> Iterator[da.Array]:
    """X with chunks that stay in the workers' memory for the time of the block.

    Where X is larger than what workers cache, some chunks are made again each time.
    """
    client = current_client()
    if client is None:
        yield X.persist() if X.nbytes <= options.memory // 2 else X
        return
    first, note = origin(X), Kept()
    source = first.X
    if not isinstance(_sources(source)[0], bytes):
        source = source.persist()  # what the client has is sent once
    X = X.copy()
    vars(X)["_kernlets"] = Notes(X.name, Origin(source, first.maps), note)
    try:
        yield X
    finally:
        client.run(_forget, note.token, on_error="ignore")


def current_client() -> Any:
    """The client that computations go to, None for Dask's own threads."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    if dask.config.get("scheduler", "dask.distributed") != "dask.distributed":
        return None
    try:
        return distributed.get_client()
    except ValueError:
        return None


def _runner() -> AbstractContextManager[Any]:
    client = current_client()
    return _Threads() if client is None else _Cluster(client)


class _Threads:
    """Dask's own schedulers: a graph with chunks as its nodes."""

    def __enter__(self) -> _Threads:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def each(
        self, f: Callable[..., Any], X: da.Array, extras: Sequence[Any]
    ) -> list[Any]:
        first = origin(X)
        jobs = delayed([*first.maps, packed(f)], pure=False, traverse=False)
        return [
            self.submit(_work, jobs, chunk, extra)
            for chunk, extra in zip(_sources(first.X), extras, strict=True)
            if extra is not None
        ]

    def submit(self, f: Callable[..., Any], *args: Any) -> Any:
        return delayed(f, pure=False)(*args)

    def gather(self, parts: list[Any]) -> list[Any]:
        return list(dask.compute(*parts))


class _Cluster:
    """A distributed client: one task for each chunk, placed where it is cached."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._workers = sorted(client.scheduler_info(n_workers=-1)["workers"])

    def __enter__(self) -> _Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def each(
        self, f: Callable[..., Any], X: da.Array, extras: Sequence[Any]
    ) -> list[Any]:
        first, note = origin(X), _notes(X).kept
        jobs = [*self._sent(first.maps, note), self.submit(_same, packed(f))]
        token = None if note is None else note.token
        chunks = self._chunks(first.X)
        homes = self._homes(chunks)
        return [
            self._client.submit(
                _work_on,
                chunk,
                jobs,
                extra,
                token and (token, i),
                pure=False,
                workers=homes[i],
                allow_other_workers=True,
            )
            for i, (chunk, extra) in enumerate(zip(chunks, extras, strict=True))
            if extra is not None
        ]

    def _sent(self, maps: Sequence[Packed], note: Kept | None) -> list[Any]:
        """Futures of the packed maps, sent once for all passes over kept rows."""
        sent = {} if note is None else note.sent
        for job in maps:
            if id(job) not in sent:
                sent[id(job)] = self.submit(_same, job)
        return [sent[id(job)] for job in maps]

    def _chunks(self, X: da.Array) -> list[Any]:
        """Recipes, or futures of chunks that are more than that."""
        chunks = _sources(X)
        if isinstance(chunks[0], bytes):
            return chunks
        ready = {future.key: future for future in _futures_of(X)}
        if all(chunk.key in ready for chunk in chunks):
            return [ready[chunk.key] for chunk in chunks]
        return self._client.compute(chunks)

    def _homes(self, chunks: list[Any]) -> list[list[str]]:
        """The workers that chunks go to if they can: always the same ones."""
        if not isinstance(chunks[0], bytes):
            sys.modules["distributed"].wait(chunks)  # until then nobody holds them
            holders = self._client.who_has(chunks)
            return [list(holders[chunk.key]) or self._workers for chunk in chunks]
        n, m = len(chunks), len(self._workers)
        return [[self._workers[i * m // n]] for i in range(n)]

    def submit(self, f: Callable[..., Any], *args: Any) -> Any:
        return self._client.submit(f, *args, pure=False)

    def gather(self, parts: list[Any]) -> list[Any]:
        return self._client.gather(parts)


def _sources(X: da.Array) -> list[Any]:
    """What makes each chunk: bytes on a cluster, where nothing is sent by them."""
    if current_client() is not None and not _futures_of(X):
        recipes = _recipes(X)
        if max(map(len, recipes)) <= LARGE_RECIPE:
            return recipes
    return X.to_delayed().ravel().tolist()


def _futures_of(X: da.Array) -> list[Any]:
    return sys.modules["distributed"].futures_of(X)


def _recipes(X: da.Array) -> list[bytes]:
    """The part of the graph that makes each chunk."""
    notes = _notes(X)
    if notes.recipes is None:
        (best,) = dask.optimize(X)
        graph = dict(best.__dask_graph__())
        keys = list(flatten(best.__dask_keys__()))
        notes.recipes = [
            cloudpickle.dumps((cull(graph, [key])[0], key)) for key in keys
        ]
    return notes.recipes


# on the workers


def _same(value: Any) -> Any:
    return value


def _work_on(
    chunk: bytes | np.ndarray,
    jobs: list[Packed],
    extra: Any,
    place: tuple[str, int] | None,
) -> Any:
    """The last job on a chunk to which all others were applied, maybe long ago."""
    rows = None if place is None else _CACHE.get(place)
    if rows is None:
        rows = dask.get(*pickle.loads(chunk)) if isinstance(chunk, bytes) else chunk
        for job in jobs[:-1]:
            rows = job.load()(rows, ())
        if place is not None:
            _CACHE.put(place, rows)
    return jobs[-1].load()(rows, extra)


def _work(jobs: list[Packed], chunk: Any, extra: Any) -> Any:
    return _work_on(chunk, jobs, extra, None)


def _mapped_chunk(jobs: list[Packed], chunk: Any) -> Any:
    return _work_on(chunk, jobs, (), None)


class _Cache:
    """Chunks by place, up to a share of the worker's memory."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int], np.ndarray] = {}
        self._lock = threading.Lock()

    def get(self, place: tuple[str, int]) -> np.ndarray | None:
        return self._rows.get(place)

    def put(self, place: tuple[str, int], rows: np.ndarray) -> None:
        with self._lock:
            held = sum(part.nbytes for part in self._rows.values())
            if held + rows.nbytes <= _worker_memory() // CACHE_SHARE:
                self._rows[place] = rows

    def forget(self, token: str) -> None:
        with self._lock:
            for place in [place for place in self._rows if place[0] == token]:
                del self._rows[place]


_CACHE = _Cache()


def _forget(token: str) -> None:
    _CACHE.forget(token)


def _worker_memory() -> int:
    from distributed import get_worker

    return get_worker().memory_manager.memory_limit or options.memory
