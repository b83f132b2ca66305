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
    NARROW,
    Rates,
    Space,
    first_spaces,
    near_spaces,
    scaled,
    scalers,
)
from .trials import FEW_ROWS, Outcome, Stage, Trial, described, plan

FIRST_LANDMARKS, MOST_LANDMARKS = 500, 2000
KEEP = (20, 8, 4, 3)  # trials that go on after each stage ...
KEEP_FEW = (6,)  # ... of few rows
PARENTS = 4  # trials whose near settings are tried in the next stage
SLOW = ("classes", "exact")  # families that come last in the first stage
SMALL_FITS = 1000  # rows up to which a fit is mostly overhead
FOR_THREADS = 1000  # rows of a fit that is worth more than one thread
TIE = 0.5  # standard errors by which candidates may differ by chance
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
        watch: Callable[[dict[str, Any]], Any],
    ) -> None:
        self.X, self.y, self.families, self.clock = X, y, families, clock
        self.robust, self.seed, self.watch = robust, seed, watch
        self.room = max_candidates
        self.rng = np.random.default_rng(seed)
        self.order = sampling_order(y, self.rng)
        self.rates = Rates.of(X)
        unit = float(np.abs(X).max()) or 1.0  # squares of huge entries would overflow
        self.spread = unit * float((X / unit).std())
        self.stages = plan(len(y), int(y.max()) + 1)
        self.few = len(y) < FEW_ROWS
        # samples as atoms are what is best against damage, and in small parts of the
        # rows they seem to be too slow for all
        self.small = SMALL_FITS if robust else 0
        self.known: dict[Trial, Outcome] = {}
        self.table: list[dict[str, Any]] = []
        self.stopped = False

    def run(self) -> Outcome:
        """The best trial on as many rows as there was time for."""
        trials = self._admitted(self._first_trials())
        for number, stage in enumerate(self.stages):
            ranked = self._stage(number, stage, trials)
            if not ranked or self.stopped:
                break
            counts = KEEP_FEW if self.few else KEEP
            keep = counts[min(number, len(counts) - 1)]
            kept = self._kept(ranked, keep, number)
            is_last_but_one = number + 2 == len(self.stages)
            # nothing new in the very last stage of a repeated one: it decides only
            grown = [] if is_last_but_one and number else self._grown(ranked)
            trials = kept + self._admitted(grown)
        return self._winner()

    def _winner(self) -> Outcome:
        """The best of all that were scored on the most rows.

        That may be one that the last stage, with more folds, had no time for.
        """
        known = [each for each in self.known.values() if each.error is None]
        if not known:
            raise self._nothing_works()
        most = max(each.stage.n_rows for each in known)
        last = [each for each in known if each.stage.n_rows == most]
        best = max(last, key=lambda outcome: outcome.score)
        if not self.robust:
            return best
        # damage is drawn once: of those that may be as good, the best on clean rows
        close = [o for o in last if o.score >= best.score - TIE * best.chance]
        return max(close, key=lambda outcome: (outcome.shares[0], outcome.score))

    def _first_trials(self) -> list[Trial]:
        """Quick families in every space first, then those that learn atoms."""
        spaces = first_spaces(self.few, FIRST_LANDMARKS, self.robust)
        names = [name for name in self.families if not self._waits(name)]
        if not names:  # only slow ones are asked for
            names = self.families
        quick = [name for name in names if name not in SLOW]
        slow = [name for name in names if name in SLOW]
        width = MIDDLE_WIDTH * (NARROW if self.robust else 1.0)
        middle = [space for space in spaces if space.width == width]
        return [
            Trial(space, name, setting)
            for group, where in ((quick, spaces), (slow, middle))
            for space in where
            for name in group
            for setting in FAMILIES[name].first()
        ]

    def _waits(self, name: str) -> bool:
        """Whether a family waits for others to show where it could do well.

        Exact dictionaries of narrow kernels, which no map of few landmarks stands for,
        are what is best against damage.
        """
        return FAMILIES[name].late and not (self.robust and name == "exact")

    def _admitted(self, trials: list[Trial]) -> list[Trial]:
        """Those that are new and suit the data, up to the largest number."""
        n = len(self.y)
        new = [
            trial
            for trial in dict.fromkeys(trials)
            if trial not in self.known and self._suits(trial, n)
        ]
        if self.room is not None:
            new = new[: self.room]
            self.room -= len(new)
        return new

    def _suits(self, trial: Trial, n_rows: int) -> bool:
        family = FAMILIES[trial.family]
        is_worth_it = self.robust or n_rows <= family.most_rows
        return is_worth_it and family.suits(trial.space, n_rows)

    def _kept(self, ranked: list[Outcome], keep: int, number: int) -> list[Trial]:
        """The best trials; at first also the best one of every family."""
        kept = ranked[:keep]
        if number < 1:
            for name in self.families:
                kept += [each for each in ranked if each.trial.family == name][:1]
        return list(dict.fromkeys(each.trial for each in kept))

    def _grown(self, ranked: list[Outcome]) -> list[Trial]:
        """Settings and spaces near the best, and slow families in those spaces."""
        grown: list[Trial] = []
        for trial in (each.trial for each in ranked[:PARENTS]):
            family, space = FAMILIES[trial.family], trial.space
            settings = family.near(trial.setting)
            grown += [Trial(space, trial.family, setting) for setting in settings]
            spaces = near_spaces(space, min(MOST_LANDMARKS, len(self.y)))
            grown += [Trial(near, trial.family, trial.setting) for near in spaces]
        spaces = list(dict.fromkeys(each.trial.space for each in ranked))[:2]
        slow = [name for name in self.families if self._waits(name)]
        for name in [] if self.few else slow:
            first = FAMILIES[name].first()
            grown += [Trial(space, name, each) for space in spaces for each in first]
        return grown

    def _stage(self, number: int, stage: Stage, trials: list[Trial]) -> list[Outcome]:
        """Score trials, grouped by space; return the best first."""
        share = (number + 1) / len(self.stages)
        rounds = list(self._splits(stage))
        groups: dict[tuple[Space, bool], list[Trial]] = {}
        for trial in trials:
            # one map for all; but slow families wait until the quick ones are done
            is_slow = number == 0 and trial.family in SLOW
            groups.setdefault((trial.space, is_slow), []).append(trial)
        done: list[Outcome] = []
        for group in groups.values():
            affordable = [t for t in group if self._affordable(t, stage, share, done)]
            outcomes = self._scored(stage, affordable, rounds)
            for outcome in outcomes:
                self._note(number, outcome)
            done += [each for each in outcomes if each.error is None]
            if self.stopped:
                break
        return sorted(done, key=lambda outcome: -outcome.score)  # stable

    def _splits(self, stage: Stage) -> Iterator[Split]:
        rows = np.sort(self.order[: stage.n_rows])
        for _ in range(stage.repeats):
            yield from splits(rows, self.y, stage.n_folds, self.rng)

    def _affordable(
        self, trial: Trial, stage: Stage, share: float, done: list[Outcome]
    ) -> bool:
        """Whether a trial, and a fit of it to all rows, can end in time."""
        if self.stopped or not self.clock.allows(0.0, share):
            return False
        before = self.known.get(trial) or self._like(trial, done)
        if before is None:
            return True
        refit = before.fit_seconds(len(self.y))
        ahead = before.stage_seconds(stage)
        within = self.clock.allows(ahead, share) or not done
        return within and self.clock.allows(ahead + refit)

    def _like(self, trial: Trial, done: list[Outcome]) -> Outcome | None:
        """The slowest measured trial of its family, otherwise the slowest of all."""
        known = [each for each in (*done, *self.known.values()) if each.n_fits]
        same = [each for each in known if each.trial.family == trial.family]
        n_rows = len(self.y)
        return max(same or known, key=lambda o: o.fit_seconds(n_rows), default=None)

    def _scored(
        self, stage: Stage, trials: list[Trial], rounds: list[Split]
    ) -> list[Outcome]:
        outcomes = [self._continued(trial, stage) for trial in trials]
        for split in rounds if outcomes else ():
            features = self._features(trials[0].space, split)
            for outcome in outcomes:
                # if time runs out, fewer folds are used
                if outcome.error is None and not self._is_late(outcome, features.y):
                    self._count(outcome, features)
        return [each for each in outcomes if each.n_fits or each.error]

    def _is_late(self, outcome: Outcome, labels: np.ndarray) -> bool:
        """Whether another fold would take the time of the last fit."""
        known = self.known.get(outcome.trial, outcome)
        refit, fold = known.fit_seconds(len(self.y)), known.fit_seconds(len(labels))
        return bool(self.known) and not self.clock.allows(refit + fold)

    def _continued(self, trial: Trial, stage: Stage) -> Outcome:
        """The result with the hits of an earlier stage of the same number of rows."""
        before = self.known.get(trial)
        if before is None or before.stage.n_rows != stage.n_rows:
            return Outcome(trial, stage, small=self.small)
        return Outcome(trial, stage, dict(before.hits), before.total, small=self.small)

    def _features(self, space: Space, split: Split) -> Features:
        steps = scalers(space.scale)
        X = scaled(steps, self.X[split.train])
        held_out = validation_rows(
            self.X[split.valid], self.spread, self.robust, self.seed
        )
        with quiet():  # of rows that overflow the trial fails
            for step in steps:
                held_out = [step.transform(rows) for rows in held_out]
        kernel = self.rates.kernel(space)
        y, truth = self.y[split.train], self.y[split.valid]
        return Features(kernel, space, X, y, held_out, truth, self.seed)

    def _count(self, outcome: Outcome, features: Features) -> None:
        """Add the result of one fold; record errors instead of raising them."""
        began = self.clock.elapsed
        trial = outcome.trial
        # threads slow down small fits
        n_threads = 1 if len(features.y) < FOR_THREADS else options.n_threads
        try:
            with options(n_threads=n_threads):
                hits = FAMILIES[trial.family].score(features, trial.setting)
        except FAILURES as error:
            outcome.error = f"{type(error).__name__}: {error}"
            return
        shared = list(hits if not outcome.total else outcome.hits.keys() & hits)
        outcome.hits = {r: outcome.hits.get(r, 0) + hits[r] for r in sorted(shared)}
        outcome.total += len(features.truth)
        outcome.seconds += self.clock.elapsed - began
        outcome.n_fits += 1

    def _note(self, number: int, outcome: Outcome) -> None:
        self.known[outcome.trial] = outcome
        row = {"stage": number, **described(outcome)}
        self.table.append(row)
        best = max(self.known.values(), key=lambda o: (o.stage.n_rows, o.score))
        state = {"n_stages": len(self.stages), "best": best.score}
        if self.watch({**row, **state, "elapsed": self.clock.elapsed}):
            self.stopped = True

    def _nothing_works(self) -> Exception:
        errors = [each.error for each in self.known.values() if each.error]
        if errors:
            return ValueError(f"no candidate could be fitted; the first: {errors[0]}")
        return ValueError(
            "no candidate could be scored: give at least 2 rows of some class, or more "
            "seconds"
        )

    def steps(self, outcome: Outcome, rows: np.ndarray) -> list[Any]:
        """The steps of the pipeline of a trial, for these rows."""
        trial = outcome.trial
        kernel, counts = self.rates.kernel(trial.space), np.bincount(self.y[rows])
        design = Design(kernel, trial.space, counts, self.seed)
        family = FAMILIES[trial.family]
        behind = family.steps(design, trial.setting, outcome.read)
        return [*scalers(trial.space.scale), *behind]


def as_array(X: Any) -> np.ndarray:
    """Rows in host memory, which folds are taken from."""
    return np.ascontiguousarray(to_numpy(X))
