"""What one would pick instead: scikit-learn's kernel machines, with time and memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernlets.datasets import Dataset, DatasetNotFoundError
from kernlets.datasets.catalogue import Entry, load_entry

from .data import load_data
from .harness.skip import Skip
from .harness.timing import Stopwatch
from .peers.spec import SEED, Benchmark, Case, Figures, Method

# C of 1, 10, 100 that is best on a fifth of the training rows of USPS
PENALTY, PENALTY_OF_RANDOM_FEATURES = 10.0, 1.0
ATOMS, NON_ZEROS = 200, 8  # of each class


@dataclass(frozen=True)
class Problem:
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    n_features: int  # of the kernel maps
    is_last: bool  # whether models without a kernel map run here

    @property
    def most_features(self) -> int:
        return min(self.n_features, len(self.X_train))

    @property
    def gamma(self) -> float:
        """The rate of the RBF kernel that scikit-learn calls "scale"."""
        return 1 / (self.X_train.shape[1] * float(self.X_train.var()))

    @property
    def sigma(self) -> float:
        """The width of the same kernel, exp(−‖x − y‖²/2σ²)."""
        return (2 * self.gamma) ** -0.5


def letter() -> Dataset:
    """UCI's set of 20 000 printed letters, 16 features, from ``letter.npz``: X, y."""
    entry = Entry("letter.npz", "UCI letter recognition, 20 000 letters, 16 features")
    try:
        return load_entry("letter", entry, download=False, dtype=np.float32)
    except DatasetNotFoundError as error:
        raise Skip("letter.npz is not in the folder named by KERNLETS_DATA") from error


class Classifier(Method):
    """Fits all training rows and labels the test rows."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.model = self.prepared()

    def prepared(self) -> Any:
        raise NotImplementedError

    def run(self) -> tuple[np.ndarray, dict[str, float]]:
        data, clock = self.problem, Stopwatch()
        clock("fit, s", lambda: self.model.fit(data.X_train, data.y_train))
        labels = clock("predict, s", lambda: self.model.predict(data.X_test))
        return labels, clock.seconds

    def figures(self, result: tuple[np.ndarray, dict[str, float]]) -> Figures:
        labels, seconds = result
        return {
            "accuracy": 100 * float(np.mean(labels == self.problem.y_test))
        } | seconds


class WithoutMap(Classifier):
    """A model that has no number of features: it runs in the last case of the data."""

    def __init__(self, problem: Problem) -> None:
        if not problem.is_last:
            raise Skip("it has no number of features: see the case with the most")
        super().__init__(problem)


class LKDL(Classifier):
    name = "kernlets, LKDL"

    def prepared(self) -> Any:
        from sklearn.pipeline import make_pipeline

        from kernlets import KSVD, RBF, NystroemMap, ResidualClassifier

        learner = KSVD(ATOMS, NON_ZEROS, max_iter=3, random_state=SEED)
        features = NystroemMap(
            RBF(self.problem.sigma),
            n_landmarks=self.problem.most_features,
            random_state=SEED,
        )
        return make_pipeline(features, ResidualClassifier(learner))


class KernelRidge(WithoutMap):
    name = "kernlets, KernelRidgeClassifier"

    def prepared(self) -> Any:
        from kernlets import KernelRidgeClassifier

        return KernelRidgeClassifier(random_state=SEED)


class SVC(WithoutMap):
    name = "SVC"

    def prepared(self) -> Any:
        from sklearn.svm import SVC as SupportVectorClassifier

        return SupportVectorClassifier(C=PENALTY, gamma=self.problem.gamma)


class Nystroem(Classifier):
    name = "Nystroem, LinearSVC"

    def prepared(self) -> Any:
        from sklearn.kernel_approximation import Nystroem as NystroemFeatures

        return self.with_linear(NystroemFeatures, PENALTY)

    def with_linear(self, features: Callable[..., Any], penalty: float) -> Any:
        from sklearn.pipeline import make_pipeline
        from sklearn.svm import LinearSVC

        mapped = features(
            gamma=self.problem.gamma,
            n_components=self.problem.most_features,
            random_state=SEED,
        )
        return make_pipeline(mapped, LinearSVC(C=penalty, random_state=SEED))


class RandomFeatures(Nystroem):
    name = "RBFSampler, LinearSVC"

    def prepared(self) -> Any:
        from sklearn.kernel_approximation import RBFSampler

        return self.with_linear(RBFSampler, PENALTY_OF_RANDOM_FEATURES)


class Instead(Benchmark):
    name = "instead"
    title = "What one would pick instead"
    about = (
        "Accuracy in percent, seconds to fit and to label the test rows, and peak "
        "memory of kernlets and of what scikit-learn has for the same task, at "
        "several numbers of features, so that one can compare at equal accuracy. "
        "MNIST: 5000 random training images and all test images; USPS: its own "
        "split; letter (UCI): four fifths for training. Images of unit norm, letter "
        "standardised, float32. All have the RBF kernel of gamma='scale', but for "
        "KernelRidgeClassifier, which chooses penalty and width in the time shown. "
        f"LKDL: as many uniform landmarks as features, {ATOMS} atoms per class, "
        f"{NON_ZEROS} non-zeros, 3 iterations. Support vector machines: "
        f"C = {PENALTY:g}, with random features {PENALTY_OF_RANDOM_FEATURES:g}: the "
        "best of 1, 10 and 100 on a fifth of the training rows of USPS. Nothing was "
        "chosen by the test rows."
    )
    grid = tuple(
        {"data": data, "n": n, "features": features}
        for data, n, sizes in (
            ("mnist", 5000, (250, 1000, 2000)),
            ("usps", 7291, (250, 1000)),
            ("letter", 16_000, (250, 1000)),
        )
        for features in sizes
    )
    quick_grid = (
        {"data": "digits", "n": 400, "features": 50},
        {"data": "digits", "n": 400, "features": 2000},
    )
    methods = (LKDL, KernelRidge, SVC, Nystroem, RandomFeatures)
    repeats = 1

    def problem(self, case: Case) -> Problem:
        from kernlets.datasets import unit_norm

        data = letter() if case["data"] == "letter" else load_data(case["data"])
        if data.X_test is None:
            X_train, X_test, y_train, y_test = data.split(0.8, random_state=SEED)
        else:
            X_train, y_train = data.X_train, data.y_train
            X_test, y_test = data.X_test, data.y_test
        rows = np.random.default_rng(SEED).permutation(len(X_train))[: case["n"]]
        X_train, y_train = X_train[rows], y_train[rows]
        if case["data"] == "letter":
            mean, deviation = X_train.mean(axis=0), X_train.std(axis=0)
            X_train, X_test = (X_train - mean) / deviation, (X_test - mean) / deviation
        else:
            X_train, X_test = unit_norm(X_train), unit_norm(X_test)
        cases = (*self.grid, *self.quick_grid)
        sizes = [each["features"] for each in cases if each["data"] == case["data"]]
        n_features, is_last = case["features"], case["features"] == max(sizes)
        return Problem(X_train, y_train, X_test, y_test, n_features, is_last)

    def warm_up(self, method: type[Method]) -> None:
        method(self.problem(self.quick_grid[1])).run()


BENCHMARK = Instead()
