"""scikit-learn's callbacks: progress bars, monitors, early stops.

An estimator with callbacks calls them at its fit, and at each iteration or component of
it. scikit-learn has callbacks since version 1.9. Estimators of older versions have no
`set_callbacks`, and nothing here has an effect.
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
        """True if a callback wants to stop.

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
    """The tasks of the running fit of an estimator; None without callbacks."""
    return None if estimator is None else _RUNNING.get(estimator)


@contextmanager
def part_of(estimator: Any, number: int, name: str, component: Any) -> Iterator[None]:
    """A block in which a component is fitted; callbacks of the estimator are called."""
    tasks = running(estimator)
    if tasks is None:
        yield
        return
    with tasks.part(number, name, component):
        yield


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
