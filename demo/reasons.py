"""Why a digit got its label, as the demonstration's page shows it."""

from __future__ import annotations

import numpy as np

from benchmarks.harness.charts import bar_chart
from benchmarks.harness.html import Html, figure, html, paragraph, row, section, tag
from benchmarks.harness.pictures import picture
from kernlets.classifiers.explain import Explanation, SampleUse, explain

from .methods import SAMPLES
from .trial import IMAGE_SHAPE, Corruption, DemoResult

SHOWN = 8  # training digits
DIGITS = 3


def reasons_section(result: DemoResult, corruption: Corruption) -> Html:
    """Explanations of some corrupted digits; the first is misread if any is."""
    X = corruption(result.data.X_test, result.plan.seeds[0])
    chosen = _chosen(result, X)
    return section(
        "Why this label",
        paragraph(
            f"What `kernlets.explain` says of digits with {corruption}, for the method "
            f"“{SAMPLES}”. Bars are squared residuals over the dictionaries of the ten "
            "digits, less the smallest one, which decides: the answer has none, green "
            "is the truth where it differs. Beside them the training digits that "
            "represent the image, with their weights."
        ),
        *(_reason(result, X[i], int(result.data.y_test[i])) for i in chosen),
    )


def _chosen(result: DemoResult, X: np.ndarray) -> np.ndarray:
    """A misread digit, where there is one, and others that are read."""
    right = result.of(SAMPLES)[0].model.predict(X) == result.data.y_test
    wrong = np.flatnonzero(~right)[:1]
    return np.concatenate([wrong, np.flatnonzero(right)[: DIGITS - len(wrong)]])


def _reason(result: DemoResult, image: np.ndarray, truth: int) -> Html:
    found = explain(result.of(SAMPLES)[0].model, image)
    answer = int(found.label)
    label = f"a {truth} read as {answer}"
    grey = 1 - np.clip(image, 0, 1).reshape(IMAGE_SHAPE)
    shown = tag("div", picture(grey, label, 72), _bars(found, truth), class_="pair")
    caption = html(tag("strong", truth), " read as ", tag("strong", answer))
    behind = (_sample(result, use) for use in found.samples[:SHOWN])
    return row(figure(shown, caption), *behind, class_="cards reason")


def _bars(found: Explanation, truth: int) -> Html:
    """Residuals above the smallest one, which is what decides."""
    excess = found.scores - found.scores.min()
    return bar_chart(
        excess.tolist(),
        found.classes.tolist(),
        f"residuals above the smallest, of a {truth}",
        {truth: "truth", int(found.label): "answer"},
        width=120,
    )


def _sample(result: DemoResult, use: SampleUse) -> Html:
    grey = 1 - result.data.X_train[use.row].reshape(IMAGE_SHAPE)
    alt = f"training digit {use.row}, a {use.label}"
    return figure(picture(grey, alt, 56), f"{use.label}: {use.weight:+.2f}")
