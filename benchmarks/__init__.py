"""Benchmarks of kernlets beside its peers: ``python -m benchmarks [names...]``.

One file per benchmark: problem, methods, parameter grid, targets. `peers.spec` holds
their contracts, and `peers.runner` makes the runs. `harness` takes seconds and memory
and writes records, tables and pages; the papers' experiments and the demonstration use
it, too. ``python -m benchmarks.speed`` measures the library beside its matrix products,
and ``python -m benchmarks.pages`` writes the pages in ``docs`` from the records.

Nothing heavy is imported here, so that `__main__` can set the number of threads first,
and a fresh process that measures memory loads little.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .peers.spec import Benchmark

NAMES = (
    "omp",
    "lasso",
    "ksvd",
    "online",
    "latency",
    "floors",
    "growth",
    "instead",
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
    "probabilities",
    "robust",
    "patches",
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
