"""Waits for a cluster, but not forever for one that has no workers left.

Dask's own configuration says how long a cluster may be without workers:
``dask.config.set({"kernlets.no-workers-timeout": "10 minutes"})``, or None to wait
forever. Until then workers may come back, or appear for the first time.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import dask
from dask.utils import parse_timedelta

SETTING = "kernlets.no-workers-timeout"
DEFAULT = "2 minutes"
LOOK = 1.0  # seconds between two checks of the workers


class WorkersLostError(RuntimeError):
    """The workers that tasks were meant for are gone, but there are others.

    Dask runs tasks elsewhere as long as there is some worker. Tasks that it queued
    while there was none wait for the worker that they were meant for, so they must be
    submitted again.
    """


def wait_for(client: Any, futures: list[Any], workers: list[str]) -> None:
    """Return when all futures are done, with or without an error."""
    distributed = sys.modules["distributed"]
    alone = _Alone(client)
    while True:
        try:
            distributed.wait(futures, timeout=alone.look)
            return
        except distributed.TimeoutError:
            present = alone.check()
        if present and not present.intersection(workers):
            raise WorkersLostError


def workers_of(client: Any) -> list[str]:
    """Addresses of the workers, of which there is at least one, in order."""
    alone = _Alone(client)
    while not (addresses := alone.check()):
        time.sleep(alone.look)
    return sorted(addresses)


class _Alone:
    """For how long a cluster has had no workers."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._limit = parse_timedelta(dask.config.get(SETTING, DEFAULT))
        self._since: float | None = None
        self.look = LOOK if self._limit is None else min(LOOK, self._limit / 4)

    def check(self) -> set[str]:
        """Addresses of the workers; an error if there were none for too long."""
        addresses = set(self._client.nthreads())
        if addresses:
            self._since = None
            return addresses
        now = time.monotonic()
        if self._since is None:
            self._since = now
            self._warn()
        if self._limit is not None and now - self._since >= self._limit:
            raise RuntimeError(
                f"the Dask cluster at {self._address()} has had no workers for "
                f"{self._limit:g} s: start some (cluster.scale(2), dask worker "
                "ADDRESS), look at why the others died (memory?), or allow more time "
                f'with dask.config.set({{"{SETTING}": "10 minutes"}})'
            )
        return addresses

    def _warn(self) -> None:
        limit = "" if self._limit is None else f" for up to {self._limit:g} s"
        warnings.warn(
            f"the Dask cluster at {self._address()} has no workers: waiting{limit}",
            stacklevel=2,
        )

    def _address(self) -> str:
        return self._client.scheduler.address
