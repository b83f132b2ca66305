"""The plan of the house: who may import whom, and where heavy libraries live."""

from __future__ import annotations

import abc
import ast
import importlib
import inspect
from pathlib import Path

import pytest

import kernlets
from kernlets import registry

ROOT = Path(kernlets.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# Each part with the parts it may import from, besides itself.
GROUND = {"core", "config", "fields", "backend"}
ALLOWED = {
    "core": {"fields", "kernels"},  # kernels only inside the operators, see LATE
    "config": set(),
    "fields": set(),
    "hot": set(),
    "backend": {"core", "config", "hot"},
    "kernels": GROUND,
    "landmarks": GROUND | {"kernels"},
    "maps": GROUND | {"kernels", "landmarks", "preimage"},
    "metrics": GROUND | {"kernels", "maps"},
    "preimage": GROUND | {"kernels"},
    "dictionaries": GROUND | {"kernels", "preimage"},
    "pursuits": GROUND,
    "updates": GROUND | {"dictionaries", "pursuits"},
    "learners": GROUND
    | {"kernels", "preimage", "dictionaries", "pursuits", "updates"}
    | {"persistence"},  # where checkpoints are written, see LATE
    "classifiers": GROUND
    | {"kernels", "maps", "dictionaries", "pursuits", "updates", "learners"}
    | {"datasets"},  # noise and holes that a robust choice is made with
    "outliers": GROUND | {"learners"},
    "datasets": GROUND,
    "plotting": GROUND | {"dictionaries"},
    "registry": {
        "kernels",
        "landmarks",
        "maps",
        "pursuits",
        "updates",
        "learners",
        "classifiers",
        "dictionaries",
        "core",
    },
    "persistence": GROUND | {"registry"},
}
TOP = {"cli", "__main__", "__init__"}  # may import anything
# The laboratory imports all of the library, and none of it imports the laboratory.
ALLOWED["lab"] = set(ALLOWED)
ALLOWED["experiments"] = {"lab"}  # the former name of kernlets.lab.papers
# Inside the laboratory: everything uses the bench, and the bench nothing of it.
BENCH = {"bench", "published", "untrained"}
LAB = {
    "bench": set(),
    "published": set(),
    "untrained": set(),
    "speed": BENCH,
    "demo": BENCH,
    "papers": BENCH,
    "peers": BENCH,
    "pages": BENCH | {"papers", "peers"},
}
LATE = {("core", "kernels"), ("learners", "persistence")}  # inside functions only
DASK_PARTS = ("files", "rows", "tasks", "wait", "worker")
DASK = {f"backend/dask_{part}.py" for part in DASK_PARTS}
HOMES = {
    "numba": {"hot/numba_.py"},
    "torch": {"hot/torch_.py", "hot/triton_.py", "backend/arrays.py"},
    "triton": {"hot/triton_.py"},
    "dask": DASK,
    "distributed": DASK,
}


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_modules(path: Path, node: ast.AST) -> list[str]:
    """Modules of kernlets named by one import statement, by their full names."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.level == 0:
        names = [node.module or ""]
    elif isinstance(node, ast.ImportFrom):
        package = ["kernlets", *path.relative_to(ROOT).parts[:-1]]
        base = package[: len(package) - node.level + 1]
        stem = [*base, *(node.module.split(".") if node.module else [])]
        names = [".".join([*stem, alias.name]) for alias in node.names]
    else:
        return []
    return [n for n in names if n.startswith("kernlets.")]


def imported_parts(path: Path, node: ast.AST) -> list[str]:
    """First-level parts of kernlets named by one import statement."""
    return [name.split(".")[1] for name in imported_modules(path, node)]


def top_level_nodes(tree: ast.Module) -> set[ast.AST]:
    late = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for inner in ast.walk(node)
    }
    return set(ast.walk(tree)) - late


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_follow_the_plan(path):
    part = part_of(path)
    if part in TOP:
        return
    assert part in ALLOWED, f"{part} has no place in the plan"
    tree = ast.parse(path.read_text())
    early = top_level_nodes(tree)
    for node in ast.walk(tree):
        for target in imported_parts(path, node):
            if target == part or not (ROOT / target).exists() | (
                ROOT / f"{target}.py"
            ).exists():
                continue
            assert target in ALLOWED[part], f"{path.name} imports {target}"
            if (part, target) in LATE:
                assert node not in early, f"{path.name} imports {target} at the top"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "lab").rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT))
)
def test_imports_inside_the_laboratory(path):
    own = path.relative_to(ROOT).parts[1].removesuffix(".py")
    if own == "__init__":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        for name in imported_modules(path, node):
            parts = name.split(".")
            if parts[1] == "lab" and parts[2] != own:
                assert parts[2] in LAB[own], f"{path.name} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_heavy_libraries_have_one_home(path):
    here = path.relative_to(ROOT).as_posix()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        for name in names:
            library = name.split(".")[0]
            assert here in HOMES.get(library, {here}), f"{here} imports {library}"


def test_hot_loops_know_arrays_only():
    for path in (ROOT / "hot").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            assert set(imported_parts(path, node)) <= {"hot"}, path.name


# A loop over iterations makes a monitor, resumes, keeps states and writes the history.
LOOP = {".keep", ".resuming", "Monitor"}
SEARCH = "classifiers/automatic.py"  # a search among models: no steps of one state


def called_names(tree: ast.Module) -> set[str]:
    """What is called: `f` for `f()`, `.f` for `a.f()`."""
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {node.id for node in calls if isinstance(node, ast.Name)}
    methods = [node.attr for node in calls if isinstance(node, ast.Attribute)]
    return names | {f".{name}" for name in methods}


def written_histories(tree: ast.Module) -> list[str]:
    """Calls of the form ``…history…[…].append(…)``."""
    calls = (ast.unparse(n) for n in ast.walk(tree) if isinstance(n, ast.Call))
    return [c for c in calls if "history" in c.split(".append(")[0] and ".append(" in c]


def test_one_function_runs_every_alternation():
    found = {}
    for path in FILES:
        tree = ast.parse(path.read_text())
        if LOOP & called_names(tree) or written_histories(tree):
            found[path.relative_to(ROOT).as_posix()] = called_names(tree)
    assert set(found) == {"learners/iterate.py", SEARCH}
    assert {".keep", ".resuming"} <= found["learners/iterate.py"]
    assert not LOOP & found[SEARCH]
    users = [p for p in FILES if "iterate" in called_names(ast.parse(p.read_text()))]
    assert {p.name for p in users} >= {
        "batch.py",
        "stream.py",
        "budget.py",
        "lc_ksvd.py",
        "ksad.py",
        "fddl.py",
    }


def library_classes() -> list[type]:
    """Every class that a module of the library defines."""
    found = set()
    for path in FILES:
        name = ".".join(("kernlets", *path.relative_to(ROOT).with_suffix("").parts))
        if "__main__" in name or ".hot." in name or "dask" in name:
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
