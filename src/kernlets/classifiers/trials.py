"""The candidates of a search (`Trial`), their rows (`Stage`) and results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .families import Hits, Setting
from .learned import FAMILIES
from .spaces import Space

FIRST_ROWS, ROWS_PER_CLASS, FACTOR = 300, 10, 3
FEW_ROWS = 100  # with fewer, folds cannot distinguish many candidates


@dataclass(frozen=True)
class Trial:
    """One candidate, except for the value that its fit is evaluated at."""

    space: Space
    family: str
    setting: Setting


@dataclass(frozen=True)
class Stage:
    """How many rows are used, in how many folds, how often."""

    n_rows: int
    n_folds: int
    repeats: int = 1

    @property
    def n_train(self) -> int:
        """Rows that a candidate is fitted to; a single fold is a quarter held out."""
        n_parts = 4 if self.n_folds == 1 else self.n_folds
        return round(self.n_rows * (1 - 1 / n_parts))


@dataclass
class Outcome:
    """The results of a trial so far."""

    trial: Trial
    stage: Stage
    hits: Hits = field(default_factory=dict)  # of all rounds with as many rows
    total: int = 0  # rows that were classified in them
    n_fits: int = 0  # in this stage
    seconds: float = 0.0  # of the stage, with the maps
    error: str | None = None
    overhead_rows: int = 0  # rows up to which a fit takes about the same time

    @property
    def best_value(self) -> int:
        """The value at which most is right; the first of equals."""
        return max(self.hits, key=lambda value: self.smoothed(value).mean())

    def smoothed(self, value: int) -> np.ndarray:
        """Hits at a value, a little of those beside it: chance counts for less."""
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
        """The share that is right, for each way to spoil rows; as they are first."""
        return self.smoothed(self.best_value) / self.total

    @property
    def chance(self) -> float:
        """The standard error of the score."""
        shares = np.clip(self.shares, 0, 1)
        return float(np.sqrt(np.sum(shares * (1 - shares)) / self.total) / len(shares))

    def fit_seconds(self, n_rows: int) -> float:
        """Predicted time of a fit to this number of rows."""
        seconds_per_fit = self.seconds / max(1, self.n_fits)
        return seconds_per_fit * self._cost(n_rows) / self._cost(self.stage.n_train)

    def _cost(self, n_rows: int) -> float:
        cost, space = FAMILIES[self.trial.family].cost, self.trial.space
        return cost(space, n_rows) + (
            cost(space, self.overhead_rows) if self.overhead_rows else 0.0
        )

    def stage_seconds(self, stage: Stage) -> float:
        """Predicted time of another stage."""
        return stage.n_folds * stage.repeats * self.fit_seconds(stage.n_train)


def plan_stages(n_rows: int, n_classes: int) -> list[Stage]:
    """Growing parts of the rows; if there are few rows, more folds instead."""
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
    """A row of `table_`, of plain values."""
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
