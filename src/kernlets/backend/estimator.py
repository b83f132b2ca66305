"""The base class of all estimators, which manages options and threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any

from sklearn.base import BaseEstimator

from ..config import options
from .room import told_when_full
from .threads import serial_blas

METHODS = (
    "fit",
    "fit_transform",
    "fit_predict",
    "partial_fit",
    "transform",
    "inverse_transform",
    "encode",
    "predict",
    "predict_proba",
    "decision_function",
    "explain",
    "residuals",
    "reconstruction_error",
    "score",
    "score_samples",
)
"""Public methods that compute."""

_SENDER = "_sender_options"


class Estimator(BaseEstimator):
    """Base of learners, maps, classifiers and detectors.

    * Inside its methods BLAS runs on one thread; threads are the library's own, as
      many as the option `n_threads` says, so that results do not depend on them.
    * A process that was started by the sender of a pickled estimator, as joblib's are,
      adopts the sender's options.
    * A GPU without memory left is a MemoryError that says what to do.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in METHODS:
            if isfunction(vars(cls).get(name)):
                setattr(cls, name, _on_own_threads(vars(cls)[name]))

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), _SENDER: (os.getpid(), options.changed())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        sender, changes = state.pop(_SENDER, (None, {}))
        if sender == os.getppid():
            options.adopt(changes)
        super().__setstate__(state)


def _on_own_threads(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method with BLAS on one thread while it runs, and advice on a full GPU."""

    @wraps(method)
    def limited(*args: Any, **kwargs: Any) -> Any:
        with serial_blas, told_when_full():
            return method(*args, **kwargs)

    return limited
