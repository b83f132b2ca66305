"""Classifiers scored on several splits of a data set into training and test rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from statistics import mean, pstdev
from typing import Any

import numpy as np

from .harness.timing import timed
from .peers.spec import Case, Figures, Method

Split = tuple[np.ndarray, ...]  # X_train, X_test, y_train, y_test


@dataclass(frozen=True)
class Problem:
    splits: list[Split]
    case: Case

    @property
    def data(self) -> str:
        return self.case["data"]


class OnSplits(Method):
    """One classifier for each split; the seed is the number of the split."""

    name = "kernlets"
    memory = False

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.case = problem.case

    @abstractmethod
    def model(self, seed: int) -> Any:
        """The classifier, not fitted."""

    def run(self) -> list[Any]:
        """What `score` gives, split by split."""
        return [self.score(each, seed) for seed, each in enumerate(self.problem.splits)]

    def score(self, split: Split, seed: int) -> Any:
        """Percent correct, and seconds of fit and prediction."""
        X, X_test, y, y_test = split
        model = self.model(seed)
        labels, seconds = timed(lambda: model.fit(X, y).predict(X_test))
        return 100 * float(np.mean(labels == y_test)), seconds

    def figures(self, result: list[tuple[float, float]]) -> Figures:
        scores, seconds = zip(*result, strict=True)
        return {
            "accuracy": mean(scores),
            "spread": pstdev(scores),
            "s per split": mean(seconds),
            **self.published(),
        }

    def published(self) -> Figures:
        """Published figures of this case, where there are any."""
        return {}
