"""Benchmarks of kernlets beside its peers: ``python -m benchmarks [names...]``.

One file per benchmark: problem, methods, parameter grid, targets. What measures them
is in `kernlets.lab`: `peers.spec` holds the contracts, `peers.runner` makes the runs,
`bench` takes seconds and memory and writes records and tables. Nothing heavy is
imported here, so that `__main__` can set the number of threads first.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernlets.lab.peers.spec import Benchmark

NAMES = (
    "omp",
    "ksvd",
    "lkdl-mnist",
    "exact-kernel",
    "fastfood",
    "rkdl",
    "rkdl-scale",
    "rkdl-profile",
    "outliers",
    "outlier-halves",
    "ksad",
    "scale",
    "streams",
    "budget",
    "budget-stream",
    "supervised",
    "defaults",
    "automatic",
    "robust",
    "missing",
    "imputation",
    "occlusion",
    "recovery",
    "structured",
    "structured-scale",
    "structured-accuracy",
    "images",
    "inpainting",
    "convergence",
)


def load(name: str) -> Benchmark:
    """The benchmark of this name, from the file of this name."""
    module = importlib.import_module(f".{name.replace('-', '_')}", __name__)
    return module.BENCHMARK
