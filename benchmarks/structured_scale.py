"""Labels of many series through a few landmarks: seconds, and memory of the process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .harness.memory import forget_peak, peak
from .peers.spec import SEED, Benchmark, Case, Figures, Method, Target

MB = 1e6
STEPS = 150
TRAINED_ON = 1000


def hands(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Series like those of GunPoint: a hand goes up and down; some have a dip before.

    They begin and end at different steps, have noise, and unit variance.
    """
    y = rng.integers(0, 2, n)
    time = np.arange(STEPS)
    up, down = rng.uniform(30, 50, (n, 1)), rng.uniform(95, 120, (n, 1))
    slope = rng.uniform(3, 6, (n, 1))
    X = np.tanh((time - up) / slope) - np.tanh((time - down) / slope)
    dips = np.exp(-(((time - up + 15) / 5) ** 2)) + np.exp(
        -(((time - down - 15) / 5) ** 2)
    )
    X -= 0.3 * y[:, None] * dips
    X += 0.05 * rng.standard_normal(X.shape)
    X -= X.mean(axis=1, keepdims=True)
    X /= X.std(axis=1, keepdims=True)
    return X, y


@dataclass(frozen=True)
class Problem:
    model: Any  # fitted
    X: np.ndarray  # (n, STEPS)
    y: np.ndarray


def _kernel(case: Case) -> Any:
    from kernlets import DTW, GAK

    if case["kernel"] == "GAK":
        return GAK(triangular=case["band"] or 0)
    return DTW(radius=case["band"])


class Predictions(Method):
    name = "kernlets"
    memory = False  # measured in the one run that there is

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def run(self) -> tuple[np.ndarray, int]:
        forget_peak()
        found = self.problem.model.predict(self.problem.X)
        return found, peak() or 0

    def figures(self, result: tuple[np.ndarray, int]) -> Figures:
        found, most = result
        accuracy = float((found == self.problem.y).mean())
        return {"accuracy": accuracy, "MB": round(most / MB)}


class StructuredScale(Benchmark):
    name = "structured-scale"
    title = "Labels of many series"
    about = (
        f"n series of {STEPS} steps that are made like those of GunPoint; a Nyström "
        "map with the given number of landmarks and a dictionary for each class, "
        f"learned from {TRAINED_ON} series. Timed: `predict` of n other series in "
        "memory, on two threads. `band`: steps that an alignment may be off the "
        "diagonal, the triangular weights of GAK and the radius of DTW; None: any. "
        "MB: the most that the process took, data, libraries and all."
    )
    grid = (
        {"kernel": "GAK", "band": 20, "n": 100_000, "landmarks": 500},
        {"kernel": "DTW", "band": 15, "n": 100_000, "landmarks": 500},
        {"kernel": "GAK", "band": None, "n": 10_000, "landmarks": 500},
        {"kernel": "DTW", "band": None, "n": 10_000, "landmarks": 500},
    )
    quick_grid = (
        {"kernel": "GAK", "band": 20, "n": 40, "landmarks": 10},
        {"kernel": "DTW", "band": 15, "n": 40, "landmarks": 10},
    )
    methods = (Predictions,)
    repeats = 1

    def problem(self, case: Case) -> Problem:
        from sklearn.pipeline import make_pipeline

        from kernlets import KSVD, NystroemMap, ResidualClassifier

        rng = np.random.default_rng(SEED)
        features = NystroemMap(
            _kernel(case), n_landmarks=case["landmarks"], random_state=SEED
        )
        learner = ResidualClassifier(KSVD(8, 3, max_iter=5, random_state=SEED))
        model = make_pipeline(features, learner)
        model.fit(*hands(min(TRAINED_ON, 2 * case["n"]), rng))
        return Problem(model, *hands(case["n"], rng))

    def warm_up(self, method: type[Method]) -> None:
        """Compile the loops of both kernels."""
        for case in self.quick_grid:
            method(self.problem(case)).run()

    def targets(self, case: Case) -> list[Target]:
        if case["n"] < 100_000:
            return []
        return [Target("seconds", "<=", 180), Target("MB", "<=", 1000)]


BENCHMARK = StructuredScale()
