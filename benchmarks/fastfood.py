"""Fastfood beside plain random Fourier features, as the rows get longer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .harness.skip import require
from .peers.spec import SEED, Benchmark, Case, Figures, Method, Target

ROWS = 500  # on which the error of the kernel matrix is computed


@dataclass(frozen=True)
class Problem:
    X: np.ndarray  # (n, p)
    k: int

    def error(self, F: np.ndarray) -> float:
        """Relative Frobenius error over the first rows, in float64."""
        X, F = self.X[:ROWS].astype(np.float64), F[:ROWS].astype(np.float64)
        squares = (X**2).sum(axis=1)
        K = np.exp(X @ X.T - (squares[:, None] + squares) / 2)
        return float(np.linalg.norm(K - F @ F.T) / np.linalg.norm(K))


class Features(Method):
    """What the methods share: a map fitted beforehand, one transform timed."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.map = self.make(problem.k).fit(problem.X)

    def make(self, k: int) -> Any:
        """The map of the RBF kernel with σ = 1, not fitted."""
        raise NotImplementedError

    def run(self) -> np.ndarray:
        return self.map.transform(self.problem.X)

    def figures(self, result: np.ndarray) -> Figures:
        return {"error": self.problem.error(result)}


class Kernlets(Features):
    name = "kernlets, Fastfood"

    def make(self, k: int) -> Any:
        from kernlets import RBF, FastfoodMap

        return FastfoodMap(RBF(sigma=1.0), k, random_state=SEED)


class KernletsNormal(Features):
    name = "kernlets, Fastfood as published"

    def make(self, k: int) -> Any:
        from kernlets import RBF, FastfoodMap

        return FastfoodMap(RBF(sigma=1.0), k, gains="normal", random_state=SEED)


class KernletsFourier(Features):
    name = "kernlets, Fourier"

    def make(self, k: int) -> Any:
        from kernlets import RBF, FourierMap

        return FourierMap(RBF(sigma=1.0), k, random_state=SEED)


class ScikitLearn(Features):
    """Random Fourier features; one cosine with a random phase per frequency."""

    name = "scikit-learn, RBFSampler"

    def make(self, k: int) -> Any:
        from sklearn.kernel_approximation import RBFSampler

        return RBFSampler(gamma=0.5, n_components=k, random_state=SEED)


class ScikitLearnExtra(Features):
    name = "scikit-learn-extra, Fastfood"
    repeats = 3

    def make(self, k: int) -> Any:
        extra = require(
            "sklearn_extra.kernel_approximation", "pip install scikit-learn-extra"
        )
        return extra.Fastfood(sigma=2**-0.5, n_components=k, random_state=SEED)


class Fastfood(Benchmark):
    name = "fastfood"
    title = "Fastfood and random Fourier features, float32"
    about = (
        "n random rows of p features and length about 1, RBF kernel with σ = 1, k "
        "features, float32. Timed: the map of all rows, frequencies drawn beforehand. "
        f"Errors are relative Frobenius errors of the kernel matrix of {ROWS} rows. "
        "Fastfood has orthogonal rows in kernlets unless asked for as published (see "
        "`FastfoodMap`)."
    )
    grid = (
        {"n": 4000, "p": 256, "k": 1024},
        {"n": 4000, "p": 784, "k": 2048},
        {"n": 4000, "p": 1024, "k": 4096},
        {"n": 2000, "p": 4096, "k": 16384},
    )
    quick_grid = ({"n": 200, "p": 20, "k": 50},)
    methods = (
        Kernlets,
        KernletsNormal,
        KernletsFourier,
        ScikitLearn,
        ScikitLearnExtra,
    )
    repeats = 7

    def problem(self, case: Case) -> Problem:
        rng = np.random.default_rng(SEED)
        X = rng.standard_normal((case["n"], case["p"]), dtype=np.float32)
        return Problem(X / np.sqrt(np.float32(case["p"])), case["k"])

    def targets(self, case: Case) -> list[Target]:
        speed = [Target("speed: kernlets, Fourier", ">=", 1)] * (case["p"] >= 1024)
        return [*speed, Target("error: kernlets, Fourier", "<=", 1.1)]


BENCHMARK = Fastfood()
