"""Kernels from what users write: names such as ``"poly:2"``, functions, kernels.

`KERNELS` lists the kernels that have a name. A kernel in a file of its own gets there
through its line in `kernlets/__init__.py`.
"""

from __future__ import annotations

from ast import literal_eval
from difflib import get_close_matches
from inspect import signature
from typing import Any

from .. import _added
from ..core import Kernel
from .dot import Cosine, Linear, Polynomial, Sigmoid
from .family import reset
from .histogram import Chi2, Intersection
from .radial import RBF, Laplacian, Matern, RationalQuadratic
from .user_kernels import Callable, Precomputed

KERNELS: dict[str, type[Kernel]] = {
    "linear": Linear,
    "polynomial": Polynomial,
    "rbf": RBF,
    "laplacian": Laplacian,
    "matern": Matern,
    "rational_quadratic": RationalQuadratic,
    "sigmoid": Sigmoid,
    "cosine": Cosine,
    "chi2": Chi2,
    "intersection": Intersection,
    "precomputed": Precomputed,
    **{name.replace("-", "_"): kind for name, kind in _added("kernels").items()},
}

MAX_VALUE = 40  # characters of a parameter in a name
_SHORT = {"poly": "polynomial"}
_SCIKIT_LEARN = {(Polynomial, "gamma"): "scale", (Sigmoid, "gamma"): "scale"}


def resolve(spec: Any, **params: Any) -> Kernel:
    """The kernel that `spec` describes.

    Parameters
    ----------
    spec : Kernel, str or callable
        A kernel; a name with parameters in the order of the constructor or by name
        (``"rbf"``, ``"poly:2"``, ``"rbf:0.5"``, ``"matern:nu=2.5"``,
        ``"poly:3,coef0=1"``); or a function of two blocks (see `Callable`).
    **params
        Further parameters; scikit-learn's names for them are accepted.
    """
    if isinstance(spec, Kernel):
        return reset(spec, **params) if params else spec
    if isinstance(spec, str):
        return _from_string(spec, params)
    if isinstance(spec, type) and issubclass(spec, Kernel):
        return _make(spec, params)
    if callable(spec):
        return Callable(spec, **params)
    raise TypeError(
        f"kernel={spec!r} must be a kernel such as RBF(sigma=1.0), a name such as "
        "'rbf' or 'poly:2', or a function of two blocks of samples"
    )


def _from_string(spec: str, params: dict[str, Any]) -> Kernel:
    name, _, arguments = spec.partition(":")
    kind = _kind(name.strip().lower().replace("-", "_"))
    given = _parse(kind, arguments) if arguments.strip() else {}
    return _make(kind, {**given, **params})


def _kind(name: str) -> type[Kernel]:
    name = _SHORT.get(name, name)
    if name in KERNELS:
        return KERNELS[name]
    close = get_close_matches(name, [*KERNELS, *_SHORT], n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise ValueError(f"unknown kernel {name!r}: {hint}choose from {', '.join(KERNELS)}")


def _names(kind: type[Kernel]) -> list[str]:
    """Parameters in the order of the constructor."""
    return list(signature(kind).parameters)


def _parse(kind: type[Kernel], arguments: str) -> dict[str, Any]:
    """Parameters by name; a value without a name is assigned by its position."""
    names = _names(kind)
    given: dict[str, Any] = {}
    for place, argument in enumerate(arguments.split(",")):
        name, equals, value = argument.rpartition("=")
        if not equals:
            name = names[place] if place < len(names) else f"number {place + 1}"
        given[name.strip()] = _value(value)
    return given


def _value(text: str) -> Any:
    text = text.strip()
    try:
        # Python's parser does not survive everything that is long and deep
        return literal_eval(text if len(text) <= MAX_VALUE else "")
    except (ValueError, SyntaxError):
        raise ValueError(f"kernel parameter {text!r} is not a number") from None


def _make(kind: type[Kernel], params: dict[str, Any]) -> Kernel:
    names = _names(kind)
    params = {_SCIKIT_LEARN.get((kind, name), name): v for name, v in params.items()}
    unknown = [name for name in params if name not in names]
    if unknown:
        known = ", ".join(names) or "none"
        raise ValueError(
            f"{kind.__name__} has no parameter {unknown[0]!r}; it takes: {known}"
        )
    return kind(**params)
