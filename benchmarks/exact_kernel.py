"""Exact kernel K-SVD beside dictlearn's kernel learner, as the samples grow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .digits import load_digits
from .harness.skip import Skip, require
from .peers.spec import SEED, Benchmark, Case, Figures, Method, Target


@dataclass(frozen=True)
class Problem:
    X: np.ndarray  # (n, p), unit norm
    case: Case


class Kernlets(Method):
    name = "kernlets"
    dtype: Any = np.float32

    def __init__(self, problem: Problem) -> None:
        import kernlets

        if not hasattr(kernlets, "KernelKSVD"):
            raise Skip("kernlets has no KernelKSVD yet")
        self.case = problem.case
        self.X = problem.X.astype(self.dtype, copy=False)

    def run(self) -> Any:
        from kernlets import KernelKSVD, Polynomial

        return KernelKSVD(
            kernel=Polynomial(degree=2, coef0=0),
            n_components=self.case["m"],
            n_nonzero_coefs=self.case["q"],
            max_iter=self.case["iterations"],
            random_state=SEED,
        ).fit(self.X)

    def figures(self, result: Any) -> Figures:
        return {"error": float(result.reconstruction_error(self.X))}


class KernletsDouble(Kernlets):
    name = "kernlets, float64"
    dtype = np.float64


class Dictlearn(Method):
    name = "dictlearn"
    repeats = 1  # minutes at the largest size

    def __init__(self, problem: Problem) -> None:
        self.dictlearn = require("dictlearn")
        self.case = problem.case
        self.X = problem.X.astype(np.float64)

    def run(self) -> Any:
        return self.dictlearn.KernelDictionaryLearning(
            n_components=self.case["m"],
            kernel="poly",
            degree=2,
            gamma=1,
            coef0=0,
            fit_algorithm="aksvd",
            n_nonzero_coefs=self.case["q"],
            max_iter=self.case["iterations"],
            random_state=SEED,
        ).fit(self.X)

    def figures(self, result: Any) -> Figures:
        errors = result.reconstruction_error(self.X, squared=True)
        return {"error": float(errors.mean())}


class ExactKernel(Benchmark):
    name = "exact-kernel"
    title = "Exact kernel K-SVD"
    about = (
        "n MNIST images of unit l2 norm, homogeneous polynomial kernel of degree 2, m "
        "atoms, q non-zeros, approximate atom updates; the kernel matrix is part of "
        "the time. kernlets in float32 and float64, dictlearn in float64 only, each "
        "from its own first atoms. The error is the mean squared residual of the "
        "training samples in feature space, coded anew after the fit, not timed."
    )
    grid = tuple(
        {"data": "mnist", "n": n, "m": 100, "q": 5, "iterations": 5}
        for n in (1000, 2000, 4000, 8000)
    )
    quick_grid = ({"data": "digits", "n": 300, "m": 20, "q": 3, "iterations": 2},)
    methods = (Kernlets, KernletsDouble, Dictlearn)
    repeats = 3

    def problem(self, case: Case) -> Problem:
        return Problem(load_digits(case["data"], case["n"]).X_train, case)

    def targets(self, case: Case) -> list[Target]:
        speed = [Target("speed: dictlearn", ">=", 15)] if case["n"] >= 4000 else []
        return [*speed, Target("error: dictlearn", "<=", 1)]


BENCHMARK = ExactKernel()
