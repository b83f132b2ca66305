"""Numba's cache of compiled loops changes no result, and no fit needs it."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import kernlets

FITS = """
import hashlib
import numpy as np
from kernlets import DTW, GAK, KSVD, OMP, KernelKSVD, Lasso

X = np.random.default_rng(0).standard_normal((80, 12))
gaps = np.where(X < -1.5, np.nan, X)
learners = [
    (KSVD(14, 3, random_state=0), X),
    (KSVD(14, 3, random_state=0), gaps),
    (KSVD(14, coder=OMP(3, positive=True), random_state=0), X),
    (KSVD(14, coder=Lasso(0.1), random_state=0), X),
    (KernelKSVD("rbf:3", 14, n_nonzero_coefs=3, random_state=0), X),
]
for learner, rows in learners:
    weights = learner.fit(rows).dictionary_.weights
    print(hashlib.sha256(np.ascontiguousarray(weights).data).hexdigest())
for kernel in (GAK(3.0), DTW(0.1)):
    print(hashlib.sha256(kernel(X).data).hexdigest())
"""


FIT = """
import numpy as np
import kernlets
X = np.random.default_rng(0).standard_normal((80, 12))
kernlets.KSVD(14, 3, random_state=0).fit(X)
print(kernlets.__file__)
"""
FILES_OF_NO_SIZE = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
"""


def run(script, environment):
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def test_a_process_that_compiles_and_one_that_loads_agree(tmp_path):
    """The second fit of a user is the first one again, bit by bit."""
    compiled, loaded = (
        run(FITS, {"NUMBA_CACHE_DIR": str(tmp_path)})[0] for _ in range(2)
    )
    assert len(set(compiled)) == 7
    assert compiled == loaded


@pytest.mark.skipif(sys.platform == "win32", reason="Windows names the user's folder")
def test_a_fit_needs_no_folder_that_can_be_written(tmp_path):
    """Files lie where Numba would make its folders, so that not even root can."""
    package = Path(kernlets.__file__).parent
    copy = tmp_path / "kernlets"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "loops" / "__pycache__").touch()
    no_folder = str(copy / "__init__.py")
    names = ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
    environment = {"PYTHONPATH": str(tmp_path), **dict.fromkeys(names, no_folder)}
    output, warnings = run(FIT, environment)
    assert output == [no_folder]  # the copy is what ran
    assert warnings.count("UserWarning: compiled loops") == 1
    assert "NUMBA_CACHE_DIR" in warnings


def test_a_fit_survives_a_full_disk(tmp_path):
    pytest.importorskip("resource")
    _, warnings = run(FILES_OF_NO_SIZE + FIT, {"NUMBA_CACHE_DIR": str(tmp_path)})
    assert warnings.count("UserWarning: compiled loops could not be stored") == 1


def truncate(file):
    file.write_bytes(file.read_bytes()[:-9])


def name_a_class_that_does_not_exist(index):
    """What Numba reads in an index that an earlier version of the package wrote."""
    renamed = b"ckernlets.loops.compiled\nNameInAnEarlierVersion\n."
    index.write_bytes(pickle.dumps(numba.__version__) + renamed)


def test_a_damaged_or_outdated_cache_is_replaced(tmp_path):
    """One process compiles again, without a warning; the next one loads everything."""
    environment = {"NUMBA_CACHE_DIR": str(tmp_path)}
    run(FIT, environment)
    indices = sorted(tmp_path.glob("*/*.nbi"))
    assert len(indices) >= 3
    for index in indices[::3]:
        name_a_class_that_does_not_exist(index)
    for index in indices[1::3]:
        truncate(index)
    for index in indices[2::3]:
        truncate(index.with_suffix(".1.nbc"))
    assert run(FIT, environment)[1] == ""
    replaced = times_of_files(tmp_path)
    assert run(FIT, environment)[1] == ""
    assert times_of_files(tmp_path) == replaced  # Numba stores whatever it compiles


def times_of_files(folder):
    return {file: file.stat().st_mtime_ns for file in folder.glob("*/*.nb*")}


def test_a_change_of_another_file_compiles_loops_again(tmp_path):
    """Their code contains functions and constants of other files."""
    copy, cache = tmp_path / "kernlets", tmp_path / "cache"
    package = Path(kernlets.__file__).parent
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(cache)}
    run(FIT, environment)
    before = times_of_files(cache)
    with (copy / "loops" / "omp" / "reference.py").open("a") as file:
        file.write("# changed\n")
    run(FIT, environment)
    after = times_of_files(cache)
    indices = [file for file in before if file.suffix == ".nbi"]
    assert indices and all(after[index] > before[index] for index in indices)


def test_compilation_is_logged_once_and_only_where_there_is_one(tmp_path):
    script = "import logging\nlogging.basicConfig(level=logging.INFO)\n" + FIT
    environment = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert run(script, environment)[1].count("compiling loops") == 1
    assert "compiling loops" not in run(script, environment)[1]
