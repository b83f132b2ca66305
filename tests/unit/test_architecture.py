"""The plan of the house: who may import whom, and where heavy libraries live."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import kernlets

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
    "outliers": GROUND | {"kernels", "learners"},
    "imputers": GROUND | {"kernels", "learners"},
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
    "torch": {
        *("hot/torch_.py", "hot/torch_masked.py", "hot/triton_.py"),
        "backend/arrays.py",
    },
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
