"""The versions that are tested are those that the package claims."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
USED = ("plot", "torch", "dask", "parquet", "images", "onnx", "test")  # extras
TOOLS = {"mypy", "pytest", "pytest-xdist", "ruff"}  # may be recent
FOLLOWERS = {"llvmlite"}  # whose version another package decides
SMALL = {"torch"}  # of which only one version is small enough to be installed


def requirements() -> list[Requirement]:
    """What users install: dependencies and extras, and what tests read data with."""
    tomllib = pytest.importorskip("tomllib")  # Python 3.11
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for e in USED for line in extras[e])]
    found = [Requirement(line) for line in lines]
    return [each for each in found if each.name not in {"kernlets", *TOOLS}]


def pins(name: str) -> dict[str, Version]:
    """Exact versions by name, whatever marker stands behind them."""
    text = (ROOT / name).read_text()
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE)
    return {name.lower().replace("_", "-"): Version(v) for name, v in found}


def lower_bound(requirement: Requirement) -> Version:
    (bound,) = [s.version for s in requirement.specifier if s.operator == ">="]
    return Version(bound)


def test_oldest_versions_are_the_lower_bounds() -> None:
    oldest = pins("constraints-oldest.txt")
    claimed = {each.name: lower_bound(each) for each in requirements()}
    assert len(claimed) > 10
    tested = {name: oldest[name] for name in claimed}
    assert {n: v for n, v in tested.items() if n not in SMALL} == {
        n: v for n, v in claimed.items() if n not in SMALL
    }


def test_other_versions_are_the_same_in_both_files() -> None:
    claimed = FOLLOWERS | {each.name for each in requirements()}
    newest = pins("constraints.txt")
    oldest = pins("constraints-oldest.txt")
    others = {name: v for name, v in oldest.items() if name not in claimed}
    assert others == {name: newest.get(name, v) for name, v in others.items()}


def test_pinned_versions_are_allowed() -> None:
    newest = pins("constraints.txt")
    for each in requirements():
        assert each.specifier.contains(newest[each.name]), each


def test_the_oldest_python_is_named_alike() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    (needed,) = re.findall(r'requires-python = ">=3\.(\d+)"', text)
    (target,) = re.findall(r'target-version = "py3(\d+)"', text)
    listed = re.findall(r"Python :: 3\.(\d+)", text)
    assert needed == target == min(listed, key=int)
    assert sys.version_info >= (3, int(needed))


def test_the_source_distribution_has_what_its_tests_read():
    tomllib = pytest.importorskip("tomllib")  # Python 3.11
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    packed = {*tool["hatch"]["build"]["targets"]["sdist"]["include"]}
    texts = [path.read_text() for path in (ROOT / "tests").rglob("*.py")]
    named = {n for t in texts for n in re.findall(r'(?:ROOT|\[2\]) / "([^"]+)"', t)}
    named = {name for name in named if (ROOT / name).exists()}  # not in the package
    always = {"pyproject.toml", "build"}  # hatchling adds one, make makes the other
    assert {"docs", "examples", "benchmarks", "README.md"} <= named
    assert named - always <= packed | {"tests"}
    assert all((ROOT / name).exists() for name in packed)
