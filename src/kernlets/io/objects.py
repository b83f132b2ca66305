"""Codecs of objects of the closed list of classes (`registry.storable`).

Reading calls the constructor of a listed class with stored parameters, checks these,
sets the fitted attributes that the class declares, and checks the whole (`fields`): no
file can name another class, reach a function, or make an object that `fit` could not.
"""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.base import BaseEstimator

from ..base.estimator import Estimator, as_fitted, note_params
from ..registry import storable
from ..schema import attributes, is_record, record_fields
from .codec import Codec, Decoder, Node, PersistenceError, TreePosition
from .parameters import SESSION_ONLY, check_parameters


class UnknownClassError(ValueError):
    """A file names a class that is not in the list."""


def _class_name(value: Any, position: TreePosition) -> str:
    for name, cls in storable().items():
        if cls is type(value):
            return name
    problem = f"{type(value).__qualname__} is not a class that model files may name"
    raise PersistenceError(position.path, problem)


def _class_named(name: Any) -> type:
    cls = storable().get(name) if isinstance(name, str) else None
    if cls is None:
        raise UnknownClassError(
            f"names the unknown class {name!r}: upgrade kernlets if the file comes "
            "from a later version"
        )
    return cls


def _is_record(value: Any) -> bool:
    return is_record(value) and not isinstance(value, type)


def _write_record(value: Any, position: TreePosition) -> dict[str, Node]:
    nodes = position.children(attributes(value))
    name = _class_name(value, position)
    position.check(value)
    return {"class": name, "fields": nodes}


def _read_record(node: dict[str, Node], decoder: Decoder) -> Any:
    cls = _class_named(node["class"])
    if not is_record(cls):
        raise ValueError(f"{cls.__name__} is no record")
    values = decoder.children(node["fields"])
    if values.keys() != {*record_fields(cls)}:
        raise ValueError(f"{cls.__name__} has other fields than {sorted(values)}")
    return decoder.check(cls(**values))


def _write_estimator(value: BaseEstimator, position: TreePosition) -> dict[str, Node]:
    name, value = _class_name(value, position), as_fitted(value)
    params = _without_session(value, value.get_params(deep=False))
    nodes = position.children(params), position.children(attributes(value))
    try:
        check_parameters(type(value), params)
    except ValueError as error:
        raise PersistenceError(position.path, str(error)) from None
    position.check(value)
    return {"class": name, "params": nodes[0], "state": nodes[1]}


def _without_session(value: Any, params: dict[str, Any]) -> dict[str, Any]:
    set_names = [name for name in SESSION_ONLY if params.get(name) is not None]
    for name in set_names:
        warnings.warn(
            f"{type(value).__name__}: {name} is not part of a model file, set it "
            "again after loading",
            stacklevel=2,
        )
    return {**params, **dict.fromkeys(set_names)}


def _read_estimator(node: dict[str, Node], decoder: Decoder) -> BaseEstimator:
    cls = _class_named(node["class"])
    if not issubclass(cls, BaseEstimator):
        raise ValueError(f"{cls.__name__} is no estimator")
    params = decoder.children(node["params"])
    estimator = cls(**params)
    check_parameters(cls, params)
    state = decoder.children(node["state"])
    for name in state.keys() & estimator.get_params(deep=False):
        raise ValueError(f"{cls.__name__}.{name} is a parameter and cannot be fitted")
    vars(estimator).update(state)
    if state and isinstance(estimator, Estimator):
        note_params(estimator)
    return decoder.check(estimator)


OBJECTS = (
    Codec("record", _is_record, _write_record, _read_record, ("class", "fields")),
    Codec(
        "estimator",
        lambda value: isinstance(value, BaseEstimator),
        _write_estimator,
        _read_estimator,
        ("class", "params", "state"),
    ),
)
