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


class Percent(ProgressColumn):
    """The share that is done, where the whole is known."""

    def render(self, task: Task) -> Text:
        return Text("" if task.total is None else f"{task.percentage:>3.0f}%")


def _short(count: float) -> str:
    for unit in ("", "k"):
        if count < 1000:
            return f"{count:.3g}{unit}"
        count /= 1000
    return f"{count:.3g}M"


def fit_watched(model: Any, X: Any, y: Any, n_rows: int | None, quiet: bool) -> None:
    """Fit a model step by step, and count the rows that loops go through meanwhile.

    How often a map looks at the rows is its own affair; a learner does so once in each
    iteration, so that the time left is known.
    """
    if isinstance(model, Pipeline):
        for name, step in model.steps[:-1]:
            with rows_progress(name, None, quiet) as advance, watching(advance):
                X = step.fit_transform(X)
    last = last_step(model)
    total = n_rows and n_rows * _n_iterations(last)
    with rows_progress("learning", total, quiet) as advance, watching(advance):
        last.fit(X, y)


def _n_iterations(last: Any) -> int:
    learner = getattr(last, "learner", None) or last
    n_iter = getattr(learner, "max_iter", 1)
    return n_iter if isinstance(n_iter, int) else 1  # fit will refuse it


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
    columns = (TextColumn("{task.description}"), BarColumn(), Percent())
    times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    return Progress(*columns, RowsPerSecond(), *times, console=console, transient=True)
