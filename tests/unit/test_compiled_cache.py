"""Loops compiled in this process and loops loaded from Numba's cache round alike."""

from __future__ import annotations

import os
import subprocess
import sys

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


def test_a_process_that_compiles_and_one_that_loads_agree(tmp_path):
    """The second fit of a user is the first one again, bit by bit."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    compiled, loaded = (
        subprocess.run(
            [sys.executable, "-c", FITS],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for _ in range(2)
    )
    assert len(set(compiled)) == 7
    assert compiled == loaded
