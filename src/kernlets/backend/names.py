"""Names that users write for objects: looking them up, and help with misspelt ones.

A name may carry parameters, in the order of the constructor or by name: ``"poly:2"``,
``"omp:5"``, ``"matern:nu=2.5"``. Kernels, coders and updates share this notation.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from inspect import signature
from typing import Any

MAX_VALUE = 40  # characters of a parameter in a name


def similar(name: str, known: Iterable[str], n: int = 1) -> list[str]:
    """Up to n known names that are spelt like `name`, the most similar first."""
    return get_close_matches(name, list(known), n=n)


def guess(name: str, known: Iterable[str]) -> str:
    """``"did you mean 'rbf'? "``, or nothing if no known name is similar.

    >>> guess("rbff", ["linear", "rbf"])
    "did you mean 'rbf'? "
    """
    close = similar(name, known)
    return f"did you mean {close[0]!r}? " if close else ""


def build(what: str, spec: str, table: Mapping[str, type]) -> Any:
    """The object that a name with parameters describes.

    >>> from fractions import Fraction
    >>> build("number", "fraction:3,denominator=4", {"fraction": Fraction})
    Fraction(3, 4)
    """
    return make(*parse(what, spec, table))


def parse(
    what: str,
    spec: str,
    table: Mapping[str, type],
    short: Mapping[str, str] | None = None,  # further names of entries
) -> tuple[type, dict[str, Any]]:
    """The class that a name with parameters stands for, and the parameters."""
    name, _, arguments = spec.partition(":")
    name, short = name.strip().lower(), short or {}
    kind = table.get(short.get(name, name))
    if kind is None:
        hint, choices = guess(name, [*table, *short]), ", ".join(table)
        raise ValueError(f"unknown {what} {name!r}: {hint}choose from {choices}")
    return kind, _parameters(what, kind, arguments) if arguments.strip() else {}


def make(kind: type, params: Mapping[str, Any]) -> Any:
    """An object of the class; a parameter that it does not have is named."""
    names = list(signature(kind).parameters)
    unknown = [name for name in params if name not in names]
    if unknown:
        known = ", ".join(names) or "none"
        raise ValueError(
            f"{kind.__name__} has no parameter {unknown[0]!r}; it takes: {known}"
        )
    return kind(**params)


def _parameters(what: str, kind: type, arguments: str) -> dict[str, Any]:
    """Parameters by name; a value without a name is assigned by its position."""
    names = list(signature(kind).parameters)
    given: dict[str, Any] = {}
    for place, argument in enumerate(arguments.split(",")):
        name, equals, value = argument.rpartition("=")
        if not equals:
            name = names[place] if place < len(names) else f"number {place + 1}"
        given[name.strip()] = _value(what, value.strip())
    return given


def _value(what: str, text: str) -> Any:
    try:
        # Python's parser does not survive everything that is long and deep
        return literal_eval(text if len(text) <= MAX_VALUE else "")
    except (ValueError, SyntaxError):
        raise ValueError(f"{what} parameter {text!r} is not a number") from None
