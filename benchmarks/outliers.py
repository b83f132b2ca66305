"""Outlier detection on the classical sets of ADBench, and the mean over all of them."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean
from typing import Any, ClassVar

import numpy as np

from kernlets.lab.bench.skip import Skip, load_data
from kernlets.lab.peers.spec import Benchmark, Case, Figures, Method

SETS = (
    "annthyroid",
    "breastw",
    "cardio",
    "glass",
    "Ionosphere",
    "letter",
    "mammography",
    "mnist",
    "musk",
    "optdigits",
    "pendigits",
    "satellite",
    "satimage-2",
    "shuttle",
    "thyroid",
    "vowels",
    "WBC",
    "wine",
)
MAX_ROWS = 10_000  # larger sets are thinned out, as ADBench itself does
ROUNDS = 3  # of methods that draw random numbers
MEAN = "mean of all sets"

_measured: dict[str, dict[str, Figures]] = {}  # set -> method -> its figures


@dataclass(frozen=True)
class Problem:
    name: str
    X: np.ndarray  # (n, p), each feature with mean 0 and variance 1
    y: np.ndarray  # (n,), 1 for anomalies


class Detector(Method):
    """Fits all rows without labels; scores are high for outliers."""

    rounds: ClassVar[int] = ROUNDS
    memory = False

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def scores(self, X: np.ndarray, seed: int) -> np.ndarray:
        raise NotImplementedError

    def run(self) -> list[np.ndarray]:
        if self.problem.name == MEAN:
            return []
        return [self.scores(self.problem.X, seed) for seed in range(self.rounds)]

    def figures(self, result: list[np.ndarray]) -> Figures:
        from sklearn.metrics import average_precision_score, roc_auc_score

        if self.problem.name == MEAN:
            return _means(self.name)
        y = self.problem.y
        found = {
            "ROC-AUC": mean(float(roc_auc_score(y, scores)) for scores in result),
            "AP": mean(float(average_precision_score(y, s)) for s in result),
        }
        _measured.setdefault(self.problem.name, {})[self.name] = found
        return found


def _means(method: str) -> Figures:
    """Means over the sets, and mean ranks among the methods (1 is best)."""
    from scipy.stats import rankdata

    found: Figures = {}
    for figure in ("ROC-AUC", "AP"):
        values = [
            {name: figures[figure] for name, figures in _measured[each].items()}
            for each in SETS
        ]
        ranks = [
            dict(zip(row, rankdata([-v for v in row.values()]), strict=True))
            for row in values
        ]
        found[figure] = mean(row[method] for row in values)
        found[f"rank by {figure}"] = mean(float(row[method]) for row in ranks)
    return found


class Kernlets(Detector):
    name = "kernlets"

    def learner(self) -> Any:
        return None  # the detector's default

    def scores(self, X: np.ndarray, seed: int) -> np.ndarray:
        from kernlets import DictionaryOutlierDetector

        detector = DictionaryOutlierDetector(self.learner(), random_state=seed)
        return detector.fit(X).decision_scores_


class LinearDictionary(Kernlets):
    name = "kernlets, linear K-SVD"

    def learner(self) -> Any:
        from kernlets import KSVD

        return KSVD()


class IsolationForest(Detector):
    name = "IsolationForest"

    def scores(self, X: np.ndarray, seed: int) -> np.ndarray:
        from sklearn.ensemble import IsolationForest

        return -IsolationForest(random_state=seed).fit(X).score_samples(X)


class LOF(Detector):
    name = "LOF"
    rounds = 1

    def scores(self, X: np.ndarray, seed: int) -> np.ndarray:
        from sklearn.neighbors import LocalOutlierFactor

        return -LocalOutlierFactor().fit(X).negative_outlier_factor_


class OneClassSVM(Detector):
    name = "OneClassSVM"
    rounds = 1

    def scores(self, X: np.ndarray, seed: int) -> np.ndarray:
        from sklearn.svm import OneClassSVM

        return -OneClassSVM().fit(X).score_samples(X)


class Outliers(Benchmark):
    name = "outliers"
    title = "Outlier detection on ADBench"
    about = (
        "Classical sets of ADBench, all features brought to mean 0 and variance 1, at "
        f"most {MAX_ROWS} rows (drawn once). Every detector has its default parameters "
        "on every set, is fitted to all rows without labels and scores the same rows. "
        f"Those that draw random numbers: mean of {ROUNDS} rounds. kernlets is "
        "`DictionaryOutlierDetector()`; linear K-SVD the same with `KSVD()` in it. "
        "Seconds are those of all rounds. The last case gives means over the sets and "
        "mean ranks among the five."
    )
    grid = tuple({"set": name} for name in (*SETS, MEAN))
    quick_grid = ({"set": "toy"},)
    methods = (Kernlets, LinearDictionary, IsolationForest, LOF, OneClassSVM)
    repeats = 1

    def problem(self, case: Case) -> Problem:
        name = case["set"]
        if name == MEAN:
            if not set(SETS) <= set(_measured):
                raise Skip("not all sets were measured")
            return Problem(name, np.empty((0, 1)), np.empty(0))
        X, y = _toy() if name == "toy" else _adbench(name)
        deviation = X.std(axis=0)
        return Problem(
            name, (X - X.mean(axis=0)) / np.where(deviation, deviation, 1), y
        )


def _toy() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 3)), np.arange(200) < 10
    X[y] *= 5
    return X, y.astype(int)


def _adbench(name: str) -> tuple[np.ndarray, np.ndarray]:
    data = load_data(f"adbench/{name}", dtype=np.float64)
    assert data.y_train is not None
    rows = np.random.default_rng(0).permutation(len(data.y_train))[:MAX_ROWS]
    return data.X_train[np.sort(rows)], data.y_train[np.sort(rows)]


BENCHMARK = Outliers()
