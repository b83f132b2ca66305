"""LKDL on MNIST: landmarks, virtual samples, training and test together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from papers.published import number

from .digits import Digits, load_digits
from .harness.skip import Skip, require
from .harness.timing import Stopwatch
from .peers.spec import SEED, Benchmark, Case, Figures, Method, Target

BLOCK_ROWS = 2000  # of the products measured alone
PUBLISHED = number("lkdl", "fig3a", "LKDL", 60_000).value / 100
PEER_ROWS = 10_000  # training samples up to which the peers are run
SPREAD = 0.0012  # that the seeds may take away from the published accuracy


@dataclass(frozen=True)
class Problem:
    digits: Digits
    case: Case

    def __getitem__(self, name: str) -> Any:
        return self.case[name]


class Classification(Method):
    """What full methods share: five stages, and the accuracy of the predictions."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def run(self) -> tuple[np.ndarray, dict[str, float]]:
        data, clock = self.problem.digits, Stopwatch()
        feature_map = clock("fit map s", lambda: self.fit_map(data.X_train))
        F = clock("virtual samples s", lambda: feature_map.transform(data.X_train))
        predict = clock("train s", lambda: self.train(F, data.y_train))
        F_test = clock("map test s", lambda: feature_map.transform(data.X_test))
        return clock("predict s", lambda: predict(F_test)), clock.seconds

    def fit_map(self, X: np.ndarray) -> Any:
        raise NotImplementedError

    def train(self, F: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], Any]:
        """Learn from virtual samples; returns the function that predicts labels."""
        raise NotImplementedError

    def figures(self, result: tuple[np.ndarray, dict[str, float]]) -> Figures:
        labels, seconds = result
        accuracy = float(np.mean(labels == self.problem.digits.y_test))
        return {"accuracy": accuracy, **seconds}


class Kernlets(Classification):
    name = "kernlets"

    def fit_map(self, X: np.ndarray) -> Any:
        from kernlets import NystroemMap, Polynomial

        return NystroemMap(
            kernel=Polynomial(degree=2, coef0=0),
            landmarks=self.problem["landmarks"],
            n_landmarks=self.problem["c"],
            n_components=self.problem["k"],
            random_state=SEED,
        ).fit(X)

    def train(self, F: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], Any]:
        from kernlets import KSVD, ResidualClassifier

        learner = KSVD(
            n_components=self.problem["m"],
            n_nonzero_coefs=self.problem["q"],
            max_iter=self.problem["iterations"],
            random_state=SEED,
        )
        return ResidualClassifier(learner).fit(F, y).predict


class ScikitLearnDictlearn(Classification):
    """scikit-learn's Nystroem (as many features as landmarks), dictlearn per class."""

    name = "scikit-learn + dictlearn"
    repeats = 2

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.dictlearn = require("dictlearn")
        if problem["n"] > PEER_ROWS or problem["k"] != problem["c"]:
            raise Skip(f"too slow above {PEER_ROWS} samples, and keeps k = c features")

    def fit_map(self, X: np.ndarray) -> Any:
        from sklearn.kernel_approximation import Nystroem

        return Nystroem(
            kernel="poly",
            degree=2,
            gamma=1,
            coef0=0,
            n_components=self.problem["c"],
            random_state=SEED,
        ).fit(X)

    def train(self, F: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], Any]:
        classes = np.unique(y)
        learners = [self._learner(F[y == label]) for label in classes]

        def predict(F_test: np.ndarray) -> np.ndarray:
            errors = [each.reconstruction_error(F_test) for each in learners]
            return classes[np.argmin(errors, axis=0)]

        return predict

    def _learner(self, F: np.ndarray) -> Any:
        rows = np.random.default_rng(SEED).permutation(len(F))[: self.problem["m"]]
        start = F[rows] / np.linalg.norm(F[rows], axis=1, keepdims=True)
        return self.dictlearn.DictionaryLearning(
            n_components=len(start),
            fit_algorithm="aksvd",
            n_nonzero_coefs=self.problem["q"],
            max_iter=self.problem["iterations"],
            dict_init=start,
            random_state=SEED,
        ).fit(F)


class ProductsAlone(Method):
    """The floor: the matrix products that the method cannot do without, by BLAS."""

    name = "matrix products alone"
    memory = False

    def __init__(self, problem: Problem) -> None:
        self.shapes = list(_products(problem))

    def run(self) -> None:
        for rows, inner, columns in self.shapes:
            left = np.ones((min(BLOCK_ROWS, rows), inner), np.float32)
            right = np.ones((inner, columns), np.float32)
            out = np.empty((len(left), columns), np.float32)
            for _ in range(round(rows / len(left))):
                np.matmul(left, right, out=out)

    def figures(self, result: None) -> Figures:
        return {"GFLOP": sum(2e-9 * a * b * c for a, b, c in self.shapes)}


def _products(problem: Problem) -> Iterator[tuple[int, int, int]]:
    """(rows, inner, columns); the eigen-decomposition is not among them."""
    data = problem.digits
    (n, p), n_test = data.X_train.shape, len(data.X_test)
    c, k, m = problem["c"], problem["k"], problem["m"]
    yield c, p, c  # kernel between landmarks
    yield n + n_test, p, c  # kernel with the landmarks
    yield n + n_test, c, k  # virtual samples
    yield n * problem["iterations"], k, m  # correlations in training
    yield n_test * len(np.unique(data.y_train)), k, m  # with all classes in the test


class LKDL(Benchmark):
    name = "lkdl-mnist"
    title = "LKDL on MNIST, everything included"
    about = (
        "Images of unit l2 norm, float32, homogeneous polynomial kernel of degree 2, c "
        "landmarks, k features, m atoms per digit, q non-zeros, 10 000 test images. "
        "Timed: choice of landmarks and eigen-decomposition (fit map), virtual "
        "samples, training, virtual test samples and prediction together; the stages "
        "are listed too. The floor is the time of the indispensable matrix products "
        "(kernel blocks, projections, correlations; no eigen-decomposition). "
        "scikit-learn's Nystroem keeps all c features and dictlearn works in float64; "
        "they are compared at a size that they can do, all with uniform "
        "landmarks and samples as first atoms."
    )
    grid = (
        {
            "data": "mnist",
            "n": 60000,
            "landmarks": "coreset",
            "c": 9000,
            "k": 784,
            "m": 700,
            "q": 11,
            "iterations": 2,
        },
        {
            "data": "mnist",
            "n": 5000,
            "landmarks": "uniform",
            "c": 750,
            "k": 750,
            "m": 300,
            "q": 11,
            "iterations": 2,
        },
    )
    quick_grid = (
        {
            "data": "digits",
            "n": 1000,
            "landmarks": "uniform",
            "c": 60,
            "k": 60,
            "m": 30,
            "q": 4,
            "iterations": 2,
        },
    )
    methods = (Kernlets, ProductsAlone, ScikitLearnDictlearn)
    repeats = 3

    def problem(self, case: Case) -> Problem:
        return Problem(load_digits(case["data"], case["n"]), case)

    def targets(self, case: Case) -> list[Target]:
        if case["n"] > PEER_ROWS:
            return [
                Target("seconds", "<=", 40),
                Target(f"speed: {ProductsAlone.name}", ">=", round(1 / 1.2, 2)),
                Target("accuracy", ">=", round(PUBLISHED - SPREAD, 4)),
            ]
        return [Target(f"speed: {ScikitLearnDictlearn.name}", ">=", 5)]


BENCHMARK = LKDL()
