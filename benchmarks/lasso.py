"""Lasso codes of image patches beside SPAMS and scikit-learn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .harness.skip import require
from .peers.spec import SEED, Benchmark, Case, Figures, Method, Target
from .pictures import set12

SUBSET = 300  # rows for scikit-learn, which would need minutes for all
JOBS = 2
FLAT = 1.0  # patches whose grey levels have a smaller standard deviation are left out


@dataclass(frozen=True)
class Problem:
    atoms: np.ndarray  # (m, p), unit norm
    X: np.ndarray  # (n, p), unit norm
    alpha: float

    def objectives(self, codes: Any) -> np.ndarray:  # (rows coded,)
        """½‖x − Dγ‖² + alpha‖γ‖₁ from the codes alone, in float64."""
        codes = sparse.csr_array(codes, dtype=np.float64)
        rest = self.X[: codes.shape[0]] - codes @ self.atoms.astype(np.float64)
        penalty = self.alpha * abs(codes).sum(axis=1)
        return np.einsum("ij,ij->i", rest, rest) / 2 + penalty


class Coding(Method):
    """What the methods share: the same objectives from everyone's codes."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def codes(self, result: Any) -> Any:  # (n, m), dense or sparse
        return result

    def figures(self, result: Any) -> Figures:
        codes = sparse.csr_array(self.codes(result))
        objectives = self.problem.objectives(codes)
        figures = {
            "objective, first rows": float(objectives[:SUBSET].mean()),
            "non-zeros": codes.nnz / codes.shape[0],
        }
        if len(objectives) == len(self.problem.X):
            figures["objective"] = float(objectives.mean())
        return figures


class Kernlets(Coding):
    name = "kernlets"

    def run(self) -> Any:
        from kernlets.coders import Lasso, encode
        from kernlets.dictionaries import ExplicitDictionary

        dictionary = ExplicitDictionary(self.problem.atoms)
        return encode(dictionary, Lasso(self.problem.alpha), self.problem.X)

    def codes(self, result: Any) -> Any:
        return result.tocsr()


class Spams(Coding):
    name = "SPAMS"

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.spams = require("spams")
        self.X = np.asfortranarray(problem.X.T)
        self.atoms = np.asfortranarray(problem.atoms.T)

    def run(self) -> Any:
        return self.spams.lasso(
            self.X, self.atoms, lambda1=self.problem.alpha, mode=2, numThreads=JOBS
        )

    def codes(self, result: Any) -> Any:
        return result.T


class ScikitLearnLARS(Coding):
    """On the first rows only; the Gram matrix is then scaled too, which is nothing."""

    name = "scikit-learn, LARS"
    algorithm = "lasso_lars"
    repeats = 3
    memory = False  # works on a subset

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.X = problem.X[:SUBSET]

    @property
    def share(self) -> float:
        return len(self.X) / len(self.problem.X)

    def run(self) -> np.ndarray:
        from sklearn.decomposition import sparse_encode
        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings():
            # its coordinate descent asks for a duality gap that float32 does not reach
            warnings.simplefilter("ignore", ConvergenceWarning)
            return sparse_encode(
                self.X,
                self.problem.atoms,
                algorithm=self.algorithm,
                alpha=self.problem.alpha,
            )


class ScikitLearnDescent(ScikitLearnLARS):
    name = "scikit-learn, coordinate descent"
    algorithm = "lasso_cd"


class LassoCodes(Benchmark):
    name = "lasso"
    title = "Lasso, float32"
    about = (
        "Patches of the pictures of Set12, every `stride` pixels, without their means "
        "and of unit norm, float32; m of them are the atoms. Timed: Gram matrix, "
        "correlations and codes that minimise ½‖x − Dγ‖² + alpha‖γ‖₁, from arrays in "
        "each library's own memory order. SPAMS (`lasso`, LARS) and kernlets have "
        f"{JOBS} threads. scikit-learn (`sparse_encode`) works on the first {SUBSET} "
        "rows and is scaled up to all. Objectives are means over the samples, "
        "recomputed in float64 from the codes."
    )
    grid = (
        {"side": 8, "stride": 10, "m": 256, "alpha": 0.15},
        {"side": 8, "stride": 10, "m": 256, "alpha": 0.05},
        {"side": 16, "stride": 19, "m": 512, "alpha": 0.15},
        {"side": 12, "stride": 10, "m": 1024, "alpha": 0.3},
    )
    quick_grid = ({"side": 6, "stride": 60, "m": 50, "alpha": 0.15},)
    methods = (Kernlets, Spams, ScikitLearnLARS, ScikitLearnDescent)
    repeats = 11

    def problem(self, case: Case) -> Problem:
        X = _patches(case["side"], case["stride"])
        rng = np.random.default_rng(SEED)
        atoms = X[rng.choice(len(X), case["m"], replace=False)]
        return Problem(atoms, X, case["alpha"])

    def targets(self, case: Case) -> list[Target]:
        return [
            Target("speed: SPAMS", ">=", 2.0),
            Target(f"speed: {ScikitLearnLARS.name}", ">=", 40),
            Target(f"speed: {ScikitLearnDescent.name}", ">=", 40),
            Target("objective: SPAMS", "<=", 1 + 1e-6),
            Target(f"objective, first rows: {ScikitLearnLARS.name}", "<=", 1 + 1e-6),
            Target(f"objective, first rows: {ScikitLearnDescent.name}", "<=", 1 + 1e-6),
        ]


def _patches(side: int, stride: int) -> np.ndarray:  # (n, side²)
    windows = [
        np.lib.stride_tricks.sliding_window_view(picture, (side, side))
        for picture in set12().values()
    ]
    X = np.concatenate([w[::stride, ::stride].reshape(-1, side**2) for w in windows])
    X = X.astype(np.float32)
    X -= X.mean(axis=1, keepdims=True)
    X = X[X.std(axis=1) > FLAT]
    return X / np.linalg.norm(X, axis=1, keepdims=True)


BENCHMARK = LassoCodes()
