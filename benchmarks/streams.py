"""One pass over the extended MNIST: RLS-DLA and online sums, with and without LKDL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from papers.published import number, numbers

from .data import load_data
from .harness.memory import forget_peak, peak
from .harness.timing import Stopwatch
from .peers.spec import SEED, Benchmark, Case, Figures, Method, Target

BATCHES = 9
BLOCK_ROWS = 10_000  # rows of a batch that are mapped and learned from at a time
ROWS = {"none": "RLS-DLA", "LKDL": "RLS-DLA + LKDL"}  # of LKDL's Table II
SECONDS = {key: each.value for key, each in numbers("lkdl", "table2-seconds").items()}
SIZES = {
    "mnist": {"atoms": 700, "non-zeros": 11, "landmarks": 3000, "features": 784},
    "digits": {"atoms": 20, "non-zeros": 4, "landmarks": 60, "features": 60},
}

Rows = tuple[np.ndarray, np.ndarray]  # samples and labels


@dataclass(frozen=True)
class Problem:
    """The images a stream is made of, and the test set."""

    images: Any  # a Dataset
    case: Case

    @property
    def sizes(self) -> dict[str, int]:
        return SIZES[self.case["data"]]

    def stream(self) -> Iterator[Rows]:
        """Blocks of shifted images, mixed, own mean removed, unit norm."""
        from kernlets.datasets import remove_mean_and_normalize, shifted_batches

        data = self.images
        shape = data.image_shape
        for X, y in shifted_batches(data.X_train, data.y_train, shape, BATCHES, SEED):
            for begin in range(0, len(X), BLOCK_ROWS):
                rows = slice(begin, begin + BLOCK_ROWS)
                yield remove_mean_and_normalize(X[rows]), y[rows]


class Kernlets(Method):
    name = "kernlets"
    memory = False  # the peak is part of the figures, of one and the same run

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def run(self) -> Figures:
        from kernlets.datasets import remove_mean_and_normalize

        forget_peak()
        clock, data = Stopwatch(), self.problem.images
        features = clock("fit map s", self.fit_map)
        model = self.model()
        for X, y in self.problem.stream():
            F = clock("virtual s", lambda X=X: features(X))
            clock("train s", lambda F=F, y=y: model.partial_fit(F, y, range(10)))
        new = features(remove_mean_and_normalize(data.X_test))
        labels = clock("test s", lambda: model.predict(new))
        accuracy = 100 * float(np.mean(labels == data.y_test))
        most = peak()
        memory = {} if most is None else {"peak MB": most / 1e6}
        return {"accuracy": accuracy, **memory, **clock.seconds}

    def fit_map(self) -> Callable[[np.ndarray], np.ndarray]:
        """Landmarks from all batches (LKDL, section IV-E), or no map."""
        from kernlets import Blocks, NystroemMap

        if self.problem.case["map"] == "none":
            return lambda X: X
        rows = Blocks(lambda: (X for X, _ in self.problem.stream()))
        c, k = self.problem.sizes["landmarks"], self.problem.sizes["features"]
        virtual = NystroemMap(
            "poly:2", "coreset", n_landmarks=c, n_components=k, random_state=SEED
        )
        return virtual.fit(rows).transform

    def model(self) -> Any:
        from kernlets import (
            Forgetting,
            OnlineDictionary,
            ResidualClassifier,
            RLSDictionary,
            Schedule,
        )

        case, sizes = self.problem.case, self.problem.sizes
        per_class = BATCHES * len(self.problem.images.X_train) // 10
        start = case["forgetting"]
        factor = start if start == 1 else Forgetting(start, "linear", per_class)
        Learner = {"RLS": RLSDictionary, "online": OnlineDictionary}[case["learner"]]
        schedule = Schedule(forgetting=factor)
        learner = Learner(sizes["atoms"], sizes["non-zeros"], schedule=schedule)
        return ResidualClassifier(learner, random_state=SEED)

    def figures(self, result: Figures) -> Figures:
        case = self.problem.case
        if (case["data"], case["learner"]) != ("mnist", "RLS"):
            return result
        published = number("lkdl", "table2", ROWS[case["map"]])
        return {**result, "published": published.value}


class Streams(Benchmark):
    name = "streams"
    title = "One pass over 540 000 shifted digits"
    about = (
        "MNIST and its eight shifts by one pixel, 540 000 images in 9 mixed batches, "
        "made as they are read, own mean removed, unit norm, float32; one pass, 700 "
        "atoms per digit, 11 non-zeros, mini-batches of 256. LKDL: poly-2, 3000 "
        "coreset landmarks from all batches (a pass of its own, 'fit map'), 784 "
        "features. Forgetting below 1 rises linearly to 1 over the stream. Seconds "
        "include the making of the images; peak MB is that of the whole process, "
        "libraries and images included. Published: RLS-DLA of LKDL's Table II, there "
        f"{SECONDS['RLS-DLA', 'training']:.0f} s, and "
        f"{SECONDS['RLS-DLA + LKDL', 'training']:.0f} + "
        f"{SECONDS['RLS-DLA + LKDL', 'virtual samples']:.0f} s with LKDL."
    )
    grid = tuple(
        {"data": "mnist", "learner": learner, "forgetting": start, "map": features}
        for features in ("none", "LKDL")
        for learner, start in (("RLS", 1.0), ("RLS", 0.9995), ("online", 0.9995))
    )
    quick_grid = (
        {"data": "digits", "learner": "RLS", "forgetting": 0.999, "map": "LKDL"},
    )
    methods = (Kernlets,)
    repeats = 1

    def problem(self, case: Case) -> Problem:
        return Problem(load_data(case["data"]), case)

    def targets(self, case: Case) -> list[Target]:
        memory = Target("peak MB", "<=", 2000)
        if case["map"] == "none":
            return [memory]
        return [Target("accuracy", ">=", 98.3), memory]


BENCHMARK = Streams()
