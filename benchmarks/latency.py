"""What a user waits for: first fits, commands, one row, and rows with gaps."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from .peers.spec import SEED, Benchmark, Case, Figures, Method, Target

ROWS = 100  # predictions of one row that are timed together
FIRST_FITS = {  # programs in a process of their own, which has no compiled loops
    "first KSVD.fit": "kernlets.KSVD(10, n_nonzero_coefs=3).fit(X)",
    "first BudgetKernelDL.fit": "kernlets.BudgetKernelDL('rbf', 10).fit(X)",
}
PROGRAM = """
import kernlets, numpy
X = numpy.random.default_rng(0).standard_normal((300, 16))
"""
COMMANDS = {"kernlets info": ["info"], "kernlets list": ["list"]}
TARGETS = {  # seconds
    "row, map and dictionaries": 0.00035,
    "row, K-SAD": 0.0005,
    "row, SRC": 0.002,
    "row, outlier detector": 0.0006,
    "first KSVD.fit": 2.5,
    "first BudgetKernelDL.fit": 4.0,
    "kernlets info": 0.4,
    "kernlets list": 0.4,
    "K-SAD fit, all digits": 0.2,
    "SRC, all digits": 0.1,
    "half of the pixels missing": 5.0,
}


def residual_pipeline(n_landmarks: Any) -> Any:
    """The pipeline of the README."""
    from sklearn.pipeline import make_pipeline

    from kernlets import KSVD, NystroemMap, ResidualClassifier

    learner = KSVD(30, n_nonzero_coefs=4, random_state=SEED)
    features = NystroemMap("poly:2", n_landmarks=n_landmarks, random_state=SEED)
    return make_pipeline(features, ResidualClassifier(learner))


def classifiers() -> dict[str, Any]:
    """The models whose prediction of one row is timed, not fitted."""
    from kernlets import DictionaryOutlierDetector, KSADClassifier, SRCClassifier

    return {
        "row, map and dictionaries": residual_pipeline(0.2),
        "row, K-SAD": KSADClassifier(random_state=SEED),
        "row, SRC": SRCClassifier(),
        "row, outlier detector": DictionaryOutlierDetector(random_state=SEED),
    }


def damaged_images(n_rows: int, n_images: int) -> Callable[[], Any]:
    """Return the prediction of MNIST's images without half of their pixels."""
    from kernlets import datasets

    mnist = datasets.load("mnist")
    model = residual_pipeline(None).fit(mnist.X_train[:n_rows], mnist.y_train[:n_rows])
    images = mnist.X_test[:n_images].copy()
    images[np.random.default_rng(SEED).random(images.shape) < 0.5] = np.nan
    return lambda: model.predict(images)


class Kernlets(Method):
    name = "kernlets"
    memory = False

    def __init__(self, problem: Case) -> None:
        self.what = problem["what"]
        self.call = self._prepare(problem)

    def _prepare(self, problem: Case) -> Callable[[], Any]:
        from kernlets import KSADClassifier, SRCClassifier, datasets

        if self.what in FIRST_FITS:
            return lambda: run_python(["-c", PROGRAM + FIRST_FITS[self.what]])
        if self.what in COMMANDS:
            return lambda: run_python(["-m", "kernlets", *COMMANDS[self.what]])
        if self.what == "half of the pixels missing":
            return damaged_images(problem["n"], problem["images"])
        digits = datasets.load("digits")
        X = np.concatenate([digits.X_train, digits.X_test])
        y = np.concatenate([digits.y_train, digits.y_test])
        if self.what == "K-SAD fit, all digits":
            return lambda: KSADClassifier(random_state=SEED).fit(X, y)
        if self.what == "SRC, all digits":
            src = SRCClassifier().fit(digits.X_train, digits.y_train)
            return lambda: src.predict(X)
        model = classifiers()[self.what].fit(digits.X_train, digits.y_train)
        return lambda: [model.predict(X[i : i + 1]) for i in range(ROWS)]

    def run(self) -> Any:
        return self.call()

    def figures(self, result: Any) -> Figures:
        return {}

    @property
    def share(self) -> float:
        return ROWS if self.what.startswith("row, ") else 1.0


def run_python(arguments: list[str]) -> None:
    """Run Python in a process that finds no compiled loops."""
    with tempfile.TemporaryDirectory() as cache:
        subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, "NUMBA_CACHE_DIR": cache},
            stdout=subprocess.DEVNULL,
            check=True,
        )


class Latency(Benchmark):
    name = "latency"
    title = "What a user waits for"
    about = (
        "Digits (1797 × 64; models are fitted to the first 898) unless said otherwise. "
        f"Rows are predicted one by one, {ROWS} of them; seconds are those of one. "
        "First fits (300 × 16) and commands run in a process of their own without "
        "compiled loops. The last case is LKDL with default landmarks, fitted to "
        "images of MNIST, on others that lack half of their pixels."
    )
    grid = tuple(
        {"what": what}
        if what != "half of the pixels missing"
        else {"what": what, "n": 4000, "images": 2000}
        for what in TARGETS
    )
    quick_grid = ({"what": "row, SRC"}, {"what": "kernlets list"})
    methods = (Kernlets,)
    repeats = 5

    def problem(self, case: Case) -> Case:
        return case

    def targets(self, case: Case) -> list[Target]:
        return [Target("seconds", "<=", TARGETS[case["what"]])]


BENCHMARK = Latency()
