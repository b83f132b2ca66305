"""What the documentation shows works as it is shown."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kernlets

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
QUICK = ("words.py",)  # the others take longer or need data; they are run by hand


@pytest.mark.parametrize("name", kernlets.__all__)
def test_examples_in_docstrings(name):
    value = getattr(kernlets, name)
    for case in doctest.DocTestFinder(recurse=False).find(value, name, globs={}):
        result = doctest.DocTestRunner().run(case)
        assert result.failed == 0


def python_blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def test_the_readme_example(capsys):
    (block,) = python_blocks(ROOT / "README.md")
    assert len([line for line in block.splitlines() if line]) <= 11
    exec(block, {})
    assert float(capsys.readouterr().out) > 0.96


def test_pages_named_in_the_readme_exist():
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / link).exists(), link


@pytest.mark.parametrize("name", QUICK)
def test_quick_examples_run(name):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / name], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_examples_compile_and_say_how_to_run(path):
    code = compile(path.read_text(), str(path), "exec")
    assert f"python examples/{path.name}" in code.co_consts[0]
