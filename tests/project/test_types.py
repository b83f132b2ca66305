"""What a type checker knows of the public names."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kernlets

ROOT = Path(__file__).parents[2]
PACKAGE = Path(kernlets.__file__).parent
STUB = PACKAGE / "__init__.pyi"

WRONG = """
from kernlets import KSVD, explain

KSVD(n_atoms="three").fitt()
KSVD("three")
KSVD(30).fit([[1.0]]).atoms
explain()
"""
RIGHT = """
from sklearn.pipeline import make_pipeline

from kernlets import KSVD, NystroemMap, ResidualClassifier, datasets, metrics
from kernlets import explain, load, options, save

reveal_type(KSVD(30))
digits = datasets.load("digits")
learner = KSVD(n_components=30, n_nonzero_coefs=4, random_state=0)
reveal_type(learner.set_params(max_iter=2).fit(digits.X_train))
model = make_pipeline(NystroemMap("poly:2"), ResidualClassifier(learner))
with options(n_threads=1):
    model.fit(digits.X_train, digits.y_train)
print(explain(model, digits.X_train[0]).label, learner.components_.shape)
print(learner.fit_transform(digits.X_train), learner.n_features_in_)
print(ResidualClassifier(learner).score(digits.X_test, digits.y_test))
print(metrics.recovery(learner.components_, learner.components_))
save(model, "digits.kernlets", notes={"data": "digits"})
load("digits.kernlets").predict(digits.X_test)
"""


def stub_names() -> dict[str, str]:
    """The names of the stub, each with the module that it comes from."""
    return {
        alias.asname: f"kernlets.{node.module or alias.name}"
        for node in ast.parse(STUB.read_text("utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
        if alias.asname == alias.name
    }


def test_the_stub_has_every_public_name():
    names = stub_names()
    assert names.keys() == {*kernlets.__all__} - {"__version__"}
    for name, module in names.items():
        home = importlib.import_module(module)
        assert getattr(kernlets, name) is getattr(home, name, home)


def documented_attributes(cls: type) -> set[str]:
    """Fitted attributes that the docstring of a class lists."""
    listed = (inspect.getdoc(cls) or "").partition("Attributes\n----------\n")[2]
    listed = re.split(r"\n\w+\n-+\n", listed)[0]
    heads = [line.split(" : ")[0] for line in listed.splitlines() if line[:1].strip()]
    return {name for head in heads for name in re.findall(r"\w+_\b", head)}


def attributes_file() -> str:
    """A file that reads every documented attribute of every public class."""
    lines = ["import kernlets"]
    for name in kernlets.__all__:
        value = getattr(kernlets, name)
        if isinstance(value, type):
            for attribute in sorted(documented_attributes(value)):
                function = f"def {name}_{attribute}(model: kernlets.{name}) -> None:"
                lines.append(f"{function} model.{attribute}")
    assert len(lines) > 150
    return "\n".join(lines)


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> dict[str, list[str]]:
    """What mypy says of files of a user, by their names."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    folder = tmp_path_factory.mktemp("user")
    files = {"wrong": WRONG, "right": RIGHT, "attributes": attributes_file()}
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--config-file=", "--no-error-summary"]
    # of the library, as of what is installed, nothing is told but types
    command += ["--ignore-missing-imports", "--follow-imports=silent"]
    command += ["--cache-dir", str(ROOT.joinpath(".mypy_cache", "user"))]
    environment = dict(os.environ)
    if PACKAGE.parent.name == "src":
        environment["MYPYPATH"] = str(PACKAGE.parent)
    done = subprocess.run(
        [*command, *(f"{name}.py" for name in files)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    lines = done.stdout.splitlines()
    return {name: [x for x in lines if x.startswith(f"{name}.py")] for name in files}


def test_mistakes_are_errors(told):
    pattern = re.compile(r"wrong\.py:(\d+): error: .* \[([a-z-]+)\]$")
    errors = [pattern.match(line) for line in told["wrong"] if " error: " in line]
    assert sorted(error.groups() for error in errors) == [
        ("4", "attr-defined"),
        ("4", "call-arg"),
        ("5", "arg-type"),
        ("6", "attr-defined"),
        ("7", "call-arg"),
    ]


def test_right_use_has_no_errors_and_real_types(told):
    revealed, fitted = told["right"]
    assert 'Revealed type is "kernlets.learners' in revealed and '.KSVD"' in revealed
    assert 'Revealed type is "kernlets.learners' in fitted and '.KSVD"' in fitted


def test_documented_attributes_are_known(told):
    assert told["attributes"] == []
