"""The base class of all estimators, which manages options and threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from inspect import getattr_static, isfunction
from types import FunctionType
from typing import Any

from ..config import options
from ..sklearn_base import BaseEstimator, CallbackSupportMixin
from .callbacks import has_callbacks, told_fit
from .notebook import portrait
from .work import at_work

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

FITS = ("fit", "partial_fit")
"""Those of which callbacks are told."""

_SENDER = "_sender_options"
_LIMITED = "_on_own_threads"


class Estimator(CallbackSupportMixin, BaseEstimator):
    """Base of learners, maps, classifiers and detectors.

    * Inside its methods BLAS runs on one thread; threads are the library's own, as
      many as the option `n_threads` says, so that results do not depend on them.
    * A process that was started by the sender of a pickled estimator, as joblib's are,
      adopts the sender's options.
    * scikit-learn's callbacks, set by `set_callbacks`, are told of each fit.
    * A notebook shows a fitted one with its atoms and its history.
    * A GPU without memory left is a MemoryError that says what to do, and a matrix that
      cannot be factored a ValueError. NumPy does not warn of numbers that overflow on
      the way: results are looked at.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in METHODS:
            method = getattr_static(cls, name, None)  # its own, or of a mixin
            if isfunction(method) and _is_free(method):
                setattr(cls, name, _on_own_threads(method))

    _doc_link_module = "kernlets"

    @property
    def _doc_link_template(self) -> str:
        """The page of a class, for diagrams, in the site that KERNLETS_DOCS names."""
        site = os.environ.get("KERNLETS_DOCS", "").rstrip("/")
        return f"{site}/api/{{estimator_name}}.html" if site else ""

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + portrait(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += portrait(self)
        return bundle

    @property
    def _n_tasks(self) -> int | None:
        """How many iterations a fit has at most; None if it fits other estimators."""
        return getattr(self, "max_iter", 0)

    def _so_far(self, current: Any) -> dict[str, Any] | None:
        """Attributes with which a fit could stop after an iteration, for callbacks.

        None if what is learned later is needed to use the model.
        """
        return None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), _SENDER: (os.getpid(), options.changed())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        sender, changes = state.pop(_SENDER, (None, {}))
        if sender == os.getppid():
            options.adopt(changes)
        super().__setstate__(state)


def _is_free(method: FunctionType) -> bool:
    """Whether a method is not limited yet; scikit-learn's only call others."""
    is_ours = not method.__module__.startswith("sklearn.")
    return is_ours and not getattr(method, _LIMITED, False)


def _on_own_threads(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method with BLAS on one thread while it runs, and errors that give advice.

    Callbacks are told of a fit.
    """
    tells = method.__name__ in FITS

    @wraps(method)
    def limited(*args: Any, **kwargs: Any) -> Any:
        with at_work():
            if tells and has_callbacks(args[0]):
                return told_fit(args[0], method, *args[1:], **kwargs)
            return method(*args, **kwargs)

    setattr(limited, _LIMITED, True)
    return limited
