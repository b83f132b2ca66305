"""The demonstration's experiment: digits, corruptions, one trial.

Half of scikit-learn's digits train, the other half test, split once with a fixed seed.
Training is clean; corruption goes on the raw test image before it is normalised
(LKDL, section V-A). Nothing is printed or drawn here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.timing import timed
from kernlets.datasets import (
    add_noise,
    drop_pixels,
    load,
)
from kernlets.datasets.catalogue import Split

from .methods import METHODS, PEERS, TOLD
from .novelties import Novelties
from .photograph import Photograph

SPLIT_SEED = 0
IMAGE_SHAPE = (8, 8)
CORRUPT: dict[str, Callable[..., np.ndarray]] = {
    "noise": add_noise,
    "missing": drop_pixels,
}


@dataclass(frozen=True)
class Corruption:
    """A corruption of the test images: none, noise of deviation s, or lost pixels."""

    kind: str = "clean"
    level: float = 0.0

    def __call__(self, X: np.ndarray, seed: int) -> np.ndarray:
        if self.kind == "clean":
            return X
        return CORRUPT[self.kind](X, self.level, random_state=seed)

    def told(self, X: np.ndarray, seed: int) -> np.ndarray:
        """The same, with NaN for the pixels that are lost."""
        if self.kind != "missing":
            return self(X, seed)
        return drop_pixels(X, self.level, random_state=seed, value=np.nan)

    def __str__(self) -> str:
        if self.kind == "clean":
            return "clean"
        level = f"{self.level:.0%}" if self.kind == "missing" else f"{self.level:g}"
        return f"{self.kind} {level}"


@dataclass(frozen=True)
class Trial:
    """One method fitted and tested with one seed."""

    method: str
    seed: int
    model: Any
    accuracy: dict[Corruption, float]
    fit_seconds: float
    predict_seconds: float  # the whole clean test half


@dataclass(frozen=True)
class Plan:
    """The extent of the demonstration."""

    seeds: Sequence[int]
    noise: Sequence[float]
    missing: Sequence[float]

    def corruptions(self) -> list[Corruption]:
        missing = [Corruption("missing", s) for s in self.missing]
        return [*missing, *(Corruption("noise", s) for s in self.noise), Corruption()]


FULL = Plan(range(3), (0.2, 0.4, 0.6), (0.3, 0.5, 0.7))
QUICK = Plan(range(1), (0.4,), (0.5,))


@dataclass(frozen=True)
class DemoResult:
    """Everything that the table and the page show."""

    plan: Plan
    data: Split
    trials: list[Trial]
    outliers: Novelties
    photograph: Photograph
    path: Path
    seconds: float = 0.0

    def of(self, method: str) -> list[Trial]:
        """The trials of a method, one per seed."""
        return [t for t in self.trials if t.method == method]

    def accuracy(self, method: str, corruption: Corruption) -> np.ndarray:  # (seeds,)
        return np.array([t.accuracy[corruption] for t in self.of(method)])

    def best(self, corruption: Corruption, methods: Iterable[str]) -> str:
        """The method with the best mean accuracy, to a tenth of a percent; the first
        of equals."""
        return max(methods, key=lambda m: self.percent(m, corruption))

    def winners(self, corruption: Corruption) -> list[str]:
        """The best method, and all within one standard deviation of it."""
        first = self.best(corruption, METHODS)
        deviation = 100 * float(self.accuracy(first, corruption).std())
        least = self.percent(first, corruption) - deviation
        return [m for m in METHODS if self.percent(m, corruption) >= least]

    def percent(self, method: str, corruption: Corruption) -> float:
        """Mean accuracy as it is shown."""
        return round(100 * float(self.accuracy(method, corruption).mean()), 1)

    def median(self, method: str, quantity: str) -> float:
        """Median over the seeds of ``fit_seconds`` or ``predict_seconds``."""
        return float(np.median([getattr(t, quantity) for t in self.of(method)]))


def digits() -> Split:
    """Raw grey levels in [0, 1], half for training."""
    return load("digits").split(0.5, random_state=SPLIT_SEED)


def run_trial(
    method: str, seed: int, data: Split, corruptions: Sequence[Corruption]
) -> Trial:
    """Fit on clean digits, test on each corruption."""
    model = METHODS[method](seed)
    _, fit_seconds = timed(lambda: model.fit(data.X_train, data.y_train))
    _, predict_seconds = timed(lambda: model.predict(data.X_test))
    accuracy = accuracies(model, data, corruptions, seed, method in TOLD)
    return Trial(method, seed, model, accuracy, fit_seconds, predict_seconds)


def accuracies(
    model: Any,
    data: Split,
    corruptions: Sequence[Corruption],
    seed: int,
    told: bool = False,
) -> dict[Corruption, float]:
    """Accuracy; with one seed all methods see the same corrupted images.

    A model that is `told` gets NaN for lost pixels.
    """

    def rows(corruption: Corruption) -> np.ndarray:
        corrupt = corruption.told if told else corruption
        return corrupt(data.X_test, seed)

    return {each: float(model.score(rows(each), data.y_test)) for each in corruptions}


def warm_up(method: str) -> None:
    """Compile and load what the method needs, on few digits, outside all timings."""
    X, _, y, _ = digits()
    few = np.concatenate([np.flatnonzero(y == label)[:12] for label in np.unique(y)])
    model = METHODS[method](0)
    if method not in PEERS:
        model[-1].learner.set_params(n_components=10, n_nonzero_coefs=2)
    model.fit(X[few], y[few]).predict(X[few])
