"""Wait for a cluster, but not forever for one that has no workers left.

Dask's own configuration says how long a cluster may be without workers:
``dask.config.set({"kernlets.no-workers-timeout": "10 minutes"})``, or None to wait
forever. Until then workers may come back, or appear for the first time.
"""

from __future__ import annotations

import asyncio
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

import dask
from dask.utils import parse_timedelta

SETTING = "kernlets.no-workers-timeout"
DEFAULT = "2 minutes"
CHECK_INTERVAL = 1.0  # seconds between two checks of the workers


class WorkersLostError(RuntimeError):
    """The workers that tasks were sent to have left, but there are others.

    Dask runs tasks on other workers as long as there are any. Tasks that it queued
    while there were none wait for the workers that they were sent to, so they must be
    submitted again.
    """


CHUNKS_LOST = (
    "X has chunks that were computed on a Dask cluster, which is closed or not in use: "
    "make X again (X.persist() only after that), or connect a Client to that cluster"
)


@contextmanager
def explain_closed_cluster(client: Any) -> Iterator[None]:
    """Explain the errors that Dask raises if a cluster is closed while it is in use."""
    address = _address(client)
    try:
        yield
    except WorkersLostError:
        raise
    except (Exception, asyncio.CancelledError) as error:
        if not is_open(client):
            raise RuntimeError(
                f"the Dask cluster at {address} was closed while it was in use: "
                "connect a new dask.distributed.Client and call this method again, or "
                "call it without a client to compute on this machine"
            ) from error
        if isinstance(error, (CancelledError, asyncio.CancelledError)):
            raise RuntimeError(CHUNKS_LOST) from error
        raise


def is_open(client: Any) -> bool:
    """Whether the client still has its cluster."""
    return client.status == "running" and client.scheduler is not None


def _address(client: Any) -> str:
    return getattr(client.scheduler, "address", "an unknown address")


def wait_for(client: Any, futures: list[Any], workers: list[str]) -> None:
    """Return when all futures are done, with or without an error."""
    distributed = sys.modules["distributed"]
    watch = _WorkerWatch(client)
    while True:
        try:
            distributed.wait(futures, timeout=watch.interval)
            return
        except distributed.TimeoutError:
            present_workers = watch.check()
        if present_workers and not present_workers.intersection(workers):
            raise WorkersLostError


def workers_of(client: Any) -> list[str]:
    """Wait for at least one worker and return the sorted addresses of all."""
    watch = _WorkerWatch(client)
    while not (addresses := watch.check()):
        time.sleep(watch.interval)
    return sorted(addresses)


class _WorkerWatch:
    """Measures how long a cluster has had no workers."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._timeout = parse_timedelta(dask.config.get(SETTING, DEFAULT))
        self._since: float | None = None
        self.interval = (
            CHECK_INTERVAL
            if self._timeout is None
            else min(CHECK_INTERVAL, self._timeout / 4)
        )

    def check(self) -> set[str]:
        """Return the workers' addresses; raise if there were none for too long."""
        addresses = set(self._client.nthreads())
        if addresses:
            self._since = None
            return addresses
        current_time = time.monotonic()
        if self._since is None:
            self._since = current_time
            self._warn()
        if self._timeout is not None and current_time - self._since >= self._timeout:
            raise RuntimeError(
                f"the Dask cluster at {_address(self._client)} has had no workers for "
                f"{self._timeout:g} s: start some (cluster.scale(2), dask worker "
                "ADDRESS), look at why the others died (memory?), or allow more time "
                f'with dask.config.set({{"{SETTING}": "10 minutes"}})'
            )
        return addresses

    def _warn(self) -> None:
        limit = "" if self._timeout is None else f" for up to {self._timeout:g} s"
        address = _address(self._client)
        warnings.warn(
            f"the Dask cluster at {address} has no workers: waiting{limit}",
            stacklevel=2,
        )
