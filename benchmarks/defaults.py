"""What the defaults are worth: no settings, on images and on tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .data import load_data
from .peers.spec import SEED, Benchmark, Case, Target
from .splits import OnSplits, Problem, Split

IMAGES = {"digits": None, "usps": None, "mnist": 10_000, "orl": 5}  # training rows
TABLES = ("breast_cancer", "wine", "iris")  # of scikit-learn
TABLE_SPLITS = 5
SEARCHED = 1000  # rows that the settings of the support vector machine are searched on
GRID = {"svc__C": (1.0, 10.0, 100.0), "svc__gamma": ("scale", 0.01, 0.1, 1.0)}
BELOW_NEIGHBOUR = 0.995  # no set may be below the nearest neighbour by much more


def image_splits(name: str) -> Iterator[Split]:
    """The published split; of MNIST 10 000 rows, of ORL 5 images per person."""
    from kernlets.datasets import remove_mean_and_normalize as prepared

    data, size = load_data(name), IMAGES[name]
    parts = data.X_train, data.X_test, data.y_train, data.y_test
    if name == "orl":
        parts = data.split(size, random_state=SEED)
    elif size is not None:
        rows = np.random.default_rng(SEED).permutation(len(data.X_train))[:size]
        parts = data.X_train[rows], data.X_test, data.y_train[rows], data.y_test
    yield (*map(prepared, parts[:2]), *parts[2:])


def table_splits(name: str) -> Iterator[Split]:
    """Halves, the same share of each class in both."""
    from sklearn import datasets
    from sklearn.model_selection import train_test_split

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    for seed in range(TABLE_SPLITS):
        yield train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)


def scaled(model: Any, data: str) -> Any:
    """Behind columns of unit variance, for tables; images are prepared already."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model) if data in TABLES else model


class Kernlets(OnSplits):
    """What ``kernlets fit`` makes of such rows."""

    def score(self, split: Split, seed: int) -> Any:
        from kernlets.cli.recipe import Recipe
        from kernlets.datasets import Table

        recipe, _ = Recipe(seed=seed).scaled_for(Table(split[0], split[2]))
        self.built = recipe.build(labelled=True)
        return super().score(split, seed)

    def model(self, seed: int) -> Any:
        return self.built


class Pipeline(OnSplits):
    name = "kernlets, NystroemMap() and ResidualClassifier()"

    def model(self, seed: int) -> Any:
        from sklearn.pipeline import make_pipeline

        from kernlets import NystroemMap, ResidualClassifier

        features = NystroemMap(random_state=seed)
        classifier = ResidualClassifier(random_state=seed)
        return scaled(make_pipeline(features, classifier), self.problem.data)


class Exact(OnSplits):
    name = "kernlets, ResidualClassifier(KernelKSVD())"

    def model(self, seed: int) -> Any:
        from kernlets import KernelKSVD, ResidualClassifier

        classifier = ResidualClassifier(KernelKSVD(), random_state=seed)
        return scaled(classifier, self.problem.data)


class Neighbour(OnSplits):
    name = "nearest neighbour"

    def model(self, seed: int) -> Any:
        from sklearn.neighbors import KNeighborsClassifier

        return scaled(KNeighborsClassifier(1), self.problem.data)


class Machine(OnSplits):
    name = "SVC()"

    def model(self, seed: int) -> Any:
        from sklearn.svm import SVC

        return scaled(SVC(), self.problem.data)


class TunedMachine(OnSplits):
    name = "SVC, tuned"

    def model(self, seed: int) -> Any:
        return Searched(seed)


class Searched:
    """C and gamma by cross-validation on some rows, then all rows."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        from sklearn.base import clone
        from sklearn.model_selection import GridSearchCV, StratifiedKFold
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import FunctionTransformer, StandardScaler
        from sklearn.svm import SVC

        is_table = X.shape[1] < 50
        first = StandardScaler() if is_table else FunctionTransformer()
        folds = StratifiedKFold(3, shuffle=True, random_state=self.seed)
        model = make_pipeline(first, SVC())
        rows = np.random.default_rng(self.seed).permutation(len(X))[:SEARCHED]
        search = GridSearchCV(model, GRID, cv=folds).fit(X[rows], y[rows])
        return clone(search.best_estimator_).fit(X, y)


class Defaults(Benchmark):
    name = "defaults"
    title = "Defaults: nothing is set"
    about = (
        "Percent correct without any setting. Images (own mean removed, unit norm): "
        "digits and USPS as published, 10 000 training images of MNIST, five images of "
        "each person of ORL. Tables as they are, halves, 5 splits: what `kernlets fit` "
        "builds scales them itself, all others get columns of unit variance. 'SVC, "
        "tuned': C of 1, 10, 100 and gamma of scale, 0.01, 0.1, 1 by 3-fold "
        "cross-validation on up to 1000 training rows."
    )
    grid = tuple({"data": name} for name in (*IMAGES, *TABLES))
    quick_grid = ({"data": "iris"},)
    methods = (Kernlets, Pipeline, Exact, Machine, TunedMachine, Neighbour)
    repeats = 1

    def problem(self, case: Case) -> Problem:
        splits = image_splits if case["data"] in IMAGES else table_splits
        return Problem(list(splits(case["data"])), case)

    def targets(self, case: Case) -> list[Target]:
        return [Target("accuracy: nearest neighbour", ">=", BELOW_NEIGHBOUR)]


BENCHMARK = Defaults()
