"""What the demonstration's page shows, section by section."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from benchmarks.harness.charts import LineChart
from benchmarks.harness.html import (
    Html,
    facts,
    figure,
    html,
    numbers,
    page,
    paragraph,
    row,
    section,
    table,
    tag,
)
from benchmarks.harness.machine import machine, versions
from benchmarks.harness.pictures import picture
from kernlets.datasets import remove_mean_and_normalize
from kernlets.plotting import mosaic

from .methods import EXACT, LINEAR, METHODS, PEERS, dictionaries
from .novelties import novelties_section
from .photograph import photograph_section
from .reasons import reasons_section
from .terminal import verdict
from .trial import IMAGE_SHAPE, SPLIT_SEED, Corruption, DemoResult

ATOMS_SHOWN = 12
CHOICE = (
    "by cross-validation inside the training half (demo/choice.py): on clean images; "
    "for methods with NaN also on those with lost pixels; for samples in a narrow "
    "kernel and for neighbours on all"
)
OWN_DATA = """\
kernlets fit table.csv -m model.kernlets --label COLUMN --holdout 0.25
kernlets predict model.kernlets new.csv -o labels.csv
kernlets explain model.kernlets new.csv --rows 1"""


def demo_page(result: DemoResult) -> Html:
    """The whole report."""
    return page(
        "Reading damaged digits",
        "A camera delivers handwritten digits with missing or noisy pixels. The "
        "classifiers below have learned from clean digits only. kernlets learns "
        "typical pieces of each digit, called atoms, and describes a new image as a "
        "sum of a few of them. The digit whose atoms describe the image best is the "
        "answer. Pixels that are unknown do not take part, and the sum fills them in.",
        _headline(result),
        _accuracy_section(result),
        reasons_section(result, _middle(result, "missing")),
        novelties_section(result.outliers),
        photograph_section(result.photograph),
        _atoms_section(result),
        _settings_section(result),
        _own_data_section(),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _middle(result: DemoResult, kind: str) -> Corruption:
    """The middle level of a kind of corruption."""
    same = [each for each in result.plan.corruptions() if each.kind == kind]
    return same[len(same) // 2]


def _headline(result: DemoResult) -> Html:
    tiles = {}
    for kind, words in (
        ("missing", "of the digits are read with {:.0%} of the pixels lost"),
        ("noise", "with noise of deviation {:g}"),
        ("clean", "without damage"),
    ):
        corruption = _middle(result, kind)
        groups = dictionaries(), PEERS
        ours, other = (result.best(corruption, group) for group in groups)
        described = words.format(corruption.level)
        rival = f"{other}: {result.percent(other, corruption):.1f} %"
        tiles[f"{described} by {ours}; best of the others: {rival}"] = (
            f"{result.percent(ours, corruption):.1f} %"
        )
    return numbers(tiles)


def _accuracy_section(result: DemoResult) -> Html:
    curves = row(
        _curves(result, "missing", "share of pixels that are lost"),
        _curves(result, "noise", "standard deviation of the noise (white = 1)"),
        class_="row large",
    )
    says = paragraph(
        verdict(result),
        " Methods with NaN in their names are told which pixels are lost. To all "
        "others these pixels are black, which misleads them. The mark is on the best "
        "method and on all that are within one standard deviation of it.",
    )
    return section("How many are read", says, _accuracy_table(result), curves)


def _accuracy_table(result: DemoResult) -> Html:
    corruptions = result.plan.corruptions()
    best = [
        (i, j)
        for j, corruption in enumerate(corruptions, 1)
        for i, method in enumerate(METHODS)
        if method in result.winners(corruption)
    ]
    return table(
        ["method", *(_heading(c) for c in corruptions), "fit, s", "predict, s"],
        [[m, *_cells(result, m, corruptions)] for m in METHODS],
        f"Per cent of {len(result.data.y_test)} test digits that are read correctly; "
        f"mean ± standard deviation over seeds ({len(result.plan.seeds)}). Seconds are "
        "medians without compilation; predict reads the whole test half.",
        strong=best,
    )


def _heading(corruption: Corruption) -> str:
    return str(corruption).replace("missing", "lost")


def _cells(
    result: DemoResult, method: str, corruptions: Iterable[Corruption]
) -> Iterator[Any]:
    for corruption in corruptions:
        accuracy = result.accuracy(method, corruption)
        spread = tag("small", f" ± {_percent(accuracy.std())}")
        yield html(_percent(accuracy.mean()), spread)
    yield f"{result.median(method, 'fit_seconds'):.3f}"
    yield f"{result.median(method, 'predict_seconds'):.3f}"


def _curves(result: DemoResult, kind: str, x_label: str) -> Html:
    corruptions = [c for c in result.plan.corruptions() if c.kind in ("clean", kind)]
    curves = {
        m: {c.level: 100 * result.accuracy(m, c) for c in corruptions} for m in METHODS
    }
    chart = LineChart(curves, x_label, "accuracy, %", written="{:.3g}".format)
    caption = "Mean over the seeds; the band is one standard deviation."
    return figure(chart.named_block(), caption)


def _atoms_section(result: DemoResult) -> Html:
    return section(
        "What was learned",
        paragraph(
            "One row for each digit, the most used atoms first. Linear atoms are "
            "images, in which grey is zero. An atom of a kernel dictionary is a point "
            "in the kernel's feature space and no image. In its place stands the "
            "training digit that is closest to it in angle."
        ),
        row(*(_atoms_figure(result, m) for m in (LINEAR, EXACT)), class_="even"),
    )


def _atoms_figure(result: DemoResult, method: str) -> Html:
    model = result.of(method)[0].model
    X, y = result.data.X_train, result.data.y_train
    images, F = remove_mean_and_normalize(X), model[:-1].transform(X)
    rows = [
        _atom_images(learner, F[y == label], images[y == label])
        for label, learner in zip(model[-1].classes_, model[-1].learners_, strict=True)
    ]
    shown = min(map(len, rows))
    tiles = mosaic(-np.concatenate([r[:shown] for r in rows]), IMAGE_SHAPE, shown)
    alt = f"atoms of {method}, {shown} for each digit"
    return figure(picture(tiles, alt, 3 * tiles.shape[1]), tag("strong", method))


def _atom_images(learner: Any, F: np.ndarray, images: np.ndarray) -> np.ndarray:
    """The most used atoms as images, or the samples closest to them in angle."""
    used = np.argsort(-learner.encode(F).uses(), kind="stable")[:ATOMS_SHOWN]
    if F.shape[1] == images.shape[1] and hasattr(learner, "components_"):
        atoms = learner.components_[used]
        return atoms * np.sign((atoms @ images.T).sum(axis=1, keepdims=True))
    dictionary = learner.dictionary_
    norms = np.sqrt(np.maximum(dictionary.energy(F), np.finfo(F.dtype).tiny))
    return images[np.abs(dictionary.correlate(F) / norms[:, None]).argmax(axis=0)[used]]


def _settings_section(result: DemoResult) -> Html:
    half = len(result.data.y_train), len(result.data.y_test)
    protocol = {
        "data": "scikit-learn's digits, 8 × 8 pixels, grey levels in [0, 1]",
        "split": f"{half[0]} training, {half[1]} test, per class, seed {SPLIT_SEED}",
        "seeds": f"{', '.join(map(str, result.plan.seeds))} (dictionaries, landmarks, "
        "corruption); pictures show the first",
        "choice of sizes": CHOICE,
        "seconds in all": f"{result.seconds:.0f}",
    }
    models = {name: tag("code", _described(make(0))) for name, make in METHODS.items()}
    return section(
        "How this was made",
        facts(protocol),
        _folded("Methods", facts(models)),
        _folded("Machine and versions", facts({**machine(), **versions()})),
    )


def _folded(name: str, content: Html) -> Html:
    return tag("details", tag("summary", name), content)


def _own_data_section() -> Html:
    return section(
        "Your own data",
        paragraph(
            "Three commands do the same with a table that has a column of labels, or "
            "with a folder of images that has a folder for each class:"
        ),
        tag("pre", OWN_DATA),
    )


def _described(model: Any) -> str:
    """The steps after normalisation, with the parameters that are not defaults."""
    last = getattr(model[-1], "learner", model[-1])
    return " → ".join(" ".join(repr(step).split()) for step in (*model[1:-1], last))
