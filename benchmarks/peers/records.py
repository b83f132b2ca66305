"""Measurements beside peers as JSON lines: a session, then one line per case."""

from __future__ import annotations

from typing import Any

from ..harness.records import JsonLines, Line, session
from .spec import Benchmark

# Peers whose versions are noted.
PEERS = ("spams-bin", "dictlearn", "tslearn", "pyriemann", "aeon", "grakel")


def open_session(
    store: JsonLines, benchmark: Benchmark, quick: bool, n_threads: int
) -> str:
    """Note what the benchmark is and what it is run with; the name of the session."""
    about = {
        "title": benchmark.title,
        "about": benchmark.about,
        "ours": benchmark.ours.name,
        "quick": quick,
    }
    opened = session(n_threads, *PEERS, benchmark=about)
    store.append(benchmark.name, opened)
    return opened["name"]


def continued_session(
    store: JsonLines, benchmark: Benchmark, quick: bool
) -> str | None:
    """The name of the last session, if it measured the same in the same way."""
    last = next(reversed(store.sessions(benchmark.name).values()), None)
    if last is None:
        return None
    about = last["benchmark"]
    is_same = about["about"] == benchmark.about and about["quick"] == quick
    return last["name"] if is_same else None


def measured_cases(store: JsonLines, name: str, session_name: str) -> list[Line]:
    """The cases that a session has measured, in the order of the benchmark's grid."""
    lines = [each for each in store.lines(name) if each.get("session") == session_name]
    return sorted(lines, key=lambda line: line.get("index", 0))  # old ones have none


def add_case(store: JsonLines, name: str, session_name: str, measured: Line) -> None:
    """Append what was measured on one case."""
    store.append(name, {"kind": "case", "session": session_name, **measured})


def last_results(store: JsonLines, name: str) -> dict[str, Any]:
    """The last session of a benchmark and its cases, as the tables want them."""
    sessions = store.sessions(name)
    if not sessions:
        raise ValueError(f"{store.folder} holds no measurements of {name!r}")
    last = list(sessions.values())[-1]
    cases = measured_cases(store, name, last["name"])
    known = {key: last[key] for key in ("date", "machine", "versions")}
    return {**last["benchmark"], **known, "cases": cases}
