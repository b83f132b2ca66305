"""Online dictionary learning beside SPAMS and scikit-learn, after equal times."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from .harness.skip import Skip, require
from .harness.timing import Stopwatch
from .peers.spec import SEED, Benchmark, Case, Figures, Method, Target
from .pictures import set12

BATCH = 512
N_FRESH = 10_000
SECONDS = (1, 3, 10)
FLAT = 1e-3  # patches whose norm is smaller have no structure to learn
JOBS = 2


@dataclass(frozen=True)
class Problem:
    X: np.ndarray  # (n, p) patches, in random order
    fresh: np.ndarray  # (N_FRESH, p)
    start: np.ndarray  # (m, p) the same first atoms for all
    penalty: float | None  # λ of lasso codes
    n_nonzero_coefs: int | None  # of OMP codes otherwise
    seconds: tuple[int, ...]

    @property
    def coder(self) -> Any:
        from kernlets.coders import OMP, Lasso

        if self.penalty is None:
            return OMP(self.n_nonzero_coefs)
        return Lasso(self.penalty)

    def objective(self, atoms: np.ndarray) -> float:
        """mean(½‖x − Dγ‖² + λ‖γ‖₁) of fresh patches, coded anew in float64."""
        from kernlets.coders import encode
        from kernlets.dictionaries import ExplicitDictionary

        atoms = atoms.astype(np.float64)
        dictionary = ExplicitDictionary(
            atoms / np.linalg.norm(atoms, axis=1, keepdims=True)
        )
        codes = encode(dictionary, self.coder, self.fresh.astype(np.float64))
        penalties = (self.penalty or 0.0) * np.abs(codes.values).sum(axis=1)
        return float((codes.residual / 2 + penalties).mean())


def patches(side: int, n: int, rng: np.random.Generator) -> np.ndarray:  # (n, side²)
    """Distinct patches of Set12 without their mean, of unit norm, in random order."""
    views = [
        np.lib.stride_tricks.sliding_window_view(picture, (side, side))
        for picture in set12().values()
    ]
    ends = np.cumsum([view.shape[0] * view.shape[1] for view in views])
    rows = []
    for number in rng.permutation(ends[-1])[: n + n // 20]:
        picture = int(np.searchsorted(ends, number, side="right"))
        place = int(number - ends[picture - 1] if picture else number)
        rows.append(views[picture][divmod(place, views[picture].shape[1])].ravel())
    X = np.array(rows, dtype=np.float32)
    X -= X.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    X, norms = X[norms[:, 0] > FLAT], norms[norms[:, 0] > FLAT]
    return (X / norms)[:n]


class Online(Method):
    """Learns batch by batch; the last atoms within each time count."""

    memory = False  # a run takes as long as it is told to

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.prepare()

    def prepare(self) -> None:
        """Set what a run needs that is not timed."""

    def learn(self) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function that learns from a batch and returns the atoms."""
        raise NotImplementedError

    def run(self) -> list[np.ndarray]:
        """Return the atoms after each of the times."""
        X, learn = self.problem.X, self.learn()
        atoms, reached = self.problem.start, []
        clock = Stopwatch()
        for number in count():
            place = number % (len(X) // BATCH) * BATCH
            batch = X[place : place + BATCH]
            more = clock("learning", partial(learn, batch))
            passed = clock.seconds["learning"]
            for _ in [s for s in self.problem.seconds[len(reached) :] if s < passed]:
                reached.append(atoms)
            if len(reached) == len(self.problem.seconds):
                return reached
            atoms = more
        raise RuntimeError("the clock stood still")

    def figures(self, result: list[np.ndarray]) -> Figures:
        return {
            f"objective, {seconds} s": self.problem.objective(atoms)
            for seconds, atoms in zip(self.problem.seconds, result, strict=True)
        }


class Kernlets(Online):
    name = "kernlets"

    def learn(self) -> Callable[[np.ndarray], np.ndarray]:
        from kernlets import OnlineDictionary

        learner = OnlineDictionary(
            coder=self.problem.coder,
            init=self.problem.start,
            schedule=f"batch_size={BATCH}",
            random_state=SEED,
        )
        return lambda batch: np.asarray(learner.partial_fit(batch).components_)


class Spams(Online):
    """trainDL takes a number of seconds; each time is a run from the start."""

    name = "SPAMS"

    def prepare(self) -> None:
        self.spams = require("spams")
        self.X = np.asfortranarray(self.problem.X.T)
        self.start = np.asfortranarray(self.problem.start.T)

    def run(self) -> list[np.ndarray]:
        # a negative number of iterations stands for seconds
        return [self.trained(-seconds) for seconds in self.problem.seconds]

    def trained(self, iterations: int) -> np.ndarray:
        is_lasso = self.problem.penalty is not None
        penalty = self.problem.penalty if is_lasso else self.problem.n_nonzero_coefs
        atoms = self.spams.trainDL(
            self.X,
            D=self.start,
            lambda1=penalty,
            mode=2 if is_lasso else 3,
            batchsize=BATCH,
            iter=iterations,
            numThreads=JOBS,
            verbose=False,
        )
        return atoms.T


class ScikitLearn(Online):
    name = "scikit-learn, MiniBatchDictionaryLearning"

    def prepare(self) -> None:
        if self.problem.penalty is None:
            raise Skip("MiniBatchDictionaryLearning learns from lasso codes only")

    def learn(self) -> Callable[[np.ndarray], np.ndarray]:
        from sklearn.decomposition import MiniBatchDictionaryLearning

        learner = MiniBatchDictionaryLearning(
            len(self.problem.start),
            alpha=self.problem.penalty,
            batch_size=BATCH,
            dict_init=self.problem.start,
            random_state=SEED,
        )

        def atoms_after(batch: np.ndarray) -> np.ndarray:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # codes that have not converged
                return learner.partial_fit(batch).components_.copy()

        return atoms_after


class OnlineLearning(Benchmark):
    name = "online"
    title = "Online dictionary learning, float32"
    about = (
        "Patches of Set12 in random order, mean removed, unit norm, float32; m atoms, "
        "the same first ones for all; batches of 512 rows; codes by the lasso with the "
        "penalty λ, or by OMP with q non-zeros (SPAMS: its l0 variant). The objective "
        f"is the mean of ½‖x − Dγ‖² + λ‖γ‖₁ over {N_FRESH} patches that were not "
        "learned from, coded anew in float64 over unit-norm atoms, after so many "
        "seconds of training. SPAMS is told the seconds and starts anew for each; the "
        "others learn on, and the last atoms within the time count."
    )
    grid = (
        {"n": 100_000, "side": 8, "m": 256, "λ": 0.15},
        {"n": 100_000, "side": 8, "m": 256, "λ": 0.05},
        {"n": 100_000, "side": 8, "m": 1024, "λ": 0.15},
        {"n": 100_000, "side": 16, "m": 512, "λ": 0.15},
        {"n": 100_000, "side": 8, "m": 256, "q": 10},
    )
    quick_grid = (
        {"n": 2000, "side": 8, "m": 32, "λ": 0.15},
        {"n": 2000, "side": 8, "m": 32, "q": 3},
    )
    methods = (Kernlets, Spams, ScikitLearn)
    repeats = 1

    def problem(self, case: Case) -> Problem:
        rng = np.random.default_rng(SEED)
        n, is_full = case["n"], case in self.grid
        n_fresh = N_FRESH if is_full else 500
        rows = patches(case["side"], n + n_fresh, rng)
        X, fresh = rows[:n], rows[n:]
        return Problem(
            X=X,
            fresh=fresh,
            start=X[rng.choice(n, case["m"], replace=False)],
            penalty=case.get("λ"),
            n_nonzero_coefs=case.get("q"),
            seconds=SECONDS if is_full else (1,),
        )

    def warm_up(self, method: type[Method]) -> None:
        super().warm_up(method)
        if method is Kernlets:  # its loops of OMP are others than those of the lasso
            method(self.problem(self.quick_grid[1])).run()

    def targets(self, case: Case) -> list[Target]:
        return [
            Target(f"objective, {seconds} s: {Spams.name}", "<=", 1.0)
            for seconds in SECONDS
        ]


BENCHMARK = OnlineLearning()
