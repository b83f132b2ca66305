"""Cases in processes of their own: one that crashes or hangs is found, too.

Each worker takes every n-th number. Before a case it writes the number and the time
into memory that it shares with its parent, which looks there now and then: a worker
that is gone has crashed in that case, one that takes too long is ended. Then another
worker goes on with the next number.
"""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from .oracle import Finding

ADDRESS_SPACE = 24 * 2**30  # bytes; asking for more is a MemoryError
PATIENCE = 5  # times the limit at the second try: compiled loops are kept by then
LOOK = 0.1  # seconds between two looks at the workers
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
CONTEXT = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Plan:
    """Which cases are run, and for how long."""

    first: int
    minutes: float
    cases: int | None = None  # largest number of cases
    only: str | None = None  # one kind of cases
    jobs: int = 1
    limit: float = 30.0  # seconds that one case may take
    home: str = "fuzz.case"  # module with `run_case` and `kind_of`

    def numbers(self, worker: int) -> Iterator[int]:
        """The numbers of one worker."""
        kind_of = import_module(self.home).kind_of
        end = None if self.cases is None else self.first + self.cases
        number = self.first + worker
        while end is None or number < end:
            if self.only in (None, kind_of(number)):
                yield number
            number += self.jobs


@dataclass
class Tally:
    """What has come out so far."""

    results: int = 0
    refusals: int = 0
    seconds: float = 0.0
    findings: list[tuple[int, Finding]] = field(default_factory=list)

    @property
    def cases(self) -> int:
        return self.results + self.refusals


class _Shared:
    """Numbers in memory that a worker writes and its parent reads."""

    def __init__(self) -> None:
        self.counts = CONTEXT.RawArray("q", 3)  # current number, results, refusals
        self.began = CONTEXT.RawValue("d", 0.0)


def _work(
    plan: Plan, worker: int, after: int, shared: Any, pipe: Any, log: str
) -> None:
    """Run cases until told to stop; findings go through the pipe."""
    _guard(log)
    run_case = import_module(plan.home).run_case
    for number in plan.numbers(worker):
        if number <= after:
            continue
        shared.counts[0], shared.began.value = number, time.monotonic()
        has_result, finding = run_case(number)
        shared.counts[1 if has_result else 2] += 1
        if finding is not None:
            pipe.send((number, finding))
    shared.began.value = 0.0
    pipe.send(None)


def _guard(log: str) -> None:
    """Leave a trace when crashing or asked for one; do not take all memory."""
    stream = open(log, "w", encoding="utf-8")
    faulthandler.enable(stream)
    faulthandler.register(signal.SIGUSR1, stream)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the workers
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # progress bars and the like


class _Worker:
    """One process, started again after each crash."""

    def __init__(self, plan: Plan, index: int, folder: Path, tally: Tally) -> None:
        self.plan, self.index, self.tally = plan, index, tally
        self.log = folder / f"worker-{index}.log"
        self.is_done = False
        self.suspect: int | None = None  # took too long once
        self._start(after=-1)

    def _start(self, after: int) -> None:
        self.shared = _Shared()
        self.pipe, other = CONTEXT.Pipe(duplex=False)
        self.process = CONTEXT.Process(
            target=_work,
            args=(self.plan, self.index, after, self.shared, other, str(self.log)),
            daemon=True,
        )
        self.process.start()
        other.close()

    def look(self) -> None:
        """Take what has come; see whether the process is alive and gets on."""
        self._receive()
        if self.is_done:
            self.end()
        elif not self.process.is_alive():
            self._receive()
            if not self.is_done:
                self._crashed(f"exit code {self.process.exitcode}", "crash")
        elif self._is_late():
            os.kill(self.process.pid or 0, signal.SIGUSR1)
            time.sleep(LOOK)
            self._late()

    def _receive(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while self.pipe.poll():
                item = self.pipe.recv()
                if item is None:
                    self.is_done = True
                else:
                    self.tally.findings.append(item)

    def _is_late(self) -> bool:
        began, limit = self.shared.began.value, self.plan.limit
        if self.suspect == self.shared.counts[0]:
            limit *= PATIENCE
        return began > 0 and time.monotonic() - began > limit

    def _late(self) -> None:
        """It may be the compiler, or the machine: a case gets a longer second try."""
        number = int(self.shared.counts[0])
        if self.suspect == number:
            self._crashed(f"more than {PATIENCE * self.plan.limit:g} s", "hang")
        else:
            self.suspect = number
            self.end()
            self._start(after=number - 1)

    def _crashed(self, message: str, what: str) -> None:
        number = int(self.shared.counts[0])
        trace = self.log.read_text(encoding="utf-8", errors="replace")
        finding = Finding(what, _place_in(trace), message, trace)
        self.tally.findings.append((number, finding))
        self.end()
        self._start(after=number)

    def end(self) -> None:
        """Stop the process and add its counts."""
        if self.process.is_alive() and not self.is_done:
            self.process.kill()
        self.process.join()
        self._receive()
        self.tally.results += self.shared.counts[1]
        self.tally.refusals += self.shared.counts[2]
        self.shared.counts[1] = self.shared.counts[2] = 0

    @property
    def running(self) -> int:
        """Cases of the current process, not yet added to the tally."""
        return int(self.shared.counts[1] + self.shared.counts[2])


def _place_in(trace: str) -> str:
    """Innermost function of the library in a trace that faulthandler wrote."""
    for line in trace.splitlines():
        if "/kernlets/" in line and "File" in line:
            path, _, function = line.strip().rpartition(" in ")
            file = path.split("/kernlets/")[-1].split('"')[0]
            return f"kernlets/{file}:{function}"
    return "?"


def run(plan: Plan, show: Callable[[Tally, int], Any]) -> Tally:
    """Run the cases of a plan; `show` is told how far it is."""
    for name in THREADS:
        os.environ.setdefault(name, "1")
    tally, began = Tally(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kernlets-fuzz-") as folder:
        workers = [_Worker(plan, i, Path(folder), tally) for i in range(plan.jobs)]
        try:
            while time.monotonic() - began < 60 * plan.minutes:
                time.sleep(LOOK)
                for worker in workers:
                    if not worker.is_done:
                        worker.look()
                show(tally, tally.cases + sum(worker.running for worker in workers))
                if all(worker.is_done for worker in workers):
                    break
        except KeyboardInterrupt:
            pass
        finally:
            for worker in workers:
                worker.end()
    tally.seconds = time.monotonic() - began
    return tally
