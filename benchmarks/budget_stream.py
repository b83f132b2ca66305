"""A long stream through a dictionary on a budget: constant time and memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .harness.timing import timed
from .peers.spec import SEED, Benchmark, Case, Figures, Method, Target

BLOCK = 1000
N_FEATURES, ATOMS = 64, 50


@dataclass(frozen=True)
class Stream:
    """Blocks of samples of unit norm around a direction that turns slowly."""

    case: Case

    def __iter__(self) -> Iterator[np.ndarray]:
        rng = np.random.default_rng(SEED)
        middle = rng.standard_normal(N_FEATURES)
        for _ in range(self.case["samples"] // BLOCK):
            middle += 0.1 * rng.standard_normal(N_FEATURES)
            X = middle + rng.standard_normal((BLOCK, N_FEATURES))
            yield X / np.linalg.norm(X, axis=1, keepdims=True)


class Kernlets(Method):
    name = "kernlets"

    def __init__(self, problem: Stream) -> None:
        self.stream = problem

    def run(self) -> list[float]:
        """Seconds of each block."""
        learner, spent = self._learner(), []
        for block in self.stream:
            spent.append(timed(partial(learner.partial_fit, block))[1])
        return spent

    def _learner(self) -> Any:
        from kernlets import BudgetKernelDL

        case = self.stream.case
        return BudgetKernelDL(
            "poly:4,coef0=1",
            ATOMS,
            budget=case["budget"],
            update=case["space"],
            pruning=case["pruning"],
            random_state=SEED,
        )

    def figures(self, result: list[float]) -> Figures:
        """Medians over the first blocks after the budget was full, and the last."""
        micro = np.array(result) / BLOCK * 1e6
        few = max(1, len(micro) // 10)
        first, last = np.median(micro[1 : 1 + few]), np.median(micro[-few:])
        return {
            "µs per sample, first": float(first),
            "last": float(last),
            "last / first": float(last / first),
        }


class BudgetStream(Benchmark):
    name = "budget-stream"
    title = "A long stream through a dictionary on a budget"
    about = (
        f"Samples of unit norm in {N_FEATURES} dimensions around a direction that "
        f"turns slowly, float64, in blocks of {BLOCK} through `partial_fit`; κ = "
        f"(xᵀy + 1)⁴, {ATOMS} atoms, all samples admitted, so that each one evicts an "
        "anchor. Microseconds per sample in the first tenth of the stream after its "
        "first block, which fills the budget, and in its last tenth. Blocks are "
        "generated on the way: the peak of memory is that of learning."
    )
    grid = tuple(
        {"samples": 100_000, "budget": budget, "space": space, "pruning": pruning}
        for space, pruning in (("parameter", "row-norm"), ("feature", "error"))
        for budget in (100, 250)
    )
    quick_grid = (
        {"samples": 3000, "budget": 20, "space": "feature", "pruning": "error"},
    )
    methods = (Kernlets,)
    repeats = 1

    def problem(self, case: Case) -> Stream:
        return Stream(case)

    def targets(self, case: Case) -> list[Target]:
        return [Target("last / first", "<=", 1.15)]


BENCHMARK = BudgetStream()
