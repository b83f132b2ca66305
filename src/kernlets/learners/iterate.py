"""THE alternation: `iterate` runs every fit that improves its atoms step by step.

It resumes from a checkpoint, takes the steps, notes each in the history, asks the
callback whether to stop, and keeps the state. What a step is, an `Alternation` says:
`CodeAndUpdate` here for learners that use all samples in every iteration, others beside
the stream learners and the classifiers that need them.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ..backend.arrays import namespace, or_wider
from ..backend.callbacks import FitTasks, running
from ..backend.convergence import warn_unfinished
from ..backend.progress import RowClock
from ..backend.read_blocks import report_rows_to
from ..backend.rows import count_rows
from ..backend.scale import quiet
from ..backend.threads import serial_blas
from ..backend.weights import Weights
from ..core import (
    Array,
    AtomUpdate,
    Coded,
    Dictionary,
    SparseCoder,
    Statistics,
    Step,
)
from ..persistence.checkpoint import Checkpoint, fitting, learned_fields
from ..pursuits import encode
from ..pursuits.coded_sums import code_and_sum
from ..updates.exchange import exchange_atoms
from ..updates.sweeps import clip_negative
from .warm_up import Pace, at_rest, grown


@dataclass
class Monitor:
    """Keeps the history, shows progress, and asks the callback whether to stop."""

    max_iter: int
    verbose: bool = False
    callback: Callable[[dict[str, Any]], Any] | None = None
    title: str = ""
    measure: str = "mean squared error"
    warm_up: int = 0
    tol: float = 0.0
    history: dict[str, list[float]] = field(
        default_factory=lambda: {"objective": [], "seconds": []}
    )
    tasks: FitTasks | None = None
    so_far: Callable[[Any], dict[str, Any] | None] = lambda current: None

    @classmethod
    def of(
        cls,
        estimator: Any,
        max_iter: int | None = None,
        measure: str = "mean squared error",
    ) -> Monitor:
        """The monitor of one fit, as the parameters of the estimator ask for."""
        return cls(
            estimator.max_iter if max_iter is None else max_iter,
            bool(getattr(estimator, "verbose", False)),
            getattr(estimator, "callback", None),
            type(estimator).__name__,
            measure,
            getattr(estimator, "warm_up", 0),
            getattr(estimator, "tol", 0.0),
            tasks=running(estimator),
            so_far=estimator._so_far,
        )

    def __post_init__(self) -> None:
        self._began = time.perf_counter()

    def resume(self, history: dict[str, list[float]]) -> None:
        """Continue after the iterations of an interrupted fit."""
        self.history = history
        self._began -= max(history["seconds"], default=0.0)
        if self.verbose:
            print(f"{self.title}: resumed after iteration {self.n_iter}", flush=True)

    @property
    def n_iter(self) -> int:
        """Number of iterations so far."""
        return len(self.history["objective"])

    def unfinished(self) -> str:
        """The warning for a fit that has not come to rest."""
        return (
            f"{self.title}: the {self.measure} has not come to rest to tol="
            f"{self.tol:g} within max_iter={self.max_iter} iterations: raise max_iter "
            "or tol"
        )

    def begin(self, iteration: int) -> None:
        """Tell scikit-learn's callbacks of an iteration."""
        if self.tasks is not None:
            self.tasks.begin_iteration(iteration)

    def end(self, current: Callable[[], Any]) -> bool:
        """Tell them that it is over; True when one of them wants to stop."""
        if self.tasks is None:
            return False

        def so_far() -> dict[str, Any] | None:
            learned = self.so_far(current())
            if learned is None:
                return None
            history = {name: [*values] for name, values in self.history.items()}
            return {**learned, "history_": history, "n_iter_": self.n_iter}

        return self.tasks.end_iteration(so_far, self.history)

    def watched(self, X: Any) -> Callable[[], AbstractContextManager[Any]]:
        """Blocks in which rows are counted, and shown when iterations take long."""
        if not self.verbose:
            return nullcontext
        n = count_rows(X)
        clock = RowClock(self.title, n and n * (self.max_iter - self.n_iter))
        return partial(report_rows_to, clock)

    def __call__(
        self,
        iteration: int,
        dictionary: Callable[[], Any],
        objective: float,
        **others: float,
    ) -> bool:
        """Note one iteration; True when the callback or `tol` wants to stop."""
        if not np.isfinite(objective):
            raise ValueError(
                f"{self.title}: the {self.measure} is not finite after iteration "
                f"{iteration + 1}, the samples are too large. Scale them, e.g. with "
                f"UnitNorm or StandardScaler{_or_wider(dictionary())}"
            )
        self.history["objective"].append(objective)
        self.history["seconds"].append(time.perf_counter() - self._began)
        for name, value in others.items():
            self.history.setdefault(name, []).append(value)
        if self.verbose:
            print(
                f"{self.title} {iteration + 1}/{self.max_iter}: {self.measure} "
                f"{objective:.6g}, {self.history['seconds'][-1]:.2f} s",
                flush=True,
            )
        rests = at_rest(self.history["objective"], self.tol, self.warm_up)
        if self.callback is None:
            return rests
        told = {"iteration": iteration, "objective": objective}
        return bool(self.callback({**told, "dictionary": dictionary()})) or rests


def _or_wider(current: Any) -> str:
    """The advice for a dictionary, or for an array of atoms."""
    return or_wider(getattr(current, "weights", current).dtype)


class Alternation(ABC):
    """A state that steps improve, one after another: what `iterate` runs."""

    @abstractmethod
    def current(self) -> Any:
        """The dictionary after the last step, for the callback.

        No later step may change it: a callback may keep it.
        """

    @abstractmethod
    def step(self, keep: Callable[[], None]) -> dict[str, float]:
        """Improve the state; returns its ``objective``, and further measures.

        A long step may call `keep` wherever it can be resumed in the middle.
        """

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on, for a checkpoint."""

    @abstractmethod
    def resume(self, state: dict[str, Any]) -> None:
        """Continue from a state; an exception if it does not fit."""


def iterate(
    alternation: Alternation,
    monitor: Monitor,
    checkpoint: Checkpoint | None = None,
    X: Any = None,  # samples whose rows are counted, to show progress
) -> tuple[dict[str, list[float]], int]:
    """Take `monitor.max_iter` steps, or as many as the checkpoint leaves.

    Returns the history and the number of iterations.
    """
    checkpoint = checkpoint or Checkpoint()
    if checkpoint.state is not None:
        with checkpoint.resuming() as state:
            alternation.resume(state)
            monitor.resume(state["history"])

    def keep(done: bool = False) -> None:
        checkpoint.keep(done, history=monitor.history, **alternation.state())

    end = 0 if checkpoint.done else monitor.max_iter
    watched = nullcontext if X is None else monitor.watched(X)
    for iteration in range(monitor.n_iter, end):
        monitor.begin(iteration)
        with watched():
            measures = alternation.step(keep)
        stop = monitor(iteration, alternation.current, **measures)
        stop = monitor.end(alternation.current) or stop
        keep(done=stop or iteration + 1 == end)
        if stop:
            break
    else:
        if monitor.tol > 0 and not checkpoint.done:
            warn_unfinished(monitor.unfinished())
    return monitor.history, monitor.n_iter


class CodeAndUpdate(Alternation):
    """Codes all samples, then updates the atoms.

    The objective is the mean squared error per sample after the update, before useless
    atoms are replaced.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        X: Array,
        coder: SparseCoder,
        update: AtomUpdate,
        rng: np.random.Generator,
        pace: Pace | None = None,
        weights: Weights = None,
    ) -> None:
        self.dictionary, self.X, self.weights = dictionary, X, weights
        self.coder, self.update, self.rng = coder, update, rng
        self.pace, self.n_steps = pace or Pace(), 0

    def current(self) -> Dictionary:
        return self.dictionary.snapshot()

    def step(self, keep: Callable[[], None]) -> dict[str, float]:
        # a sweep is serial with small products between: threads of BLAS would only spin
        calm = serial_blas if self.update.needs == "codes" else nullcontext()
        with calm:
            coder = grown(self.coder, self.n_steps, self.pace.warm_up)
            coded = self._coded(coder)
            with quiet():  # atoms and error are looked at
                step = self.update.step(self.dictionary, coded, self.rng)
        self.dictionary = self._exchanged(step.dictionary, coded)
        self._note(step)
        self.n_steps += 1
        _refuse_unbounded(self.dictionary)
        return {"objective": max(step.error, 0.0) / _n_samples(coded)}

    def _coded(self, coder: SparseCoder) -> Coded | Statistics:
        """The input of the update: all codes, or sums over blocks of rows."""
        if self.update.needs == "statistics":
            return code_and_sum(self.dictionary, coder, self.X, self.weights)
        codes = encode(self.dictionary, coder, self.X)
        return Coded(self.X, codes, self.weights)

    def _note(self, step: Step) -> None:
        """For alternations that remember more than the atoms."""

    def _exchanged(
        self, dictionary: Dictionary, coded: Coded | Statistics
    ) -> Dictionary:
        """Other atoms if it is time, non-negative if those of the update are."""
        if not self.pace.exchanges(self.n_steps):
            return dictionary
        dictionary = exchange_atoms(dictionary, coded, self.pace.exchange)
        if getattr(self.update, "positive_atoms", False):
            dictionary = dictionary.with_weights(clip_negative(dictionary.weights))
        return dictionary

    def state(self) -> dict[str, Any]:
        return {"dictionary": learned_fields(self.dictionary), "rng": self.rng}

    def resume(self, state: dict[str, Any]) -> None:
        self.rng.bit_generator.state = state["rng"].bit_generator.state
        start: Any = self.dictionary
        self.n_steps = len(state["history"]["objective"])
        resumed = replace(start, **state["dictionary"])
        self.dictionary = fitting(resumed, start, free="r")


def _refuse_unbounded(dictionary: Dictionary) -> None:
    """An error if an atom is not made of finite numbers."""
    xp, weights = namespace(dictionary.weights), dictionary.weights
    if not bool(xp.all(xp.isfinite(weights))):
        raise ValueError(
            f"atoms are not finite in {weights.dtype}: the samples are too large. "
            f"Scale them, e.g. with UnitNorm or StandardScaler{or_wider(weights.dtype)}"
        )


def _n_samples(coded: Coded | Statistics) -> float:
    """How many samples were coded, with their weights."""
    if isinstance(coded, Statistics):
        return coded.n_samples
    return len(coded.codes) if coded.weights is None else float(coded.weights.sum())
