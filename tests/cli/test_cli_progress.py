"""What a terminal shows while a command works."""

from __future__ import annotations

import io

import pytest
from numba import njit
from rich.console import Console

from kernlets.cli import input_data
from kernlets.loops.compiled import report_compilation


def test_the_first_compilation_is_reported_once() -> None:
    double, told = njit(lambda x: 2 * x), []
    with report_compilation(lambda: told.append("compiling")):
        assert told == []
        assert double(2) == 4
        assert double(2.0) == 4.0  # another type, compiled again
    assert told == ["compiling"]
    with report_compilation(lambda: told.append("again")):
        double(3)
    assert told == ["compiling"]


@pytest.mark.parametrize(
    ("is_terminal", "quiet"), [(True, False), (True, True), (False, False)]
)
def test_a_terminal_shows_bars_and_compilation(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, quiet: bool
) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=is_terminal, width=80)
    monkeypatch.setattr(input_data, "Console", lambda **_: console)
    with input_data.rows_progress("learning", 10, quiet) as bar:
        bar.advance(5)
        njit(lambda x: 3 * x)(1)
    shown = screen.getvalue()
    if not is_terminal or quiet:
        assert shown == ""
    else:
        assert "learning" in shown
        assert shown.count(input_data.COMPILING) == 1
