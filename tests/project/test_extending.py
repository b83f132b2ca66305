"""The page on extending the library, followed to the letter in a copy of it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
INDEX = Path("src/kernlets/__init__.py")


def blocks(section):
    """The four steps of a section: the file, the name, its use and the checks."""
    page = (ROOT / "docs" / "extend.md").read_text()
    _, text = page.split(f"\n## {section}\n")
    text = text.partition("\n## A ")[0]
    file, name, use, checks = BLOCK.findall(text)
    assert [file[0], name[0], use[0], checks[0]] == ["python", "python", "python", "sh"]
    (path,) = re.findall(r"^`(src/\S+)`:$", text, re.MULTILINE)
    return path, file[1], name[1], use[1], checks[1]


@pytest.fixture
def copy(tmp_path):
    """A copy of the library, with the loops that Numba has compiled, and its tests."""
    shutil.copytree(ROOT / "src", tmp_path / "src")
    ignored = shutil.ignore_patterns("__pycache__", "papers")
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("docs", "examples"):
        (tmp_path / name).mkdir()
    return tmp_path


def follow(copy, section):
    """Do what the first two steps say: one file, and one line with a name."""
    path, file, name, use, checks = blocks(section)
    assert not (ROOT / path).exists()
    (copy / path).write_text(file)
    assert len(name.splitlines()) == 1
    text = (copy / INDEX).read_text()
    assert text.count("\n_HOMES = {\n") == 1
    text = text.replace("\n_HOMES = {\n", f"\n_HOMES = {{\n{name}")
    (copy / INDEX).write_text(text)
    return use, checks


def run(copy, command):
    done = subprocess.run(
        command,
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy / "src"), "COLUMNS": "100"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr}"
    return done.stdout


COMMANDS = {
    "python": [sys.executable],
    "kernlets": [sys.executable, "-m", "kernlets"],
}


def check(copy, line):
    """A line of the page's last step; pytest must have found something to run."""
    program, *rest = shlex.split(line)
    out = run(copy, [*COMMANDS[program], *rest])
    if "pytest" in rest:
        assert int(re.findall(r"(\d+) passed", out)[-1]) > 10
    return out


@pytest.mark.parametrize(
    ("section", "listed"),
    [("A kernel", "cauchy"), ("A learner", "ridge-dictionary")],
)
def test_the_page_works_to_the_letter(section, listed, copy):
    use, checks = follow(copy, section)
    run(copy, [sys.executable, "-c", use])
    first, tests = checks.replace("\\\n", " ").splitlines()
    assert f" {listed} " in check(copy, first)
    check(copy, tests)


def test_a_name_is_all_that_is_missing(copy):
    """Without its line the file alone changes nothing."""
    path, file, *_ = blocks("A kernel")
    (copy / path).write_text(file)
    assert " cauchy " not in check(copy, "kernlets list kernels")
