"""What the demonstration shows in the terminal: progress bars and one table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from benchmarks.harness.tables import Table

from .methods import METHODS, PEERS
from .trial import Corruption, DemoResult

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table as RichTable

NOTE = (
    "Trained on clean digits. noise: its standard deviation, white is 1;\n"
    "lost: share of pixels set to 0, or NaN where the holes are known;\n"
    "peak: memory that fit and test add."
)


def progress(console: Console) -> Progress:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    return Progress(
        TextColumn("{task.description:<22}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


def summary(result: DemoResult) -> RichTable:
    """The one table: accuracy at each corruption, seconds, memory."""
    from rich.box import SIMPLE_HEAD

    corruptions = result.plan.corruptions()
    header = ["method", *map(_heading, corruptions), "fit\ns", "test\ns", "peak\nMB"]
    best = {c: result.percent(result.best(c, METHODS), c) for c in corruptions}
    rows = [[m, *_row(result, m, corruptions, best)] for m in METHODS]
    look = {"box": SIMPLE_HEAD, "padding": 0, "show_edge": False}
    return Table(header, rows).rich(left=1, no_wrap=True, **look)


def title(result: DemoResult) -> str:
    """What the numbers in the table are."""
    n_seeds = len(result.plan.seeds)
    runs = f"mean of {n_seeds} seeds" if n_seeds > 1 else "one seed"
    return f"Accuracy in % on {len(result.data.y_test)} test digits, {runs}"


def verdict(result: DemoResult) -> str:
    """Where a dictionary is first, and where something else is."""
    corruptions = result.plan.corruptions()
    winners = {each: result.best(each, METHODS) for each in corruptions}
    lost = {c: name for c, name in winners.items() if name in PEERS}
    count = f"{len(winners) - len(lost)} of {len(winners)} columns"
    first = f"A dictionary is first in {count}"
    others = ", ".join(f"{name} at {c}" for c, name in lost.items())
    return f"{first}; {others}." if lost else f"{first}."


def _heading(corruption: Corruption) -> str:
    """Two short lines, so that the table fits 80 columns."""
    return str(corruption).replace("missing", "lost").replace(" ", "\n", 1)


def _row(
    result: DemoResult,
    method: str,
    corruptions: Iterable[Corruption],
    best: dict[Corruption, float],
) -> Iterable[str]:
    for corruption in corruptions:
        value = result.percent(method, corruption)
        style = "bold green" if value == best[corruption] else "none"
        yield f"[{style}]{value:.1f}[/{style}]"
    yield f"{result.median(method, 'fit_seconds'):.3f}"
    yield f"{result.median(method, 'predict_seconds'):.3f}"
    peak = result.peak_bytes[method]
    yield "?" if peak is None else f"{peak / 1e6:.1f}"
