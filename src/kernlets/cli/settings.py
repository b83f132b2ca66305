"""``--set NAME=VALUE``: any parameter of a model, by its name or the end of it."""

from __future__ import annotations

from ast import literal_eval
from typing import Any

from sklearn.pipeline import Pipeline

from ..backend.names import similar
from ..kernels import resolve
from ..pursuits import resolve_coder


def apply_setting(model: Any, setting: str) -> None:
    """Set one parameter of the model.

    NAME is a name that `set_params` knows, or an end of one that no other parameter
    shares: ``max_iter`` for ``residualclassifier__learner__max_iter``. VALUE is a
    Python literal; anything else is text.
    """
    name, equals, text = setting.partition("=")
    if not equals or not name:
        raise ValueError(f"--set {setting}: write it as NAME=VALUE")
    full = _full_name(model, name.strip())
    model.set_params(**{full: _value(full.rpartition("__")[2], text.strip())})


def _full_name(model: Any, name: str) -> str:
    names = _parameters(model)
    if name in names:
        return name
    ends = [full_name for full_name in names if full_name.endswith(f"__{name}")]
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise ValueError(f"--set {name} is not unique: choose from {', '.join(ends)}")
    raise ValueError(f"--set {name}: no such parameter: {_hint(name, names)}")


def _parameters(model: Any) -> list[str]:
    """Return the names of the parameters of all steps, without those of the pipeline.

    Other options choose its steps, and its ``verbose`` belongs to no step.
    """
    names = list(model.get_params(deep=True))
    return [n for n in names if "__" in n] if isinstance(model, Pipeline) else names


def _hint(name: str, names: list[str]) -> str:
    """Name the parameters whose last component is similar, or all last components."""
    last = sorted({full_name.rpartition("__")[2] for full_name in names})
    close = similar(name.rpartition("__")[2], last, n=3)
    near = [full_name for full_name in names if full_name.rpartition("__")[2] in close]
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"there are {', '.join(last)}"


def _value(parameter: str, text: str) -> Any:
    """Return the value of a text; names of kernels and coders become objects."""
    if parameter == "kernel":
        return resolve(text)
    if parameter == "coder":
        return resolve_coder(text)
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text
