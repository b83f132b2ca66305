"""Codecs of objects of the closed list of classes (`registry.storable`).

Reading calls the constructor of a listed class with stored data and then sets data
attributes: no file can name another class or reach a function.
"""

from __future__ import annotations

import warnings
from dataclasses import fields, is_dataclass
from typing import Any

from sklearn.base import BaseEstimator

from ..registry import storable
from .codec import Codec, Decoder, Node, PersistenceError, Place

#: Parameters of a session, not of a model: not stored, and None after loading.
SESSION_ONLY = ("callback", "memory")


class UnknownClassError(ValueError):
    """A file names a class that is not in the list."""


def _class_name(value: Any, place: Place) -> str:
    for name, cls in storable().items():
        if cls is type(value):
            return name
    problem = f"{type(value).__qualname__} is not a class that model files may name"
    raise PersistenceError(place.path, problem)


def _class(node: dict[str, Node]) -> type:
    cls = storable().get(node["class"])
    if cls is None:
        raise UnknownClassError(
            f"names the unknown class {node['class']!r}: upgrade kernlets if the file "
            "comes from a later version"
        )
    return cls


def _is_record(value: Any) -> bool:
    is_named_tuple = isinstance(value, tuple) and hasattr(value, "_fields")
    return is_named_tuple or (is_dataclass(value) and not isinstance(value, type))


def _write_record(value: Any, place: Place) -> dict[str, Node]:
    names = getattr(value, "_fields", None) or [f.name for f in fields(value)]
    parts = place.children({name: getattr(value, name) for name in names})
    return {"class": _class_name(value, place), "fields": parts}


def _read_record(node: dict[str, Node], decoder: Decoder) -> Any:
    return _class(node)(**decoder.children(node["fields"]))


def _write_estimator(value: BaseEstimator, place: Place) -> dict[str, Node]:
    name = _class_name(value, place)
    params = value.get_params(deep=False)
    state = {key: part for key, part in vars(value).items() if key not in params}
    return {
        "class": name,
        "params": place.children(_without_session(value, params)),
        "state": place.children(state),
    }


def _without_session(value: Any, params: dict[str, Any]) -> dict[str, Any]:
    given = [name for name in SESSION_ONLY if params.get(name) is not None]
    for name in given:
        warnings.warn(
            f"{type(value).__name__}: {name} is not part of a model file, set it "
            "again after loading",
            stacklevel=2,
        )
    return {**params, **dict.fromkeys(given)}


def _read_estimator(node: dict[str, Node], decoder: Decoder) -> BaseEstimator:
    cls = _class(node)
    params = decoder.children(node["params"])
    params.update({name: None for name in SESSION_ONLY if name in params})
    estimator = cls(**params)
    state = decoder.children(node["state"])
    for name in state:
        if not name.isidentifier() or callable(getattr(cls, name, None)):
            raise ValueError(f"{cls.__name__}.{name} holds no data")
    if hasattr(cls, "_parameter_constraints"):
        estimator._validate_params()
    vars(estimator).update(state)
    return estimator


OBJECTS = (
    Codec("record", _is_record, _write_record, _read_record),
    Codec(
        "estimator",
        lambda value: isinstance(value, BaseEstimator),
        _write_estimator,
        _read_estimator,
    ),
)
