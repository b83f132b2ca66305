"""Seconds and memory of reduced beside exact kernel dictionary learning."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from papers.published import numbers

from .digits import load_digits
from .harness.skip import Skip
from .peers.spec import SEED, Benchmark, Case, Figures, Method, Target
from .rkdl import SIZES, Problem, kernel

EXACT_ROWS = 16_000  # above, the kernel matrix alone is over a gigabyte
PUBLISHED = numbers("rkdl", "table2")
FIRST_ROWS = 6000  # from here on time should be linear


class Reduced(Method):
    """A method of the paper at its sizes, whose anchors move all at once."""

    name = "RKDL-D"
    method: ClassVar[str] = "RKDL-D"
    given: ClassVar[bool] = False
    """Whether the first D is given, and its learning not part of the time."""

    def __init__(self, problem: Problem) -> None:
        self.Y = problem.Y
        self.anchors = self._learned() if self.given else None

    def _learned(self) -> np.ndarray:
        from kernlets import KSVD

        return KSVD(50, 5, init="normal", random_state=SEED).fit(self.Y).components_

    def run(self) -> Any:
        from papers.exhibits.rkdl import all_at_once

        changes = {} if self.anchors is None else {"start": self.anchors}
        params = {"restrict": True, "random_state": SEED, **changes}
        return all_at_once(self.method, 5e-4, **params).fit(self.Y)

    def figures(self, result: Any) -> Figures:
        last = result.history_["objective"][-1]
        return {"error": 1000 * (last / self.Y.shape[1]) ** 0.5}


class ReducedGiven(Reduced):
    name = "RKDL-D, first D given"
    given = True
    memory = False


class Optimized(Reduced):
    name = "ORKDL-D"
    method = "ORKDL-D"


class OptimizedGiven(Optimized):
    name = "ORKDL-D, first D given"
    given = True
    memory = False


class Mixed(Reduced):
    name = "MORKDL-D"
    method = "MORKDL-D"


class MixedGiven(Mixed):
    name = "MORKDL-D, first D given"
    given = True
    memory = False


class LineSearched(Reduced):
    """The library's own setting: k-means anchors moved by L-BFGS."""

    name = "k-means, line search"

    def run(self) -> Any:
        from kernlets import Anchors, ReducedKernelDL

        return ReducedKernelDL(
            kernel(),
            **SIZES,
            anchors=Anchors(50, "kmeans", descent=True),
            random_state=SEED,
        ).fit(self.Y)


class Exact(Reduced):
    name = "exact KDL"

    def __init__(self, problem: Problem) -> None:
        if len(problem.Y) > EXACT_ROWS:
            raise Skip(f"the kernel matrix grows with N²: not run above {EXACT_ROWS}")
        super().__init__(problem)

    def run(self) -> Any:
        from kernlets import KernelKSVD

        return KernelKSVD(kernel(), **SIZES, random_state=SEED).fit(self.Y)


class RKDLScale(Benchmark):
    name = "rkdl-scale"
    title = "Reduced kernel dictionary learning: time and memory"
    about = (
        "N MNIST images of all digits, unit norm, float32; kernel, sizes and "
        "iterations as in the table of errors. RKDL-D, ORKDL-D and MORKDL-D as "
        "published, with and without the time to learn the first D (10 iterations of "
        "linear K-SVD, 5 non-zeros), beside the library's own exact kernel K-SVD, its "
        "kernel matrix included. Published on 16 cores at N = 6000, with D: "
        f"{PUBLISHED['KDL', 'mnist']} s exact, {PUBLISHED['RKDL-D', 'mnist']}, "
        f"{PUBLISHED['ORKDL-D', 'mnist']} and {PUBLISHED['MORKDL-D', 'mnist']} s "
        "reduced."
    )
    grid = tuple(
        {"data": "mnist", "n": n}
        for n in (2000, 4000, 6000, 8000, 16_000, 30_000, 60_000)
    )
    quick_grid = ({"data": "digits", "n": 300},)
    methods = (
        Reduced,
        ReducedGiven,
        Optimized,
        OptimizedGiven,
        Mixed,
        MixedGiven,
        LineSearched,
        Exact,
    )
    repeats = 1

    def problem(self, case: Case) -> Problem:
        return Problem(load_digits(case["data"], case["n"]).X_train, case)

    def targets(self, case: Case) -> list[Target]:
        if case["n"] > EXACT_ROWS:
            return []
        return [Target("speed: exact KDL", ">=", 1)]


BENCHMARK = RKDLScale()
