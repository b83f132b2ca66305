"""Numba's cache of compiled loops changes no result, and no fit needs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

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
    (copy / "hot" / "__pycache__").touch()
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


def test_a_fit_survives_a_damaged_cache(tmp_path):
    environment = {"NUMBA_CACHE_DIR": str(tmp_path)}
    _, silence = run(FIT, environment)
    assert silence == ""
    indices = list(tmp_path.glob("*/*.nbi"))
    for index in indices:
        index.write_bytes(index.read_bytes()[:-9])
    assert indices
    _, warnings = run(FIT, environment)
    assert warnings.count("UserWarning: compiled loops could not be loaded") == 1
