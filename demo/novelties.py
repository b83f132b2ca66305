"""Digits that are no threes, found by detectors that saw nothing but threes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

from benchmarks.harness.html import Html, figure, html, paragraph, row, section, table
from benchmarks.harness.pictures import picture
from kernlets import DictionaryOutlierDetector
from kernlets.datasets.catalogue import Split

NORMAL, SHOWN = 3, 3
OURS = "kernlets"


class Novelties(NamedTuple):
    """The area under the ROC curve of each detector, and our most certain outliers."""

    auc: dict[str, float]
    images: np.ndarray  # (SHOWN, 64)
    labels: np.ndarray  # (SHOWN,)
    reasons: list[Any]  # explanations


def find_novelties(data: Split) -> Novelties:
    """Train on threes, score all test digits, explain one of each other digit."""
    X = data.X_train[data.y_train == NORMAL]
    detectors = {
        OURS: DictionaryOutlierDetector(novelty=True, random_state=0),
        "local outlier factor": LocalOutlierFactor(novelty=True),
        "one-class SVM": OneClassSVM(),
        "isolation forest": IsolationForest(random_state=0),
    }
    is_other = data.y_test != NORMAL
    auc = {
        name: float(roc_auc_score(is_other, -each.fit(X).score_samples(data.X_test)))
        for name, each in detectors.items()
    }
    scores = detectors[OURS].score_samples(data.X_test)
    order = np.argsort(scores, kind="stable")
    order = order[is_other[order]]
    kinds = np.unique(data.y_test[order], return_index=True)[1]  # one of each digit
    chosen = order[np.sort(kinds)[:SHOWN]]
    images = data.X_test[chosen]
    reasons = detectors[OURS].explain(images)
    return Novelties(auc, images, data.y_test[chosen], reasons)


def novelties_section(found: Novelties) -> Html:
    best = max(found.auc.values())
    rows = [[name, f"{value:.3f}"] for name, value in found.auc.items()]
    strong = [(i, 1) for i, value in enumerate(found.auc.values()) if value == best]
    return section(
        "Outliers, with reasons",
        paragraph(
            "A detector sees threes only and then has to find the digits that are no "
            "threes. It tells how much each pixel contributes to a score, and which "
            "normal digit is nearest. These are the outliers with the highest scores, "
            "of three different digits."
        ),
        row(*(_card(*each) for each in _cards(found)), class_="even"),
        table(
            ["detector", "area under the ROC curve"],
            rows,
            "1 means that every other digit has a higher score than every three, 0.5 "
            "is chance. All detectors have the settings that they have by default.",
            strong,
        ),
    )


def _cards(found: Novelties) -> Any:
    return zip(found.images, found.labels, found.reasons, strict=True)


def _card(image: np.ndarray, label: int, reason: Any) -> Html:
    """The digit, what would be usual, and where they differ most."""
    parts = image, reason.nearest, reason.shares / reason.shares.max()
    tiles = np.hstack(
        [np.pad(1 - x.reshape(8, 8), 1, constant_values=1) for x in parts]
    )
    drawn = picture(tiles, f"a {label}, the nearest three, shares of the score", 240)
    said = f"A {label}; the nearest three; dark: pixels that speak against a three. "
    share = 100 * reason.shares[reason.order[:10]].sum()
    return figure(drawn, html(said, f"Ten pixels are {share:.0f} % of the score."))
