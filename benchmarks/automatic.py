"""The automatic classifier beside what people would use instead, on eighteen sets."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from .data import load_data
from .peers.spec import Benchmark, Case, Target
from .splits import OnSplits, Problem, Split

SECONDS = float(os.environ.get("KERNLETS_SEARCH_SECONDS", "60"))
TRAIN = {"orl": 5, "yaleb-features": 32}  # images per person
IMAGES = ("digits", "orl", "ar", "yaleb-features", "usps", "mnist")
BUNDLED = ("breast_cancer", "wine", "iris")
TABLES = (
    "Ionosphere",
    "annthyroid",
    "breastw",
    "cardio",
    "glass",
    "letter",
    "musk",
    "satellite",
    "vowels",
)
MNIST_ROWS, TABLE_ROWS = 10_000, 4_000
NEIGHBORS = (1, 3, 5, 9, 15)
COSTS, WIDTHS = (1.0, 10.0, 100.0), (0.1, 0.3, 1.0, 3.0)


def load_split(name: str) -> Split:
    """Images without their mean and of unit norm, tables as they are."""
    from kernlets import datasets

    if name in BUNDLED:
        return _bundled(name)
    if name not in IMAGES:
        return _table(name)
    data = load_data(name)
    parts = data.X_train, data.X_test, data.y_train, data.y_test
    if name in TRAIN:
        parts = data.split(TRAIN[name], random_state=0)
    if name == "mnist":
        parts = parts[0][:MNIST_ROWS], parts[1], parts[2][:MNIST_ROWS], parts[3]
    return (*map(datasets.remove_mean_and_normalize, parts[:2]), *parts[2:])


def _bundled(name: str) -> Split:
    from sklearn import datasets

    return _halves(*getattr(datasets, f"load_{name}")(return_X_y=True))


def _table(name: str) -> Split:
    data = load_data(f"adbench/{name}", dtype=np.float64)
    rows = np.random.default_rng(0).permutation(len(data.y_train))[:TABLE_ROWS]
    return _halves(data.X_train[rows], data.y_train[rows])


def _halves(X: np.ndarray, y: np.ndarray) -> Split:
    from sklearn.model_selection import train_test_split

    return train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)


def _folds() -> Any:
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(3, shuffle=True, random_state=0)


def _searched(scaled: bool, classifier: Any, grid: dict[str, Any]) -> Any:
    """Tuned by cross-validation; tables with features of variance 1."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    steps = [StandardScaler(), classifier] if scaled else [classifier]
    name = type(classifier).__name__.lower()
    named = {f"{name}__{key}": values for key, values in grid.items()}
    return GridSearchCV(make_pipeline(*steps), named, cv=_folds())


class Kernlets(OnSplits):
    def model(self, seed: int) -> Any:
        from kernlets import AutoDictionaryClassifier

        seconds = 5.0 if self.case["data"] == "toy" else SECONDS
        return AutoDictionaryClassifier(seconds, random_state=seed)


class SVM(OnSplits):
    name = "RBF-SVM"

    def model(self, seed: int) -> Any:
        from sklearn.svm import SVC

        X = self.problem.splits[0][0]
        scaled = self.problem.data not in IMAGES
        rate = 1 / (X.shape[1] * (1.0 if scaled else float(X.var())))
        grid = {"C": COSTS, "gamma": [rate * width for width in WIDTHS]}
        return _searched(scaled, SVC(), grid)


class Neighbors(OnSplits):
    name = "k-NN"

    def model(self, seed: int) -> Any:
        from sklearn.neighbors import KNeighborsClassifier

        scaled = self.problem.data not in IMAGES
        return _searched(scaled, KNeighborsClassifier(), {"n_neighbors": NEIGHBORS})


class Forest(OnSplits):
    name = "random forest"

    def model(self, seed: int) -> Any:
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(500, random_state=seed)


class Automatic(Benchmark):
    name = "automatic"
    title = "The automatic classifier beside SVM, k-NN and random forest"
    about = (
        f"`AutoDictionaryClassifier(seconds={SECONDS:g})`, one seed, on rows as they "
        "are. RBF-SVM: C of 1, 10, 100 and gamma of 0.1, 0.3, 1, 3 times 1/(p var) by "
        "3-fold cross-validation; k-NN: k of 1, 3, 5, 9, 15 likewise; random forest: "
        "500 trees. Digits, USPS and AR: the published split; MNIST: the first "
        f"{MNIST_ROWS} training images, all test images; ORL: 5, Yale B features: 32 "
        "images of each person for training. These rows have their own mean removed "
        "and unit norm, for all methods. The other sets are tables: halves, "
        f"stratified, seed 0, ADBench's of at most {TABLE_ROWS} rows with normal "
        "and abnormal as classes; SVM and k-NN see features of variance 1. Accuracy "
        "in percent; fit and prediction in seconds. The list of candidates was "
        "developed by cross-validation on breast cancer, wine, iris, digits, USPS, "
        "vowels, cardio, satellite, letter and Ionosphere; on breast cancer, wine, "
        "iris, Ionosphere and vowels it saw all rows, also those of the test half."
    )
    grid = tuple({"data": name} for name in (*BUNDLED, *TABLES, *IMAGES))
    quick_grid = ({"data": "toy"},)
    methods = (Kernlets, SVM, Neighbors, Forest)
    repeats = 1

    def problem(self, case: Case) -> Problem:
        load: Callable[[str], Split] = _toy if case["data"] == "toy" else load_split
        return Problem([load(case["data"])], case)

    def targets(self, case: Case) -> list[Target]:
        return [Target("s per split", "<=", 1.2 * SECONDS)]


def _toy(name: str) -> Split:
    from sklearn.datasets import load_iris

    return _halves(*load_iris(return_X_y=True))


BENCHMARK = Automatic()
