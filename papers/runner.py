"""Makes the runs of studies that are missing, in order of their cost."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.harness.machine import device_name
from benchmarks.harness.memory import watched
from benchmarks.harness.records import session
from benchmarks.harness.skip import Skip
from benchmarks.harness.timing import timed
from kernlets.config import check_device, options
from kernlets.datasets import DatasetNotFoundError

from .catalogue import studies
from .records import Cell, Key, Record, Records
from .settings import made_with
from .spec import SCALES, Case, Exhibit, Study
from .workers import over_processes

Report = Callable[[Record, int, int], Any]  # the record, runs done, runs to do


@dataclass(frozen=True)
class Job:
    """How to run: the scale, the seeds, the device, the processes, the time limit."""

    scale: str = "smoke"
    seeds: int | None = None  # None: as many as the study asks for
    device: str | None = None
    jobs: int = 1  # 1: in this process, otherwise in that many processes
    threads: int | None = None  # of each process; None: an equal share of the cores
    time_limit: float | None = None  # seconds; runs not finished by then are left out

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise ValueError(
                f"scale={self.scale!r} is unknown: choose from {', '.join(SCALES)}"
            )
        check_device(self.device)

    @property
    def threads_each(self) -> int:
        return self.threads or max(1, options.n_threads // self.jobs)


def cells(chosen: Iterable[Study], job: Job) -> list[Cell]:
    """All runs of some studies, sorted by cost and then by seed."""
    found = [
        (study.cost(case), seed, Cell(study.name, job.scale, case, seed))
        for study in chosen
        for case in study.cases(job.scale)
        for seed in range(_count(study, case, job))
    ]
    return [cell for *_, cell in sorted(found, key=lambda item: item[:2])]


def _count(study: Study, case: Case, job: Job) -> int:
    """Number of seeds of a case: as study or job ask, or one if one is enough."""
    count = study.repeats(case, job.scale)
    return count if job.seeds is None or count == 1 < job.seeds else job.seeds


def run(exhibits: Iterable[Exhibit], job: Job, folder: Any, report: Report) -> None:
    """Make those runs of some exhibits that are not in the folder yet.

    One process alone also makes those again whose seconds are a result and were taken
    with several processes side by side.
    """
    began, records = time.monotonic(), Records(folder)
    chosen = {exhibit.study.name: exhibit.study for exhibit in exhibits}
    crowded = _crowded(records, chosen) if job.jobs == 1 else set()
    done = {record.cell.key for record in records.read() if record.done}
    known = done - crowded
    todo = [cell for cell in cells(chosen.values(), job) if cell.key not in known]
    name = _open_session(records, {study.paper for study in chosen.values()}, job)
    deadline = None if job.time_limit is None else began + job.time_limit
    for count, record in enumerate(_made(todo, job, deadline), start=1):
        record = replace(record, session=name)
        records.add(record)
        report(record, count, len(todo))


def _crowded(records: Records, chosen: Mapping[str, Study]) -> set[Key]:
    """Runs that were to be timed, but not alone."""
    timed = {name for name, study in chosen.items() if study.warm}
    known = [record for record in records.read() if record.cell.study in timed]
    made = made_with(known, records.sessions())
    aside = {name for name, setting in made.items() if setting.processes > 1}
    return {record.cell.key for record in known if record.session in aside}


def _open_session(records: Records, papers: set[str], job: Job) -> str:
    """Record machine and versions; the runs refer to them by name."""
    about = session(job.threads_each, device=device_name(job.device))
    about["machine"]["processes"] = job.jobs
    for paper in sorted(papers):
        records.append(paper, about)
    return about["name"]


def _made(todo: list[Cell], job: Job, deadline: float | None) -> Iterator[Record]:
    if job.jobs > 1:
        setting = (job.device, job.threads_each)
        yield from over_processes(make, todo, setting, job.jobs, deadline)
        return
    for cell in todo:
        if deadline is not None and time.monotonic() >= deadline:
            return
        yield make(cell, job.device, job.threads_each)


def make(cell: Cell, device: str | None, threads: int) -> Record:
    """Make one run in this process; an error becomes part of the record."""
    study = studies()[cell.study]
    with (
        options(device=device, n_threads=threads),
        threadpool_limits(threads, "blas"),  # also what a study computes by itself
        _kept_warnings() as heard,
    ):
        try:
            if study.warm:
                _warm_up(study.name, tuple(sorted(cell.case.items())))
            return replace(_measured(study, cell), warned=_texts(heard))
        except (Skip, DatasetNotFoundError) as reason:
            return Record(cell, skipped=str(reason))
        except Exception as error:
            return Record(cell, error=f"{type(error).__name__}: {error}")


@contextmanager
def _kept_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Collect warnings for the record, so that they do not disturb the progress bar."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield heard


def _texts(heard: list[warnings.WarningMessage]) -> tuple[str, ...]:
    return tuple(sorted({f"{w.category.__name__}: {w.message}" for w in heard}))


def _measured(study: Study, cell: Cell) -> Record:
    sizes = study.sizes[cell.scale]

    def work() -> tuple[dict[str, Any], float]:
        return timed(lambda: study.measure(cell.case, cell.seed, sizes))

    (values, seconds), peak = watched(work)
    return Record(cell, values, round(seconds, 3), peak)


@cache
def _warm_up(name: str, case: tuple[tuple[str, Any], ...]) -> None:
    """Compile and load what a run needs on the smallest problem, once per process."""
    study = studies()[name]
    study.measure(dict(case), 0, study.sizes["smoke"])
