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
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text
from sklearn.pipeline import Pipeline

from ..base.pipelines import last_step
from ..data.block_loop import report_rows_to


class RowsPerSecond(ProgressColumn):
    """Rows per second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{_short_number(speed)} rows/s")


def _short_number(count: float) -> str:
    for suffix in ("", "k"):
        if count < 1000:
            return f"{count:.3g}{suffix}"
        count /= 1000
    return f"{count:.3g}M"


def fit_with_progress(
    model: Any, X: Any, y: Any, n_rows: int | None, quiet: bool
) -> None:
    """Fit a model, and count the rows that loops process meanwhile.

    The number of passes of a map is unknown; a learner makes one pass per iteration, so
    the remaining time is known.
    """
    total = n_rows and n_rows * _n_iterations(last_step(model))
    with rows_progress("fitting", total, quiet) as bar, report_rows_to(bar.advance):
        for name, step in model.steps[:-1] if isinstance(model, Pipeline) else ():
            bar.begin(name)
            X = step.fit_transform(X, y)
        bar.begin("learning", total)
        last_step(model).fit(X, y)


def _n_iterations(final_step: Any) -> int:
    learner = getattr(final_step, "learner", None) or final_step
    n_iter = getattr(learner, "max_iter", 1)
    return n_iter if isinstance(n_iter, int) else 1  # fit will refuse it


class RowsBar:
    """A progress bar that counts rows."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task: TaskID | None = None

    def begin(self, title: str, total: int | None = None) -> None:
        """Replace the bar by a new one."""
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(title, total=total)

    def advance(self, n: int) -> None:
        """Count rows that were processed."""
        if self._task is not None:
            self._bar.advance(self._task, n)


@contextmanager
def rows_progress(
    title: str, total: int | None, quiet: bool = False
) -> Iterator[RowsBar]:
    """Yield a bar that counts rows, on standard error if that is a terminal."""
    with _make_bar(quiet, RowsPerSecond()) as bar:
        rows = RowsBar(bar)
        rows.begin(title, total)
        yield rows


@contextmanager
def share_progress(title: str, quiet: bool = False) -> Iterator[Callable[[float], Any]]:
    """Yield a function that shows the finished share of work in a bar."""
    with _make_bar(quiet) as bar:
        task = bar.add_task(title, total=1.0)
        yield lambda share: bar.update(task, completed=share)


def _make_bar(quiet: bool, *speed: ProgressColumn) -> Progress:
    """Make a bar that shows nothing where standard error is no terminal."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn("{task.percentage:>3.0f}%"),
        *speed,
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    )
