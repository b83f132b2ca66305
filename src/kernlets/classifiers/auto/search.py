"""Successive halving: many candidates on few rows, few candidates on many rows.

A stage scores its trials by cross-validation on a subset of the rows. The best trials
enter the next stage, together with new trials of similar settings. The clock limits
how far the search gets; the order of the trials does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...config import options
from .candidates import Design, Family, Features
from .spaces import (
    MIDDLE_WIDTH,
    NARROW_FACTOR,
    Space,
    SpaceKernels,
    first_spaces,
    make_scaler,
    near_spaces,
    scalers,
)
from .trials import (
    FEW_ROWS,
    Clock,
    Fold,
    Outcome,
    Stage,
    Trial,
    plan_stages,
    sampling_order,
    stratified_folds,
    validation_rows,
)

FIRST_LANDMARKS, MOST_LANDMARKS = 500, 2000
N_SURVIVORS = (20, 8, 4, 3)  # trials that enter the next stage, for each stage
N_SURVIVORS_OF_FEW_ROWS = (6,)  # the same if there are fewer than FEW_ROWS rows
N_PARENTS = 4  # the next stage tries settings similar to those of so many trials
OVERHEAD_ROWS = 1000  # a fit to fewer rows takes about as long as one to this many
ROWS_FOR_THREADS = 1000  # fits to fewer rows use one thread
OVERTIME = 0.2  # the last fit may exceed the budget by this share of it
LUCK_ERRORS = 1.0  # averaged trials are at most so many standard errors worse
TIE_ERRORS = 0.5  # scores that differ by fewer standard errors count as equal
FAILURES = (ValueError, ArithmeticError, np.linalg.LinAlgError)


class Search:
    """The state of a search over trials."""

    def __init__(
        self,
        X: np.ndarray,  # (n, p)
        y: np.ndarray,  # (n,) class indices
        families: list[Family],
        clock: Clock,
        *,
        balanced: bool = False,
        robust: bool = False,
        max_candidates: int | None = None,
        seed: int = 0,
        verbose: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self.X, self.y, self.families, self.clock = X, y, families, clock
        self.robust, self.seed = robust, seed
        counts = np.bincount(y)
        self.class_weights = (
            counts.mean() / counts if balanced else np.ones(len(counts))
        )
        row_weights = self.class_weights[y]
        # so many rows of equal weight would be as uncertain
        self.n_effective_rows = row_weights.sum() ** 2 / np.sum(row_weights**2)
        self.verbose, self.callback = verbose, callback
        self.n_candidates_left = max_candidates
        self.rng = np.random.default_rng(seed)
        self.order = sampling_order(y, self.rng)
        self.kernels = SpaceKernels(X)
        peak = float(np.abs(X).max()) or 1.0  # squares of huge entries would overflow
        self.std = peak * float((X / peak).std())
        self.stages = plan_stages(len(y), int(y.max()) + 1)
        self.has_few_rows = len(y) < FEW_ROWS
        # Samples as atoms are the most robust to corruption. Measured on few rows, a
        # fit to all rows would seem too slow if the overhead were extrapolated.
        self.overhead_rows = OVERHEAD_ROWS if robust else 0
        # A robust search tries exact dictionaries at once: in narrow kernels, which few
        # landmarks cannot approximate, they are the most robust to corruption.
        self.postponed_families = [
            family
            for family in families
            if family.is_postponed and not (robust and family.name == "exact")
        ]
        self.outcomes: dict[Trial, Outcome] = {}
        self.table: list[dict[str, Any]] = []
        self.history: dict[str, list[float]] = {"score": [], "seconds": []}
        self.is_stopped = False

    def run(self) -> Outcome:
        """Run the stages and return the best trial on the most rows."""
        n_survivors = N_SURVIVORS_OF_FEW_ROWS if self.has_few_rows else N_SURVIVORS
        trials = self._admit(self._first_trials())
        for i, stage in enumerate(self.stages):
            ranking = self._run_stage(i, stage, trials)
            if not ranking or self.is_stopped:
                break
            survivors = ranking[: n_survivors[min(i, len(n_survivors) - 1)]]
            if i == 0:  # also the best trial of each family
                for family in self.families:
                    survivors += [o for o in ranking if o.trial.family is family][:1]
            trials = list(dict.fromkeys(outcome.trial for outcome in survivors))
            # The last stage only scores the survivors again, without new trials.
            if i == 0 or i + 2 < len(self.stages):
                trials += self._admit(self._similar_trials(ranking))
        return self._best_outcome()

    def _first_trials(self) -> list[Trial]:
        """Return the trials of quick families in every space, then of slow ones."""
        spaces = first_spaces(self.has_few_rows, FIRST_LANDMARKS, self.robust)
        width = MIDDLE_WIDTH * (NARROW_FACTOR if self.robust else 1.0)
        middle_spaces = [space for space in spaces if space.width == width]
        families = [f for f in self.families if f not in self.postponed_families]
        families = families or self.families  # the user named postponed families only
        quick_families = [family for family in families if not family.is_slow]
        slow_families = [family for family in families if family.is_slow]
        quick_trials = _trials_of_families(spaces, quick_families)
        return quick_trials + _trials_of_families(middle_spaces, slow_families)

    def _similar_trials(self, ranking: list[Outcome]) -> list[Trial]:
        """Return trials similar to the best, and postponed families in their spaces."""
        trials: list[Trial] = []
        for trial in (outcome.trial for outcome in ranking[:N_PARENTS]):
            space, family, setting = trial.space, trial.family, trial.setting
            settings = family.near_settings(setting)
            spaces = near_spaces(space, min(MOST_LANDMARKS, len(self.y)))
            trials += [Trial(space, family, other) for other in settings]
            trials += [Trial(other, family, setting) for other in spaces]
        best_spaces = list(dict.fromkeys(outcome.trial.space for outcome in ranking))
        for family in [] if self.has_few_rows else self.postponed_families:
            trials += _trials_of_families(best_spaces[:2], [family])
        return trials

    def _admit(self, trials: list[Trial]) -> list[Trial]:
        """Return the trials that are new and suit the data, up to max_candidates."""
        n_rows = len(self.y)
        trials = [
            trial
            for trial in dict.fromkeys(trials)
            if trial not in self.outcomes
            and trial.family.is_suitable(trial.space, n_rows, self.robust)
        ]
        if self.n_candidates_left is not None:
            trials = trials[: self.n_candidates_left]
            self.n_candidates_left -= len(trials)
        return trials

    def _run_stage(
        self, number: int, stage: Stage, trials: list[Trial]
    ) -> list[Outcome]:
        """Score trials, grouped by space; return the best first."""
        time_share = (number + 1) / len(self.stages)
        rows = np.sort(self.order[: stage.n_rows])
        folds: list[Fold] = []
        for _ in range(stage.repeats):
            folds += stratified_folds(rows, self.y, stage.n_folds, self.rng)
        groups: dict[tuple[Space, bool], list[Trial]] = {}
        for trial in trials:
            # All trials of a space share its map. In the first stage slow families
            # are tried after the quick ones.
            is_slow = number == 0 and trial.family.is_slow
            groups.setdefault((trial.space, is_slow), []).append(trial)
        ranking: list[Outcome] = []
        for group in groups.values():
            affordable_trials = [
                trial
                for trial in group
                if self._is_affordable(trial, stage, time_share, ranking)
            ]
            for outcome in self._score_trials(stage, affordable_trials, folds):
                self._record(number, outcome)
                if outcome.error is None:
                    ranking.append(outcome)
            if self.is_stopped:
                break
        return sorted(ranking, key=lambda outcome: -outcome.score)  # stable

    def _is_affordable(
        self, trial: Trial, stage: Stage, time_share: float, ranking: list[Outcome]
    ) -> bool:
        """Whether a trial, and a fit of it to all rows, can end in time.

        A new trial is expected to take as long as the slowest of its family, or of all.
        """
        if self.is_stopped or not self.clock.allows(0.0, time_share):
            return False
        n_rows = len(self.y)
        similar = self.outcomes.get(trial)
        if similar is None:
            measured = [o for o in (*ranking, *self.outcomes.values()) if o.n_fits]
            of_family = [o for o in measured if o.trial.family is trial.family]
            if not measured:
                return True
            similar = max(of_family or measured, key=lambda o: o.fit_seconds(n_rows))
        seconds = stage.n_folds * stage.repeats * similar.fit_seconds(stage.n_train)
        fits_into_share = self.clock.allows(seconds, time_share) or not ranking
        return fits_into_share and self.clock.allows(
            seconds + similar.fit_seconds(n_rows)
        )

    def _score_trials(
        self, stage: Stage, trials: list[Trial], folds: Sequence[Fold]
    ) -> list[Outcome]:
        outcomes = [self._start_outcome(trial, stage) for trial in trials]
        for fold in folds if outcomes else ():
            features = self._features(trials[0].space, fold)
            for outcome in outcomes:
                # If time runs out, the remaining folds are skipped.
                if outcome.error is None and self._has_time_for_fold(outcome, features):
                    self._add_fold(outcome, features)
        return [outcome for outcome in outcomes if outcome.n_fits or outcome.error]

    def _start_outcome(self, trial: Trial, stage: Stage) -> Outcome:
        """Start an outcome from the hits of an earlier stage with as many rows."""
        outcome = Outcome(trial, stage, overhead_rows=self.overhead_rows)
        earlier = self.outcomes.get(trial)
        if earlier is not None and earlier.stage.n_rows == stage.n_rows:
            outcome.hits, outcome.total = dict(earlier.hits), earlier.total
        return outcome

    def _has_time_for_fold(self, outcome: Outcome, features: Features) -> bool:
        """Whether another fold would leave enough time for the last fit."""
        measured = self.outcomes.get(outcome.trial, outcome)
        fold_seconds = measured.fit_seconds(len(features.y))
        refit_seconds = measured.fit_seconds(len(self.y))
        return not self.outcomes or self.clock.allows(refit_seconds + fold_seconds)

    def _features(self, space: Space, fold: Fold) -> Features:
        scaler = make_scaler(space.scale)
        X, y = scaler.fit_transform(self.X[fold.train]), self.y[fold.train]
        held_out = validation_rows(self.X[fold.valid], self.std, self.robust, self.seed)
        scaled_rows = [scaler.transform(rows) for rows in held_out]
        design = self._design(space, fold.train)
        truth = self.y[fold.valid]
        return Features(design, X, y, scaled_rows, truth, self.class_weights)

    def _design(self, space: Space, rows: np.ndarray) -> Design:
        class_counts = np.bincount(self.y[rows])
        return Design(self.kernels.kernel(space), space, class_counts, self.seed)

    def _add_fold(self, outcome: Outcome, features: Features) -> None:
        """Add the result of one fold; record errors instead of raising them."""
        start_seconds, trial = self.clock.elapsed, outcome.trial
        # Small fits are slower with threads.
        n_threads = 1 if len(features.y) < ROWS_FOR_THREADS else options.n_threads
        try:
            with options(n_threads=n_threads):
                hits = trial.family.score(features, trial.setting)
        except FAILURES as error:
            outcome.error = f"{type(error).__name__}: {error}"
            return
        common_values = outcome.hits.keys() & hits if outcome.total else hits
        outcome.hits = {
            w: outcome.hits.get(w, 0) + hits[w] for w in sorted(common_values)
        }
        outcome.total += features.total
        outcome.seconds += self.clock.elapsed - start_seconds
        outcome.n_fits += 1

    def _record(self, stage_number: int, outcome: Outcome) -> None:
        """Add an outcome to the table and the history, and report it."""
        is_new_stage = not self.table or self.table[-1]["stage"] != stage_number
        self.outcomes[outcome.trial] = outcome
        row = {"stage": stage_number, **outcome.row_of_table()}
        self.table.append(row)
        best = max(self.outcomes.values(), key=lambda o: (o.stage.n_rows, o.score))
        score, elapsed, n_stages = best.score, self.clock.elapsed, len(self.stages)
        self.history["score"].append(float(score))
        self.history["seconds"].append(float(elapsed))
        if self.verbose and is_new_stage:
            print(
                f"stage {stage_number + 1} of {n_stages}: {outcome.stage.n_rows} rows, "
                f"best so far {score:.4f}, {elapsed:.1f} s",
                flush=True,
            )
        if self.callback is not None:
            report = {**row, "n_stages": n_stages, "best": score, "elapsed": elapsed}
            self.is_stopped = bool(self.callback(report)) or self.is_stopped

    def _best_outcome(self) -> Outcome:
        """Return the best of the outcomes that were scored on the most rows.

        The last stage, with more folds, may have had no time to score it again.
        """
        outcomes = [o for o in self.outcomes.values() if o.error is None]
        if not outcomes:
            raise self._no_result_error()
        most_rows = max(outcome.stage.n_rows for outcome in outcomes)
        finalists = [o for o in outcomes if o.stage.n_rows == most_rows]
        # Others are chosen only if no family that the user names has probabilities.
        with_probabilities = [o for o in finalists if o.trial.family.has_probabilities]
        finalists = with_probabilities or finalists
        best = max(finalists, key=lambda outcome: outcome.score)
        if not self.robust:
            return best
        # Corruptions are drawn only once, so that scores are uncertain: among trials
        # that may be equally good, choose the best on clean rows.
        least_score = best.score - TIE_ERRORS * best.chance
        ties = [outcome for outcome in finalists if outcome.score >= least_score]
        return max(ties, key=lambda outcome: (outcome.shares[0], outcome.score))

    def members(self, best: Outcome, n_averaged: int) -> list[Outcome]:
        """Return the best trial, and others that may be as good, to be averaged.

        These are scored on as many rows and at most `LUCK_ERRORS` standard errors
        worse. They are added as long as there is time to fit them.
        """
        n_rows, members = len(self.y), [best]
        # more folds of the same rows do not make the rows less lucky
        n_effective = self.n_effective_rows * best.stage.n_rows / n_rows
        standard_error = best.chance * (best.total / n_effective) ** 0.5
        least_score = best.score - LUCK_ERRORS * standard_error
        rivals = [
            outcome
            for outcome in self.outcomes.values()
            if outcome is not best
            and outcome.error is None
            and outcome.stage.n_rows == best.stage.n_rows
            and outcome.score >= least_score
            and outcome.trial.family.has_probabilities
        ]
        if not best.trial.family.has_probabilities:
            return members
        seconds_left = self.clock.seconds_left + OVERTIME * self.clock.budget
        seconds_left -= best.fit_seconds(n_rows)
        for outcome in sorted(rivals, key=lambda o: -o.score)[: n_averaged - 1]:
            seconds_left -= outcome.fit_seconds(n_rows)
            if seconds_left > 0:
                members.append(outcome)
        return members

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
        trial, design = outcome.trial, self._design(outcome.trial.space, rows)
        steps = trial.family.steps(design, trial.setting, outcome.best_value)
        return [*scalers(trial.space.scale), *steps]

    def affordable_rows(self, outcome: Outcome) -> np.ndarray:
        """Return all row numbers, or as many as can be fitted in the remaining time."""
        n, n_searched = len(self.y), outcome.stage.n_rows
        predicted_seconds = outcome.fit_seconds(n)
        seconds_left = self.clock.seconds_left + OVERTIME * self.clock.budget
        if n_searched == n or predicted_seconds <= seconds_left:
            return np.arange(n)
        # The time grows faster than the number of rows, so that this share is safe.
        affordable_share = max(seconds_left, 0.0) / predicted_seconds
        n_affordable = max(n_searched, int(affordable_share * n))
        return np.sort(self.order[:n_affordable])


def _trials_of_families(spaces: list[Space], families: list[Family]) -> list[Trial]:
    """Return the trials of the first settings of families in these spaces."""
    return [
        Trial(space, family, setting)
        for space in spaces
        for family in families
        for setting in family.first_settings
    ]
