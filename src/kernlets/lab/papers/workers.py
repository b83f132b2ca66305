"""A few processes that take one run after the other, and can be stopped at any time.

Each has its own threads and caches. A process that dies (no memory left) costs its run
and is replaced; at the deadline what still runs is ended and left out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context
from typing import Any

from .records import Cell, Record

Setting = tuple[str | None, int]  # device, threads
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass
class Worker:
    """A process, the line to it, and the run it is at."""

    process: Any
    line: Any
    cell: Cell | None = None

    def give(self, cell: Cell) -> None:
        self.cell = cell
        with suppress(BrokenPipeError):  # `result` will tell
            self.line.send(cell)

    def result(self) -> Record:
        """What came back, or that nothing will."""
        cell, self.cell = self.cell, None
        assert cell is not None
        try:
            return self.line.recv()
        except (EOFError, ConnectionResetError):  # reset: it died before it read
            self.process.join()
            code = self.process.exitcode
            return Record(cell, error=f"its process ended with code {code}")

    def end(self) -> None:
        self.line.close()
        self.process.terminate()
        self.process.join()


def over_processes(
    todo: list[Cell], setting: Setting, count: int, deadline: float | None
) -> Iterator[Record]:
    """Records in the order in which the runs end."""
    waiting, workers = iter(todo), []
    try:
        for cell in todo[:count]:
            workers.append(_hired(setting))
            workers[-1].give(next(waiting, cell))
        while busy := [worker for worker in workers if worker.cell is not None]:
            ready = connection.wait([w.line for w in busy], _left(deadline))
            if not ready:
                return
            for worker in (w for w in busy if w.line in ready):
                yield worker.result()
                if not worker.process.is_alive():
                    workers[workers.index(worker)] = worker = _hired(setting)
                cell = next(waiting, None)
                if cell is not None:
                    worker.give(cell)
    finally:
        for worker in workers:
            worker.end()


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _hired(setting: Setting) -> Worker:
    context = get_context("spawn")  # threads and GPUs do not survive a fork
    ours, theirs = context.Pipe()
    with _environment(setting[1]):
        process = context.Process(target=_work, args=(theirs, *setting), daemon=True)
        process.start()
    theirs.close()  # so that the end of the process ends the line
    return Worker(process, ours)


class _environment:
    """Thread counts that libraries read while they are loaded."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def __enter__(self) -> None:
        self.before = {name: os.environ.get(name) for name in THREADS}
        os.environ.update(dict.fromkeys(THREADS, str(self.threads)))

    def __exit__(self, *_: object) -> None:
        for name, value in self.before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _work(line: Any, device: str | None, threads: int) -> None:
    from .runner import make

    while True:
        try:
            cell = line.recv()
        except EOFError:
            return
        line.send(make(cell, device, threads))
