"""Images from their patches, beside classifiers of whole rows of pixels."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean, pstdev
from typing import Any

import numpy as np

from .data import load_data
from .harness.skip import Skip
from .harness.timing import timed
from .peers.spec import Benchmark, Case, Figures, Target
from .robust import LOST, TunedMachine, prepared
from .splits import OnSplits, Problem, Split

DRAWS = 5  # of few training images
PER_PERSON, ORL_SPLITS = 5, 5
DAMAGED = 2000  # test images of each kind of damage
KINDS = ("noise", "lost", "missing")
ASKED = {
    ("mnist", 10_000): 99.0,
    ("mnist", 60_000): 99.4,
    ("usps", 7291): 97.5,
    ("orl", 200): 97.0,
}


def splits(name: str, rows: int) -> Iterator[Split]:
    """Raw grey levels: the published split, balanced draws of it, or of ORL several."""
    data = load_data(name)
    if name == "orl":
        for seed in range(ORL_SPLITS):
            yield data.split(PER_PERSON, random_state=seed)
        return
    X, y, rest = data.X_train, data.y_train, (data.X_test, data.y_test)
    if rows > 1000:
        yield X[:rows], rest[0], y[:rows], rest[1]
        return
    for seed in range(DRAWS):
        rng, labels = np.random.default_rng(seed), np.unique(y)
        each = rows // len(labels)
        drawn = np.concatenate(
            [rng.choice(np.flatnonzero(y == c), each, replace=False) for c in labels]
        )
        yield X[drawn], rest[0], y[drawn], rest[1]


def damaged(kind: str, X: np.ndarray, spread: float, seed: int) -> np.ndarray:
    """Images with noise, or with half of the pixels zero or NaN."""
    from kernlets.datasets import add_noise, drop_pixels

    if kind == "noise":
        return add_noise(X, spread, seed)
    return drop_pixels(X, LOST, seed, 0.0 if kind == "lost" else np.nan)


class OnImages(OnSplits):
    """Fitted to clean images; scored on clean and on damaged ones."""

    fills_missing = False
    most_rows = 10_000

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        if self.case.get("rows", 0) > self.most_rows:
            raise Skip(f"{self.name}: too slow for so many rows")

    def score(self, split: Split, seed: int) -> Any:
        """Percent correct for each kind of image; seconds of fit and prediction."""
        X, X_test, y, y_test = split
        model = self.model(seed)
        labels, seconds = timed(lambda: model.fit(X, y).predict(X_test))
        scores = {"accuracy": 100 * float(np.mean(labels == y_test))}
        for kind in KINDS if self.has_damage else ():
            rows = damaged(kind, X_test[:DAMAGED], float(X.std()), seed)
            if not self.fills_missing:
                rows = np.where(np.isnan(rows), X.mean(axis=0), rows)
            labels = model.predict(rows)
            scores[kind] = 100 * float(np.mean(labels == y_test[:DAMAGED]))
        return scores, seconds

    @property
    def has_damage(self) -> bool:
        return self.case["data"] in ("usps", "toy") or self.case["rows"] == 10_000

    def figures(self, result: list[tuple[Figures, float]]) -> Figures:
        scores, seconds = zip(*result, strict=True)
        means = {kind: mean(each[kind] for each in scores) for kind in scores[0]}
        spread = pstdev(each["accuracy"] for each in scores)
        return {**means, "spread": spread, "s per split": mean(seconds)}


class Patches(OnImages):
    fills_missing = True
    most_rows = 60_000

    def model(self, seed: int) -> Any:
        from kernlets import ImageClassifier

        shape = (112, 92) if self.case["data"] == "orl" else None
        return ImageClassifier(image_shape=shape, random_state=seed)


class Machine(OnImages):
    name = "RBF-SVM, tuned"

    def model(self, seed: int) -> Any:
        return TunedRows(seed)


class TunedRows(TunedMachine):
    def __init__(self, seed: int) -> None:
        super().__init__(("clean",), seed)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict(X)


class Neighbor(OnImages):
    name = "1-NN"

    def model(self, seed: int) -> Any:
        from sklearn.neighbors import KNeighborsClassifier

        return prepared(KNeighborsClassifier(1))


class LKDL(OnImages):
    name = "LKDL"

    def model(self, seed: int) -> Any:
        from sklearn.pipeline import make_pipeline

        from kernlets import KSVD, NystroemMap, ResidualClassifier

        learner = ResidualClassifier(KSVD(random_state=seed))
        return prepared(make_pipeline(NystroemMap(random_state=seed), learner))


class Gradients(OnImages):
    name = "HOG and linear SVM"

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        try:
            import skimage  # noqa: F401
        except ImportError:
            raise Skip("scikit-image is not installed") from None

    def model(self, seed: int) -> Any:
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import FunctionTransformer
        from sklearn.svm import LinearSVC

        return make_pipeline(
            FunctionTransformer(self.features), LinearSVC(random_state=seed)
        )

    def features(self, X: np.ndarray) -> np.ndarray:
        from skimage.feature import hog

        side = round(X.shape[1] ** 0.5)
        shape = (112, 92) if self.case["data"] == "orl" else (side, side)
        cell = max(2, min(shape) // 7)
        sizes = {"pixels_per_cell": (cell, cell), "cells_per_block": (2, 2)}
        return np.array([hog(x.reshape(shape), **sizes) for x in X])


class OfPatches(Benchmark):
    name = "patches"
    title = "Images without a network: patches beside rows of pixels"
    about = (
        "`ImageClassifier()` beside classifiers of rows of pixels; all are fitted to "
        "clean images. MNIST: the first 10 000 or all 60 000 training images, or "
        f"{DRAWS} balanced draws of 300 and of 1000, and all 10 000 test images; USPS: "
        f"the published split; ORL: {PER_PERSON} images of each person, {ORL_SPLITS} "
        "splits. Damage is noise of the standard deviation of all training pixels, "
        f"half of the pixels zero (lost) or NaN (missing), on the first {DAMAGED} test "
        "images; peers get means of pixels for NaN. Ours gets grey levels, the others "
        "rows without their own mean and of unit norm. Settings of ours were chosen on "
        "parts of the training images of MNIST and USPS. Accuracy in percent; seconds "
        "of fit and prediction."
    )
    grid = (
        {"data": "usps", "rows": 7291},
        {"data": "orl", "rows": 200},
        {"data": "mnist", "rows": 300},
        {"data": "mnist", "rows": 1000},
        {"data": "mnist", "rows": 10_000},
        {"data": "mnist", "rows": 60_000},
    )
    quick_grid = ({"data": "toy", "rows": 200},)
    methods = (Patches, Machine, Neighbor, LKDL, Gradients)
    repeats = 1

    def problem(self, case: Case) -> Problem:
        if case["data"] == "toy":
            data = load_data("digits")
            parts = data.X_train[:200], data.X_test[:100]
            return Problem([(*parts, data.y_train[:200], data.y_test[:100])], case)
        return Problem(list(splits(case["data"], case["rows"])), case)

    def targets(self, case: Case) -> list[Target]:
        """What was asked, and first among all for every kind of image."""
        asked = ASKED.get((case["data"], case["rows"]))
        targets = [Target("accuracy", ">=", asked)] if asked else []
        names = [method.name for method in self.peers]
        return targets + [Target(f"accuracy: {name}", ">=", 1.0) for name in names]


BENCHMARK = OfPatches()
