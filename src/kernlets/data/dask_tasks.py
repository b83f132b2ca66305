"""Run functions on the chunks of a Dask array without moving any chunk.

On a cluster one task computes a chunk and processes it, and returns only the result. It
gets the recipe of the chunk (a small graph) and the functions to apply. Chunks that
are read repeatedly stay in a cache of the worker that computed them, and tasks are sent
to that worker. If a worker dies, others compute its chunks again. Without a cluster
Dask's threads do the same.

`on_dask.py` has the functions, and `dask_worker.py` the code that a worker runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from dask.core import flatten
from dask.delayed import delayed
from dask.optimization import cull

from ..config import options
from .dask_wait import (
    CHUNKS_LOST,
    WorkersLostError,
    explain_closed_cluster,
    is_open,
    wait_for,
    workers_of,
)
from .dask_worker import (
    Packed,
    add_all,
    apply_jobs,
    drop_cached,
    identity,
    map_chunk,
    pack,
)

Result = TypeVar("Result")

FAN_IN = 8  # number of sums that one task adds
GRAPH_WARNING = "distributed.admin.large-graph-warning-threshold"
LARGE_RECIPE = 10**6  # bytes; larger recipes contain data of the client, sent only once


@dataclass(frozen=True)
class Origin:
    """The origin of rows on a cluster: chunks, and functions to apply to each.

    `chunk_slices` has pairs (number of the chunk, its rows), or None for whole chunks.
    `sample` is one of the samples that are not rows of numbers; functions are tried on
    it to see which type their results have.
    """

    X: da.Array
    maps: tuple[Packed, ...] = ()
    chunk_slices: tuple[tuple[int, slice], ...] | None = None
    sample: np.ndarray | None = None

    def slices(self) -> Sequence[tuple[int, slice]]:
        if self.chunk_slices is not None:
            return self.chunk_slices
        return [(i, slice(0, n)) for i, n in enumerate(self.X.chunks[0])]

    def then(self, f: Packed) -> Origin:
        """Return the origin of f(chunk, _) of these rows."""
        return replace(self, maps=(*self.maps, f))

    def slice_rows(self, rows: slice) -> Origin:
        """Return the origin of consecutive rows among these."""
        chunk_slices, begin = [], 0
        for i, chunk_rows in self.slices():
            first = max(rows.start - begin, 0) + chunk_rows.start
            last = min(rows.stop - begin + chunk_rows.start, chunk_rows.stop)
            if first < last:
                chunk_slices.append((i, slice(first, last)))
            begin += chunk_rows.stop - chunk_rows.start
        return replace(self, chunk_slices=tuple(chunk_slices))


@dataclass
class ChunkCache:
    """The key of cached chunks on the workers, and futures of what was sent to them."""

    token: str = field(default_factory=lambda: uuid4().hex)
    futures: dict[int, Any] = field(default_factory=dict)  # (future, workers)


@dataclass
class ArrayNotes:
    """Data of this library about a Dask array, stored on the object itself."""

    name: str  # of the array; assignment to its items changes its name
    origin: Origin | None = None
    cache: ChunkCache | None = None
    recipes: list[Packed] | None = None
    chunks: list[Any] | None = None


def _notes(X: da.Array) -> ArrayNotes:
    notes = vars(X).get("_kernlets")
    if notes is None or notes.name != X.name:
        notes = vars(X)["_kernlets"] = ArrayNotes(X.name)
    return notes


def origin_of(X: da.Array) -> Origin:
    """Return the origin of the rows of X; X itself if this library did not make it."""
    return _notes(X).origin or Origin(X)


def apply_maps(source: Origin, like: np.ndarray) -> da.Array:
    """Apply all maps to all chunks lazily, as a Dask array with rows like `like`.

    Each chunk is computed and mapped in one task.
    """
    if not source.maps and source.chunk_slices is None:
        return source.X
    jobs = [delayed(job, pure=False, traverse=False) for job in source.maps]
    map_task, chunks = delayed(map_chunk, pure=False), _chunk_sources(source.X)
    mapped_chunks = []
    for i, rows in source.slices():
        shape = (rows.stop - rows.start, *like.shape[1:])
        mapped_rows = map_task(jobs, chunks[i], rows)
        mapped_chunks.append(da.from_delayed(mapped_rows, shape, meta=like[:0]))
    result = da.concatenate(mapped_chunks)
    _notes(result).origin = source
    return result


def slice_rows(X: da.Array, rows: slice) -> da.Array:
    """Return consecutive rows of X, which share its cached chunks."""
    like = np.empty((0, *X.shape[1:]), X.dtype)
    sliced = apply_maps(origin_of(X).slice_rows(rows), like)
    _notes(sliced).cache = _notes(X).cache
    return sliced


def sum_chunks(f: Callable[..., Any], X: da.Array, extras: Sequence[Any]) -> Any:
    """Return Σ f(chunk, extra), added in a tree whose shape depends only on the chunks.

    Chunks whose `extra` is None are left out.
    """

    def add_in_tree(runner: _ThreadRunner | _ClusterRunner) -> Any:
        partial_sums = runner.submit_chunks(f, X, extras)
        while len(partial_sums) > 1:
            groups = [
                partial_sums[i : i + FAN_IN]
                for i in range(0, len(partial_sums), FAN_IN)
            ]
            partial_sums = [runner.submit(add_all, group) for group in groups]
        return runner.gather(partial_sums)[0] if partial_sums else None

    return _run(add_in_tree)


def map_chunks(f: Callable[..., Any], X: da.Array, extras: Sequence[Any]) -> list[Any]:
    """Return [f(chunk, extra)] in memory here."""
    return _run(lambda runner: runner.gather(runner.submit_chunks(f, X, extras)))


@contextmanager
def cache_rows(X: da.Array) -> Iterator[da.Array]:
    """Give X with chunks that workers cache as long as the context lasts.

    If X is larger than the caches, some chunks are computed again each time.
    """
    client = current_client()
    if client is None:
        _refuse_futures(X)
        yield X.persist() if X.nbytes <= options.memory // 2 else X
        return
    source, cache = origin_of(X), ChunkCache()
    chunk_array = source.X
    if not isinstance(_chunk_sources(chunk_array)[0], Packed):
        chunk_array = chunk_array.persist()  # the client's data are sent only once
    X = X.copy()
    vars(X)["_kernlets"] = ArrayNotes(X.name, Origin(chunk_array, source.maps), cache)
    try:
        yield X
    finally:
        if is_open(client):
            client.run(drop_cached, cache.token, on_error="ignore")


def current_client() -> Any:
    """Return the client that Dask computes with, None for Dask's own threads."""
    # the attribute is absent while another thread imports the module
    get_client = getattr(sys.modules.get("distributed"), "get_client", None)
    if get_client is None:
        return None
    if dask.config.get("scheduler", "dask.distributed") != "dask.distributed":
        return None
    try:
        return get_client()
    except ValueError:
        return None


def _run(work: Callable[[_ThreadRunner | _ClusterRunner], Result]) -> Result:
    """Run `work` on the current client or on threads; repeat it if its workers left."""
    client = current_client()
    if client is None:
        return work(_ThreadRunner())
    with explain_closed_cluster(client):
        while True:
            try:
                return work(_ClusterRunner(client))
            except WorkersLostError:
                continue


class _ThreadRunner:
    """Dask's own schedulers: a graph with chunks as its nodes."""

    def submit_chunks(
        self, f: Callable[..., Any], X: da.Array, extras: Sequence[Any]
    ) -> list[Any]:
        source = origin_of(X)
        jobs = delayed([*source.maps, pack(f)], pure=False, traverse=False)
        chunks = _chunk_sources(source.X)
        return [
            self.submit(apply_jobs, chunks[i], jobs, extra, rows)
            for (i, rows), extra in zip(source.slices(), extras, strict=True)
            if extra is not None
        ]

    def submit(self, f: Callable[..., Any], *args: Any) -> Any:
        return delayed(f, pure=False)(*args)

    def gather(self, tasks: list[Any]) -> list[Any]:
        return list(dask.compute(*tasks))


class _ClusterRunner:
    """A distributed client: one task for each chunk, placed where it is cached."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._workers = workers_of(client)

    def submit_chunks(
        self, f: Callable[..., Any], X: da.Array, extras: Sequence[Any]
    ) -> list[Any]:
        source, cache = origin_of(X), _notes(X).cache
        sent_futures = {} if cache is None else cache.futures
        jobs = [self._send(job, sent_futures) for job in source.maps]
        jobs.append(self._send(pack(f), {}))
        token = None if cache is None else cache.token
        chunks = self._chunks(source.X)
        preferred_workers = self._preferred_workers(chunks)
        if cache is not None:  # recipes, too, are sent once for all passes
            chunks = [
                self._send(chunk, sent_futures, workers)
                if isinstance(chunk, Packed)
                else chunk
                for chunk, workers in zip(chunks, preferred_workers, strict=True)
            ]
        return [
            self._client.submit(
                apply_jobs,
                chunks[i],
                jobs,
                extra,
                rows,
                token and (token, i),
                pure=False,
                workers=preferred_workers[i],
                allow_other_workers=True,
            )
            for (i, rows), extra in zip(source.slices(), extras, strict=True)
            if extra is not None
        ]

    def _send(
        self,
        item: Packed,
        sent_futures: dict[int, Any],
        workers: list[str] | None = None,
    ) -> Any:
        """Send an item to the cluster once, and return its future.

        It is sent again if its workers have left.
        """
        future, old_workers = sent_futures.get(id(item), (None, None))
        if future is None or not {*(old_workers or self._workers)} & {*self._workers}:
            submit_arguments = {
                "pure": False,
                "workers": workers,
                "allow_other_workers": bool(workers),
            }
            with dask.config.set({GRAPH_WARNING: "1TB"}):  # models may be large
                future = self._client.submit(identity, item, **submit_arguments)
            sent_futures[id(item)] = future, workers
        return future

    def _chunks(self, X: da.Array) -> list[Any]:
        """Return the recipes of the chunks, or futures if the recipes are too large."""
        chunks = _chunk_sources(X)
        if isinstance(chunks[0], Packed):
            return chunks
        computed_futures = {future.key: future for future in _futures_of(X)}
        if all(chunk.key in computed_futures for chunk in chunks):
            return [computed_futures[chunk.key] for chunk in chunks]
        return self._client.compute(chunks)

    def _preferred_workers(self, chunks: list[Any]) -> list[list[str]]:
        """Return the preferred workers of each chunk, the same ones in each pass."""
        if not isinstance(chunks[0], Packed):
            self._wait(chunks)  # no worker has them earlier
            holders = self._client.who_has(chunks)
            return [list(holders[chunk.key]) or self._workers for chunk in chunks]
        n, m = len(chunks), len(self._workers)
        return [[self._workers[i * m // n]] for i in range(n)]

    def submit(self, f: Callable[..., Any], *args: Any) -> Any:
        return self._client.submit(f, *args, pure=False)

    def gather(self, futures: list[Any]) -> list[Any]:
        self._wait(futures)
        return self._client.gather(futures)

    def _wait(self, futures: list[Any]) -> None:
        wait_for(self._client, futures, self._workers)


def await_workers() -> None:
    """Wait until the cluster, if one is in use, has a worker."""
    client = current_client()
    if client is not None:
        workers_of(client)


def compute(X: Any) -> Any:
    """Compute a Dask collection and return it in memory here."""
    client = current_client()
    if client is None:
        _refuse_futures(X)
        return X.compute()
    return _run(lambda runner: runner.gather([client.compute(X)])[0])


def _chunk_sources(X: da.Array) -> list[Any]:
    """Return the recipe of each chunk if it is small, else delayed chunks."""
    if current_client() is None:
        _refuse_futures(X)
    elif not _futures_of(X):
        recipes = _recipes(X)
        if max(len(recipe.data) for recipe in recipes) <= LARGE_RECIPE:
            return recipes
    notes = _notes(X)
    if notes.chunks is None:
        notes.chunks = X.to_delayed().ravel().tolist()
    return notes.chunks


def _futures_of(X: da.Array) -> list[Any]:
    return sys.modules["distributed"].futures_of(X)


def _refuse_futures(X: Any) -> None:
    """Refuse chunks that are on a cluster, because threads cannot compute with them."""
    if hasattr(sys.modules.get("distributed"), "futures_of") and _futures_of(X):
        raise RuntimeError(CHUNKS_LOST)


def _recipes(X: da.Array) -> list[Packed]:
    """Return the part of the graph that computes each chunk."""
    notes = _notes(X)
    if notes.recipes is None:
        (optimized,) = dask.optimize(X)
        graph = dict(optimized.__dask_graph__())
        keys = list(flatten(optimized.__dask_keys__()))
        notes.recipes = [Packed((cull(graph, [key])[0], key)) for key in keys]
    return notes.recipes
