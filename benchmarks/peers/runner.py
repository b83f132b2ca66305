"""Runs of a benchmark: methods take turns, so that noise hits all of them alike."""

from __future__ import annotations

import gc
from collections.abc import Callable
from statistics import median

from ..harness.records import JsonLines, Line
from ..harness.skip import Skip
from ..harness.timing import timed
from .memory import peak_of
from .records import add_case, continued_session, measured_cases, open_session
from .spec import SEED, Benchmark, Case, Figures, Method, Target, label

Log = Callable[[str], None]
QUICK_REPEATS = 2


def run(
    benchmark: Benchmark,
    quick: bool,
    n_threads: int,
    store: JsonLines,
    log: Log,
    resume: bool = False,
    part: tuple[int, int] = (1, 1),
) -> None:
    """Measure all cases; each is recorded at once, so that none is lost.

    With `resume` the last session goes on with the cases that it lacks, if it measured
    in the same way. Part (i, n) is every n-th case from the i-th on, so that several
    processes may share a session.
    """
    session = continued_session(store, benchmark, quick) if resume else None
    if session is None:
        session = open_session(store, benchmark, quick, n_threads)
    measured = measured_cases(store, benchmark.name, session)
    done = [line["case"] for line in measured]
    for index, case in enumerate(benchmark.cases(quick)):
        if index % part[1] == part[0] - 1 and dict(case) not in done:
            log(f"{benchmark.name}: {label(case)}")
            line = run_case(benchmark, index, quick, log)
            add_case(store, benchmark.name, session, {"index": index, **line})


def run_case(benchmark: Benchmark, index: int, quick: bool, log: Log) -> Line:
    """Seconds, figures and peak memory of all methods on one case of the grid."""
    case = benchmark.cases(quick)[index]
    record: Line = {"case": dict(case), "seed": SEED, "methods": {}, "skipped": {}}
    try:
        prepared = _prepared(benchmark, case, record["skipped"])
    except Skip as reason:
        return {**record, "skipped": {"all": str(reason)}}
    runs = _interleaved(prepared, QUICK_REPEATS if quick else benchmark.repeats, log)
    shares = {method.name: method.share for method in prepared}
    del prepared
    for method in benchmark.methods:
        if method.name in runs:
            summary = _summary(runs[method.name], shares[method.name])
            if method.memory:
                log(f"{method.name}: peak memory")
                summary |= peak_of(benchmark, index, method, quick)
            record["methods"][method.name] = summary
    figures = compared(record["methods"], benchmark.ours.name)
    targets = [] if quick else benchmark.targets(case)
    return {**record, "figures": figures, "targets": judged(targets, figures)}


def _prepared(
    benchmark: Benchmark, case: Case, skipped: dict[str, str]
) -> list[Method]:
    """The methods that can run, warmed up; if ours cannot, the case is skipped."""
    problem = benchmark.problem(case)
    prepared = []
    for method in benchmark.methods:
        try:
            benchmark.warm_up(method)
            prepared.append(method(problem))
        except Skip as reason:
            if method is benchmark.ours:
                raise
            skipped[method.name] = str(reason)
    return prepared


def _interleaved(
    methods: list[Method], repeats: int, log: Log
) -> dict[str, list[tuple[float, Figures]]]:
    """Seconds and figures of every run: ours, peer, peer, ours, peer, peer, ..."""
    runs: dict[str, list[tuple[float, Figures]]] = {m.name: [] for m in methods}
    for turn in range(repeats):
        for method in methods:
            if turn < (method.repeats or repeats):
                log(f"{method.name}: run {turn + 1}")
                gc.collect()  # so that no method is timed with the garbage of another
                result, seconds = timed(method.run)
                runs[method.name].append((seconds, method.figures(result)))
    return runs


def _summary(runs: list[tuple[float, Figures]], share: float) -> Line:
    """Medians over the runs; seconds are scaled up if only a share was worked on."""
    seconds = [run_seconds / share for run_seconds, _ in runs]
    names = runs[0][1]
    return {
        "seconds": median(seconds),
        "all_seconds": seconds,
        "share": share,
        # plain numbers, which records can hold
        "figures": {k: float(median(run[k] for _, run in runs)) for k in names},
    }


def compared(methods: dict[str, Line], ours: str) -> Figures:
    """Our own figures, and those relative to each peer, by the names of `Target`."""
    mine = methods[ours]
    figures = {"seconds": mine["seconds"], **mine["figures"]}
    for peer, record in methods.items():
        if peer == ours:
            continue
        figures[f"speed: {peer}"] = record["seconds"] / mine["seconds"]
        for name, value in mine["figures"].items():
            if record["figures"].get(name):
                figures[f"{name}: {peer}"] = value / record["figures"][name]
    return figures


def judged(targets: list[Target], figures: Figures) -> list[Line]:
    """Each target with the measured value, or None if the peer did not run."""
    return [
        {
            "figure": target.figure,
            "target": str(target),
            "measured": figures.get(target.figure),
            "met": target.met(figures[target.figure])
            if target.figure in figures
            else None,
        }
        for target in targets
    ]
