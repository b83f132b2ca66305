"""The trials of a search, its stages, and the outcome of a trial in a stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .candidates import Hits, Setting
from .learned_candidates import FAMILIES
from .spaces import Space

FIRST_ROWS, ROWS_PER_CLASS, FACTOR = 300, 10, 3
FEW_ROWS = 100  # with fewer rows, folds cannot distinguish many candidates


@dataclass(frozen=True)
class Trial:
    """A candidate, except for the value of `Family.value_name`."""

    space: Space
    family: str
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


@dataclass
class Outcome:
    """The results of a trial so far."""

    trial: Trial
    stage: Stage
    hits: Hits = field(default_factory=dict)  # of all stages with as many rows
    total: int = 0  # number of rows classified in these stages
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
        adjacent_hits = [
            self.hits[adjacent_value]
            for adjacent_value in values[max(i - 1, 0) : i + 2]
        ]
        hits = self.hits[value]
        return hits + 0.25 * sum(other_hits - hits for other_hits in adjacent_hits)

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
        cost, space = FAMILIES[self.trial.family].cost, self.trial.space
        return cost(space, n_rows) + (
            cost(space, self.overhead_rows) if self.overhead_rows else 0.0
        )

    def stage_seconds(self, stage: Stage) -> float:
        """Predict the time of a trial in another stage."""
        return stage.n_folds * stage.repeats * self.fit_seconds(stage.n_train)


def plan_stages(n_rows: int, n_classes: int) -> list[Stage]:
    """Return stages of growing numbers of rows; few rows get more folds at the end."""
    n_stage_rows = max(FIRST_ROWS, ROWS_PER_CLASS * n_classes)
    stage_sizes = []
    while n_stage_rows < 0.7 * n_rows:
        stage_sizes.append(n_stage_rows)
        n_stage_rows *= FACTOR
    stages = [
        Stage(stage_size, _n_folds(stage_size)) for stage_size in (*stage_sizes, n_rows)
    ]
    if n_rows <= 3000:
        stages.append(Stage(n_rows, 5))
    if FEW_ROWS <= n_rows <= 600:
        stages.append(Stage(n_rows, 10, 2))
    return stages


def _n_folds(n_rows: int) -> int:
    return 3 if n_rows <= 1500 else 2 if n_rows <= 4000 else 1


def describe_outcome(outcome: Outcome) -> dict[str, Any]:
    """Return a row of `table_`, which has plain values only."""
    trial, family = outcome.trial, FAMILIES[outcome.trial.family]
    setting = dict(zip(family.setting_names, map(float, trial.setting), strict=True))
    if family.value_name and outcome.hits:
        setting[family.value_name] = int(outcome.best_value)
    return {
        "n_rows": outcome.stage.n_rows,
        "n_folds": outcome.stage.n_folds * outcome.stage.repeats,
        "scale": trial.space.scale,
        "kernel": trial.space.kernel,
        "width": float(trial.space.width),
        "n_landmarks": int(trial.space.n_landmarks),
        "family": trial.family,
        "setting": setting,
        "score": float(outcome.score) if outcome.error is None else None,
        "seconds": float(outcome.seconds),
        "error": outcome.error,
    }
