"""Reduced kernel dictionary learning: errors beside the paper's, and what brings what.

Seconds and memory as the samples grow are in `rkdl_scale.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean, pstdev
from typing import Any

import numpy as np

from papers.published import number

from .data import load_data
from .peers.spec import Benchmark, Case, Figures, Method, Target

ROUNDS = 5
SIZES = {"n_components": 20, "n_nonzero_coefs": 4}
RATE = {"mnist-4": 5e-4, "cifar-airplane": 6e-4}  # the paper's learning rates
EXACT = 8.04  # error of exact kernel dictionary learning on digit 4, re-measured

COLUMNS = {"mnist-4": "mnist", "cifar-airplane": "cifar"}  # of the paper's Table I

# 1000 × ‖φ(Y) − φ(D)AZ‖ / √(mN), re-measured independently with codes that become dense
# (the authors' program) and with the sparsity constraint kept
REMEASURED = {
    ("mnist-4", "KDL"): (EXACT, EXACT),
    ("mnist-4", "RKDL-D"): (8.09, 8.50),
    ("mnist-4", "ORKDL-D"): (7.96, 8.39),
    ("mnist-4", "MORKDL-D"): (7.99, 8.41),
    ("cifar-airplane", "KDL"): (3.35, 3.35),
    ("cifar-airplane", "RKDL-D"): (3.37, 3.51),
    ("cifar-airplane", "ORKDL-D"): (3.31, 3.45),
    ("cifar-airplane", "MORKDL-D"): (3.32, 3.46),
}


def signals(name: str) -> np.ndarray:  # (N, m), float32, unit norm
    """Digit 4 of MNIST ("label 5" of the paper), CIFAR-10 airplanes, or a small set."""
    from kernlets import datasets

    source = {"mnist-4": "mnist", "cifar-airplane": "cifar10-airplane"}.get(name, name)
    data = load_data(source)
    X = data.X_train if data.y_train is None else data.X_train[data.y_train == 4]
    return datasets.unit_norm(X)


@dataclass(frozen=True)
class Problem:
    Y: np.ndarray
    case: Case

    @property
    def rate(self) -> float:
        return RATE.get(self.case["data"], 5e-4)


def kernel() -> Any:
    from kernlets import RBF

    return RBF(gamma=0.1)  # exp(−d²/10)


def published(name: str, **changes: Any) -> Callable[[Problem, int], Any]:
    """One of the paper's methods whose anchors move at once, but for some changes."""

    def build(problem: Problem, seed: int) -> Any:
        from papers.exhibits.rkdl import all_at_once

        restrict = problem.case["codes"] == "sparse"
        params = {"restrict": restrict, "random_state": seed, **changes}
        return all_at_once(name, problem.rate, **params)

    return build


def turned(problem: Problem, seed: int) -> Any:
    """RKDL-D whose first anchors are turned to the side of the signals' mean."""
    from kernlets import KSVD
    from kernlets.learners.anchors import orient_atoms

    linear = KSVD(50, 5, init="normal", random_state=seed).fit(problem.Y)
    anchors = orient_atoms(linear.components_, problem.Y)
    return reduced(start=anchors)(problem, seed)


def reduced(**anchors: Any) -> Callable[[Problem, int], Any]:
    """The library's own settings at the paper's sizes; 50 anchors or those given."""

    def build(problem: Problem, seed: int) -> Any:
        from kernlets import Anchors, ReducedKernelDL

        params = {**SIZES, "anchors": Anchors(50, **anchors), "random_state": seed}
        return ReducedKernelDL(kernel(), **params)

    return build


def plain_steps(problem: Problem, seed: int) -> Any:
    from kernlets.updates import AnchorDescent

    steps = AnchorDescent(n_steps=3, rate=problem.rate)
    return reduced(descent=steps)(problem, seed)


def more_steps(problem: Problem, seed: int) -> Any:
    from kernlets.updates import AnchorDescent

    return reduced(descent=AnchorDescent(n_steps=10))(problem, seed)


def exact(problem: Problem, seed: int) -> Any:
    from kernlets import KernelKSVD

    return KernelKSVD(kernel(), **SIZES, random_state=seed)


METHODS: dict[str, Callable[[Problem, int], Any]] = {
    "KDL": exact,
    "RKDL-D": published("RKDL-D"),
    "ORKDL-D": published("ORKDL-D"),
    "MORKDL-D": published("MORKDL-D"),
    "RKDL-D, first atoms samples": published("RKDL-D", init="samples"),
    "and anchors turned to the mean": turned,
    "and K-SVD started at samples (default)": reduced(),
    "and 3 plain gradient steps": plain_steps,
    "or 3 line-searched steps": reduced(descent=True),
    "or 10 line-searched steps": more_steps,
    "anchors by k-means": reduced(start="kmeans"),
    "anchors by k-means, 3 line-searched steps": reduced(start="kmeans", descent=True),
    "anchors random samples": reduced(start="samples"),
    "anchors random samples, 3 line-searched steps": reduced(
        start="samples", descent=True
    ),
}
REDUCED = ("RKDL-D", "ORKDL-D", "MORKDL-D")
OURS = tuple(name for name in METHODS if name not in REDUCED)  # exact KDL among them


class Kernlets(Method):
    name = "kernlets"
    memory = False

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        small = problem.case["data"] == "digits"
        self.seeds = range(1 if small else ROUNDS)

    def run(self) -> list[float]:
        """The error of each round as the paper states it, times 1000."""
        Y, build = self.problem.Y, METHODS[self.problem.case["method"]]
        fitted = (build(self.problem, seed).fit(Y) for seed in self.seeds)
        last = [model.history_["objective"][-1] for model in fitted]
        return [1000 * (error / Y.shape[1]) ** 0.5 for error in last]

    def figures(self, result: list[float]) -> Figures:
        found = {"error": mean(result), "spread": pstdev(result)}
        case = self.problem.case
        known = REMEASURED.get((case["data"], case["method"]))
        if known is None:
            return found
        again = known[case["codes"] == "sparse"]
        printed = number("rkdl", "table1", case["method"], COLUMNS[case["data"]]).value
        ratio = found["error"] / again
        return {**found, "published": printed, "re-measured": again, "ratio": ratio}


class RKDL(Benchmark):
    name = "rkdl"
    title = "Reduced kernel dictionary learning: errors"
    about = (
        "Signals of unit norm, kernel exp(−d²/10), 50 anchors, 20 atoms, 4 non-zeros, "
        "10 iterations; 3 gradient steps per iteration, linear weight 1 and 5 linear "
        "non-zeros where they apply. The error is 1000 ‖φ(Y) − φ(D)AZ‖/√(mN) after "
        "the last update, mean and standard deviation of 5 rounds (seconds are those "
        "of all rounds). Codes 'dense' is the authors' reading, in which the update "
        "of an atom changes all signals; 'sparse' keeps the constraint. RKDL-D, "
        "ORKDL-D and MORKDL-D are as published, the first D from a random start; they "
        "and exact KDL should be within 3 % of the re-measured values. The other rows "
        "keep codes sparse and add one thing at a time; the settings of the library "
        f"should beat exact KDL's re-measured {EXACT} on digit 4."
    )
    grid = tuple(
        {"data": data, "method": method, "codes": codes}
        for data in ("mnist-4", "cifar-airplane")
        for method, codes in (
            *((name, codes) for name in REDUCED for codes in ("sparse", "dense")),
            *((name, "sparse") for name in OURS),
        )
    )
    quick_grid = ({"data": "digits", "method": "ORKDL-D", "codes": "dense"},)
    methods = (Kernlets,)
    repeats = 1

    def problem(self, case: Case) -> Problem:
        return Problem(signals(case["data"]), case)

    def targets(self, case: Case) -> list[Target]:
        if (case["data"], case["method"]) in REMEASURED:
            return [Target("ratio", "≈", 0.03)]
        if case["data"] == "mnist-4" and "line-searched" in case["method"]:
            return [Target("error", "<=", EXACT)]
        return []


BENCHMARK = RKDL()
