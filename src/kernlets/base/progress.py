"""Progress of a fit: lines with rows and speed, and scikit-learn's callbacks.

An estimator with callbacks calls them at its fit, and at each iteration or component of
it. scikit-learn has callbacks since version 1.9. Estimators of older versions have no
`set_callbacks`, and nothing here has an effect.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from inspect import signature
from typing import Any
from weakref import WeakKeyDictionary

try:
    from sklearn.callback import with_callbacks
except ImportError:  # scikit-learn before 1.9

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        return method


SECONDS = 10.0  # between two lines


class RowClock:
    """Counts finished rows, from any thread, and prints progress every few seconds."""

    def __init__(self, title: str, total: int | None) -> None:
        self.title, self.total, self.n_done = title, total, 0
        self._start_time = self._last_print = time.monotonic()
        self._lock = threading.Lock()

    def __call__(self, n: int) -> None:
        with self._lock:
            self.n_done += n
            time_now = time.monotonic()
            if time_now - self._last_print < SECONDS:
                return
            self._last_print = time_now
        print(f"{self.title}: {self._text(time_now - self._start_time)}", flush=True)

    def _text(self, seconds: float) -> str:
        speed = self.n_done / seconds
        if self.total is None:
            return f"{self.n_done:,} rows, {speed:,.0f} rows/s"
        seconds_left = max(self.total - self.n_done, 0) / speed
        return (
            f"{self.n_done:,} of {self.total:,} rows, {speed:,.0f} rows/s, "
            f"{timedelta(seconds=round(seconds_left))} left"
        )


class FitTasks:
    """A running fit as callbacks see it: one task, with a task for each of its steps.

    `n_iterations` is the largest number of iterations. It is None if the steps are fits
    of components of the estimator, whose number is unknown and which may be parallel.
    """

    def __init__(
        self, estimator: Any, n_iterations: int | None, X: Any, y: Any
    ) -> None:
        self._fit_arguments = {"estimator": estimator, "X": X, "y": y}
        self._root = estimator._init_callback_context(
            max_subtasks=n_iterations, sequential_subtasks=n_iterations is not None
        )
        self._root.call_on_fit_task_begin(**self._fit_arguments)

    def finish(self) -> None:
        """Call the callbacks at the end of the fit."""
        self._root.call_on_fit_task_end(
            **self._fit_arguments, reconstruction_attributes={}
        )

    def begin_iteration(self, number: int) -> None:
        self._task = self._root.subcontext(f"iteration {number + 1}")
        self._task.call_on_fit_task_begin(**self._fit_arguments)

    def end_iteration(
        self,
        attributes_so_far: Callable[[], dict[str, Any] | None],
        history: dict[str, Any],
    ) -> bool:
        """Call the callbacks; return True if one wants to stop.

        `attributes_so_far` gives attributes with which the fit could stop.
        """
        self._fit_arguments["estimator"].history_ = history
        return self._task.call_on_fit_task_end(
            **self._fit_arguments, reconstruction_attributes=attributes_so_far
        )

    @contextmanager
    def part(self, number: int, name: str, estimator: Any) -> Iterator[None]:
        task = self._root.subcontext(name, task_id=number)
        with task.propagate_callback_context(estimator):
            task.call_on_fit_task_begin(**self._fit_arguments)
            yield
            task.call_on_fit_task_end(**self._fit_arguments)


_RUNNING: WeakKeyDictionary[Any, FitTasks] = WeakKeyDictionary()
# not an attribute: copies of an estimator made in its fit must not call callbacks


def running(estimator: Any) -> FitTasks | None:
    """Return the tasks of the running fit of an estimator; None without callbacks."""
    return None if estimator is None else _RUNNING.get(estimator)


def part_of(
    estimator: Any, number: int, name: str, component: Any
) -> AbstractContextManager[None]:
    """Open a block that fits a component, at which callbacks are called."""
    tasks = running(estimator)
    return nullcontext() if tasks is None else tasks.part(number, name, component)


def has_callbacks(estimator: Any) -> bool:
    return bool(getattr(estimator, "_skl_callbacks", None))


@with_callbacks
def fit_with_callbacks(
    estimator: Any, fit: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """Run a `fit` or `partial_fit`; callbacks are called, also if it fails."""
    estimator._validate_params()  # the number of iterations is one of them
    n_iterations = 1 if fit.__name__ == "partial_fit" else estimator._n_tasks
    arguments = signature(fit).bind(estimator, *args, **kwargs).arguments
    tasks = FitTasks(estimator, n_iterations, arguments.get("X"), arguments.get("y"))
    _RUNNING[estimator] = tasks
    try:
        fitted = fit(estimator, *args, **kwargs)
    finally:
        del _RUNNING[estimator]
    tasks.finish()
    return fitted
