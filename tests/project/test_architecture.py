"""The plan of the house: who may import whom, and where heavy libraries live."""

from __future__ import annotations

import abc
import ast
import importlib
import inspect
import sys
from fnmatch import fnmatch
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import kernlets
from kernlets import registry

ROOT = Path(kernlets.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# Each part with the parts it may import from, besides itself.
ALLOWED: dict[str, set[str]] = {
    "__init__": set(),  # names and the version
    "config": set(),
    "schema": set(),
    "sklearn_base": set(),  # types for scikit-learn's base classes
    "registry": {"__init__", "schema"},
    "numerics": {"config"},
    "contracts": {"config", "numerics", "schema", "sklearn_base"},
    "data": {"config", "contracts", "numerics"},
    "loops": {"config", "contracts", "numerics", "data"},
}
GROUND = {*ALLOWED, "base"} - {"registry"}
ALLOWED |= {
    "base": GROUND - {"base"},
    "io": GROUND | {"registry"},
    "clustering": GROUND,
    "kernels": GROUND,
    "landmarks": GROUND | {"kernels", "clustering"},
    "preimage": GROUND | {"kernels"},
    "maps": GROUND | {"kernels", "landmarks", "preimage"},
    "metrics": GROUND | {"kernels", "maps", "dictionaries"},
    "dictionaries": GROUND | {"kernels", "preimage"},
    "coders": GROUND | {"dictionaries"},
    "updates": GROUND | {"kernels", "dictionaries", "coders"},
    "learners": GROUND
    | {"kernels", "preimage", "dictionaries", "coders", "updates", "io"}
    | {"clustering"},
    "datasets": GROUND | {"io"},
    "classifiers": GROUND
    | {"kernels", "maps", "dictionaries", "coders", "updates", "learners"}
    | {"io"}  # checkpoints
    | {"datasets"}  # noise and holes that a robust choice is made with
    | {"images"}  # patches of images
    | {"imputation"},  # in front of the winner, where rows have gaps
    "outliers": GROUND | {"kernels", "dictionaries", "learners"},
    "imputation": GROUND | {"kernels", "learners"},
    "images": GROUND | {"maps", "dictionaries", "coders", "learners"},
    "export": GROUND
    | {"kernels", "maps", "dictionaries", "coders", "learners", "classifiers"}
    | {"outliers", "io"},
    "plotting": GROUND | {"dictionaries"},
}
ALLOWED["cli"] = set(ALLOWED)
ALLOWED["__main__"] = {"cli"}
# What is imported by a name that is computed: Dask and the compiled loops.
BY_NAME = {
    "data/rows.py": ("data.on_dask",),
    "loops/table.py": (
        "loops.omp.",
        "loops.lasso.",
        "loops.updates.",
        "loops.kernels.",
        "loops.budget.",
    ),
    "loops/omp/torch.py": ("loops.omp.triton", "loops.updates.triton"),
}
# Heavy libraries, and where they may be imported.
HOMES = {
    "numba": ("loops/*/numba*.py", "loops/compiled.py"),
    "torch": (
        "loops/*/torch*.py",
        "loops/*/triton*.py",
        "numerics/arrays.py",
        "config.py",
    ),
    "triton": ("loops/*/triton*.py",),
    "dask": ("data/dask_*", "data/on_dask*"),
    "distributed": ("data/dask_*", "data/on_dask*"),
}


def name_of(path: Path) -> str:
    parts = ("kernlets", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in FILES}


def part_of(name: str) -> str:
    """The first-level part of kernlets that a module belongs to."""
    return (name.split(".") + ["__init__"])[1]


def imported_modules(path: Path, node: ast.AST) -> set[str]:
    """Modules of kernlets named by one import statement, by their full names."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & MODULES.keys()
    if not isinstance(node, ast.ImportFrom):
        return set()
    package = ["kernlets", *path.relative_to(ROOT).parts[:-1]]
    base = package[: len(package) - node.level + 1] if node.level else []
    stem = ".".join([*base, *([node.module] if node.module else [])])
    inner = {f"{stem}.{alias.name}" for alias in node.names}
    found = inner & MODULES.keys()
    return found | ({stem} & MODULES.keys() if found != inner else set())


@cache
def imports(path: Path) -> set[str]:
    """All modules of kernlets that a file imports, at its top or in functions."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    found = {name for node in nodes for name in imported_modules(path, node)}
    return found - {name_of(path)}


def imports_by_name(path: Path) -> set[str]:
    """What a file can import by a name that it computes."""
    prefixes = BY_NAME.get(path.relative_to(ROOT).as_posix(), ())
    starts = tuple(f"kernlets.{prefix}" for prefix in prefixes)
    return {name for name in MODULES if name.startswith(starts)}


def test_no_import_leads_back():
    """No cycle, however late an import is made."""
    graph = {name: imports(p) | imports_by_name(p) for name, p in MODULES.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules


def test_imports_follow_the_plan():
    TopologicalSorter(ALLOWED).prepare()  # no part comes before one that it imports
    wrong = [
        f"{name} imports {target}"
        for name, path in MODULES.items()
        for target in imports(path)
        if part_of(target) not in {part_of(name), *ALLOWED[part_of(name)]}
    ]
    assert not wrong, "\n".join(wrong)


def test_heavy_libraries_have_one_home():
    wrong = []
    for path in FILES:
        here = path.relative_to(ROOT).as_posix()
        for library in imported_libraries(path):
            homes = HOMES.get(library, ("*",))
            if not any(fnmatch(here, home) for home in homes):
                wrong.append(f"{here} imports {library}")
    assert not wrong, "\n".join(wrong)


def imported_libraries(path: Path) -> set[str]:
    """Libraries that a file imports, at its top or in functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return {name.split(".")[0] for name in names}


def test_contracts_know_no_arrays_but_numpys():
    libraries = imported_libraries(ROOT / "contracts.py") - sys.stdlib_module_names
    assert libraries == {"numpy", "scipy"}


def library_classes() -> list[type]:
    """Every class that a module of the library defines."""
    found = set()
    for path in FILES:
        name = ".".join(("kernlets", *path.relative_to(ROOT).with_suffix("").parts))
        if "__main__" in name or ".loops." in name or "dask" in name:
            continue  # no abstract classes; heavy libraries
        values = vars(importlib.import_module(name.removesuffix(".__init__"))).values()
        found |= {v for v in values if isinstance(v, type)}
    return [cls for cls in found if cls.__module__.startswith("kernlets.")]


def test_abstract_classes_say_so():
    """A method that a subclass must define is enforced: its class is an ABC."""
    for cls in library_classes():
        lacking = [n for n, v in vars(cls).items() if is_abstract_method(v)]
        assert not lacking or isinstance(cls, abc.ABCMeta), f"{cls}: {lacking}"


def is_abstract_method(value: object) -> bool:
    return bool(getattr(value, "__isabstractmethod__", False))


def test_no_estimator_inherits_what_it_does_not_define():
    for cls in registry.estimators():
        assert not inspect.isabstract(cls), cls
