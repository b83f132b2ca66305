"""Successive halving: many candidates on few rows, few candidates on many rows.

A stage scores its trials by cross-validation on a part of the rows. The best go on to
the next stage, together with similar settings that are new. The clock decides how far
the search gets; the order of the trials does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..backend.arrays import to_numpy
from ..backend.scale import quiet
from ..config import options
from .clock import Clock
from .families import Design, Features
from .folds import Split, sampling_order, splits, validation_rows
from .learned import FAMILIES
from .spaces import (
    MIDDLE_WIDTH,
    NARROW_FACTOR,
    Space,
    SpaceKernels,
    first_spaces,
    near_spaces,
    scale_rows,
    scalers,
)
from .trials import FEW_ROWS, Outcome, Stage, Trial, describe_outcome, plan_stages

FIRST_LANDMARKS, MOST_LANDMARKS = 500, 2000
N_SURVIVORS = (20, 8, 4, 3)  # trials that go on after each stage ...
N_SURVIVORS_OF_FEW_ROWS = (6,)  # ... of few rows
N_PARENTS = 4  # trials whose near settings are tried in the next stage
LAST_FAMILIES = ("classes", "exact")  # families that come last in the first stage
OVERHEAD_ROWS = 1000  # rows up to which a fit is mostly overhead
ROWS_FOR_THREADS = 1000  # rows of a fit that is worth more than one thread
TIE_ERRORS = 0.5  # standard errors by which candidates may differ by chance
FAILURES = (ValueError, ArithmeticError, np.linalg.LinAlgError)


class Search:
    """The state of a search over trials."""

    def __init__(
        self,
        X: np.ndarray,  # (n, p)
        y: np.ndarray,  # (n,) places of the classes
        families: list[str],
        clock: Clock,
        robust: bool,
        max_candidates: int | None,
        seed: int,
        report: Callable[[dict[str, Any]], Any],
    ) -> None:
        self.X, self.y, self.families, self.clock = X, y, families, clock
        self.robust, self.seed, self.report = robust, seed, report
        self.n_candidates_left = max_candidates
        self.rng = np.random.default_rng(seed)
        self.order = sampling_order(y, self.rng)
        self.kernels = SpaceKernels.of(X)
        peak = float(np.abs(X).max()) or 1.0  # squares of huge entries would overflow
        self.std = peak * float((X / peak).std())
        self.stages = plan_stages(len(y), int(y.max()) + 1)
        self.has_few_rows = len(y) < FEW_ROWS
        # samples as atoms are what is best against damage, and in small parts of the
        # rows they seem to be too slow for all
        self.overhead_rows = OVERHEAD_ROWS if robust else 0
        self.outcomes: dict[Trial, Outcome] = {}
        self.table: list[dict[str, Any]] = []
        self.is_stopped = False

    def run(self) -> Outcome:
        """The best trial on as many rows as there was time for."""
        trials = self._admit(self._first_trials())
        for stage_number, stage in enumerate(self.stages):
            ranking = self._run_stage(stage_number, stage, trials)
            if not ranking or self.is_stopped:
                break
            survivor_counts = (
                N_SURVIVORS_OF_FEW_ROWS if self.has_few_rows else N_SURVIVORS
            )
            n_survivors = survivor_counts[min(stage_number, len(survivor_counts) - 1)]
            survivors = self._surviving_trials(ranking, n_survivors, stage_number)
            is_last_but_one = stage_number + 2 == len(self.stages)
            # nothing new in the very last stage of a repeated one: it decides only
            new_trials = (
                []
                if is_last_but_one and stage_number
                else self._similar_trials(ranking)
            )
            trials = survivors + self._admit(new_trials)
        return self._best_outcome()

    def _best_outcome(self) -> Outcome:
        """The best of all that were scored on the most rows.

        That may be one that the last stage, with more folds, had no time for.
        """
        valid_outcomes = [
            outcome for outcome in self.outcomes.values() if outcome.error is None
        ]
        if not valid_outcomes:
            raise self._no_result_error()
        most_rows = max(outcome.stage.n_rows for outcome in valid_outcomes)
        final_outcomes = [
            outcome for outcome in valid_outcomes if outcome.stage.n_rows == most_rows
        ]
        best = max(final_outcomes, key=lambda outcome: outcome.score)
        if not self.robust:
            return best
        # damage is drawn once: of those that may be as good, the best on clean rows
        close_outcomes = [
            outcome
            for outcome in final_outcomes
            if outcome.score >= best.score - TIE_ERRORS * best.chance
        ]
        return max(
            close_outcomes, key=lambda outcome: (outcome.shares[0], outcome.score)
        )

    def _first_trials(self) -> list[Trial]:
        """Quick families in every space first, then those that learn atoms."""
        spaces = first_spaces(self.has_few_rows, FIRST_LANDMARKS, self.robust)
        names = [name for name in self.families if not self._is_postponed(name)]
        if not names:  # only slow ones are asked for
            names = self.families
        quick_families = [name for name in names if name not in LAST_FAMILIES]
        slow_families = [name for name in names if name in LAST_FAMILIES]
        width = MIDDLE_WIDTH * (NARROW_FACTOR if self.robust else 1.0)
        middle_spaces = [space for space in spaces if space.width == width]
        return [
            Trial(space, name, setting)
            for group, group_spaces in (
                (quick_families, spaces),
                (slow_families, middle_spaces),
            )
            for space in group_spaces
            for name in group
            for setting in FAMILIES[name].first_settings()
        ]

    def _is_postponed(self, name: str) -> bool:
        """Whether a family waits for others to show where it could do well.

        Exact dictionaries of narrow kernels, which no map of few landmarks stands for,
        are what is best against damage.
        """
        return FAMILIES[name].is_slow and not (self.robust and name == "exact")

    def _admit(self, trials: list[Trial]) -> list[Trial]:
        """Those that are new and suit the data, up to the largest number."""
        n_rows = len(self.y)
        new_trials = [
            trial
            for trial in dict.fromkeys(trials)
            if trial not in self.outcomes and self._is_suitable(trial, n_rows)
        ]
        if self.n_candidates_left is not None:
            new_trials = new_trials[: self.n_candidates_left]
            self.n_candidates_left -= len(new_trials)
        return new_trials

    def _is_suitable(self, trial: Trial, n_rows: int) -> bool:
        family = FAMILIES[trial.family]
        is_fast_enough = self.robust or n_rows <= family.most_rows
        return is_fast_enough and family.is_suitable(trial.space, n_rows)

    def _surviving_trials(
        self, ranking: list[Outcome], n_survivors: int, stage_number: int
    ) -> list[Trial]:
        """The best trials; at first also the best one of every family."""
        survivors = ranking[:n_survivors]
        if stage_number < 1:
            for name in self.families:
                survivors += [
                    outcome for outcome in ranking if outcome.trial.family == name
                ][:1]
        return list(dict.fromkeys(outcome.trial for outcome in survivors))

    def _similar_trials(self, ranking: list[Outcome]) -> list[Trial]:
        """Settings and spaces near the best, and slow families in those spaces."""
        new_trials: list[Trial] = []
        for trial in (outcome.trial for outcome in ranking[:N_PARENTS]):
            family, space = FAMILIES[trial.family], trial.space
            settings = family.near_settings(trial.setting)
            new_trials += [Trial(space, trial.family, setting) for setting in settings]
            spaces = near_spaces(space, min(MOST_LANDMARKS, len(self.y)))
            new_trials += [
                Trial(near_space, trial.family, trial.setting) for near_space in spaces
            ]
        spaces = list(dict.fromkeys(outcome.trial.space for outcome in ranking))[:2]
        postponed_families = [
            name for name in self.families if self._is_postponed(name)
        ]
        for name in [] if self.has_few_rows else postponed_families:
            first_settings = FAMILIES[name].first_settings()
            new_trials += [
                Trial(space, name, setting)
                for space in spaces
                for setting in first_settings
            ]
        return new_trials

    def _run_stage(
        self, stage_number: int, stage: Stage, trials: list[Trial]
    ) -> list[Outcome]:
        """Score trials, grouped by space; return the best first."""
        time_share = (stage_number + 1) / len(self.stages)
        splits = list(self._splits(stage))
        groups: dict[tuple[Space, bool], list[Trial]] = {}
        for trial in trials:
            # one map for all; but slow families wait until the quick ones are done
            is_slow = stage_number == 0 and trial.family in LAST_FAMILIES
            groups.setdefault((trial.space, is_slow), []).append(trial)
        valid_outcomes: list[Outcome] = []
        for group_trials in groups.values():
            affordable_trials = [
                trial
                for trial in group_trials
                if self._is_affordable(trial, stage, time_share, valid_outcomes)
            ]
            outcomes = self._score_trials(stage, affordable_trials, splits)
            for outcome in outcomes:
                self._record(stage_number, outcome)
            valid_outcomes += [outcome for outcome in outcomes if outcome.error is None]
            if self.is_stopped:
                break
        return sorted(valid_outcomes, key=lambda outcome: -outcome.score)  # stable

    def _splits(self, stage: Stage) -> Iterator[Split]:
        rows = np.sort(self.order[: stage.n_rows])
        for _ in range(stage.repeats):
            yield from splits(rows, self.y, stage.n_folds, self.rng)

    def _is_affordable(
        self,
        trial: Trial,
        stage: Stage,
        time_share: float,
        stage_outcomes: list[Outcome],
    ) -> bool:
        """Whether a trial, and a fit of it to all rows, can end in time."""
        if self.is_stopped or not self.clock.allows(0.0, time_share):
            return False
        earlier = self.outcomes.get(trial) or self._comparable_outcome(
            trial, stage_outcomes
        )
        if earlier is None:
            return True
        refit_seconds = earlier.fit_seconds(len(self.y))
        stage_seconds = earlier.stage_seconds(stage)
        fits_into_share = (
            self.clock.allows(stage_seconds, time_share) or not stage_outcomes
        )
        return fits_into_share and self.clock.allows(stage_seconds + refit_seconds)

    def _comparable_outcome(
        self, trial: Trial, stage_outcomes: list[Outcome]
    ) -> Outcome | None:
        """The slowest measured trial of its family, otherwise the slowest of all."""
        measured_outcomes = [
            outcome
            for outcome in (*stage_outcomes, *self.outcomes.values())
            if outcome.n_fits
        ]
        family_outcomes = [
            outcome
            for outcome in measured_outcomes
            if outcome.trial.family == trial.family
        ]
        n_rows = len(self.y)
        return max(
            family_outcomes or measured_outcomes,
            key=lambda outcome: outcome.fit_seconds(n_rows),
            default=None,
        )

    def _score_trials(
        self, stage: Stage, trials: list[Trial], splits: list[Split]
    ) -> list[Outcome]:
        outcomes = [self._start_outcome(trial, stage) for trial in trials]
        for split in splits if outcomes else ():
            features = self._features(trials[0].space, split)
            for outcome in outcomes:
                # if time runs out, fewer folds are used
                if outcome.error is None and not self._has_no_time_for(
                    outcome, features.y
                ):
                    self._add_fold(outcome, features)
        return [outcome for outcome in outcomes if outcome.n_fits or outcome.error]

    def _has_no_time_for(self, outcome: Outcome, labels: np.ndarray) -> bool:
        """Whether another fold would take the time of the last fit."""
        measured = self.outcomes.get(outcome.trial, outcome)
        refit_seconds, fold_seconds = (
            measured.fit_seconds(len(self.y)),
            measured.fit_seconds(len(labels)),
        )
        return bool(self.outcomes) and not self.clock.allows(
            refit_seconds + fold_seconds
        )

    def _start_outcome(self, trial: Trial, stage: Stage) -> Outcome:
        """The result with the hits of an earlier stage of the same number of rows."""
        earlier = self.outcomes.get(trial)
        if earlier is None or earlier.stage.n_rows != stage.n_rows:
            return Outcome(trial, stage, overhead_rows=self.overhead_rows)
        return Outcome(
            trial,
            stage,
            dict(earlier.hits),
            earlier.total,
            overhead_rows=self.overhead_rows,
        )

    def _features(self, space: Space, split: Split) -> Features:
        steps = scalers(space.scale)
        X = scale_rows(steps, self.X[split.train])
        held_out = validation_rows(
            self.X[split.valid], self.std, self.robust, self.seed
        )
        with quiet():  # of rows that overflow the trial fails
            for step in steps:
                held_out = [step.transform(rows) for rows in held_out]
        kernel = self.kernels.kernel(space)
        y, true_classes = self.y[split.train], self.y[split.valid]
        return Features(kernel, space, X, y, held_out, true_classes, self.seed)

    def _add_fold(self, outcome: Outcome, features: Features) -> None:
        """Add the result of one fold; record errors instead of raising them."""
        start_seconds = self.clock.elapsed
        trial = outcome.trial
        # threads slow down small fits
        n_threads = 1 if len(features.y) < ROWS_FOR_THREADS else options.n_threads
        try:
            with options(n_threads=n_threads):
                hits = FAMILIES[trial.family].score(features, trial.setting)
        except FAILURES as error:
            outcome.error = f"{type(error).__name__}: {error}"
            return
        common_values = list(hits if not outcome.total else outcome.hits.keys() & hits)
        outcome.hits = {
            value: outcome.hits.get(value, 0) + hits[value]
            for value in sorted(common_values)
        }
        outcome.total += len(features.truth)
        outcome.seconds += self.clock.elapsed - start_seconds
        outcome.n_fits += 1

    def _record(self, stage_number: int, outcome: Outcome) -> None:
        self.outcomes[outcome.trial] = outcome
        row = {"stage": stage_number, **describe_outcome(outcome)}
        self.table.append(row)
        best = max(
            self.outcomes.values(), key=lambda other: (other.stage.n_rows, other.score)
        )
        search_state = {"n_stages": len(self.stages), "best": best.score}
        if self.report({**row, **search_state, "elapsed": self.clock.elapsed}):
            self.is_stopped = True

    def _no_result_error(self) -> Exception:
        errors = [outcome.error for outcome in self.outcomes.values() if outcome.error]
        if errors:
            return ValueError(f"no candidate could be fitted; the first: {errors[0]}")
        return ValueError(
            "no candidate could be scored: give at least 2 rows of some class, or more "
            "seconds"
        )

    def steps(self, outcome: Outcome, rows: np.ndarray) -> list[Any]:
        """The steps of the pipeline of a trial, for these rows."""
        trial = outcome.trial
        kernel, class_counts = (
            self.kernels.kernel(trial.space),
            np.bincount(self.y[rows]),
        )
        design = Design(kernel, trial.space, class_counts, self.seed)
        family = FAMILIES[trial.family]
        steps_after_scaling = family.steps(design, trial.setting, outcome.best_value)
        return [*scalers(trial.space.scale), *steps_after_scaling]


def as_host_array(X: Any) -> np.ndarray:
    """Rows in host memory, which folds are taken from."""
    return np.ascontiguousarray(to_numpy(X))
