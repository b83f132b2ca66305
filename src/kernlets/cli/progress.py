"""A progress bar on standard error, when that is a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from .parts import fitted_learners, watched_learner


@contextmanager
def progress(model: Any, n_dictionaries: int, quiet: bool) -> Iterator[None]:
    """Count the iterations of all learners while the model is fitted in the block."""
    console = Console(stderr=True)
    learner = watched_learner(model)
    if quiet or learner is None or not console.is_terminal:
        yield
        return
    with _bar(console) as bar:
        task = bar.add_task("fitting", total=n_dictionaries * learner.max_iter)
        # a plain function: scikit-learn copies parameters, and copies of it are itself
        learner.callback = lambda state: bar.advance(task)
        yield
    for part in (learner, *fitted_learners(model)):
        part.callback = None


def _bar(console: Console) -> Progress:
    percentage = TextColumn("{task.percentage:>3.0f}%")
    columns = (TextColumn("{task.description}"), BarColumn(), percentage)
    return Progress(*columns, TimeElapsedColumn(), console=console, transient=True)
