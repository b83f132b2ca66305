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
"""Where an estimator notes the parameters that it was fitted with."""
CALLBACKS = "_skl_callbacks"
"""Where scikit-learn keeps callbacks, which belong to a session and to no model."""


class Misfit(ValueError):
    """A value that is not what was declared."""


class Sizes(dict[str, int]):
    """The sizes of one object by letter, and whether it is fitted."""

    def __init__(self, owner: Any, known: dict[int, Sizes]) -> None:
        super().__init__()
        self.owner, self.known, self.fitted = owner, known, False

    def agree(self, dimension: Any, size: int) -> bool:
        """Whether this can be the size of a dimension; if so, it is recorded."""
        if not _is_letter(dimension):
            return dimension is None or self.value(dimension) == size
        letter, _, least = dimension.partition(">=")
        return size >= int(least or 1) and self.setdefault(letter, size) == size

    def value(self, dimension: Any) -> int:
        """The size that a dimension has."""
        if _is_letter(dimension):
            return self[dimension]
        if isinstance(dimension, str):
            return attrgetter(dimension[1:])(self.owner)
        return dimension

    def text(self, dimension: Any) -> str:
        """A dimension in an error message: its letter, and its size where known."""
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


def check(value: Any, known: dict[int, Sizes] | None = None) -> Sizes:
    """The sizes of an object that meets its declaration; otherwise a `Misfit`.

    `known` remembers the objects that were checked with it, so that each is checked
    once.
    """
    known = {} if known is None else known
    if id(value) not in known:  # an object in `known` lives on as an owner
        known[id(value)] = _checked(value, Sizes(value, known))
    return known[id(value)]


def _checked(value: Any, sizes: Sizes) -> Sizes:
    name, declared = type(value).__name__, declared_of(type(value))
    parts = attributes(value)
    _check_names(name, declared, parts, sizes)
    present = [part for part in declared if part in parts]
    for part in sorted(present, key=lambda part: declared[part].waits):
        try:
            declared[part].check(parts[part], sizes)
        except Misfit as error:
            raise Misfit(f"{name}.{part} {error}") from None
    for rule, holds in _inherited(type(value), "_conditions").items():
        if sizes.fitted and not holds(value):
            raise Misfit(f"{name}: {rule}")
    return sizes


def _check_names(
    name: str, declared: Declared, parts: dict[str, Any], sizes: Sizes
) -> None:
    """Check that exactly the declared parts exist; before a fit only `_early` ones."""
    unknown = [part for part in parts if part not in declared]
    if unknown:
        raise Misfit(f"{name} has no attribute {unknown[0]!r}")
    needed = {part for part, field in declared.items() if not field.optional}
    telling = needed - {*getattr(sizes.owner, "_early", ())}
    sizes.fitted = not needed or bool(telling & parts.keys())
    missing = sorted(needed - parts.keys())
    if sizes.fitted and missing:
        raise Misfit(f"{name} lacks {missing[0]!r}")


def attributes(value: Any) -> dict[str, Any]:
    """The parts of an object that its class has to declare."""
    if is_record(value):
        return {name: getattr(value, name) for name in record_fields(type(value))}
    others = {*value.get_params(deep=False), CALLBACKS, PARAMS}
    return {name: v for name, v in vars(value).items() if name not in others}


def is_record(value: Any) -> bool:
    """Whether an object, or a class, is a data class or a named tuple."""
    return is_dataclass(value) or hasattr(value, "_fields")


def record_fields(cls: Any) -> list[str]:
    """The names of the fields of a record."""
    return list(getattr(cls, "_fields", None) or [f.name for f in fields(cls)])


def declared_of(cls: type) -> Declared:
    """The declarations of a class and its base classes."""
    return _inherited(cls, "_declared")


def _inherited(cls: type, table: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        is_foreign = base.__module__.startswith("sklearn.")
        own = FOREIGN[table].get(base.__name__) if is_foreign else vars(base).get(table)
        found.update(own or {})
    return found


#: "_declared" and "_conditions" of scikit-learn's classes; `foreign.py` fills them in.
FOREIGN: dict[str, dict[str, Any]] = {"_declared": {}, "_conditions": {}}
