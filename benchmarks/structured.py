"""Gram matrices of series and of covariance matrices, beside tslearn and pyRiemann."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .harness.skip import Skip, require
from .peers.spec import SEED, Benchmark, Case, Figures, Method, Target

CORNER = 60  # rows of the matrix on which methods are compared with plain loops
GAMMA, THETA = 0.1, 0.5
PEER_SAMPLES = 500  # peers compare these with each other, and are scaled up


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
    kinds: ClassVar[tuple[str, ...]] = ("GAK", "DTW", "Stein")

    def __init__(self, problem: Problem) -> None:
        if problem.kind not in self.kinds:
            raise Skip(f"{problem.kind} is not among its kernels")
        self.problem = problem
        self.kernel = _kernel(problem)

    def run(self) -> np.ndarray:
        return self.kernel(self.problem.samples)

    def figures(self, result: np.ndarray) -> Figures:
        return {"error": self.problem.error(result)}


class Peer(Kernlets):
    """Another library, on a part of the samples."""

    repeats = 1
    memory = False

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.samples = problem.samples[:PEER_SAMPLES]

    @property
    def share(self) -> float:
        """Of the pairs of samples, each pair once."""
        n, k = len(self.problem.samples), len(self.samples)
        return k * (k + 1) / (n * (n + 1))


class Tslearn(Peer):
    name = "tslearn"
    kinds = ("GAK", "DTW")

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.metrics = require("tslearn.metrics", "pip install tslearn")

    def run(self) -> np.ndarray:
        X, jobs = self.samples[:, :, None], 2
        if self.problem.kind == "GAK":
            return self.metrics.cdist_gak(X, sigma=self.problem.sigma, n_jobs=jobs)
        return np.exp(-GAMMA * self.metrics.cdist_dtw(X, n_jobs=jobs) ** 2)


class PyRiemann(Peer):
    name = "pyRiemann"
    kinds = ("Stein",)

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.distance = require("pyriemann.utils.distance", "pip install pyriemann")

    def run(self) -> np.ndarray:
        found = self.distance.pairwise_distance(self.samples, metric="logdet")
        return np.exp(-THETA * found**2)


class Structured(Benchmark):
    name = "structured"
    title = "Gram matrices of series and of matrices"
    about = (
        "n random walks of `size` steps, scaled to unit variance, or n covariance "
        "matrices of `size` channels; float64. Timed: the matrix of all samples with "
        "each other, on two threads or processes; peers work on the first "
        f"{PEER_SAMPLES} samples and are scaled up by the number of pairs. Errors "
        "are the largest differences from plain NumPy loops on a corner of the matrix."
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

    def warm_up(self, method: type[Method]) -> None:
        """Compile all kernels that the method has."""
        for case in self.quick_grid:
            if case["kernel"] in method.kinds:  # type: ignore[attr-defined]
                method(self.problem(case)).run()

    def targets(self, case: Case) -> list[Target]:
        peer = "pyRiemann" if case["kernel"] == "Stein" else "tslearn"
        return [Target(f"speed: {peer}", ">=", 5), Target("error", "<=", 1e-8)]


BENCHMARK = Structured()
