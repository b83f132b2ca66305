"""Numba's cache of compiled loops changes no result, and no fit needs it."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import pytest

import kernlets

FIT = """
import hashlib, logging
import numpy as np
import kernlets
from kernlets import DTW, GAK, KSVD, OMP, KernelKSVD, Lasso

logging.basicConfig(level=logging.INFO)
print(kernlets.__file__)
X = np.random.default_rng(0).standard_normal((80, 12))


def show(values):
    print(hashlib.sha256(np.ascontiguousarray(values).data).hexdigest())


show(KSVD(14, 3, random_state=0).fit(X).components_)
"""
MORE_FITS = """
gaps = np.where(X < -1.5, np.nan, X)
learners = [
    (KSVD(14, 3, random_state=0), gaps),
    (KSVD(14, coder=OMP(3, positive=True), random_state=0), X),
    (KSVD(14, coder=Lasso(0.1), random_state=0), X),
    (KernelKSVD("rbf:3", 14, n_nonzero_coefs=3, random_state=0), X),
]
for learner, rows in learners:
    show(learner.fit(rows).dictionary_.weights)
for kernel in (GAK(3.0), DTW(0.1)):
    show(kernel(X))
"""
BUDGET = """
import gc
import numpy as np
from kernlets import BudgetKernelDL
from kernlets.loops.budget import numba as loops, numba_anchors as anchors

X = np.random.default_rng(0).standard_normal((80, 12))
BudgetKernelDL("rbf:3", 10, budget=20, random_state=0).fit(X)
used = anchors.prune_anchor, loops._parameter_step, loops.lasso_samples
others = anchors.repair_inverse, loops._feature_step, loops.omp_samples
for function in (*used, *others):
    print(len(function.signatures))
print(gc.isenabled())
"""
FILES_OF_NO_SIZE = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
"""
COMPILES = "INFO:kernlets:compiling loops"


class Run(NamedTuple):
    output: list[str]
    errors: str


def run(script, **environment):
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **{name: str(path) for name, path in environment.items()}},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return Run(done.stdout.split(), done.stderr)


class Compiled(NamedTuple):
    """A copy of the package, the cache of its first process, and what that printed."""

    package: Path
    cache: Path
    first: Run

    def run(self, script, cache=None):
        cache = cache or self.cache
        return run(script, PYTHONPATH=self.package.parent, NUMBA_CACHE_DIR=cache)


def copy_package(folder):
    package = Path(kernlets.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(package, folder / "kernlets", ignore=ignored))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compiled")
    nothing = Compiled(copy_package(folder), folder / "cache", Run([], ""))
    return nothing._replace(first=nothing.run(FIT))


@pytest.fixture
def cache(compiled, tmp_path):
    return Path(shutil.copytree(compiled.cache, tmp_path / "cache"))


def test_a_process_that_compiles_and_one_that_loads_agree(compiled, cache):
    """The second fit of a user is the first one again, bit by bit."""
    package, *digests = compiled.first.output
    assert package == str(compiled.package / "__init__.py")  # the copy is what ran
    compiles, loads = (compiled.run(FIT + MORE_FITS, cache) for _ in range(2))
    assert len(set(compiles.output)) == 8
    assert compiles.output == loads.output
    assert compiles.output[:2] == [package, *digests]
    said = [each.errors.count(COMPILES) for each in (compiled.first, compiles, loads)]
    assert said == [1, 1, 0]  # once, and only where loops are compiled


def test_a_budget_compiles_only_what_its_rules_need(tmp_path):
    """With the code of all rules the first fit would take twice as long."""
    printed = run(BUDGET, NUMBA_CACHE_DIR=tmp_path).output
    assert printed == ["1", "1", "1", "0", "0", "0", "True"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows names the user's folder")
def test_a_fit_needs_no_folder_that_can_be_written(compiled, tmp_path):
    """Files lie where Numba would make its folders, so that not even root can."""
    copy = copy_package(tmp_path)
    (copy / "loops" / "__pycache__").touch()
    no_folder = copy / "__init__.py"
    names = ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
    output, errors = run(FIT, PYTHONPATH=tmp_path, **dict.fromkeys(names, no_folder))
    assert output == [str(no_folder), *compiled.first.output[1:]]
    assert errors.count("UserWarning: compiled loops") == 1
    assert "NUMBA_CACHE_DIR" in errors


def test_a_fit_survives_a_full_disk(compiled, tmp_path):
    pytest.importorskip("resource")
    output, errors = compiled.run(FILES_OF_NO_SIZE + FIT, tmp_path)
    assert output == compiled.first.output
    assert errors.count("UserWarning: compiled loops could not be stored") == 1


def truncate(file):
    file.write_bytes(file.read_bytes()[:-9])


def name_a_class_that_does_not_exist(index):
    """What Numba reads in an index that an earlier version of the package wrote."""
    renamed = b"ckernlets.loops.compiled\nNameInAnEarlierVersion\n."
    index.write_bytes(pickle.dumps(numba.__version__) + renamed)


def test_a_damaged_or_outdated_cache_is_replaced(compiled, cache):
    """One process compiles again, without a warning; the next one loads everything."""
    indices = sorted(cache.glob("*/*.nbi"))
    assert len(indices) >= 3
    for index in indices[::3]:
        name_a_class_that_does_not_exist(index)
    for index in indices[1::3]:
        truncate(index)
    for index in indices[2::3]:
        truncate(index.with_suffix(".1.nbc"))
    again = compiled.run(FIT, cache)
    assert again.output == compiled.first.output
    assert again.errors == compiled.first.errors  # that it compiles, and no warning
    replaced = times_of_files(cache)
    assert compiled.run(FIT, cache) == Run(again.output, "")
    assert times_of_files(cache) == replaced  # Numba stores whatever it compiles


def times_of_files(folder):
    return {file: file.stat().st_mtime_ns for file in folder.glob("*/*.nb*")}


def test_a_change_of_another_file_compiles_loops_again(compiled, cache):
    """Their code contains functions and constants of other files."""
    before = times_of_files(cache)
    file = compiled.package / "loops" / "omp" / "reference.py"
    text = file.read_bytes()
    file.write_bytes(text + b"# changed\n")
    try:
        assert compiled.run(FIT, cache).output == compiled.first.output
    finally:
        file.write_bytes(text)
    after = times_of_files(cache)
    indices = [file for file in before if file.suffix == ".nbi"]
    assert indices and all(after[index] > before[index] for index in indices)
