"""The base class of all estimators, which manages options and threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from functools import wraps
from inspect import getattr_static, isfunction
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..config import options
from ..data.limits import work_context
from ..sklearn_base import BaseEstimator, CallbackSupportMixin
from .notebook import portrait
from .progress import fit_with_callbacks, has_callbacks
from .row_names import note_row_names

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
"""Methods at which callbacks are called."""

WHOLE_FITS = ("fit", "fit_transform", "fit_predict")
"""Methods that forget earlier fits; their first argument is the training rows."""

NAMED: dict[str, Callable[[Any], Any]] = {}
"""How a text in a parameter becomes an object; each package adds its parameters."""

PARAMS = "_params_of_fit"
"""The attribute with the parameters of the fit; it is not saved (`fields.check`)."""

_SENDER = "_sender_options"

_LIMITED = "_on_own_threads"


class NamedParts(BaseEstimator):
    """An object with parameters that may be names of others, whose parameters it has.

    ``kernel="poly:2"`` is such a name, and ``kernel__degree`` a parameter of both.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep` also those of components, given or named.

        A component that is given by its name stays a name.
        """
        params = super().get_params(deep=deep)
        for name, value in list(params.items()) if deep else ():
            if not _may_name_a_part(value) or "__" in name:
                continue
            try:
                component = self._named_part(name, value)
            except (TypeError, ValueError):
                continue  # `fit` says what is wrong with the name
            if hasattr(component, "get_params"):
                component_params = component.get_params(deep=True).items()
                params.update(
                    {f"{name}__{key}": value for key, value in component_params}
                )
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of components (``kernel__degree=3``).

        A component that is given by its name becomes the object that it names.
        """
        nested: dict[str, dict[str, Any]] = {}
        for key in params:
            name, separator, inner_name = key.partition("__")
            if separator:
                nested.setdefault(name, {})[inner_name] = params[key]
        for name, component_params in nested.items():
            value = params.get(name, getattr(self, name, None))
            if _may_name_a_part(value):
                component = self._named_part(name, value)
            else:  # a copy, because a fitted model may hold the object
                component = clone(value) if hasattr(value, "set_params") else None
            if component is None and name in type(self)._get_param_names():
                _refuse_params_of_none(name, component_params, value)
            if component is not None:
                params = {k: v for k, v in params.items() if not _is_inside(k, name)}
                params[name] = component.set_params(**component_params)
        if not params.keys() <= set(self._get_param_names()):
            return super().set_params(**params)  # raises an error with all names
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def _named_part(self, name: str, value: Any) -> Any:
        """Return the object that a text, a number or None in a parameter means."""
        return NAMED[name](value) if name in NAMED else None


class Estimator(CallbackSupportMixin, NamedParts):
    """Base of learners, maps, classifiers and detectors.

    * Inside its methods BLAS runs on one thread; threads are the library's own, as
      many as the option `n_threads` says, so that results do not depend on them.
    * A process that was started by the sender of a pickled estimator, as joblib's are,
      adopts the sender's options.
    * scikit-learn's callbacks, set by `set_callbacks`, are called at each fit.
    * The index of a dataframe is stored, so that an explanation can name its rows.
    * A parameter may be a name such as ``kernel="poly:2"`` (`NamedParts`). Until the
      next fit a fitted model works with the parameters of its fit, except for those in
      `_acts_at_once`.
    * A notebook shows a fitted estimator with its atoms and its history.
    * If a GPU runs out of memory, a MemoryError says what to do; a matrix that cannot
      be factored is a ValueError. NumPy does not warn of overflow in between, because
      results are checked.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in METHODS:
            method = getattr_static(cls, name, None)  # of the class or of a mixin
            if isfunction(method) and _is_unwrapped(method):
                setattr(cls, name, _on_own_threads(method))

    _acts_at_once: ClassVar[frozenset[str]] = frozenset()
    """Parameters that concern only new samples; setting them needs no fit."""

    _doc_link_module = "kernlets"
    _stores_row_names = True  # whether an explanation may need the names of rows

    @property
    def _doc_link_template(self) -> str:
        """The page of a class, for diagrams, in the site that KERNLETS_DOCS names."""
        site = os.environ.get("KERNLETS_DOCS", "").rstrip("/")
        return f"{site}/api/{{estimator_name}}.html" if site else ""

    def _repr_html_inner(self) -> str:
        return _diagram_with(portrait(self), super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = _diagram_with(portrait(self), bundle["text/html"])
        return bundle

    def _get_params_html(self, *args: Any, **kwargs: Any) -> Any:
        """Return what scikit-learn shows in the box of a step, from 1.7 on."""
        parameters = super()._get_params_html(*args, **kwargs)
        return _Box(parameters._repr_html_inner() + portrait(self))

    @property
    def _n_tasks(self) -> int | None:
        """How many iterations a fit has at most; None if it fits other estimators."""
        return getattr(self, "max_iter", 0)

    def _so_far(self, current: Any) -> dict[str, Any] | None:
        """Attributes with which a fit could stop after an iteration, for callbacks.

        None if the model cannot be used before the fit has ended.
        """
        return None

    def __copy__(self) -> Self:
        """Return a shallow copy; unlike a pickle it needs no options of the sender."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), _SENDER: (os.getpid(), options.changes())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        sender, changes = state.pop(_SENDER, (None, {}))
        if sender == os.getppid():
            options.adopt(changes)
        super().__setstate__(state)


class _Box(NamedTuple):
    """The content of the box of a step in a diagram of scikit-learn."""

    html: str

    def _repr_html_inner(self) -> str:
        return self.html


def _diagram_with(picture: str, diagram: str) -> str:
    """Put the picture of a model below its diagram instead of into it."""
    return diagram.replace(picture, "") + picture if picture else diagram


def _refuse_params_of_none(
    name: str, component_params: dict[str, Any], value: Any
) -> None:
    """Refuse parameters of something that has none, such as ``coder=None``."""
    if not hasattr(value, "set_params"):
        raise ValueError(
            f"{name}__{next(iter(component_params))} cannot be set, because "
            f"{name}={value!r} has no parameters: set {name} to "
            "an object that has them first"
        )


def check_fitted(estimator: Any) -> None:
    """Raise scikit-learn's error if nothing was fitted; its own check is slow."""
    tells_itself = getattr(estimator, "__sklearn_is_fitted__", None)
    if tells_itself is None:
        is_fitted = hasattr(estimator, "n_features_in_")
    else:
        is_fitted = tells_itself()
    if not is_fitted:
        check_is_fitted(estimator)


def note_params(estimator: Any) -> None:
    """Note the parameters with which an estimator was fitted."""
    setattr(estimator, PARAMS, estimator.get_params(deep=False))


def as_fitted(estimator: Any) -> Any:
    """Return the estimator with the parameters of its fit, if others were set since."""
    fitted_params = vars(estimator).get(PARAMS, {})
    changed_names = [
        k for k, v in fitted_params.items() if getattr(estimator, k) is not v
    ]
    if not changed_names:
        return estimator
    params = {
        k: fitted_params[k] for k in changed_names if k not in estimator._acts_at_once
    }
    fitted_copy = copy(estimator)
    vars(fitted_copy).update(params)
    return fitted_copy


def _may_name_a_part(value: Any) -> bool:
    """Whether a parameter may stand for an object: a text, a number, or None."""
    is_flag = isinstance(value, bool)
    return value is None or (isinstance(value, (str, int)) and not is_flag)


def _is_inside(key: str, name: str) -> bool:
    return key.startswith(f"{name}__")


def _is_unwrapped(method: FunctionType) -> bool:
    """Whether a method is to be wrapped: it reads the model and is not wrapped yet.

    Methods of scikit-learn call others, but for the one that names features.
    """
    calls_others = method.__module__.startswith("sklearn.")
    reads_model = not calls_others or method.__name__ == "get_feature_names_out"
    return reads_model and not getattr(method, _LIMITED, False)


def _on_own_threads(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method, run on the library's own threads, with advice in errors.

    Callbacks are called at a fit.
    """
    name = method.__name__
    calls_back, is_fit, notes_rows = name in FITS, "fit" in name, name in WHOLE_FITS

    @wraps(method)
    def run_method(self: Any, *args: Any, **kwargs: Any) -> Any:
        with work_context():
            if not is_fit:
                model = as_fitted(self)
                if model is not self:  # parameters were set since the fit
                    self._validate_params()
                return method(model, *args, **kwargs)
            vars(self).pop(PARAMS, None)
            if calls_back and has_callbacks(self):
                result = fit_with_callbacks(self, method, *args, **kwargs)
            else:
                result = method(self, *args, **kwargs)
            note_params(self)
        if notes_rows and self._stores_row_names:
            note_row_names(self, args[0] if args else kwargs.get("X"))
        return result

    setattr(run_method, _LIMITED, True)
    return run_method
