"""Missing values in the tables of scikit-learn, filled in."""

from __future__ import annotations

from typing import Any

import numpy as np

from .peers.spec import Benchmark, Case, Figures, Method, Target

TABLES = ("iris", "wine", "breast_cancer", "diabetes", "digits")
WIDE = 40  # features from which IterativeImputer gets few rounds and predictors
SEEDS = 3


def table(name: str, rows: int | None) -> np.ndarray:
    """Columns of mean 0 and variance 1."""
    from sklearn import datasets

    X = getattr(datasets, f"load_{name}")().data[:rows]
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)


class Imputer(Method):
    memory = False

    def __init__(self, problem: tuple[np.ndarray, float]) -> None:
        self.X, lost = problem
        draws = (np.random.default_rng(s).random(self.X.shape) for s in range(SEEDS))
        self.masks = [draw < lost for draw in draws]

    def model(self) -> Any:
        raise NotImplementedError

    def run(self) -> list[np.ndarray]:
        holed = (np.where(mask, np.nan, self.X) for mask in self.masks)
        return [self.model().fit_transform(X) for X in holed]

    def figures(self, result: list[np.ndarray]) -> Figures:
        pairs = zip(result, self.masks, strict=True)
        errors = [np.square(found - self.X)[mask].mean() for found, mask in pairs]
        return {"rmse": float(np.sqrt(np.mean(errors)))}


class Kernlets(Imputer):
    name = "kernlets"

    def model(self) -> Any:
        from kernlets import DictionaryImputer

        return DictionaryImputer()


class Neighbors(Imputer):
    name = "KNNImputer"

    def model(self) -> Any:
        from sklearn.impute import KNNImputer

        return KNNImputer(keep_empty_features=True)


class Iterative(Imputer):
    name = "IterativeImputer"

    def model(self) -> Any:
        from sklearn.experimental import enable_iterative_imputer  # noqa: F401
        from sklearn.impute import IterativeImputer

        wide = self.X.shape[1] >= WIDE
        rounds = {"max_iter": 3, "n_nearest_features": 20} if wide else {"max_iter": 10}
        return IterativeImputer(random_state=0, keep_empty_features=True, **rounds)


class Means(Imputer):
    name = "means"

    def model(self) -> Any:
        from sklearn.impute import SimpleImputer

        return SimpleImputer(keep_empty_features=True)


class Imputation(Benchmark):
    name = "imputation"
    title = "Missing values filled in, root mean square error"
    about = (
        "Tables of scikit-learn with columns of mean 0 and variance 1 (of digits the "
        "first 600 images); 10, 30 or 50 % of the entries are removed at random, three "
        "times. The error is that of the removed entries. Defaults of all methods; "
        "IterativeImputer gets 3 rounds with 20 nearest features on digits. Timed: "
        "three fits."
    )
    methods = (Kernlets, Neighbors, Iterative, Means)
    repeats = 1
    grid = tuple(
        {"table": name, "lost": lost, **({"rows": 600} if name == "digits" else {})}
        for name in TABLES
        for lost in (10, 30, 50)
    )
    quick_grid = ({"table": "iris", "lost": 30, "rows": 60},)

    def problem(self, case: Case) -> tuple[np.ndarray, float]:
        return table(case["table"], case.get("rows")), case["lost"] / 100

    def targets(self, case: Case) -> list[Target]:
        rivals = (Neighbors, Iterative)
        return [Target(f"rmse: {method.name}", "<=", 1.0) for method in rivals]


BENCHMARK = Imputation()
