"""Why a digit got its label, as the demonstration's page shows it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.harness.charts import bar_chart
from benchmarks.harness.html import Html, figure, html, paragraph, row, section, tag
from benchmarks.harness.pictures import picture
from kernlets.classifiers.explain import Explanation, SampleUse, explain

from .methods import TOLD_KERNEL
from .trial import IMAGE_SHAPE, Corruption, DemoResult

SHOWN = 7  # training digits
ZOOM = 4


def reasons_section(result: DemoResult, corruption: Corruption) -> Html:
    """Explanations of a damaged digit that is read and of one that is misread."""
    X = corruption.told(result.data.X_test, result.plan.seeds[0])
    return section(
        "Why this label",
        paragraph(
            f"These digits have lost {corruption.level:.0%} of their pixels (hatched). "
            f"The method is {TOLD_KERNEL}. A bar is the distance from the atoms of a "
            "digit, above the smallest distance, which decides; the answer has no "
            "bar, and green is the truth where it differs. Beside the bars are the "
            "training digits behind the atoms, with their weights. The call is ",
            tag("code", "kernlets.explain(model, x)"),
            ".",
        ),
        *(_reason(result, name, X[i], i) for name, i in chosen(result, X)),
    )


def chosen(result: DemoResult, X: np.ndarray) -> Iterator[tuple[str, int]]:
    """The first digit that is read and the first that is misread, if there is one."""
    right = result.of(TOLD_KERNEL)[0].model.predict(X) == result.data.y_test
    for name, which in (("Read correctly", right), ("Misread", ~right)):
        if which.any():
            yield name, int(np.flatnonzero(which)[0])


def _reason(result: DemoResult, name: str, x: np.ndarray, i: int) -> Html:
    found = explain(result.of(TOLD_KERNEL)[0].model, x)
    truth, answer = int(result.data.y_test[i]), int(found.label)
    label = f"a {truth} read as {answer}"
    whole = 1 - np.clip(result.data.X_test[i], 0, 1).reshape(IMAGE_SHAPE)
    shown = tag(
        "div",
        picture(_hatched(x), label, 72),
        picture(whole, f"the {truth} without damage", 72),
        class_="pair",
    )
    heading = tag("h3", f"{name}: {label}")
    caption = html("what is left, and the ", tag("strong", truth), " as it was")
    behind = (_sample(result, use) for use in found.samples[:SHOWN])
    bars = figure(_bars(found, truth), "distance from each digit")
    cards = row(figure(shown, caption), bars, *behind, class_="cards reason")
    return html(heading, cards)


def _hatched(x: np.ndarray) -> np.ndarray:
    """The image enlarged, with a stroke through each pixel that is unknown."""
    image = 1 - np.clip(x, 0, 1).reshape(IMAGE_SHAPE)
    large = np.kron(image, np.ones((ZOOM, ZOOM)))
    stroke = np.tile(1 - 0.5 * np.eye(ZOOM), IMAGE_SHAPE)
    return np.where(np.isnan(large), stroke, large)


def _bars(found: Explanation, truth: int) -> Html:
    """Residuals above the smallest one, which is what decides."""
    excess = found.scores - found.scores.min()
    return bar_chart(
        excess.tolist(),
        found.classes.tolist(),
        f"residuals above the smallest, of a {truth}",
        {truth: "truth", int(found.label): "answer"},
        width=150,
    )


def _sample(result: DemoResult, use: SampleUse) -> Html:
    grey = 1 - result.data.X_train[use.row].reshape(IMAGE_SHAPE)
    alt = f"training digit {use.row}, a {use.label}"
    return figure(picture(grey, alt, 56), f"{use.label}: {use.weight:+.2f}")
