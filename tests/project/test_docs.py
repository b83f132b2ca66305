"""What the documentation shows works as it is shown, and nothing public lacks it."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import inspect
import re
import shlex
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import pytest
from typer.testing import CliRunner

import kernlets
from kernlets import registry
from kernlets.cli.app import app
from kernlets.config import Settings

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*/*.py"))
PACKAGE = Path(kernlets.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))


PUBLIC = registry.public_objects()


@pytest.fixture
def no_display():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


def section(value, title):
    """The text of one numpydoc section, None if there is no such section."""
    pattern = rf"^{title}\n-{{3,}}\n(.*?)(?=^\w[^\n]*\n-{{3,}}\n|\Z)"
    found = re.search(pattern, inspect.getdoc(value) or "", re.DOTALL | re.MULTILINE)
    return found and found[1]


def entries(text):
    """Names and descriptions in a section with entries such as ``a, b : int``."""
    described = {}
    for line in (text or "").splitlines():
        if line and not line.startswith(" "):
            names = [name.strip(" *") for name in line.split(" : ")[0].split(",")]
            described.update(dict.fromkeys(names, ""))
        else:
            for name in names:
                described[name] += line.strip()
    return described


def parameters(value):
    if value is kernlets.options:
        return [field.name for field in dataclasses.fields(Settings)]
    return list(inspect.signature(value).parameters)


def test_many_names_are_looked_at():
    assert {"RBF", "KSVD", "save", "datasets.load", "datasets.add_noise"} < {*PUBLIC}
    assert len(PUBLIC) > 60


def test_everything_public_has_one_name():
    """The reference has one page for each name, and Sphinx refuses a second one."""
    names = {}
    for name, value in PUBLIC.items():
        assert id(value) not in names, f"{names[id(value)]} is also {name}"
        names[id(value)] = name


@pytest.mark.parametrize("name", PUBLIC)
def test_parameters_are_those_of_the_signature(name):
    described = entries(section(PUBLIC[name], "Parameters"))
    assert sorted(described) == sorted(parameters(PUBLIC[name]))
    assert all(described.values()), "a parameter has no description"


@pytest.mark.parametrize("name", PUBLIC)
def test_the_first_line_is_a_sentence(name):
    first = inspect.getdoc(PUBLIC[name]).splitlines()[0]
    assert first.endswith("."), first


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_in_docstrings(name, request):
    if name.startswith("plotting."):
        request.getfixturevalue("no_display")
    assert section(PUBLIC[name], "Examples"), "there is no example"
    value = type(PUBLIC[name]) if name == "options" else PUBLIC[name]
    finder = doctest.DocTestFinder(recurse=False)
    cases = [case for case in finder.find(value, name, globs={}) if case.examples]
    assert len(cases) == 1
    failed, tried = doctest.DocTestRunner().run(cases[0])
    skipped = [e for e in cases[0].examples if doctest.SKIP in e.options]
    assert failed == 0 and tried > 0 and not skipped


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_modules_say_what_they_hold(path):
    doc = inspect.cleandoc(compile(path.read_text(), path, "exec").co_consts[0] or "")
    assert doc.splitlines()[0].endswith((".", ":")), doc


def sessions(page):
    """The blocks of a page that are typed: ``>>>`` lines and commands, in order."""
    blocks = re.findall(r"```(pycon|sh)\n(.*?)```", page.read_text(), re.DOTALL)
    for kind, text in blocks:
        if kind == "pycon":
            yield "python", text
        for line in text.splitlines() if kind == "sh" else ():
            if line.startswith("kernlets "):
                yield "command", line.partition("#")[0]


PAGES = [p for p in sorted((ROOT / "docs").glob("*.md")) if "```pycon" in p.read_text()]


@pytest.fixture
def one_thread():
    """Threads of LAPACK that share cores with other tests would wait for each other."""
    with kernlets.options(n_threads=1):
        yield


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_pages_show_happens(page, tmp_path, monkeypatch, one_thread):
    """Sessions go on from one block of a page to the next, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    names, parser = {}, doctest.DocTestParser()
    for kind, text in sessions(page):
        if kind == "command":
            done = CliRunner().invoke(app, shlex.split(text)[1:])
            assert done.exit_code == 0, done.output
            continue
        case = parser.get_doctest(text, names, page.stem, str(page), 0)
        failed, tried = doctest.DocTestRunner().run(case, clear_globs=False)
        names = case.globs  # the parser copies what it is given
        assert failed == 0 and tried > 0


def test_calls_beside_those_of_other_libraries_work(tmp_path, monkeypatch):
    """The last cell of each row is run after the sessions of the page."""
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "coming-from.md"
    names = vars(kernlets) | {name: getattr(kernlets, name) for name in dir(kernlets)}
    for _, text in sessions(page):
        case = doctest.DocTestParser().get_doctest(text, names, page.stem, None, 0)
        doctest.DocTestRunner().run(case, out=lambda _: None, clear_globs=False)
        names = case.globs
    rows = re.findall(r"^\| .*? \| ([^|]*) \|$", page.read_text("utf-8"), re.MULTILINE)
    calls = [call for cell in rows for call in re.findall("`([^`]+)`", cell)]
    assert len(calls) > 20
    for call in calls:
        assert eval(call, names) is not None, call


TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.DOTALL | re.MULTILINE)
MADE_BY_SPHINX = ("api/", "gallery/")


def excluded_patterns():
    """What Sphinx does not read in docs, without an import of its configuration."""
    for statement in ast.parse((ROOT / "docs" / "conf.py").read_text()).body:
        if isinstance(statement, ast.Assign):
            if getattr(statement.targets[0], "id", "") == "exclude_patterns":
                return ast.literal_eval(statement.value)
    raise AssertionError("docs/conf.py has no exclude_patterns")


def pages_in_toctrees(page):
    """The pages that a page lists, named from docs without suffix."""
    for tree in TOCTREE.findall((ROOT / "docs" / f"{page}.md").read_text("utf-8")):
        for line in tree.splitlines():
            if line and not line.startswith(":"):
                target = line.partition("<")[2].rstrip(">") or line
                yield (PurePosixPath(page).parent / target).as_posix()


def test_every_page_is_in_a_toctree():
    """Sphinx refuses one that is not, and `make docs` with it."""
    docs = ROOT / "docs"
    pages = {
        path.relative_to(docs).with_suffix("").as_posix()
        for path in docs.rglob("*.md")
        if not any(
            fnmatch(path.relative_to(docs).as_posix(), pattern)
            or path.is_relative_to(docs / pattern)
            for pattern in excluded_patterns()
        )
    }
    listed, to_read = {"index"}, ["index"]
    while to_read:
        for page in pages_in_toctrees(to_read.pop()):
            if page not in listed and not page.startswith(MADE_BY_SPHINX):
                to_read.append(page)
                listed.add(page)
    assert {page for page in pages if not page.startswith(MADE_BY_SPHINX)} == listed


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_examples_say_how_to_run(path):
    code = compile(path.read_text(), str(path), "exec")
    assert f"python examples/{path.parent.name}/{path.name}" in code.co_consts[0]
