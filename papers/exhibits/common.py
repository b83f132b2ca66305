"""What the studies of several papers share: scores, metrics and searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from kernlets.numerics.arrays import to_numpy

from ..data import subset
from ..spec import Metric

OTHER_MACHINE = "seconds of another machine"
ACCURACY = Metric("accuracy, %")
SECONDS = Metric("seconds", "lower", timing=True)


def percent_correct(model: Any, X: Any, y: np.ndarray) -> float:
    """Share of the labels that a fitted classifier finds, in percent."""
    return 100 * float(np.mean(to_numpy(model.predict(X)) == y))


class Searched:
    """A classifier whose parameters are chosen on some of its training rows.

    Three folds, each class in all of them; then it learns from all rows.
    """

    def __init__(
        self,
        model: Any,
        grid: Mapping[str, Sequence[Any]],
        seed: int,
        rows: int | None = None,
    ) -> None:
        self.model, self.grid, self.seed, self.rows = model, grid, seed, rows

    def fit(self, X: np.ndarray, y: np.ndarray) -> Searched:
        some = subset(X, self.rows, self.seed)
        folds = StratifiedKFold(3, shuffle=True, random_state=self.seed)
        search = GridSearchCV(self.model, self.grid, cv=folds, refit=False)
        best = search.fit(X[some], y[some]).best_params_
        self.model = clone(self.model).set_params(**best).fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return to_numpy(self.model.predict(X))
