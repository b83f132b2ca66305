"""Outlier and novelty detection on the classical sets of ADBench, and their means."""

from __future__ import annotations

import os
from dataclasses import dataclass
from statistics import mean, pstdev
from typing import Any, ClassVar

import numpy as np

from .data import load_data
from .harness.skip import Skip, require
from .peers.spec import Benchmark, Case, Figures, Method

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
ROUNDS = 3  # of methods that draw random numbers, and splits into training and test
SLOW = "KERNLETS_SLOW_PEERS"  # set: also wait for DIF
ALL, NORMAL = "all", "normal"  # rows to learn from
MEANS = {ALL: "mean of all sets", NORMAL: "mean of all sets, normal rows only"}

_measured: dict[tuple[str, str], dict[str, Figures]] = {}  # rows, set -> method -> ...


@dataclass(frozen=True)
class Split:
    """Rows to learn from and rows to score, each feature scaled by the former."""

    train: np.ndarray  # (n, p)
    test: np.ndarray  # (k, p), the same object if all rows are learned from
    y: np.ndarray  # (k,), 1 for anomalies


@dataclass(frozen=True)
class Problem:
    name: str
    rows: str
    splits: tuple[Split, ...]


class Detector(Method):
    """Learns without labels; scores are high for outliers."""

    is_random: ClassVar[bool] = True
    memory = False

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def scores(self, split: Split, seed: int) -> np.ndarray:
        raise NotImplementedError

    def run(self) -> list[np.ndarray]:
        splits = self.problem.splits
        if self.problem.rows == ALL and not self.is_random:
            splits = splits[:1]  # all of them are the same
        return [self.scores(split, seed) for seed, split in enumerate(splits)]

    def figures(self, result: list[np.ndarray]) -> Figures:
        name, rows = self.problem.name, self.problem.rows
        if name == MEANS[rows]:
            return _means(rows, self.name)
        pairs = zip(self.problem.splits, result, strict=False)
        areas, precisions = zip(*(judged(s.y, r) for s, r in pairs), strict=True)
        found = {
            "ROC-AUC": mean(areas),
            "AP": mean(precisions),
            "spread": pstdev(areas),
        }
        _measured.setdefault((rows, name), {})[self.name] = found
        return found


def judged(y: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
    """ROC-AUC and average precision, which know the order of the scores only.

    Scores may be infinite.
    """
    from scipy.stats import rankdata
    from sklearn.metrics import average_precision_score, roc_auc_score

    ranks = rankdata(np.nan_to_num(scores, nan=-np.inf))
    return float(roc_auc_score(y, ranks)), float(average_precision_score(y, ranks))


def _means(rows: str, method: str) -> Figures:
    """Means over the sets, and mean ranks among the methods (1 is best)."""
    from scipy.stats import rankdata

    tables = [_measured[rows, each] for each in SETS]
    found: Figures = {}
    for figure in ("ROC-AUC", "AP"):
        values = [{name: f[figure] for name, f in row.items()} for row in tables]
        ranks = [
            dict(zip(row, rankdata([-v for v in row.values()]), strict=True))
            for row in values
        ]
        found[figure] = mean(row[method] for row in values)
        found[f"rank by {figure}"] = mean(float(row[method]) for row in ranks)
    found["spread"] = mean(row[method]["spread"] for row in tables)
    return found


class Kernlets(Detector):
    name = "kernlets"

    def scores(self, split: Split, seed: int) -> np.ndarray:
        from kernlets import DictionaryOutlierDetector

        return detected(DictionaryOutlierDetector, self.problem.rows, split, seed)


def detected(kind: Any, rows: str, split: Split, seed: int) -> np.ndarray:
    """Scores of one of our detectors, which is told if all rows are normal."""
    model = kind(novelty=rows == NORMAL, random_state=seed).fit(split.train)
    if split.test is split.train:
        return model.decision_scores_
    return -model.score_samples(split.test)


class IsolationForest(Detector):
    name = "IsolationForest"

    def scores(self, split: Split, seed: int) -> np.ndarray:
        from sklearn.ensemble import IsolationForest

        model = IsolationForest(random_state=seed).fit(split.train)
        return -model.score_samples(split.test)


class KNN(Detector):
    name = "k-NN"
    is_random = False

    def scores(self, split: Split, seed: int) -> np.ndarray:
        """The distance to the fifth neighbour that is not the row itself."""
        from sklearn.neighbors import NearestNeighbors

        model = NearestNeighbors(n_neighbors=5).fit(split.train)
        own = split.test is split.train
        return model.kneighbors(None if own else split.test)[0][:, -1]


class LOF(Detector):
    name = "LOF"
    is_random = False

    def scores(self, split: Split, seed: int) -> np.ndarray:
        from sklearn.neighbors import LocalOutlierFactor

        if split.test is split.train:
            return -LocalOutlierFactor().fit(split.train).negative_outlier_factor_
        model = LocalOutlierFactor(novelty=True).fit(split.train)
        return -model.score_samples(split.test)


class OneClassSVM(Detector):
    name = "OneClassSVM"
    is_random = False

    def scores(self, split: Split, seed: int) -> np.ndarray:
        from sklearn.svm import OneClassSVM

        return -OneClassSVM().fit(split.train).score_samples(split.test)


class MCD(Detector):
    name = "MCD"

    def scores(self, split: Split, seed: int) -> np.ndarray:
        from sklearn.covariance import MinCovDet

        return MinCovDet(random_state=seed).fit(split.train).mahalanobis(split.test)


class OfPyOD(Detector):
    """A detector of PyOD with its defaults; left out where PyOD is not installed."""

    module: ClassVar[str]
    is_random = False

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        home = require(f"pyod.models.{self.module}", "pip install pyod")
        self.model = getattr(home, self.name)

    def scores(self, split: Split, seed: int) -> np.ndarray:
        options = {"random_state": seed} if self.is_random else {}
        model = self.model(**options).fit(split.train)
        if split.test is split.train:
            return model.decision_scores_
        return model.decision_function(split.test)


class ECOD(OfPyOD):
    name, module = "ECOD", "ecod"


class COPOD(OfPyOD):
    name, module = "COPOD", "copod"


class HBOS(OfPyOD):
    name, module = "HBOS", "hbos"


class PCA(OfPyOD):
    name, module = "PCA", "pca"


class INNE(OfPyOD):
    name, module, is_random = "INNE", "inne", True


class DIF(OfPyOD):
    """It trains networks: minutes for a set, hours for all."""

    name, module, is_random = "DIF", "dif", True

    def __init__(self, problem: Problem) -> None:
        if not os.environ.get(SLOW):
            raise Skip(f"it takes hours: set {SLOW}=1 to wait for it")
        super().__init__(problem)


class Outliers(Benchmark):
    name = "outliers"
    title = "Outlier detection on ADBench"
    about = (
        f"Classical sets of ADBench, at most {MAX_ROWS} rows (drawn once). Every "
        "detector has its default parameters on every set and sees no labels. Learning "
        "from all rows it scores the same rows; learning from a random half of the "
        "normal rows it scores all others, and kernlets is told so (`novelty=True`). "
        "Features have mean 0 and variance 1 over the rows that are learned from. "
        f"Random methods and splits: mean of {ROUNDS} rounds, and the standard "
        "deviation of the ROC-AUC as spread. Seconds are those of all rounds. The last "
        "cases give means over the sets and mean ranks among all methods that ran."
    )
    grid = tuple(
        {"set": name, "rows": rows} for rows in MEANS for name in (*SETS, MEANS[rows])
    )
    quick_grid = ({"set": "toy", "rows": ALL}, {"set": "toy", "rows": NORMAL})
    methods = (
        *(Kernlets, IsolationForest, KNN, LOF, OneClassSVM, MCD),
        *(ECOD, COPOD, HBOS, PCA, INNE, DIF),
    )
    repeats = 1

    def problem(self, case: Case) -> Problem:
        name, rows = case["set"], case["rows"]
        if name == MEANS[rows]:
            if not {(rows, each) for each in SETS} <= set(_measured):
                raise Skip("not all sets were measured")
            return Problem(name, rows, ())
        X, y = _toy() if name == "toy" else _adbench(name)
        if rows == ALL:
            scaled = _scaled(X, X)
            return Problem(name, rows, (Split(scaled, scaled, y),) * ROUNDS)
        return Problem(name, rows, tuple(_half(X, y, seed) for seed in range(ROUNDS)))


def _half(X: np.ndarray, y: np.ndarray, seed: int) -> Split:
    """Half of the normal rows to learn from, and all other rows."""
    normal = np.random.default_rng(seed).permutation(np.flatnonzero(y == 0))
    train = np.zeros(len(y), dtype=bool)
    train[normal[: len(normal) // 2]] = True
    return Split(_scaled(X[train], X[train]), _scaled(X[~train], X[train]), y[~train])


def _scaled(X: np.ndarray, by: np.ndarray) -> np.ndarray:
    deviation = by.std(axis=0)
    return (X - by.mean(axis=0)) / np.where(deviation, deviation, 1)


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
