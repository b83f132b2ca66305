"""Batch-OMP beside SPAMS and scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .harness.skip import require
from .peers.spec import SEED, Benchmark, Case, Figures, Method, Target

SUBSET = 2000  # rows for scikit-learn, which would need minutes for all
JOBS = 2


@dataclass(frozen=True)
class Problem:
    atoms: np.ndarray  # (m, p), unit norm
    X: np.ndarray  # (n, p)
    n_nonzero_coefs: int

    def residuals(self, codes: Any) -> np.ndarray:  # (rows coded,)
        """Squared residuals from the codes alone, in float64."""
        codes = sparse.csr_array(codes, dtype=np.float64)
        rest = self.X[: codes.shape[0]] - codes @ self.atoms.astype(np.float64)
        return np.einsum("ij,ij->i", rest, rest)


class Pursuit(Method):
    """What the methods share: the same residuals from everyone's codes."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def codes(self, result: Any) -> Any:  # (n, m), dense or sparse
        return result

    def figures(self, result: Any) -> Figures:
        residuals = self.problem.residuals(self.codes(result))
        figures = {"error, first rows": float(residuals[:SUBSET].mean())}
        if len(residuals) == len(self.problem.X):
            figures["error"] = float(residuals.mean())
        return figures


class Kernlets(Pursuit):
    name = "kernlets"

    def run(self) -> Any:
        from kernlets.coders import OMP, encode
        from kernlets.dictionaries import ExplicitDictionary

        dictionary = ExplicitDictionary(self.problem.atoms)
        return encode(dictionary, OMP(self.problem.n_nonzero_coefs), self.problem.X)

    def codes(self, result: Any) -> Any:
        return result.tocsr()


class Spams(Pursuit):
    name = "SPAMS"

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.spams = require("spams")
        self.X = np.asfortranarray(problem.X.T)
        self.atoms = np.asfortranarray(problem.atoms.T)

    def run(self) -> Any:
        # without eps, spams-bin 2.6.14 gives empty float32 codes in about half of
        # all processes: it then reads an unset threshold
        return self.spams.omp(
            self.X,
            self.atoms,
            L=self.problem.n_nonzero_coefs,
            eps=0.0,
            numThreads=JOBS,
        )

    def codes(self, result: Any) -> Any:
        return result.T


class ScikitLearn(Pursuit):
    """On the first rows only; the Gram matrix is then scaled too, which is nothing."""

    name = "scikit-learn"
    repeats = 3
    memory = False  # works on a subset
    n_jobs: int | None = None

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.X = problem.X[:SUBSET]

    @property
    def share(self) -> float:
        return len(self.X) / len(self.problem.X)

    def run(self) -> np.ndarray:
        from sklearn.decomposition import sparse_encode

        return sparse_encode(
            self.X,
            self.problem.atoms,
            algorithm="omp",
            n_nonzero_coefs=self.problem.n_nonzero_coefs,
            n_jobs=self.n_jobs,
        )


class ScikitLearnJobs(ScikitLearn):
    name = f"scikit-learn, {JOBS} jobs"
    n_jobs = JOBS


class BatchOMP(Benchmark):
    name = "omp"
    title = "Batch-OMP, float32"
    about = (
        "n standard Gaussian signals of p features over m unit-norm Gaussian atoms, "
        "q non-zeros each, float32. Timed: Gram matrix, correlations and pursuit, from "
        "arrays in each library's own memory order. scikit-learn "
        "(`sparse_encode(algorithm='omp')`, alone with a threaded BLAS and with "
        f"{JOBS} jobs) works on the first {SUBSET} rows and is scaled up to all. "
        "Errors are mean squared residuals, recomputed in float64 from the codes; a "
        "column for the first rows lets scikit-learn be compared on equal rows. SPAMS "
        "chooses atoms by the order-recursive rule (correlation over the norm of what "
        "is new in the atom), hence errors slightly below those of OMP proper."
    )
    grid = (
        {"n": 20000, "p": 256, "m": 300, "q": 5},
        {"n": 20000, "p": 784, "m": 700, "q": 11},
        {"n": 20000, "p": 256, "m": 512, "q": 10},
        {"n": 5000, "p": 504, "m": 570, "q": 30},
    )
    quick_grid = ({"n": 600, "p": 32, "m": 48, "q": 4},)
    methods = (Kernlets, Spams, ScikitLearn, ScikitLearnJobs)
    repeats = 11

    def problem(self, case: Case) -> Problem:
        rng = np.random.default_rng(SEED)
        atoms = rng.standard_normal((case["m"], case["p"]), dtype=np.float32)
        atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
        X = rng.standard_normal((case["n"], case["p"]), dtype=np.float32)
        return Problem(atoms, X, case["q"])

    def targets(self, case: Case) -> list[Target]:
        return [
            Target("speed: SPAMS", ">=", 2.0 if case["q"] == 30 else 2.5),
            Target("speed: scikit-learn", ">=", 40),
            Target(f"speed: {ScikitLearnJobs.name}", ">=", 40),
            Target("error: SPAMS", "≈", 1e-4),
            Target("error, first rows: scikit-learn", "≈", 1e-4),
        ]


BENCHMARK = BatchOMP()
