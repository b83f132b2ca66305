"""The alternation of all batch learners: code the samples, update the atoms."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ..backend.arrays import namespace
from ..backend.rows import count_rows
from ..backend.scale import quiet
from ..backend.stored import watching
from ..backend.threads import serial_blas
from ..core import Array, AtomUpdate, Coded, Dictionary, SparseCoder, Statistics
from ..pursuits import encode
from ..updates.exchange import exchanged
from ..updates.statistics import summed
from ..updates.sweeps import nonnegative
from .checkpoint import Checkpoint, fitting, learned_fields
from .progress import RowClock
from .warm_up import at_rest, exchanges, grown


@dataclass
class Monitor:
    """Keeps the history, shows progress, and asks the callback whether to stop."""

    max_iter: int
    verbose: bool = False
    callback: Callable[[dict[str, Any]], Any] | None = None
    title: str = ""
    measure: str = "mean squared error"
    warm_up: int = 0
    exchange: int = 0
    tol: float = 0.0
    history: dict[str, list[float]] = field(
        default_factory=lambda: {"objective": [], "seconds": []}
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

    def watched(self, X: Any) -> Callable[[], AbstractContextManager[Any]]:
        """Blocks in which rows are counted, and shown when iterations take long."""
        if not self.verbose:
            return nullcontext
        n = count_rows(X)
        clock = RowClock(self.title, n and n * (self.max_iter - self.n_iter))
        return partial(watching, clock)

    def __call__(self, iteration: int, dictionary: Any, error: float) -> bool:
        """Note one iteration; True when the callback or `tol` wants to stop."""
        if not np.isfinite(error):
            raise ValueError(
                f"{self.title}: the {self.measure} is not finite after iteration "
                f"{iteration + 1}, the samples are too large. Scale them, e.g. with "
                "UnitNorm or StandardScaler, or pass float64"
            )
        self.history["objective"].append(error)
        self.history["seconds"].append(time.perf_counter() - self._began)
        if self.verbose:
            print(
                f"{self.title} {iteration + 1}/{self.max_iter}: {self.measure} "
                f"{error:.6g}, {self.history['seconds'][-1]:.2f} s",
                flush=True,
            )
        rests = at_rest(self.history["objective"], self.tol, self.warm_up)
        if self.callback is None:
            return rests
        state = {"iteration": iteration, "objective": error, "dictionary": dictionary}
        return bool(self.callback(state)) or rests


def alternate(
    dictionary: Dictionary,
    X: Array,
    coder: SparseCoder,
    update: AtomUpdate,
    rng: np.random.Generator,
    monitor: Monitor,
    checkpoint: Checkpoint | None = None,
) -> Dictionary:
    """Code and update `monitor.max_iter` times, or as often as the checkpoint leaves.

    The objective noted is the mean squared error per sample after the update, before
    useless atoms are replaced.
    """
    checkpoint = checkpoint or Checkpoint()
    if checkpoint.state is not None:
        with checkpoint.resuming() as state:
            dictionary = _resumed(dictionary, rng, monitor, state)
    # a sweep is serial with small products between: threads of BLAS would only spin
    calm = serial_blas if update.needs == "codes" else nullcontext()
    end = 0 if checkpoint.done else monitor.max_iter
    watched = monitor.watched(X)
    for iteration in range(monitor.n_iter, end):
        with calm, watched():
            now = grown(coder, iteration, monitor.warm_up)
            coded = _coded(dictionary, X, now, update)
            with quiet():  # atoms and error are looked at
                step = update.step(dictionary, coded, rng)
        dictionary = step.dictionary
        if monitor.exchange and exchanges(iteration, monitor.max_iter):
            dictionary = exchanged(dictionary, coded, monitor.exchange)
            if getattr(update, "positive_atoms", False):
                dictionary = dictionary.with_weights(nonnegative(dictionary.weights))
        _refuse_unbounded(dictionary)
        n = coded.n_samples if isinstance(coded, Statistics) else len(coded.codes)
        stop = monitor(iteration, dictionary, max(step.error, 0.0) / n)
        checkpoint.keep(
            done=stop or iteration + 1 == end,
            dictionary=learned_fields(dictionary),
            rng=rng,
            history=monitor.history,
        )
        if stop:
            break
    return dictionary


def _refuse_unbounded(dictionary: Dictionary) -> None:
    """An error if an atom is not made of finite numbers."""
    xp, weights = namespace(dictionary.weights), dictionary.weights
    if not bool(xp.all(xp.isfinite(weights))):
        raise ValueError(
            f"atoms are not finite in {weights.dtype}: the samples are too large. "
            "Scale them, e.g. with UnitNorm or StandardScaler, or pass float64"
        )


def _resumed(
    start: Any,
    rng: np.random.Generator,
    monitor: Monitor,
    state: dict[str, Any],
) -> Dictionary:
    """The dictionary of an interrupted fit; also restores generator and history."""
    rng.bit_generator.state = state["rng"].bit_generator.state
    monitor.resume(state["history"])
    return fitting(replace(start, **state["dictionary"]), start, free="r")


def _coded(
    dictionary: Dictionary, X: Array, coder: SparseCoder, update: AtomUpdate
) -> Coded | Statistics:
    """The input of the update: all codes, or sums over blocks of rows."""
    if update.needs == "codes":
        return Coded(X, encode(dictionary, coder, X))
    return summed(dictionary, coder, X)
