"""Looks up names that users write for objects, and suggests similar ones.

A name may carry parameters, in the order of the constructor or by name: ``"poly:2"``,
``"omp:5"``, ``"matern:nu=2.5"``. Kernels, coders and updates share this notation, and
so do samplers of landmarks, which are functions: ``"coreset:replace=True"``.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, partial
from inspect import Parameter, signature
from typing import Any

MAX_VALUE = 40  # characters of a parameter in a name


def similar(name: str, names: Iterable[str], n: int = 1) -> list[str]:
    """Return up to n of the names that are spelt like `name`, the nearest first."""
    return get_close_matches(name, list(names), n=n)


def guess(name: str, names: Iterable[str]) -> str:
    """Return ``"did you mean 'rbf'? "``, or nothing if no name is similar.

    >>> guess("rbff", ["linear", "rbf"])
    "did you mean 'rbf'? "
    """
    matches = similar(name, names)
    return f"did you mean {matches[0]!r}? " if matches else ""


def build(kind_name: str, spec: str, table: Mapping[str, type]) -> Any:
    """Return the object that a name with parameters describes.

    >>> from fractions import Fraction
    >>> build("number", "fraction:3,denominator=4", {"fraction": Fraction})
    Fraction(3, 4)
    """
    return make(*parse(kind_name, spec, table))


def build_from_params(kind_name: str, kind: type, arguments: str) -> Any:
    """Return an object of the class with parameters from a text.

    >>> from fractions import Fraction
    >>> build_from_params("number", Fraction, "3,denominator=4")
    Fraction(3, 4)
    """
    return make(kind, _parameters(kind_name, _parameter_names(kind), arguments))


def partial_from_options(
    kind_name: str, function: Callable[..., Any], arguments: str
) -> Callable[..., Any]:
    """Return the function with the keyword-only parameters that a text sets.

    >>> partial_from_options("order", sorted, "reverse=True")([1, 2])
    [2, 1]
    """
    if not arguments.strip():
        return function
    names = [
        name
        for name, parameter in signature(function).parameters.items()
        if parameter.kind is Parameter.KEYWORD_ONLY
    ]
    options = _parameters(kind_name, names, arguments)
    _refuse_unknown(function.__name__, options, names)
    return partial(function, **options)


def parse(
    kind_name: str,
    spec: str,
    table: Mapping[str, type],
    aliases: Mapping[str, str] | None = None,  # further names of entries
) -> tuple[type, dict[str, Any]]:
    """Return the class that a name with parameters stands for, and the parameters."""
    name, _, arguments = spec.partition(":")
    name, aliases = name.strip().lower(), aliases or {}
    kind = table.get(aliases.get(name, name))
    if kind is None:
        hint, choices = guess(name, [*table, *aliases]), ", ".join(table)
        raise ValueError(f"unknown {kind_name} {name!r}: {hint}choose from {choices}")
    if not arguments.strip():
        return kind, {}
    return kind, _parameters(kind_name, _parameter_names(kind), arguments)


def make(kind: type, params: Mapping[str, Any]) -> Any:
    """Make an object of the class; refuse parameters that it does not have."""
    _refuse_unknown(kind.__name__, params, _parameter_names(kind))
    return kind(**params)


def _refuse_unknown(
    owner: str, params: Mapping[str, Any], names: Sequence[str]
) -> None:
    unknown = [name for name in params if name not in names]
    if unknown:
        choices = ", ".join(names) or "none"
        raise ValueError(
            f"{owner} has no parameter {unknown[0]!r}; it takes: {choices}"
        )


@cache
def _parameter_names(kind: type) -> tuple[str, ...]:
    return tuple(signature(kind).parameters)


def _parameters(kind_name: str, names: Sequence[str], arguments: str) -> dict[str, Any]:
    """Return parameters by name; a value without a name is assigned by its position."""
    params: dict[str, Any] = {}
    for i, argument in enumerate(arguments.split(",")):
        name, equals, value = argument.rpartition("=")
        if not equals:
            name = names[i] if i < len(names) else f"number {i + 1}"
        value = value.strip()
        try:
            # Python's parser does not survive everything that is long and deep.
            literal = literal_eval(value if len(value) <= MAX_VALUE else "")
        except (ValueError, SyntaxError):
            message = f"{kind_name} parameter {value!r} is not a number"
            raise ValueError(message) from None
        params[name.strip()] = literal
    return params
