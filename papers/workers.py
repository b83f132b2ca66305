"""A few processes that make one run after another, and can be stopped at any time.

Each has its own threads and caches. If a process dies (no memory left), its run is lost
and the process is replaced; at the deadline, runs that are not finished are dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context
from typing import Any

from benchmarks.harness.threads import threads_of_children

from .records import Cell, Record

Setting = tuple[str | None, int]  # device, threads
Make = Callable[[Cell, str | None, int], Record]  # makes one run


@dataclass
class Worker:
    """A process, the pipe to it, and the run that it is making."""

    process: Any
    line: Any
    cell: Cell | None = None

    def give(self, cell: Cell) -> None:
        self.cell = cell
        with suppress(BrokenPipeError):  # `result` will report it
            self.line.send(cell)

    def result(self) -> Record:
        """The record that came back, or an error if the process has died."""
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
    make: Make,
    todo: list[Cell],
    setting: Setting,
    count: int,
    deadline: float | None,
) -> Iterator[Record]:
    """Records in the order in which the runs end."""
    waiting, workers = iter(todo), []
    try:
        for cell in todo[:count]:
            workers.append(_started(make, setting))
            workers[-1].give(next(waiting, cell))
        while busy := [worker for worker in workers if worker.cell is not None]:
            ready = connection.wait([w.line for w in busy], _left(deadline))
            if not ready:
                return
            for worker in (w for w in busy if w.line in ready):
                yield worker.result()
                if not worker.process.is_alive():
                    workers[workers.index(worker)] = worker = _started(make, setting)
                cell = next(waiting, None)
                if cell is not None:
                    worker.give(cell)
    finally:
        for worker in workers:
            worker.end()


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _started(make: Make, setting: Setting) -> Worker:
    context = get_context("spawn")  # threads and GPUs do not survive a fork
    ours, theirs = context.Pipe()
    with threads_of_children(setting[1]):
        arguments = theirs, make, *setting
        process = context.Process(target=_work, args=arguments, daemon=True)
        process.start()
    theirs.close()  # so that the end of the process ends the line
    return Worker(process, ours)


def _work(line: Any, make: Make, device: str | None, threads: int) -> None:
    while True:
        try:
            cell = line.recv()
        except EOFError:
            return
        line.send(make(cell, device, threads))
