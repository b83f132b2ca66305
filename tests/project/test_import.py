"""Importing the package is quick and loads nothing heavy."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

import kernlets

HEAVY = {"numba", "torch", "triton", "dask", "distributed", "matplotlib", "onnx"}
SCRIPT = """
import json, sys
before = set(sys.modules)
import kernlets
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps(sorted(loaded - sys.stdlib_module_names)))
"""


def run(script):
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_import_loads_nothing_but_itself():
    assert run(SCRIPT) == ["kernlets"]


def test_names_load_without_heavy_libraries():
    left_out = {"__version__", "plotting"}
    names = ", ".join(name for name in kernlets.__all__ if name not in left_out)
    everything = f"from kernlets import {names}"
    loaded = run(SCRIPT.replace("import kernlets", everything, 1))
    assert "numpy" in loaded
    assert not HEAVY & {*loaded}


@pytest.mark.parametrize("name", kernlets.__all__)
def test_public_names_exist_and_are_documented(name):
    value = getattr(kernlets, name)
    assert isinstance(value, str) or value.__doc__


def test_dir_lists_the_public_names_in_a_fresh_process():
    script = "import json, kernlets; print(json.dumps(dir(kernlets)))"
    listed = run(script)
    assert {"RBF", "KSVD", "datasets", "save"} <= {*listed}
    assert listed == sorted({*kernlets.__all__})


def test_every_home_has_the_names_it_is_said_to_have():
    for home, names in kernlets._HOMES.items():
        module = importlib.import_module(f"kernlets.{home}")
        assert names.split() and all(hasattr(module, name) for name in names.split())
    assert len({*kernlets.__all__}) == len(kernlets.__all__)


def test_unknown_name():
    with pytest.raises(AttributeError, match="Nonsense"):
        kernlets.Nonsense  # noqa: B018
