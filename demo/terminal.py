"""What the demonstration shows in the terminal: progress bars and one table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from benchmarks.harness.tables import Table

from .methods import METHODS, PEERS, dictionaries
from .trial import Corruption, DemoResult

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table as RichTable

NOTE = (
    "Trained on clean digits. lost: share of the pixels that are lost.\n"
    "NaN: the method is told which ones; to all others they are 0.\n"
    "noise: its standard deviation, white is 1.\n"
    "green: the best method and all within one standard deviation of it."
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
    """The one table: accuracy at each corruption, and seconds."""
    from rich.box import SIMPLE_HEAD

    corruptions = result.plan.corruptions()
    header = ["method", *map(_heading, corruptions), "fit\ns", "test\ns"]
    winners = {each: result.winners(each) for each in corruptions}
    rows = [[m, *_row(result, m, winners)] for m in METHODS]
    look = {"box": SIMPLE_HEAD, "padding": 0, "show_edge": False}
    return Table(header, rows).rich(left=1, no_wrap=True, **look)


def title(result: DemoResult) -> str:
    """What the numbers in the table are."""
    n_seeds = len(result.plan.seeds)
    runs = f"mean of {n_seeds} seeds" if n_seeds > 1 else "one seed"
    return f"Accuracy in % on {len(result.data.y_test)} test digits, {runs}"


def verdict(result: DemoResult) -> str:
    """What dictionaries are best at here, and where they are not."""
    corruptions = result.plan.corruptions()
    lost = result.plan.missing[len(result.plan.missing) // 2]
    hardest = next(c for c in corruptions if c.level == lost and c.kind == "missing")
    ours, other = (result.best(hardest, names) for names in (dictionaries(), PEERS))
    best = (
        f"With {lost:.0%} of the pixels lost, and known to be lost, {ours} reads "
        f"{result.percent(ours, hardest)} % of the digits; the best of the others is "
        f"{other} with {result.percent(other, hardest)} %."
    )
    return f"{best} {_columns(result)}"


def _columns(result: DemoResult) -> str:
    """In how many columns a dictionary is best, alone or with others."""
    corruptions = result.plan.corruptions()
    peers = {str(c): [m in PEERS for m in result.winners(c)] for c in corruptions}
    others = [column for column, are_peers in peers.items() if all(are_peers)]
    mixed = [column for column, are_peers in peers.items() if any(are_peers)]
    shared = [column for column in mixed if column not in others]
    count = f"{len(corruptions) - len(mixed)} of {len(corruptions)} columns"
    parts = [f"Dictionaries are best alone in {count}"]
    if shared:
        parts.append(f"no better than others at {_list(shared)}")
    if others:
        parts.append(f"behind others at {_list(others)}")
    return "; ".join(parts) + "."


def _list(names: list[str]) -> str:
    return ", ".join(name.replace("missing", "lost") for name in names)


def _heading(corruption: Corruption) -> str:
    """Two short lines, so that the table fits 80 columns."""
    return str(corruption).replace("missing", "lost").replace(" ", "\n", 1)


def _row(
    result: DemoResult, method: str, winners: dict[Corruption, list[str]]
) -> Iterable[str]:
    for corruption, first in winners.items():
        style = "bold green" if method in first else "none"
        yield f"[{style}]{result.percent(method, corruption):.1f}[/{style}]"
    yield f"{result.median(method, 'fit_seconds'):.2f}"
    yield f"{result.median(method, 'predict_seconds'):.2f}"
