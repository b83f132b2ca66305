"""Checks of parameters in files: the constraints of `fit` and some more.

A file holds no functions, opens no other files and starts no processes: a parameter
that would lead to that when the model is used is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import FeatureUnion

from ..base.constraints import StrOptions, validate_parameter_constraints
from ..schema import LARGEST

#: Parameters of a session, not of a model: not stored, and None in every file.
SESSION_ONLY = ("callback", "memory")
MAX_JOBS = 256
#: Kinds of parameters that may be True or False; else loops would be compiled anew.
BOOLEAN = ("boolean", "verbose", "no_validation", bool, object)
#: Constraints of the class of scikit-learn that has none itself.
FEATURE_UNION = {
    "transformer_list": [list],
    "n_jobs": [Integral, None],
    "transformer_weights": [dict, None],
    "verbose": ["boolean"],
    "verbose_feature_names_out": ["boolean", StrOptions({"default"})],
}


def constraints_of(cls: type) -> dict[str, Any]:
    """Return the constraints of the parameters of a class, adapted to files.

    Functions are not among the allowed kinds, and an array-like is an array or a list.
    """
    if cls is FeatureUnion:
        return FEATURE_UNION
    adapted = {}
    for name, kinds in getattr(cls, "_parameter_constraints", {}).items():
        if not isinstance(kinds, str):  # "no_validation"
            arrays = [np.ndarray, list, tuple] if "array-like" in kinds else []
            excluded = (callable, Callable, "array-like")
            kinds = [kind for kind in kinds if kind not in excluded] + arrays
        adapted[name] = kinds
    return adapted


def check_parameters(cls: type, params: dict[str, Any]) -> None:
    """Refuse parameters that `fit` would refuse, or that could do harm later."""
    owner, constraints = cls.__name__, constraints_of(cls)
    for name in SESSION_ONLY:
        if params.get(name) is not None:
            raise ValueError(f"{owner}.{name} must be None in a file")
    validate_parameter_constraints(constraints, params, caller_name=owner)
    for name, value in params.items():
        kinds = constraints.get(name, ())
        is_boolean = isinstance(kinds, str) or any(kind in BOOLEAN for kind in kinds)
        if type(value) is bool and not is_boolean:
            raise ValueError(f"{owner}.{name} is {value}, it must not be a bool")
        if not _is_harmless(name, value):
            raise ValueError(f"{owner}.{name} is not what it must be in a file")


def _is_harmless(name: str, value: Any) -> bool:
    """Whether a parameter that meets its constraints is all that it must be."""
    if name in ("feature_range", "quantile_range"):
        return len(value) == 2 and all(isinstance(end, Real) for end in value)
    if name == "n_jobs":
        return value is None or abs(value) <= MAX_JOBS
    if name == "steps":  # transformers, then any estimator
        before_last, last = value[:-1], value[-1:]
        return (
            all(
                _is_step(step, "transform", "passthrough", None) for step in before_last
            )
            and last != []
            and _is_step(last[0], "get_params", "passthrough", None)
        )
    if name == "transformer_list":
        return all(_is_step(step, "transform", "passthrough", "drop") for step in value)
    if name == "transformer_weights":
        weights = {} if value is None else value
        return all(isinstance(w, (Real, type(None))) for w in weights.values())
    # whole numbers fit into the integers of loops
    return not isinstance(value, Integral) or abs(int(value)) <= LARGEST


def _is_step(step: Any, method: str, *placeholders: str | None) -> bool:
    """Whether a step has a printable name, and an estimator or a placeholder."""
    if type(step) is not tuple or len(step) != 2:
        return False
    name, estimator = step
    is_valid = (
        hasattr(estimator, method)
        if isinstance(estimator, BaseEstimator)
        else isinstance(estimator, (str, type(None))) and estimator in placeholders
    )
    return isinstance(name, str) and name.isprintable() and is_valid
