"""What the studies of several papers share: scoring, timing, untrained atoms."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ....backend.arrays import synchronize, to_numpy
from ....core import AtomUpdate, Coded, Dictionary, Step
from ..spec import Metric

Result = TypeVar("Result")

OTHER_MACHINE = "seconds of another machine"


def percent_correct(model: Any, X: Any, y: np.ndarray) -> float:
    """Share of the labels that a fitted classifier finds, in percent."""
    return 100 * float(np.mean(to_numpy(model.predict(X)) == y))


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """What `work` returns, and its seconds, those of a GPU included."""
    synchronize()
    began = time.perf_counter()
    result = work()
    synchronize()
    return result, time.perf_counter() - began


def accuracy(tolerance: float) -> Metric:
    """Percent correct, the same up to so many points."""
    return Metric("accuracy, %", tolerance=tolerance)


def at(
    series: str, places: tuple[Any, ...], *values: float
) -> dict[tuple[str, Any], float]:
    """Published values of one curve."""
    return {(series, x): value for x, value in zip(places, values, strict=True)}


class KeepAtoms(AtomUpdate):
    """No update: the first atoms, random samples, stay. What training is worth."""

    def step(
        self, dictionary: Dictionary, coded: Coded, rng: np.random.Generator
    ) -> Step:
        residual: Any = coded.codes.residual
        return Step(dictionary, float(residual.sum()))
