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
from ..schema.kinds import LARGEST

#: Parameters of a session, not of a model: not stored, and None in every file.
SESSION_ONLY = ("callback", "memory")
MAX_JOBS = 256

Constraints = dict[str, Any]

#: Constraints of classes that have none themselves.
EXTRA_CONSTRAINTS: dict[type, Constraints] = {
    FeatureUnion: {
        "transformer_list": [list],
        "n_jobs": [Integral, None],
        "transformer_weights": [dict, None],
        "verbose": ["boolean"],
        "verbose_feature_names_out": ["boolean", StrOptions({"default"})],
    }
}


def constraints_of(cls: type) -> Constraints:
    """Return the constraints of the parameters of a class, adapted to files."""
    constraints = EXTRA_CONSTRAINTS.get(cls) or getattr(
        cls, "_parameter_constraints", {}
    )
    return {name: _for_files(kinds) for name, kinds in constraints.items()}


def _for_files(kinds: list[Any] | str) -> list[Any] | str:
    """Remove functions from the allowed kinds, and say what an array-like may be."""
    if isinstance(kinds, str):  # "no_validation"
        return kinds
    storable = [
        kind for kind in kinds if kind not in (callable, Callable, "array-like")
    ]
    return [*storable, np.ndarray, list, tuple] if "array-like" in kinds else storable


def check_parameters(cls: type, params: dict[str, Any]) -> None:
    """Refuse parameters that `fit` would refuse, or that could do harm later."""
    owner = cls.__name__
    for name in SESSION_ONLY:
        if params.get(name) is not None:
            raise ValueError(f"{owner}.{name} must be None in a file")
    constraints = constraints_of(cls)
    validate_parameter_constraints(constraints, params, caller_name=owner)
    for name, value in params.items():
        if type(value) is bool and not _takes_bool(constraints.get(name, ())):
            raise ValueError(f"{owner}.{name} is {value}, it must not be a bool")
        if not CHECKS.get(name, _is_moderate)(value):
            raise ValueError(f"{owner}.{name} is not what it must be in a file")


def _takes_bool(kinds: list[Any] | str) -> bool:
    """Whether booleans are allowed; loops would be compiled anew for them."""
    boolean_kinds = ("boolean", "verbose", "no_validation", bool, object)
    return isinstance(kinds, str) or any(kind in boolean_kinds for kind in kinds)


def _is_moderate(value: Any) -> bool:
    """Whether a value, if it is a whole number, fits into integers of loops."""
    return not isinstance(value, Integral) or abs(int(value)) <= LARGEST


def _are_jobs(value: Any) -> bool:
    return value is None or abs(value) <= MAX_JOBS


def _are_transformers(value: Any) -> bool:
    """Whether these are the transformers of a union of features."""
    return all(_is_step(step, "transform", ("passthrough", "drop")) for step in value)


def _are_steps(value: Any) -> bool:
    """Whether these are steps of a pipeline: transformers, then any estimator."""
    skipped = ("passthrough", None)
    is_last_valid = bool(value) and _is_step(value[-1], "get_params", skipped)
    return is_last_valid and all(
        _is_step(step, "transform", skipped) for step in value[:-1]
    )


def _is_step(step: Any, method: str, skipped: tuple[Any, ...]) -> bool:
    """Whether a step has a printable name, and an estimator or a placeholder."""
    if type(step) is not tuple or len(step) != 2:
        return False
    name, estimator = step
    is_named = isinstance(name, str) and name.isprintable()
    if isinstance(estimator, BaseEstimator):
        return is_named and hasattr(estimator, method)
    return (
        is_named and isinstance(estimator, (str, type(None))) and estimator in skipped
    )


def _are_weights(value: Any) -> bool:
    """Whether these are numbers by name."""
    weights = {} if value is None else value
    return all(isinstance(weight, (Real, type(None))) for weight in weights.values())


def _is_range(value: Any) -> bool:
    return len(value) == 2 and all(isinstance(end, Real) for end in value)


#: Additional checks of parameters, by name.
CHECKS: dict[str, Callable[[Any], bool]] = {
    "feature_range": _is_range,
    "quantile_range": _is_range,
    "n_jobs": _are_jobs,
    "steps": _are_steps,
    "transformer_list": _are_transformers,
    "transformer_weights": _are_weights,
}
