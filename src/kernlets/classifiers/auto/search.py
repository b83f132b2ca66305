"""Successive halving: many candidates on few rows, few candidates on many rows.

A stage scores its trials by cross-validation on a subset of the rows. The best trials
enter the next stage, together with new trials of similar settings. The clock limits
how far the search gets; the order of the trials does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...config import options
from ...numerics.arrays import to_numpy
from ...numerics.scaling import quiet
from .candidates import Design, Features
from .clock import Clock
from .folds import Fold, sampling_order, stratified_folds, validation_rows
from .learned_candidates import FAMILIES
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
N_SURVIVORS = (20, 8, 4, 3)  # trials that enter the next stage, for each stage
N_SURVIVORS_OF_FEW_ROWS = (6,)  # the same if there are fewer than FEW_ROWS rows
N_PARENTS = 4  # the next stage tries settings similar to those of so many trials
LAST_FAMILIES = ("classes", "exact")  # the first stage tries these families last
OVERHEAD_ROWS = 1000  # a fit to fewer rows takes about as long as one to this many
ROWS_FOR_THREADS = 1000  # fits to fewer rows use one thread
TIE_ERRORS = 0.5  # scores that differ by fewer standard errors count as equal
FAILURES = (ValueError, ArithmeticError, np.linalg.LinAlgError)


class Search:
    """The state of a search over trials."""

    def __init__(
        self,
        X: np.ndarray,  # (n, p)
        y: np.ndarray,  # (n,) class indices
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
        # Samples as atoms are the most robust to corruption. Measured on few rows, a
        # fit to all rows would seem too slow if the overhead were extrapolated.
        self.overhead_rows = OVERHEAD_ROWS if robust else 0
        self.outcomes: dict[Trial, Outcome] = {}
        self.table: list[dict[str, Any]] = []
        self.is_stopped = False

    def run(self) -> Outcome:
        """Run the stages and return the best trial on the most rows."""
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
            # The last stage only scores the survivors again, without new trials.
            new_trials = (
                []
                if is_last_but_one and stage_number
                else self._similar_trials(ranking)
            )
            trials = survivors + self._admit(new_trials)
        return self._best_outcome()

    def _best_outcome(self) -> Outcome:
        """Return the best of the outcomes that were scored on the most rows.

        The last stage, with more folds, may have had no time to score it again.
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
        # Corruptions are drawn only once, so that scores are uncertain: among trials
        # that may be equally good, choose the best on clean rows.
        close_outcomes = [
            outcome
            for outcome in final_outcomes
            if outcome.score >= best.score - TIE_ERRORS * best.chance
        ]
        return max(
            close_outcomes, key=lambda outcome: (outcome.shares[0], outcome.score)
        )

    def _first_trials(self) -> list[Trial]:
        """Return the trials of quick families in every space, then of slow ones."""
        spaces = first_spaces(self.has_few_rows, FIRST_LANDMARKS, self.robust)
        names = [name for name in self.families if not self._is_postponed(name)]
        if not names:  # the user asked for postponed families only
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
        """Whether a family is tried only in spaces where other families did well.

        A robust search tries exact dictionaries at once: in narrow kernels, which few
        landmarks cannot approximate, they are the most robust to corruption.
        """
        return FAMILIES[name].is_postponed and not (self.robust and name == "exact")

    def _admit(self, trials: list[Trial]) -> list[Trial]:
        """Return the trials that are new and suit the data, up to max_candidates."""
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
        """Return the best trials, in the first stage also the best of each family."""
        survivors = ranking[:n_survivors]
        if stage_number < 1:
            for name in self.families:
                survivors += [
                    outcome for outcome in ranking if outcome.trial.family == name
                ][:1]
        return list(dict.fromkeys(outcome.trial for outcome in survivors))

    def _similar_trials(self, ranking: list[Outcome]) -> list[Trial]:
        """Return trials similar to the best, and postponed families in their spaces."""
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
        folds = list(self._folds(stage))
        groups: dict[tuple[Space, bool], list[Trial]] = {}
        for trial in trials:
            # All trials of a space share its map. In the first stage slow families
            # are tried after the quick ones.
            is_slow = stage_number == 0 and trial.family in LAST_FAMILIES
            groups.setdefault((trial.space, is_slow), []).append(trial)
        valid_outcomes: list[Outcome] = []
        for group_trials in groups.values():
            affordable_trials = [
                trial
                for trial in group_trials
                if self._is_affordable(trial, stage, time_share, valid_outcomes)
            ]
            outcomes = self._score_trials(stage, affordable_trials, folds)
            for outcome in outcomes:
                self._record(stage_number, outcome)
            valid_outcomes += [outcome for outcome in outcomes if outcome.error is None]
            if self.is_stopped:
                break
        return sorted(valid_outcomes, key=lambda outcome: -outcome.score)  # stable

    def _folds(self, stage: Stage) -> Iterator[Fold]:
        rows = np.sort(self.order[: stage.n_rows])
        for _ in range(stage.repeats):
            yield from stratified_folds(rows, self.y, stage.n_folds, self.rng)

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
        """Return the slowest measured trial of its family, or the slowest of all."""
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
        self, stage: Stage, trials: list[Trial], folds: list[Fold]
    ) -> list[Outcome]:
        outcomes = [self._start_outcome(trial, stage) for trial in trials]
        for fold in folds if outcomes else ():
            features = self._features(trials[0].space, fold)
            for outcome in outcomes:
                # If time runs out, the remaining folds are skipped.
                if outcome.error is None and not self._has_no_time_for(
                    outcome, features.y
                ):
                    self._add_fold(outcome, features)
        return [outcome for outcome in outcomes if outcome.n_fits or outcome.error]

    def _has_no_time_for(self, outcome: Outcome, labels: np.ndarray) -> bool:
        """Whether another fold would leave too little time for the last fit."""
        measured = self.outcomes.get(outcome.trial, outcome)
        refit_seconds, fold_seconds = (
            measured.fit_seconds(len(self.y)),
            measured.fit_seconds(len(labels)),
        )
        return bool(self.outcomes) and not self.clock.allows(
            refit_seconds + fold_seconds
        )

    def _start_outcome(self, trial: Trial, stage: Stage) -> Outcome:
        """Start an outcome from the hits of an earlier stage with as many rows."""
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

    def _features(self, space: Space, fold: Fold) -> Features:
        steps = scalers(space.scale)
        X = scale_rows(steps, self.X[fold.train])
        held_out = validation_rows(self.X[fold.valid], self.std, self.robust, self.seed)
        with quiet():  # a trial fails on rows that overflow
            for step in steps:
                held_out = [step.transform(rows) for rows in held_out]
        kernel = self.kernels.kernel(space)
        y, true_classes = self.y[fold.train], self.y[fold.valid]
        return Features(kernel, space, X, y, held_out, true_classes, self.seed)

    def _add_fold(self, outcome: Outcome, features: Features) -> None:
        """Add the result of one fold; record errors instead of raising them."""
        start_seconds = self.clock.elapsed
        trial = outcome.trial
        # Small fits are slower with threads.
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
        """Return the pipeline steps of a trial for a fit to these rows."""
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
    """Copy the rows to a contiguous array in host memory."""
    return np.ascontiguousarray(to_numpy(X))
