"""The registered names of each kind, and the classes that a model file may name.

Each package has a table from names to classes or functions. The command line lists its
entries, and they can be saved and loaded; nothing has to be added here.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any

from . import _HOME_OF, _HOMES, schema

#: kind, which is also the name of its package or module -> the name of its table
TABLES = {
    "kernels": "KERNELS",
    "landmarks": "SAMPLERS",
    "maps": "MAPS",
    "coders": "CODERS",
    "updates": "UPDATES",
    "learners": "LEARNERS",
    "classifiers": "CLASSIFIERS",
    "outliers": "DETECTORS",
    "imputation": "IMPUTERS",
}

#: Classes of scikit-learn that a model file may contain.
SKLEARN = tuple(name for name in schema.SKLEARN if name != "base.BaseEstimator")


def table(kind: str) -> dict[str, Any]:
    """The table of one kind in `TABLES`: names to classes or functions."""
    return getattr(_module(kind), TABLES[kind])


def estimators() -> list[type]:
    """Every public class with a `fit`: maps, learners, classifiers, detectors."""
    public = (getattr(_module(home), name) for name, home in sorted(_HOME_OF.items()))
    return [
        value
        for value in public
        if isinstance(value, type)
        and hasattr(value, "fit")
        and hasattr(value, "get_params")
    ]


def public_objects() -> dict[str, Any]:
    """Every public class and function except errors, also those of public modules.

    Names are as seen from `kernlets`: ``KSVD``, ``datasets.load``.
    """
    return dict(_callables(importlib.import_module(__package__)))


def _callables(module: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name in _public_names(module):
        value = getattr(module, name)
        if inspect.ismodule(value):
            yield from _callables(value, f"{prefix}{name}.")
        elif callable(value) and not (
            inspect.isclass(value) and issubclass(value, Exception)
        ):
            yield f"{prefix}{name}", value


def _public_names(module: Any) -> list[str]:
    """The `__all__` of a module, or the classes and functions that it defines."""
    if hasattr(module, "__all__"):
        return module.__all__
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
        and (inspect.isclass(value) or inspect.isfunction(value))
    ]


def summary(entry: Any) -> str:
    """First line of the docstring."""
    return (inspect.getdoc(entry) or "").partition("\n")[0]


@lru_cache(maxsize=1)
def storable() -> dict[str, type]:
    """The closed list of classes that a model file may name."""
    kernlets_classes = {f"kernlets.{cls.__name__}": cls for cls in _kernlets_classes()}
    sklearn_classes = {f"sklearn.{name}": _sklearn_class(name) for name in SKLEARN}
    return {**kernlets_classes, **sklearn_classes}


def _kernlets_classes() -> Iterator[type]:
    """Estimators and records in the name spaces of all packages."""
    homes = {*_HOMES, *TABLES, "contracts", "dictionaries"}
    # models hold no objects of these
    homes -= {"config", "io", "export", "data.stream", "data.missing"}
    for home in sorted(homes):
        registered = table(home).values() if home in TABLES else ()
        for value in (*vars(_module(home)).values(), *registered):
            if isinstance(value, type) and _is_storable(value):
                yield value


def _is_storable(cls: type) -> bool:
    is_base = inspect.isabstract(cls) or cls.__module__ == "kernlets.sklearn_base"
    is_ours = cls.__module__.startswith("kernlets.") and not is_base
    # records that are made for one call only have no `_declared`
    is_record = is_dataclass(cls) or hasattr(cls, "_fields")
    is_record = is_record and hasattr(cls, "_declared")
    return is_ours and (is_record or hasattr(cls, "get_params"))


def _module(home: str) -> Any:
    return importlib.import_module(f".{home}", __package__)


def _sklearn_class(name: str) -> type:
    module, _, cls = name.partition(".")
    return getattr(importlib.import_module(f"sklearn.{module}"), cls)
