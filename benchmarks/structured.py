"""Gram matrices of series and of covariance matrices, beside tslearn and pyRiemann."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernlets.lab.bench.skip import Skip, require
from kernlets.lab.peers.spec import SEED, Benchmark, Case, Figures, Method, Target

CORNER = 60  # rows of the matrix on which methods are compared with plain loops
GAMMA, THETA = 0.1, 0.5


@dataclass(frozen=True)
class Problem:
    kind: str
    samples: np.ndarray  # (n, T) series, or (n, d, d) matrices

    @property
    def sigma(self) -> float:
        """About what Cuturi's rule says for series of unit variance."""
        return float(np.sqrt(self.samples.shape[1]))

    def error(self, K: np.ndarray) -> float:
        """Largest difference from the reference loops on a corner of the matrix."""
        from kernlets import options

        with options(loops="reference"):
            few = 6 if self.kind != "Stein" else CORNER
            expected = _kernel(self)(self.samples[:few])
        return float(np.abs(K[:few, :few] - expected).max())


def _kernel(problem: Problem) -> Any:
    from kernlets import DTW, GAK, Stein

    kernels = {"GAK": GAK(problem.sigma), "DTW": DTW(GAMMA), "Stein": Stein(THETA)}
    return kernels[problem.kind]


class Kernlets(Method):
    name = "kernlets"

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.kernel = _kernel(problem)

    def run(self) -> np.ndarray:
        return self.kernel(self.problem.samples)

    def figures(self, result: np.ndarray) -> Figures:
        return {"error": self.problem.error(result)}


class Tslearn(Kernlets):
    name = "tslearn"
    repeats = 1

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        if problem.kind == "Stein":
            raise Skip("a kernel of series only")
        self.metrics = require("tslearn.metrics", "pip install tslearn")

    def run(self) -> np.ndarray:
        X, jobs = self.problem.samples[:, :, None], 2
        if self.problem.kind == "GAK":
            return self.metrics.cdist_gak(X, sigma=self.problem.sigma, n_jobs=jobs)
        return np.exp(-GAMMA * self.metrics.cdist_dtw(X, n_jobs=jobs) ** 2)


class PyRiemann(Kernlets):
    name = "pyRiemann"
    repeats = 1

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        if problem.kind != "Stein":
            raise Skip("a kernel of matrices only")
        self.distance = require("pyriemann.utils.distance", "pip install pyriemann")

    def run(self) -> np.ndarray:
        found = self.distance.pairwise_distance(self.problem.samples, metric="logdet")
        return np.exp(-THETA * found**2)


class Structured(Benchmark):
    name = "structured"
    title = "Gram matrices of series and of matrices"
    about = (
        "n random walks of `size` steps, scaled to unit variance, or n covariance "
        "matrices of `size` channels; float64. Timed: the matrix of all samples with "
        "each other, on two threads or processes. Errors are the largest differences "
        "from plain NumPy loops on a corner of the matrix."
    )
    grid = (
        {"kernel": "GAK", "n": 1000, "size": 150},
        {"kernel": "DTW", "n": 1000, "size": 150},
        {"kernel": "Stein", "n": 1000, "size": 20},
    )
    quick_grid = (
        {"kernel": "GAK", "n": 12, "size": 20},
        {"kernel": "DTW", "n": 12, "size": 20},
        {"kernel": "Stein", "n": 12, "size": 5},
    )
    methods = (Kernlets, Tslearn, PyRiemann)
    repeats = 3

    def problem(self, case: Case) -> Problem:
        rng = np.random.default_rng(SEED)
        n, size = case["n"], case["size"]
        if case["kernel"] == "Stein":
            signals = rng.standard_normal((n, 4 * size, size))
            matrices = signals.swapaxes(1, 2) @ signals / (4 * size)
            return Problem("Stein", matrices)
        walks = rng.standard_normal((n, size)).cumsum(axis=1)
        walks -= walks.mean(axis=1, keepdims=True)
        return Problem(case["kernel"], walks / walks.std(axis=1, keepdims=True))

    def targets(self, case: Case) -> list[Target]:
        peer = "pyRiemann" if case["kernel"] == "Stein" else "tslearn"
        return [Target(f"speed: {peer}", ">=", 5), Target("error", "<=", 1e-8)]


BENCHMARK = Structured()
