"""Accuracy of dictionaries of time series, on the data sets that aeon ships."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernlets.lab.bench.skip import require
from kernlets.lab.peers.spec import SEED, Benchmark, Case, Figures, Method, Target

WIDTHS = (0.1, 0.2, 0.5, 1.0, 2.0)  # multiples of Cuturi's σ
FOLDS = 5


@dataclass(frozen=True)
class Problem:
    series: list[np.ndarray]  # (T, c), training samples first
    labels: np.ndarray
    n_train: int

    @property
    def train(self) -> tuple[list[np.ndarray], np.ndarray]:
        return self.series[: self.n_train], self.labels[: self.n_train]

    @property
    def test(self) -> tuple[list[np.ndarray], np.ndarray]:
        return self.series[self.n_train :], self.labels[self.n_train :]


class Searched(Method):
    """A classifier of precomputed kernels, its settings chosen on training samples."""

    memory = False
    repeats = 1

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @abstractmethod
    def classifier(self) -> tuple[Any, dict[str, list[Any]]]:
        """An estimator of precomputed matrices, and the grid of its settings."""

    def run(self) -> float:
        """Cross-validate width and settings, then predict the test samples."""
        from sklearn.model_selection import GridSearchCV, StratifiedKFold

        (X, y), (new, truth) = self.problem.train, self.problem.test
        folds = min(FOLDS, int(np.unique(y, return_counts=True)[1].min()))
        split = StratifiedKFold(folds, shuffle=True, random_state=SEED)
        best = (-1.0, None, None)
        for kernel in self.kernels(X):
            model, grid = self.classifier()
            search = GridSearchCV(model, grid, cv=split).fit(kernel(X), y)
            if search.best_score_ > best[0]:
                best = (search.best_score_, kernel, search.best_estimator_)
        _, kernel, model = best
        return float((model.predict(kernel(new, X)) == truth).mean())  # type: ignore

    def kernels(self, X: list[np.ndarray]) -> list[Any]:
        """Global alignment kernels of several widths."""
        from kernlets import GAK

        sigma = GAK().bound(X).sigma
        return [GAK(factor * sigma) for factor in WIDTHS]

    def figures(self, result: float) -> Figures:
        return {"accuracy": result}


class Dictionaries(Searched):
    name = "kernlets, kernel K-SVD"

    def classifier(self) -> tuple[Any, dict[str, list[Any]]]:
        from kernlets import KernelKSVD, ResidualClassifier

        counts = np.unique(self.problem.train[1], return_counts=True)[1]
        atoms = max(2, int(counts.min()) // 2)
        learner = KernelKSVD("precomputed", atoms, max_iter=5, random_state=SEED)
        grid = {"learner__n_nonzero_coefs": [1, min(3, atoms)]}
        return ResidualClassifier(learner), grid


class Samples(Searched):
    name = "kernlets, SRC"

    def classifier(self) -> tuple[Any, dict[str, list[Any]]]:
        from kernlets import SRCClassifier

        return SRCClassifier("precomputed"), {"n_nonzero_coefs": [1, 3, 10]}


class SupportVectors(Searched):
    name = "SVC, same kernel"

    def classifier(self) -> tuple[Any, dict[str, list[Any]]]:
        from sklearn.svm import SVC

        return SVC(kernel="precomputed"), {"C": [1, 10, 100, 1000]}


class Nearest(Searched):
    """The usual yardstick: no parameter."""

    name = "1-NN, DTW"

    def classifier(self) -> tuple[Any, dict[str, list[Any]]]:
        raise NotImplementedError

    def run(self) -> float:
        from kernlets import DTW

        (X, y), (new, truth) = self.problem.train, self.problem.test
        kernel = DTW().bound(X)
        return float((y[kernel(new, X).argmax(axis=1)] == truth).mean())


class StructuredAccuracy(Benchmark):
    name = "structured-accuracy"
    title = "Dictionaries of time series"
    about = (
        "The train and test parts of data sets that aeon ships. Global alignment "
        "kernel; its width (0.1 to 2 times Cuturi's rule) and one setting of each "
        "classifier are chosen by cross-validation on the training part. Timed: the "
        "search, the fit and the predictions."
    )
    grid = tuple(
        {"data": name}
        for name in (
            *("GunPoint", "ItalyPowerDemand", "ArrowHead"),
            *("BasicMotions", "JapaneseVowels", "OSULeaf"),
        )
    )
    quick_grid = ({"data": "synthetic"},)
    methods = (Dictionaries, Samples, SupportVectors, Nearest)
    repeats = 1

    def problem(self, case: Case) -> Problem:
        if case["data"] == "synthetic":
            return _synthetic()
        aeon = require("aeon.datasets", "pip install aeon")
        load, name = aeon.load_classification, case["data"]
        parts = [load(name, split=split) for split in ("train", "test")]
        series = [np.asarray(x).T for X, _ in parts for x in X]
        return Problem(series, np.concatenate([y for _, y in parts]), len(parts[0][1]))

    def targets(self, case: Case) -> list[Target]:
        if case["data"] == "synthetic":
            return []
        return [Target("accuracy: SVC, same kernel", ">=", 1)]


def _synthetic() -> Problem:
    rng = np.random.default_rng(SEED)
    labels = np.arange(24) % 2
    lengths = 12 + np.arange(24) % 3
    pairs = zip(labels, lengths, strict=True)
    shapes = [np.sin(np.linspace(0, 5 + 4 * y, n))[:, None] for y, n in pairs]
    series = [x + 0.2 * rng.standard_normal(x.shape) for x in shapes]
    return Problem(series, labels, 16)


BENCHMARK = StructuredAccuracy()
