"""`iterate` is the loop of all fits.

It resumes from a checkpoint, takes the steps, records them in the history, asks the
callback whether to stop, and saves the state. An `Alternation` defines a step: that of
batch learners is in `code_and_update.py`, others are beside their estimators.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..base.progress import FitTasks, RowClock, running
from ..data.block_loop import report_rows_to
from ..data.rows import count_rows
from ..io.checkpoint import Checkpoint
from ..numerics.arrays import scalers_for
from ..numerics.convergence import warn_unfinished
from .schedule import Schedule, has_settled, resolve_schedule


@dataclass
class Monitor:
    """Records the history, shows progress, and asks the callback whether to stop."""

    max_iter: int
    schedule: Schedule = field(default_factory=Schedule)
    title: str = ""
    measure: str = "mean squared error"
    history: dict[str, list[float]] = field(
        default_factory=lambda: {"objective": [], "seconds": []}
    )
    tasks: FitTasks | None = None
    so_far: Callable[[Any], dict[str, Any] | None] = lambda current: None

    @classmethod
    def of(
        cls,
        estimator: Any,
        max_iter: int | None = None,
        measure: str = "mean squared error",
    ) -> Monitor:
        """Create the monitor of a fit from the parameters of the estimator."""
        if hasattr(estimator, "schedule"):
            schedule = resolve_schedule(estimator.schedule)
        else:
            schedule = Schedule(
                verbose=bool(getattr(estimator, "verbose", False)),
                callback=getattr(estimator, "callback", None),
            )
        return cls(
            estimator.max_iter if max_iter is None else max_iter,
            schedule,
            type(estimator).__name__,
            measure,
            tasks=running(estimator),
            so_far=estimator._so_far,
        )

    def __post_init__(self) -> None:
        self._start_time = time.perf_counter()

    def resume(self, history: dict[str, list[float]]) -> None:
        """Continue after the iterations of an interrupted fit."""
        self.history = history
        self._start_time -= max(history["seconds"], default=0.0)
        if self.schedule.verbose:
            print(f"{self.title}: resumed after iteration {self.n_iter}", flush=True)

    @property
    def n_iter(self) -> int:
        """Number of iterations so far."""
        return len(self.history["objective"])

    def unfinished(self) -> str:
        """Return the warning for a fit that `tol` has not stopped."""
        return (
            f"{self.title}: the {self.measure} has not come to rest to tol="
            f"{self.schedule.tol:g} within max_iter={self.max_iter} iterations: raise "
            "max_iter or tol"
        )

    def row_counter(self, X: Any) -> Callable[[], AbstractContextManager[Any]]:
        """Return contexts that count rows and show the count of long iterations."""
        if not self.schedule.verbose:
            return nullcontext
        n_rows = count_rows(X)
        clock = RowClock(self.title, n_rows and n_rows * (self.max_iter - self.n_iter))
        return partial(report_rows_to, clock)

    def __call__(
        self,
        iteration: int,
        dictionary: Callable[[], Any],
        objective: float,
        **measures: float,
    ) -> bool:
        """Record an iteration; True if a callback or `tol` stops the fit."""
        if not np.isfinite(objective):
            raise ValueError(
                f"{self.title}: the {self.measure} is not finite after iteration "
                f"{iteration + 1}, the samples are too large. Scale them, e.g. with "
                + scalers_for(getattr(dictionary(), "weights", dictionary()).dtype)
            )
        self.history["objective"].append(objective)
        self.history["seconds"].append(time.perf_counter() - self._start_time)
        for name, value in measures.items():
            self.history.setdefault(name, []).append(value)
        if self.schedule.verbose:
            print(
                f"{self.title} {iteration + 1}/{self.max_iter}: {self.measure} "
                f"{objective:.6g}, {self.history['seconds'][-1]:.2f} s",
                flush=True,
            )
        stop = has_settled(
            self.history["objective"], self.schedule.tol, self.schedule.warm_up
        )
        if self.schedule.callback is not None:
            report = {"iteration": iteration, "objective": objective}
            answer = self.schedule.callback({**report, "dictionary": dictionary()})
            stop = bool(answer) or stop
        if self.tasks is not None:  # scikit-learn's callbacks
            attributes = partial(self._attributes_so_far, dictionary)
            stop = self.tasks.end_iteration(attributes, self.history) or stop
        return stop

    def _attributes_so_far(self, current: Callable[[], Any]) -> dict[str, Any] | None:
        learned = self.so_far(current())
        if learned is None:
            return None
        history = {name: [*values] for name, values in self.history.items()}
        return {**learned, "history_": history, "n_iter_": self.n_iter}


class Alternation(ABC):
    """The base class of what `iterate` runs: a state, and a step that improves it."""

    @abstractmethod
    def current(self) -> Any:
        """Return the dictionary after the last step, for the callback.

        No later step may change it, because a callback may store it.
        """

    @abstractmethod
    def step(self, keep: Callable[[], None]) -> dict[str, float]:
        """Improve the state; return its ``objective``, and other measures.

        `keep` saves the state. A long step calls it where it can be resumed.
        """

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return everything that the next step depends on, for a checkpoint."""

    @abstractmethod
    def resume(self, state: dict[str, Any]) -> None:
        """Continue from a state; raise an exception if it does not fit."""


def iterate(
    alternation: Alternation,
    monitor: Monitor,
    checkpoint: Checkpoint | None = None,
    X: Any = None,  # samples whose rows are counted, to show progress
) -> tuple[dict[str, list[float]], int]:
    """Take `monitor.max_iter` steps, less those before the checkpoint.

    It returns the history and the number of iterations.
    """
    checkpoint = checkpoint or Checkpoint()
    if checkpoint.state is not None:
        with checkpoint.resuming() as state:
            alternation.resume(state)
            monitor.resume(state["history"])

    def keep(is_finished: bool = False) -> None:
        if checkpoint.has_file:
            checkpoint.keep(is_finished, history=monitor.history, **alternation.state())

    n_end = 0 if checkpoint.done else monitor.max_iter
    row_counter = nullcontext if X is None else monitor.row_counter(X)
    for iteration in range(monitor.n_iter, n_end):
        if monitor.tasks is not None:
            monitor.tasks.begin_iteration(iteration)
        with row_counter():
            measures = alternation.step(keep)
        stop = monitor(iteration, alternation.current, **measures)
        keep(is_finished=stop or iteration + 1 == n_end)
        if stop:
            break
    else:
        if monitor.schedule.tol > 0 and not checkpoint.done:
            warn_unfinished(monitor.unfinished())
    return monitor.history, monitor.n_iter
