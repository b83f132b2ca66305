"""The reference: a page for each public name, and one that lists them by task.

The names are those that `kernlets.registry` knows: a new one needs no line here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from kernlets import _HOME_OF, contracts, kernels, registry

#: What people look for first; what is not named here stands between, kernels last.
FIRST = (
    "classifiers",
    "outliers",
    "imputation",
    "images",
    "learners",
    "maps",
    "coders",
)
LAST = ("contracts", "landmarks", "kernels")
TITLES = {
    "coders": "Sparse coders",
    "outliers": "Outlier detectors",
    "imputation": "Missing values",
    "io": "Model files",
    "export": "Models without Python",
    "config": "Options",
    "data": "Rows and masks",
    "contracts": "Contracts",
}
BAR = re.compile(r"(`[^`]*`)|\|")
CONTRACTS = ("Dictionary", "SparseCoder", "AtomUpdate", "SparseCodes")


def write_pages(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    kinds = dict(sorted(_kinds(), key=lambda kind: _place(kind[0])))
    pages = {"index": _index(kinds)}
    for names in kinds.values():
        pages.update({name: _page(name, value) for name, value in names.items()})
    for old in folder.glob("*.rst"):
        if old.stem not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text("utf-8") != text:  # else it is rebuilt
            path.write_text(text, "utf-8")


def _kinds() -> Iterator[tuple[str, dict[str, Any]]]:
    """Names of each kind: public ones, registered ones without a name, contracts."""
    public = registry.public_objects()
    kind_of = {name: _kind(name) for name in public}
    for kind in dict.fromkeys(kind_of.values()):
        yield kind, {name: public[name] for name in public if kind_of[name] == kind}
    for kind in ("updates", "landmarks"):
        unnamed = {
            f"{kind}.{value.__name__}": value
            for value in registry.table(kind).values()
            if value.__name__ not in public
        }
        yield f"More {kind}" if kind == "updates" else kind, unnamed
    classes: dict[str, Any] = {"kernels.Kernel": kernels.Kernel}
    classes |= {f"contracts.{name}": getattr(contracts, name) for name in CONTRACTS}
    yield "contracts", classes


def _place(kind: str) -> int:
    """Where a kind stands in the reference: negative, zero or positive."""
    first = FIRST.index(kind) - len(FIRST) if kind in FIRST else 0
    return LAST.index(kind) + 1 if kind in LAST else first


def _kind(name: str) -> str:
    return _HOME_OF.get(name, name).partition(".")[0]


def _index(kinds: dict[str, dict[str, Any]]) -> str:
    parts = [_title("Reference", "="), "Every public name, with a tested example.\n"]
    for kind, names in kinds.items():
        parts.append(_title(TITLES.get(kind, kind.capitalize()), "-"))
        rows = "\n".join(_row(name, value) for name, value in names.items())
        parts.append(f".. list-table::\n   :widths: 30 70\n\n{rows}\n")
    every = "\n".join(f"   {name}" for names in kinds.values() for name in names)
    return "\n".join([*parts, f".. toctree::\n   :hidden:\n\n{every}\n"])


def _row(name: str, value: Any) -> str:
    (first,) = escaped([registry.summary(value)])
    return f"   * - :doc:`{name} </api/{name}>`\n     - {first}"


def escaped(lines: Iterable[str]) -> Iterator[str]:
    """Docstrings write ``|x|`` for absolute values; Sphinx would substitute them.

    Code, which is in backticks or after a prompt, stays.
    """
    is_code = False
    for line in lines:
        is_code = line.lstrip().startswith(">>>") or (is_code and bool(line.strip()))
        yield line if is_code else BAR.sub(lambda m: m[1] or r"\|", line)


def escape_bars(app: Sphinx, what: str, name: str, *rest: Any) -> None:
    lines = rest[-1]
    lines[:] = escaped(lines)


def _page(name: str, value: Any) -> str:
    module, _, own = f"kernlets.{name}".rpartition(".")
    parts = [_title(own, "="), f".. currentmodule:: {module}\n"]
    if inspect.isclass(value):
        members = ", ".join(_members(value))
        parts.append(f".. autoclass:: {own}\n   :members: {members}\n")
    elif inspect.isfunction(value):
        parts.append(f".. autofunction:: {own}\n")
    else:
        parts.append(f".. autodata:: {own}\n   :no-value:\n")
    parts.append(f".. minigallery:: kernlets.{name}\n   :add-heading: In the gallery\n")
    return "\n".join(parts)


def _members(cls: type) -> Iterable[str]:
    """Public methods and properties that the library defines, not scikit-learn."""
    for name in sorted(dir(cls)):
        value = inspect.getattr_static(cls, name)
        value = getattr(value, "__func__", getattr(value, "fget", value))
        home = getattr(value, "__module__", None) or ""
        if not name.startswith("_") and home.startswith("kernlets") and value.__doc__:
            yield name


def _title(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", escape_bars, priority=1)  # then numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
