"""The demonstration's experiment: digits, corruptions, one trial, kernel errors.

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
    remove_mean_and_normalize,
)
from kernlets.datasets.catalogue import Split
from kernlets.landmarks import SAMPLERS
from kernlets.maps import NystroemMap
from kernlets.numerics.threads import serial_blas

from .methods import KERNEL, METHODS, PEERS, TOLD

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
    landmarks: Sequence[int]

    def corruptions(self) -> list[Corruption]:
        noise = [Corruption("noise", s) for s in self.noise]
        return [Corruption(), *noise, *(Corruption("missing", s) for s in self.missing)]


FULL = Plan(range(5), (0.2, 0.4, 0.6), (0.3, 0.5, 0.7), (25, 50, 100, 200, 400))
QUICK = Plan(range(1), (0.4,), (0.5,), (25, 100))


@dataclass(frozen=True)
class DemoResult:
    """Everything that the table and the page show."""

    plan: Plan
    data: Split
    trials: list[Trial]
    peak_bytes: dict[str, int | None]
    kernel_errors: dict[str, dict[float, list[float]]]  # sampler -> c -> per seed
    best_rank: dict[int, float]
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


def fit_and_predict(method: str, seed: int) -> Callable[[], Any]:
    """The work whose peak memory is measured; all preparation is done here."""
    data, model = digits(), METHODS[method](seed)

    def work() -> None:
        with serial_blas:
            model.fit(data.X_train, data.y_train).predict(data.X_test)

    with serial_blas:
        warm_up(method)
    return work


def kernel_error(sampler: str, n_landmarks: int, seed: int, X: np.ndarray) -> float:
    """Relative trace error of the Nyström approximation of K(X, X)."""
    features = NystroemMap(KERNEL, sampler, n_landmarks=n_landmarks, random_state=seed)
    return float(features.fit(remove_mean_and_normalize(X)).kernel_error_)


def best_rank_error(counts: Sequence[int], X: np.ndarray) -> dict[int, float]:
    """Relative trace error of the best rank-c approximation, a lower bound."""
    K = KERNEL(remove_mean_and_normalize(X).astype(float))
    left = 1 - np.cumsum(np.linalg.eigvalsh(K)[::-1]) / np.trace(K)
    return {c: float(left[c - 1]) for c in counts}


def samplers() -> list[str]:
    """All registered ways to choose landmarks."""
    return list(SAMPLERS)
