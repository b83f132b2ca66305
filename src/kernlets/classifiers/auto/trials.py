"""The trials of a search: their stages and folds, the time limit, and the outcomes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ...datasets.preparation import add_noise, drop_pixels
from .candidates import Family, Hits, Setting
from .spaces import Space

FIRST_ROWS, ROWS_PER_CLASS, FACTOR = 300, 10, 3
FEW_ROWS = 100  # with fewer rows, folds cannot distinguish many candidates
LEADING_ROWS = 4  # of each class, which come first in the sampling order
TRAINING_ONLY = -1  # fold number of rows that are never held out
# standard deviation of the noise, in those of all entries; share of features set to 0
NOISE_LEVEL, DROPPED_SHARE = 1.0, 0.5
MARGIN = 1.25  # safety factor on predicted seconds
current_time = time.perf_counter


@dataclass(frozen=True)
class Clock:
    """The time since the start and a budget of seconds; None is no limit."""

    seconds: float | None
    start_time: float = field(default_factory=lambda: current_time())

    @property
    def budget(self) -> float:
        return inf if self.seconds is None else float(self.seconds)

    @property
    def elapsed(self) -> float:
        return current_time() - self.start_time

    @property
    def seconds_left(self) -> float:
        return self.budget - self.elapsed

    def allows(self, seconds: float, share: float = 1.0) -> bool:
        """Whether so many more seconds fit into this share of the budget."""
        return self.elapsed + MARGIN * seconds <= share * self.budget


@dataclass(frozen=True)
class Trial:
    """A candidate, except for the value of `Family.value_name`."""

    space: Space
    family: Family
    setting: Setting


@dataclass(frozen=True)
class Stage:
    """A number of rows, folds and repetitions of cross-validation."""

    n_rows: int
    n_folds: int
    repeats: int = 1

    @property
    def n_train(self) -> int:
        """The number of training rows; a single fold holds out a quarter."""
        n_parts = 4 if self.n_folds == 1 else self.n_folds
        return round(self.n_rows * (1 - 1 / n_parts))


def plan_stages(n_rows: int, n_classes: int) -> list[Stage]:
    """Return stages of growing numbers of rows; few rows get more folds at the end."""
    sizes = [max(FIRST_ROWS, ROWS_PER_CLASS * n_classes)]
    while sizes[-1] < 0.7 * n_rows:
        sizes.append(sizes[-1] * FACTOR)
    sizes[-1] = n_rows
    stages = [Stage(n, 3 if n <= 1500 else 2 if n <= 4000 else 1) for n in sizes]
    if n_rows <= 3000:
        stages.append(Stage(n_rows, 5))
    if FEW_ROWS <= n_rows <= 600:
        stages.append(Stage(n_rows, 10, 2))
    return stages


@dataclass
class Outcome:
    """The results of a trial so far."""

    trial: Trial
    stage: Stage
    hits: Hits = field(default_factory=dict)  # of all stages with as many rows
    total: float = 0.0  # weight of the rows classified in these stages
    n_fits: int = 0  # in this stage
    seconds: float = 0.0  # of these fits, with the maps
    error: str | None = None
    overhead_rows: int = 0  # fits to fewer rows take about as long as to so many

    @property
    def best_value(self) -> int:
        """The value with the most correct predictions, the first of equals."""
        return max(self.hits, key=lambda value: self.smoothed_hits(value).mean())

    def smoothed_hits(self, value: int) -> np.ndarray:
        """Return the hits at a value, smoothed over the two adjacent values."""
        values = list(self.hits)
        i = values.index(value)
        hits, adjacent_values = self.hits[value], values[max(i - 1, 0) : i + 2]
        return hits + 0.25 * sum(self.hits[other] - hits for other in adjacent_values)

    @property
    def score(self) -> float:
        if self.error is not None or not self.total:
            return -1.0
        return float(self.shares.mean())

    @property
    def shares(self) -> np.ndarray:
        """The accuracy for each corruption; clean rows come first."""
        return self.smoothed_hits(self.best_value) / self.total

    @property
    def chance(self) -> float:
        """The standard error of the score."""
        shares = np.clip(self.shares, 0, 1)
        return float(np.sqrt(np.sum(shares * (1 - shares)) / self.total) / len(shares))

    def fit_seconds(self, n_rows: int) -> float:
        """Predict the time of a fit to this number of rows."""
        seconds_per_fit = self.seconds / max(1, self.n_fits)
        return seconds_per_fit * self._cost(n_rows) / self._cost(self.stage.n_train)

    def _cost(self, n_rows: int) -> float:
        cost, space = self.trial.family.cost, self.trial.space
        overhead = cost(space, self.overhead_rows) if self.overhead_rows else 0.0
        return cost(space, n_rows) + overhead

    def row_of_table(self) -> dict[str, Any]:
        """Return a row of `table_`, which has plain values only."""
        space, family = self.trial.space, self.trial.family
        names = family.setting_names
        setting = dict(zip(names, map(float, self.trial.setting), strict=True))
        if family.value_name and self.hits:
            setting[family.value_name] = int(self.best_value)
        return {
            "n_rows": self.stage.n_rows,
            "n_folds": self.stage.n_folds * self.stage.repeats,
            "scale": space.scale,
            "kernel": space.kernel,
            "width": float(space.width),
            "n_landmarks": int(space.n_landmarks),
            "family": family.name,
            "setting": setting,
            "score": float(self.score) if self.error is None else None,
            "seconds": float(self.seconds),
            "error": self.error,
        }


class Fold(NamedTuple):
    """Row numbers for training and for validation."""

    train: np.ndarray
    valid: np.ndarray


def sampling_order(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # (n,)
    """Return an order in which the first n rows are a stratified sample for every n.

    The first few rows of all classes come first, so that no class is left out.
    """
    ranks = _ranks(labels, rng)
    class_share = ranks / np.bincount(labels)[labels]
    return np.lexsort((ranks, class_share, ranks >= LEADING_ROWS))


def _ranks(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # (n,)
    """Draw a random rank, counted from 0, of each row within its class."""
    ranks = np.empty(len(labels), dtype=np.intp)
    for c in range(int(labels.max()) + 1):
        rows = np.flatnonzero(labels == c)
        ranks[rows] = rng.permutation(len(rows))
    return ranks


def stratified_folds(
    rows: np.ndarray, labels: np.ndarray, n_folds: int, rng: np.random.Generator
) -> Iterator[Fold]:
    """Yield stratified folds of these rows; a single fold holds out a quarter.

    The only row of a class is never held out, nor are rows if that left one class.
    """
    row_labels = labels[rows]
    n_parts = 4 if n_folds == 1 else n_folds
    offsets = rng.permutation(int(labels.max()) + 1)  # spread small classes over folds
    folds = (_ranks(row_labels, rng) + offsets[row_labels]) % n_parts
    folds[np.bincount(row_labels)[row_labels] < 2] = TRAINING_ONLY
    for fold in range(n_folds):
        is_held_out = folds == fold
        if is_held_out.any() and len(np.unique(row_labels[~is_held_out])) > 1:
            yield Fold(rows[~is_held_out], rows[is_held_out])


def validation_rows(
    X: np.ndarray, std: float, robust: bool, seed: int
) -> list[np.ndarray]:
    """Return the rows unchanged and, if robust, with noise and with zeros."""
    if not robust:
        return [X]
    noisy = add_noise(X, NOISE_LEVEL * std, seed)
    return [X, noisy, drop_pixels(X, DROPPED_SHARE, seed)]
