"""K-SVD with approximate atom updates beside dictlearn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .harness.skip import require
from .peers.spec import SEED, Benchmark, Case, Figures, Method, Target

NOISE = 0.1  # per entry, relative to the size of an entry of the clean signals


@dataclass(frozen=True)
class Problem:
    X: np.ndarray  # (n, p)
    start: np.ndarray  # (m, p), the same first atoms for all
    n_nonzero_coefs: int
    max_iter: int

    def error(self, atoms: np.ndarray) -> float:
        """Mean squared residual of X over the atoms, coded anew in float64."""
        from kernlets.coders import OMP, encode
        from kernlets.dictionaries import ExplicitDictionary

        dictionary = ExplicitDictionary(atoms.astype(np.float64))
        codes = encode(dictionary, OMP(self.n_nonzero_coefs), self.X.astype(np.float64))
        return float(codes.residual.mean())


class Kernlets(Method):
    name = "kernlets"
    dtype: Any = np.float32

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.X = problem.X.astype(self.dtype, copy=False)

    def run(self) -> np.ndarray:
        from kernlets import KSVD

        learner = KSVD(
            n_nonzero_coefs=self.problem.n_nonzero_coefs,
            max_iter=self.problem.max_iter,
            init=self.problem.start.astype(self.dtype, copy=False),
            random_state=SEED,
        )
        return learner.fit(self.X).components_

    def figures(self, result: np.ndarray) -> Figures:
        return {"error": self.problem.error(result)}


class KernletsDouble(Kernlets):
    name = "kernlets, float64"
    dtype = np.float64


class Dictlearn(Kernlets):
    name = "dictlearn"
    dtype = np.float64  # converts to it otherwise, at its own expense
    repeats = 2

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.dictlearn = require("dictlearn")

    def run(self) -> np.ndarray:
        learner = self.dictlearn.DictionaryLearning(
            n_components=len(self.problem.start),
            fit_algorithm="aksvd",
            n_nonzero_coefs=self.problem.n_nonzero_coefs,
            max_iter=self.problem.max_iter,
            dict_init=self.problem.start.astype(np.float64),
            random_state=SEED,
        )
        return learner.fit(self.X).components_


class KSVDLearning(Benchmark):
    name = "ksvd"
    title = "K-SVD, approximate update"
    about = (
        "n signals of p features: q-sparse Gaussian combinations of m hidden unit-norm "
        f"Gaussian atoms plus noise of relative size {NOISE}; all methods learn m "
        "atoms from the same m signals as first atoms, q non-zeros. kernlets runs in "
        "float32 and in float64, dictlearn in float64 only; dictlearn codes the "
        "signals once more at the end of its fit. The error is the mean squared "
        "residual over the learned atoms, coded anew by the same float64 OMP for all."
    )
    grid = (
        {"n": 5000, "p": 64, "m": 128, "q": 5, "iterations": 10},
        {"n": 20000, "p": 256, "m": 300, "q": 5, "iterations": 5},
    )
    quick_grid = ({"n": 600, "p": 32, "m": 48, "q": 4, "iterations": 2},)
    methods = (Kernlets, KernletsDouble, Dictlearn)

    def problem(self, case: Case) -> Problem:
        n, p, m, q = (case[name] for name in ("n", "p", "m", "q"))
        rng = np.random.default_rng(SEED)
        hidden = rng.standard_normal((m, p))
        hidden /= np.linalg.norm(hidden, axis=1, keepdims=True)
        codes = np.zeros((n, m))
        support = rng.random((n, m)).argpartition(q, axis=1)[:, :q]
        np.put_along_axis(codes, support, rng.standard_normal((n, q)), axis=1)
        X = codes @ hidden
        X += NOISE * X.std() * rng.standard_normal((n, p))
        X = X.astype(np.float32)
        start = X[rng.choice(n, m, replace=False)]
        start /= np.linalg.norm(start, axis=1, keepdims=True)
        return Problem(X, start, q, case["iterations"])

    def targets(self, case: Case) -> list[Target]:
        return [
            Target("speed: dictlearn", ">=", 5),
            Target("error: dictlearn", "<=", 1.01),
        ]


BENCHMARK = KSVDLearning()
