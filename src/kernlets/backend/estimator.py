"""The base class of all estimators, which manages options and threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from functools import wraps
from inspect import getattr_static, isfunction
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.base import clone

from ..config import options
from ..sklearn_base import BaseEstimator, CallbackSupportMixin
from .callbacks import has_callbacks, told_fit
from .notebook import portrait
from .row_names import note_row_names
from .work import at_work

if TYPE_CHECKING:
    from typing_extensions import Self

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
    "get_feature_names_out",
)
"""Public methods that compute, or that describe what others compute."""

FITS = ("fit", "partial_fit")
"""Those of which callbacks are told."""

WHOLE_FITS = ("fit", "fit_transform", "fit_predict")
"""Those that forget earlier fits; the first argument is the training rows."""

NAMED: dict[str, Callable[[str], Any]] = {}
"""What the names mean that a parameter may have; each package enters its own here."""

PARAMS = "_params_of_fit"
"""Where parameters of the fit are noted; files leave it out (`fields.check`)."""

_SENDER = "_sender_options"

_LIMITED = "_on_own_threads"


class Estimator(CallbackSupportMixin, BaseEstimator):
    """Base of learners, maps, classifiers and detectors.

    * Inside its methods BLAS runs on one thread; threads are the library's own, as
      many as the option `n_threads` says, so that results do not depend on them.
    * A process that was started by the sender of a pickled estimator, as joblib's are,
      adopts the sender's options.
    * scikit-learn's callbacks, set by `set_callbacks`, are told of each fit.
    * The index of a dataframe is stored, so that an explanation can name its rows.
    * A parameter may be a name such as ``kernel="poly:2"``; the parameters of what it
      names are those of the estimator, too: ``kernel__degree``.
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

    _acts_at_once: ClassVar[frozenset[str]] = frozenset()
    """Parameters that only say how new samples are treated, and need no fit."""

    _doc_link_module = "kernlets"
    _stores_row_names = True  # whether an explanation may need the names of rows

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

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; with `deep` also those of parts, given as objects or by name.

        A part that is given by its name stays so.
        """
        params = super().get_params(deep=deep)
        for name, value in list(params.items()) if deep else ():
            if not isinstance(value, str) or "__" in name:
                continue
            try:
                part = self._named_part(name, value)
            except (TypeError, ValueError):
                continue  # `fit` says what is wrong with the name
            if part is not None:
                own = part.get_params(deep=True).items()
                params.update({f"{name}__{key}": value for key, value in own})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of parts (``kernel__degree=3``).

        A part that is given by its name becomes the object that it names. A fitted
        model works as it was fitted until the next fit, but for the parameters that
        `_acts_at_once` names.
        """
        nested: dict[str, dict[str, Any]] = {}
        for key in params:
            name, inner, rest = key.partition("__")
            if inner:
                nested.setdefault(name, {})[rest] = params[key]
        for name, own in nested.items():
            value = params.get(name, getattr(self, name, None))
            if isinstance(value, str):
                part = self._named_part(name, value)
            else:  # a copy, because a fitted model may hold the object
                part = clone(value) if hasattr(value, "set_params") else None
            if part is None and name in type(self)._get_param_names():
                _refuse_partless(name, own, value)
            if part is not None:
                params = {k: v for k, v in params.items() if not _is_inside(k, name)}
                params[name] = part.set_params(**own)
        return super().set_params(**params)

    def _named_part(self, name: str, text: str) -> Any:
        """The object that the text in a parameter names; None if it names none."""
        return NAMED[name](text) if name in NAMED else None

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


def _refuse_partless(name: str, own: dict[str, Any], value: Any) -> None:
    """Refuse parameters of something that has none, such as ``coder=None``."""
    if not hasattr(value, "set_params"):
        raise ValueError(
            f"{name}__{next(iter(own))} cannot be set, because {name}={value!r} has no "
            f"parameters: set {name} to an object that has them first"
        )


def note_params(estimator: Any) -> None:
    """Note the parameters with which an estimator was fitted."""
    setattr(estimator, PARAMS, estimator.get_params(deep=False))


def as_fitted(estimator: Any) -> Any:
    """The estimator with the parameters of its fit, if others were set since."""
    fitted = vars(estimator).get(PARAMS, {})
    changed = [k for k, v in fitted.items() if getattr(estimator, k) is not v]
    if not changed:
        return estimator
    own = {k: fitted[k] for k in changed if k not in estimator._acts_at_once}
    as_it_was = copy(estimator)
    vars(as_it_was).update(own)
    return as_it_was


def _is_inside(key: str, name: str) -> bool:
    return key.startswith(f"{name}__")


def _is_free(method: FunctionType) -> bool:
    """Whether a method is not limited yet and reads the model itself.

    Those of scikit-learn call others, but for the one that names features.
    """
    calls_others = method.__module__.startswith("sklearn.")
    reads = not calls_others or method.__name__ == "get_feature_names_out"
    return reads and not getattr(method, _LIMITED, False)


def _on_own_threads(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method with BLAS on one thread while it runs, and errors that give advice.

    Callbacks are told of a fit.
    """
    name = method.__name__
    tells, fits, names_rows = name in FITS, "fit" in name, name in WHOLE_FITS

    @wraps(method)
    def limited(self: Any, *args: Any, **kwargs: Any) -> Any:
        with at_work():
            if not fits:
                model = as_fitted(self)
                if model is not self:  # parameters were set since the fit
                    self._validate_params()
                return method(model, *args, **kwargs)
            vars(self).pop(PARAMS, None)
            if tells and has_callbacks(self):
                result = told_fit(self, method, *args, **kwargs)
            else:
                result = method(self, *args, **kwargs)
            note_params(self)
        if names_rows and self._stores_row_names:
            note_row_names(self, args[0] if args else kwargs.get("X"))
        return result

    setattr(limited, _LIMITED, True)
    return limited
