"""Checks an object against the declaration of its class, and finds its sizes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any

#: "m" from 1 on, "m>=0", a number, ".name" for an attribute, or None for any size.
Dimension = str | int | None
Declared = dict[str, "Field"]
Conditions = dict[str, Callable[[Any], bool]]

PARAMS = "_params_of_fit"
"""The attribute in which an estimator keeps the parameters of its fit."""
CALLBACKS = "_skl_callbacks"
"""The attribute in which scikit-learn keeps callbacks, which are not stored."""


class Misfit(ValueError):
    """The error for a value that does not meet its declaration."""


class Sizes(dict[str, int]):
    """The sizes of one object by letter, and whether it is fitted."""

    def __init__(self, owner: Any, checked_sizes: dict[int, Sizes]) -> None:
        super().__init__()
        self.owner, self.checked_sizes, self.fitted = owner, checked_sizes, False

    def agree(self, dimension: Any, size: int) -> bool:
        """Return whether a dimension can have this size; if so, record it."""
        if not _is_letter(dimension):
            return dimension is None or self.value(dimension) == size
        letter, _, least = dimension.partition(">=")
        return size >= int(least or 1) and self.setdefault(letter, size) == size

    def value(self, dimension: Any) -> int:
        """Return the size of a dimension."""
        if _is_letter(dimension):
            return self[dimension]
        if isinstance(dimension, str):
            return attrgetter(dimension[1:])(self.owner)
        return dimension

    def text(self, dimension: Any) -> str:
        """Describe a dimension for errors: its letter, and its size if recorded."""
        if not _is_letter(dimension):
            return "any" if dimension is None else str(self.value(dimension))
        letter = dimension.partition(">=")[0]
        return f"{letter}={self[letter]}" if letter in self else dimension


def _is_letter(dimension: Dimension) -> bool:
    return isinstance(dimension, str) and not dimension.startswith(".")


class Field(ABC):
    """One kind of values."""

    optional = False  # whether a fitted object may be without it
    waits = False  # whether it is checked when the sizes are known

    @abstractmethod
    def check(self, value: Any, sizes: Sizes) -> None:
        """Raise a `Misfit` unless the value is of this kind; record its sizes."""


def check(value: Any, checked_sizes: dict[int, Sizes] | None = None) -> Sizes:
    """Return the sizes of an object, or raise a `Misfit` if its declaration is not met.

    `checked_sizes` holds the sizes of objects that were checked before, by their ids,
    so that every object is checked once.
    """
    checked_sizes = {} if checked_sizes is None else checked_sizes
    if (
        id(value) not in checked_sizes
    ):  # an object in `checked_sizes` is kept alive by them
        checked_sizes[id(value)] = _check_object(value, Sizes(value, checked_sizes))
    return checked_sizes[id(value)]


def _check_object(value: Any, sizes: Sizes) -> Sizes:
    class_name, declared = type(value).__name__, declared_of(type(value))
    values = attributes(value)
    _check_names(class_name, declared, values, sizes)
    present = [name for name in declared if name in values]
    for name in sorted(present, key=lambda name: declared[name].waits):
        try:
            declared[name].check(values[name], sizes)
        except Misfit as error:
            raise Misfit(f"{class_name}.{name} {error}") from None
    for rule, holds in _collect_from_bases(type(value), "_conditions").items():
        if sizes.fitted and not holds(value):
            raise Misfit(f"{class_name}: {rule}")
    return sizes


def _check_names(
    class_name: str, declared: Declared, values: dict[str, Any], sizes: Sizes
) -> None:
    """Check that exactly the declared parts exist; before a fit only `_early` ones."""
    unknown = [name for name in values if name not in declared]
    if unknown:
        raise Misfit(f"{class_name} has no attribute {unknown[0]!r}")
    required = {name for name, field in declared.items() if not field.optional}
    set_by_fit = required - {*getattr(sizes.owner, "_early", ())}
    sizes.fitted = not required or bool(set_by_fit & values.keys())
    missing = sorted(required - values.keys())
    if sizes.fitted and missing:
        raise Misfit(f"{class_name} lacks {missing[0]!r}")


def attributes(value: Any) -> dict[str, Any]:
    """The parts of an object that its class has to declare."""
    if is_record(value):
        return {name: getattr(value, name) for name in record_fields(type(value))}
    undeclared = {*value.get_params(deep=False), CALLBACKS, PARAMS}
    return {name: v for name, v in vars(value).items() if name not in undeclared}


def is_record(value: Any) -> bool:
    """Whether an object, or a class, is a data class or a named tuple."""
    return is_dataclass(value) or hasattr(value, "_fields")


def record_fields(cls: Any) -> list[str]:
    """The names of the fields of a record."""
    return list(getattr(cls, "_fields", None) or [f.name for f in fields(cls)])


def declared_of(cls: type) -> Declared:
    """The declarations of a class and its base classes."""
    return _collect_from_bases(cls, "_declared")


def _collect_from_bases(cls: type, table: str) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        is_foreign = base.__module__.startswith("sklearn.")
        class_entries = (
            FOREIGN[table].get(base.__name__) if is_foreign else vars(base).get(table)
        )
        entries.update(class_entries or {})
    return entries


#: "_declared" and "_conditions" of scikit-learn's classes; `foreign.py` fills them in.
FOREIGN: dict[str, dict[str, Any]] = {"_declared": {}, "_conditions": {}}
