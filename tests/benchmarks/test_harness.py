"""The harness has one instrument for each task, and every measurement uses it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.harness import memory, timing
from benchmarks.harness.threads import VARIABLES, threads_of_children

ROOT = Path(__file__).parents[2]
HARNESS = ROOT / "benchmarks" / "harness"
FOLDERS = ("papers", "benchmarks", "demo")
CODE = [path for name in FOLDERS for path in (ROOT / name).rglob("*.py")]

# What only one module of the harness may contain, and which one.
ONE_HOME = {
    r"perf_counter": "timing.py",
    r"def timed\b": "timing.py",
    r"class Skip\b": "skip.py",
    r"clear_refs|VmHWM|getrusage|VmRSS": "memory.py",
    r"cpuinfo|threadpool_info": "machine.py",
    r"O_APPEND": "records.py",
    r"OPENBLAS_NUM_THREADS": "threads.py",
    r"class \w*Table\b": "tables.py",
    r"class \w*Chart\b": "charts.py",
    r"\"---\"": "tables.py",
}


@pytest.mark.parametrize(("pattern", "home"), ONE_HOME.items(), ids=list(ONE_HOME))
def test_each_task_has_one_home(pattern, home):
    found = {path for path in CODE if re.search(pattern, path.read_text("utf-8"))}
    assert found == {HARNESS / home}


def test_the_library_imports_nothing_of_what_measures_it():
    line = re.compile(rf"^\s*(from|import) ({'|'.join(FOLDERS)})\b", re.MULTILINE)
    library = (ROOT / "src" / "kernlets").rglob("*.py")
    assert not [p for p in library if line.search(p.read_text("utf-8"))]


def test_a_stopwatch_adds_up_stages(monkeypatch):
    now = iter([0.0, 1.0, 5.0, 7.0, 10.0, 10.5])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(now))
    clock = timing.Stopwatch()
    assert [clock(stage, lambda: "x") for stage in ("a", "b", "a")] == ["x"] * 3
    assert clock.seconds == {"a": 1.5, "b": 2.0}


def test_the_median_leaves_out_the_first_run(monkeypatch):
    now = iter([0.0, 1.0, 0.0, 9.0, 0.0, 2.0])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(now))
    results = iter("wabc")
    assert timing.timed_median(lambda: next(results), 3) == ("c", 2.0)


def test_a_function_runs_in_a_process_of_its_own():
    import os

    assert memory.in_new_process("os:getpid") != os.getpid()
    assert memory.in_new_process("math:gcd", 12, 18) == 6


def test_children_get_their_threads_and_the_parent_keeps_its_own(monkeypatch):
    monkeypatch.setenv(VARIABLES[0], "7")
    monkeypatch.delenv(VARIABLES[1], raising=False)
    with threads_of_children(3):
        assert memory.in_new_process("os:getenv", VARIABLES[1]) == "3"
    assert memory.in_new_process("os:getenv", VARIABLES[0]) == "7"
    assert memory.in_new_process("os:getenv", VARIABLES[1]) is None
