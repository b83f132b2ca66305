"""Importing the package is quick and loads nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import kernlets

SCRIPT = """
import json, sys, time
began = time.perf_counter()
import kernlets
seconds = time.perf_counter() - began
heavy = {"numba", "torch", "triton", "dask", "distributed", "matplotlib"}
print(json.dumps([seconds, sorted(heavy & set(sys.modules))]))
"""


def run(script):
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_import_loads_nothing_heavy():
    seconds, heavy = run(SCRIPT)
    assert heavy == []
    assert seconds < 0.5


def test_names_load_without_heavy_libraries():
    left_out = {"__version__", "plotting"}
    names = ", ".join(name for name in kernlets.__all__ if name not in left_out)
    everything = f"from kernlets import {names}"
    _, heavy = run(SCRIPT.replace("import kernlets", everything, 1))
    assert heavy == []


@pytest.mark.parametrize("name", kernlets.__all__)
def test_public_names_exist_and_are_documented(name):
    value = getattr(kernlets, name)
    assert name in dir(kernlets)
    assert isinstance(value, str) or value.__doc__


def test_unknown_name():
    with pytest.raises(AttributeError, match="Nonsense"):
        kernlets.Nonsense  # noqa: B018
