"""The plan of the house: who may import whom, and where heavy libraries live."""

from __future__ import annotations

import abc
import ast
import importlib
import inspect
import re
import sys
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import kernlets
from kernlets import registry

ROOT = Path(kernlets.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# Each part with the parts it may import from, besides itself. No part comes before one
# that it may import from, see `test_the_plan_has_an_order`.
GROUND = {"core", "config", "fields", "backend", "__init__"}
ALLOWED = {
    "__init__": set(),  # names and the version
    "config": set(),
    "fields": set(),
    "hot": set(),
    "core": {"fields"},
    "backend": {"core", "config", "hot"},
    "registry": {"__init__"},
    "persistence": GROUND | {"registry"},
    "clustering": GROUND,
    "kernels": GROUND,
    "landmarks": GROUND | {"kernels", "clustering"},
    "preimage": GROUND | {"kernels"},
    "maps": GROUND | {"kernels", "landmarks", "preimage"},
    "metrics": GROUND | {"kernels", "maps", "matching"},
    "matching": GROUND | {"kernels", "dictionaries"},
    "dictionaries": GROUND | {"kernels", "preimage"},
    "anchored_dictionary": GROUND,
    "pursuits": GROUND | {"dictionaries"},
    "updates": GROUND | {"dictionaries", "anchored_dictionary", "pursuits"},
    "learners": GROUND
    | {"kernels", "preimage", "dictionaries", "pursuits", "updates", "persistence"}
    | {"clustering", "anchored_dictionary"},
    "datasets": GROUND,
    "classifiers": GROUND
    | {"kernels", "maps", "dictionaries", "pursuits", "updates", "learners"}
    | {"persistence"}  # checkpoints
    | {"datasets"}  # noise and holes that a robust choice is made with
    | {"imputers"},  # in front of the winner, where rows have gaps
    "outliers": GROUND | {"kernels", "dictionaries", "learners"},
    "imputers": GROUND | {"kernels", "learners"},
    "images": GROUND | {"dictionaries", "pursuits", "learners"},
    "export": GROUND
    | {"kernels", "maps", "dictionaries", "pursuits", "learners", "classifiers"}
    | {"outliers"},
    "plotting": GROUND | {"dictionaries"},
}
# The laboratory imports all of the library, and none of it imports the laboratory.
ALLOWED["lab"] = set(ALLOWED)
ALLOWED["experiments"] = {"lab", "backend"}  # the former name of kernlets.lab.papers
ALLOWED["cli"] = set(ALLOWED)
ALLOWED["__main__"] = {"cli"}
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
# Imports inside functions, at most five, each for a reason.
LATE = {
    ("kernlets.__main__", "kernlets.cli.app"): "Ctrl-C is watched before all else",
    ("kernlets.cli.app", "kernlets.cli.commands"): "--help needs nothing heavy",
    ("kernlets.cli.app", "kernlets.cli.lab_commands"): "slow, and for few commands",
    ("kernlets.hot.torch_", "kernlets.hot.triton_"): "Triton need not be installed",
    ("kernlets.hot.torch_", "kernlets.hot.numba_"): "Numba, for one loop on the host",
}
# Imports by name: what they can reach, and why the name is not written down.
BY_NAME = {
    "backend/cluster.py": ("backend.dask_", "Dask is slow to import, and optional"),
    "backend/ops.py": ("hot.", "the arrays decide which loops are loaded"),
    "__init__.py": (None, "public names are loaded when they are used"),
    "registry.py": (None, "it reads the tables of every package"),
    "datasets/table_types.py": (None, "optional libraries only"),
    "export/files.py": (None, "optional libraries only"),
    "lab/bench/skip.py": (None, "optional libraries only"),
    "lab/bench/memory.py": (None, "a function is measured in a process of its own"),
    "lab/peers/memory.py": (None, "a benchmark is measured in a process of its own"),
    "lab/papers/catalogue.py": ("lab.papers.exhibits.", "one module for each paper"),
}
DASK_PARTS = ("files", "labels", "objects", "rows", "tasks", "wait", "worker")
DASK = {f"backend/dask_{part}.py" for part in DASK_PARTS}
HOMES = {
    "numba": {"hot/numba_.py"},
    "torch": {
        *("hot/torch_.py", "hot/torch_budget.py", "hot/torch_masked.py"),
        *("hot/torch_codes.py", "hot/torch_positive.py", "hot/torch_rows.py"),
        *("hot/triton_.py", "hot/triton_codes.py", "hot/triton_rows.py"),
        "backend/arrays.py",
    },
    "triton": {"hot/triton_.py", "hot/triton_codes.py", "hot/triton_rows.py"},
    "dask": DASK,
    "distributed": DASK,
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


def imports(path: Path, nodes: Iterable[ast.AST] | None = None) -> set[str]:
    """All modules of kernlets that a file imports, at its top or in functions."""
    nodes = ast.walk(ast.parse(path.read_text())) if nodes is None else nodes
    found = {name for node in nodes for name in imported_modules(path, node)}
    return found - {name_of(path)}


def imports_by_name(path: Path) -> set[str]:
    """What a file can import by a name that it computes."""
    prefix, _ = BY_NAME.get(path.relative_to(ROOT).as_posix(), (None, ""))
    if prefix is None:
        return set()
    return {name for name in MODULES if name.startswith(f"kernlets.{prefix}")}


GRAPH = {name: imports(path) | imports_by_name(path) for name, path in MODULES.items()}


def test_no_import_leads_back():
    """No cycle, however late an import is made."""
    TopologicalSorter(GRAPH).prepare()  # raises CycleError, which names the modules


def test_the_plan_has_an_order():
    TopologicalSorter(ALLOWED).prepare()


@pytest.mark.parametrize("name", MODULES)
def test_imports_follow_the_plan(name):
    part = part_of(name)
    assert part in ALLOWED, f"{part} has no place in the plan"
    for target in imports(MODULES[name]):
        allowed = {part, *ALLOWED[part]}
        assert part_of(target) in allowed, f"{name} imports {target}"


def test_late_imports_are_few_and_have_reasons():
    found = set()
    for name, path in MODULES.items():
        tree = ast.parse(path.read_text())
        found |= {(name, target) for target in imports(path, inner_nodes(tree))}
    assert found == LATE.keys()
    assert len(found) <= 5


def inner_nodes(tree: ast.Module) -> set[ast.AST]:
    """What is inside of functions, or seen by type checkers only."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return {
        inner
        for node in ast.walk(tree)
        if isinstance(node, kinds)
        or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        for inner in ast.walk(node)
    }


def test_imports_by_name_are_known():
    found = set()
    for path in FILES:
        called = called_names(ast.parse(path.read_text()))
        if called & {".import_module", "import_module", "__import__"}:
            found.add(path.relative_to(ROOT).as_posix())
    assert found == BY_NAME.keys()


def test_contracts_know_no_arrays_but_numpys():
    tree = ast.parse((ROOT / "core.py").read_text())
    nodes = [n for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom))]
    plain = [n for n in nodes if isinstance(n, ast.Import)]
    names = {alias.name for n in plain for alias in n.names}
    names |= {n.module for n in nodes if isinstance(n, ast.ImportFrom) and not n.level}
    libraries = {name.split(".")[0] for name in names} - sys.stdlib_module_names
    assert libraries == {"numpy", "scipy", "sklearn"}
    tensors = {".detach", ".cpu", ".new_zeros", ".scatter_", ".to", ".long"}
    assert not called_names(tree) & tensors


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
            if parts[1:2] == ["lab"] and parts[2] != own:
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
        assert {part_of(name) for name in imports(path)} <= {"hot"}, path.name


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
        "budget_learner.py",
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


@pytest.mark.parametrize(
    ("text", "home"),
    [
        ("sklearn.utils._param_validation", "backend/constraints.py"),
        ("get_close_matches", "backend/names.py"),
        ("os.replace", "backend/atomic.py"),
    ],
)
def test_what_is_written_once(text, home):
    found = [path for path in FILES if text in path.read_text()]
    assert [path.relative_to(ROOT).as_posix() for path in found] == [home]


CONTAINERS = {"is_torch", "is_dask", "is_blocks", "issparse", "is_stored"}
CONTAINERS |= {"is_elsewhere", "LazyRows"}


def test_algorithms_hardly_ask_for_the_container():
    """Which array, where it is and how it is read is the business of the back end."""
    asked = []
    for path in FILES:
        if path.relative_to(ROOT).parts[0] in ("backend", "hot"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called, *used = (node.func, *node.args)
                names = called if ast.unparse(called) != "isinstance" else used[1]
                if CONTAINERS & set(re.findall(r"\w+", ast.unparse(names))):
                    asked.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert len(asked) < 15, "\n".join(asked)
