"""scikit-learn's callbacks: progress bars, monitors, early stops.

An estimator with callbacks tells them of its fit, and of each iteration or part of it.
scikit-learn has callbacks since version 1.9. Before, there is no `set_callbacks`, and
nothing here does anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Any
from weakref import WeakKeyDictionary

try:
    from sklearn.callback import with_callbacks
except ImportError:  # scikit-learn before 1.9

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        return method


class FitTasks:
    """A running fit as callbacks see it: one task, with a task for each of its steps.

    `how_many` is the number of iterations at most; None if the steps are parts of the
    estimator, whose number is not known before and which may be fitted side by side.
    """

    def __init__(self, estimator: Any, how_many: int | None, X: Any, y: Any) -> None:
        self._told = {"estimator": estimator, "X": X, "y": y}
        self._root = estimator._init_callback_context(
            max_subtasks=how_many, sequential_subtasks=how_many is not None
        )
        self._root.call_on_fit_task_begin(**self._told)

    def finish(self) -> None:
        """Tell that the estimator is fitted."""
        self._root.call_on_fit_task_end(**self._told, reconstruction_attributes={})

    def begin_iteration(self, number: int) -> None:
        self._task = self._root.subcontext(f"iteration {number + 1}")
        self._task.call_on_fit_task_begin(**self._told)

    def end_iteration(
        self, so_far: Callable[[], dict[str, Any] | None], history: dict[str, Any]
    ) -> bool:
        """True if a callback wants to stop; `so_far` gives attributes to stop with."""
        self._told["estimator"].history_ = history
        return self._task.call_on_fit_task_end(
            **self._told, reconstruction_attributes=so_far
        )

    @contextmanager
    def part(self, number: int, name: str, estimator: Any) -> Iterator[None]:
        task = self._root.subcontext(name, task_id=number)
        with task.propagate_callback_context(estimator):
            task.call_on_fit_task_begin(**self._told)
            yield
            task.call_on_fit_task_end(**self._told)


_RUNNING: WeakKeyDictionary[Any, FitTasks] = WeakKeyDictionary()
# beside the estimators, so that copies of one in a fit have no part in it


def running(estimator: Any) -> FitTasks | None:
    """The tasks of the fit that the estimator is in, if it has callbacks."""
    return None if estimator is None else _RUNNING.get(estimator)


@contextmanager
def part_of(whole: Any, number: int, name: str, part: Any) -> Iterator[None]:
    """In it a part of an estimator is fitted, and tells the callbacks of the whole."""
    tasks = running(whole)
    if tasks is None:
        yield
        return
    with tasks.part(number, name, part):
        yield


def has_callbacks(estimator: Any) -> bool:
    return bool(getattr(estimator, "_skl_callbacks", None))


@with_callbacks
def told_fit(estimator: Any, fit: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A `fit` or `partial_fit` of which callbacks are told, its failure included."""
    estimator._validate_params()  # the number of iterations is one of them
    how_many = 1 if fit.__name__ == "partial_fit" else estimator._n_tasks
    given = signature(fit).bind(estimator, *args, **kwargs).arguments
    tasks = FitTasks(estimator, how_many, given.get("X"), given.get("y"))
    _RUNNING[estimator] = tasks
    try:
        fitted = fit(estimator, *args, **kwargs)
    finally:
        del _RUNNING[estimator]
    tasks.finish()
    return fitted
