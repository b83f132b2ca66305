"""Progress bars on standard error, when that is a terminal: rows, speed, time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text
from sklearn.pipeline import Pipeline

from ..backend.stored import watching
from .parts import last_step


class RowsPerSecond(ProgressColumn):
    """How fast rows go through."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{_short(speed)} rows/s")


def _short(count: float) -> str:
    for unit in ("", "k"):
        if count < 1000:
            return f"{count:.3g}{unit}"
        count /= 1000
    return f"{count:.3g}M"


@contextmanager
def fit_progress(model: Any, n_rows: int | None, quiet: bool) -> Iterator[None]:
    """Count the rows that loops go through while the model is fitted in the block.

    The total is a guess, a pass over the rows for each step and iteration; some steps
    make a few passes more.
    """
    passes = _n_passes(model)
    with rows_progress("fitting", n_rows and n_rows * passes, quiet) as advance:
        with watching(advance):
            yield


def _n_passes(model: Any) -> int:
    last = last_step(model)
    learner = getattr(last, "learner", None) or last
    maps = len(model) - 1 if isinstance(model, Pipeline) else 0
    n_iter = getattr(learner, "max_iter", 1)
    return maps + (n_iter if isinstance(n_iter, int) else 1)  # else fit will refuse it


@contextmanager
def rows_progress(
    title: str, total: int | None, quiet: bool = False
) -> Iterator[Callable[[int], Any]]:
    """A function to call with a number of rows that are done."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda n: None
        return
    with _bar(console) as bar:
        task = bar.add_task(title, total=total)
        yield lambda n: bar.advance(task, n)


def _bar(console: Console) -> Progress:
    percentage = TextColumn("{task.percentage:>3.0f}%")
    columns = (TextColumn("{task.description}"), BarColumn(), percentage)
    times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    return Progress(*columns, RowsPerSecond(), *times, console=console, transient=True)
