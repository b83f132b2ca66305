"""What a terminal shows while a command works."""

from __future__ import annotations

import io
import logging

import pytest
from rich.console import Console

from kernlets.cli import input_data


@pytest.mark.parametrize(
    ("is_terminal", "quiet"), [(True, False), (True, True), (False, False)]
)
def test_a_terminal_shows_bars_and_the_log(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, quiet: bool
) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=is_terminal, width=80)
    monkeypatch.setattr(input_data, "Console", lambda **_: console)
    log = logging.getLogger("kernlets")
    before = log.level, [*log.handlers]
    with input_data.rows_progress("learning", 10, quiet) as bar:
        bar.advance(5)
        log.info("compiling loops")
    log.info("nothing is shown any more")
    assert (log.level, log.handlers) == before
    shown = screen.getvalue()
    if not is_terminal or quiet:
        assert shown == ""
    else:
        assert "learning" in shown
        assert shown.count("compiling loops") == 1
        assert "any more" not in shown
