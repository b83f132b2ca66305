"""What the demonstration's page shows, section by section."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from benchmarks.harness.charts import LineChart, bar_chart
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

from .methods import LINEAR, LKDL, METHODS, PEERS, dictionaries
from .reasons import reasons_section
from .terminal import verdict
from .trial import IMAGE_SHAPE, SPLIT_SEED, Corruption, DemoResult

ATOMS_SHOWN = 12
CHOICE = (
    "by cross-validation inside the training half, on clean images; those of q = 1, of "
    "samples in a narrow kernel and of neighbours on corrupted ones; the test half was "
    "not used"
)
CARDS = 15
OWN_DATA = """\
kernlets fit table.csv -m model.kernlets --label COLUMN --holdout 0.25
kernlets predict model.kernlets new.csv -o labels.csv
kernlets explain model.kernlets new.csv --rows 1

python
>>> from kernlets import AutoDictionaryClassifier
>>> model = AutoDictionaryClassifier().fit(X, y)
>>> model.predict(X_new)"""
WHEN = (
    "On clean images all but the linear dictionaries differ by a few digits. Noise and "
    "lost pixels are best met by many atoms with a small part each in a narrow kernel; "
    "few learned atoms, support vectors and trees lose more, and averaging a few "
    "neighbours comes next. Where it is known which pixels are lost, they are unknown "
    "and not black: a linear dictionary coded over the others does far better than any "
    "method that takes them for black."
)


def demo_page(result: DemoResult) -> Html:
    """The whole report."""
    return page(
        "Kernel dictionaries read corrupted digits",
        "One dictionary per digit, learned by K-SVD: once on the pixels, once on "
        "virtual samples that stand for the feature space of a kernel (LKDL). Training "
        "digits are clean; test digits are clean, noisy, or have lost pixels. Beside "
        "them what one would use instead: neighbours, support vectors, trees.",
        _headline(result),
        _accuracy_section(result),
        reasons_section(result, list(_harder(result))[1]),
        _atoms_section(result),
        _kernel_section(result),
        _misread_section(result),
        _settings_section(result),
        _own_data_section(),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _harder(result: DemoResult) -> Iterator[Corruption]:
    """Clean, and the middle level of each kind of corruption."""
    yield Corruption()
    for kind, levels in ("noise", result.plan.noise), ("missing", result.plan.missing):
        yield Corruption(kind, levels[len(levels) // 2])


def _headline(result: DemoResult) -> Html:
    tiles = {}
    for corruption in _harder(result):
        groups = dictionaries(), PEERS
        best, other = (result.best(corruption, group) for group in groups)
        values = [result.percent(name, corruption) for name in (other, best)]
        tiles[f"{str(corruption).capitalize()}: {other} → {best}"] = (
            f"{values[0]:.1f} → {values[1]:.1f} %"
        )
    return numbers(tiles)


def _accuracy_section(result: DemoResult) -> Html:
    curves = row(
        _curves(result, "noise", "standard deviation of the noise (white = 1)"),
        _curves(result, "missing", "share of pixels set to zero, or unknown"),
        class_="row large",
    )
    says = paragraph(verdict(result), " ", WHEN)
    return section("Accuracy under corruption", says, _accuracy_table(result), curves)


def _accuracy_table(result: DemoResult) -> Html:
    corruptions = result.plan.corruptions()
    means = np.array(
        [[result.accuracy(m, c).mean() for c in corruptions] for m in METHODS]
    )
    best = zip(*np.nonzero(means == means.max(axis=0)), strict=True)
    return table(
        ["method", *corruptions, "fit, s", "predict, s", "peak, MB"],
        [[m, *_cells(result, m, corruptions)] for m in METHODS],
        f"Per cent of {len(result.data.y_test)} test digits read correctly; mean ± "
        f"standard deviation over seeds ({len(result.plan.seeds)}). Seconds are "
        "medians with compilation left out; predict reads the whole test half. Peak is "
        "the resident memory that fit and predict add to a fresh process in which "
        "library, data and compiled loops are loaded.",
        strong=[(int(i), int(j) + 1) for i, j in best],
    )


def _cells(
    result: DemoResult, method: str, corruptions: Iterable[Corruption]
) -> Iterator[Any]:
    for corruption in corruptions:
        accuracy = result.accuracy(method, corruption)
        spread = tag("small", f" ± {_percent(accuracy.std())}")
        yield html(_percent(accuracy.mean()), spread)
    yield f"{result.median(method, 'fit_seconds'):.3f}"
    yield f"{result.median(method, 'predict_seconds'):.3f}"
    peak = result.peak_bytes[method]
    yield "unknown" if peak is None else f"{peak / 1e6:.1f}"


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
            "One row per digit, the most used atoms first. Linear atoms are images "
            "(grey is zero). An atom of a kernel dictionary lives in feature space and "
            "is no image; shown is the training digit whose feature vector is closest "
            "to it in angle."
        ),
        row(*(_atoms_figure(result, m) for m in dictionaries()), class_="even"),
        _landmarks_figure(result),
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


def _landmarks_figure(result: DemoResult) -> Html:
    landmarks = result.of(LKDL)[0].model["nystroemmap"].landmarks_[:96]
    tiles = mosaic(-landmarks, IMAGE_SHAPE, 32)
    caption = (
        f"The first {len(landmarks)} landmarks of LKDL (k-means centres): a virtual "
        "sample is a digit's kernel values with the landmarks, rotated and scaled."
    )
    return figure(
        picture(tiles, "landmarks", 3 * tiles.shape[1]), caption, class_="wide"
    )


def _kernel_section(result: DemoResult) -> Html:
    chart = LineChart(
        result.kernel_errors,
        "number of landmarks",
        "relative trace error",
        log="xy",
        bound=("best rank c", result.best_rank),
    )
    text = paragraph(
        "How much of the training digits' kernel matrix the Nyström map loses, for "
        "each way to choose landmarks: trace(K − K̃) / trace(K). No approximation of "
        "the same rank can be below the dashed line. All κ(x, x) are 1 here, so that "
        "diagonal sampling is uniform sampling."
    )
    caption = f"{len(result.data.y_train)} training digits, mean over the seeds."
    drawn = figure(chart.named_block(), caption, class_="narrow")
    return section("Kernel approximation", text, drawn)


def _residuals(result: DemoResult, method: str, X: np.ndarray) -> np.ndarray:
    model = result.of(method)[0].model
    return model[-1].residuals(model[:-1].transform(X))


def _misread_section(result: DemoResult) -> Html:
    noise = list(_harder(result))[1]
    seed = result.plan.seeds[0]
    noisy = noise(result.data.X_test, seed)
    clean = _residuals(result, LKDL, result.data.X_test)
    kernel, linear = (_residuals(result, name, noisy) for name in (LKDL, LINEAR))
    y = result.data.y_test
    wrong = np.flatnonzero(clean.argmin(axis=1) != y)
    read, read_linear = (r.argmin(axis=1) == y for r in (kernel, linear))
    only = np.flatnonzero(read & ~read_linear)
    return section(
        "Misread digits",
        paragraph(
            "Bars are the squared residuals over the ten dictionaries; the smallest "
            "decides. Orange is the answer, green the truth where it differs."
        ),
        tag("h3", f"Clean digits that LKDL misreads: {len(wrong)} of {len(y)}"),
        _cards(result.data.X_test, clean, y, wrong),
        tag("h3", f"With {noise}, {len(only)} that LKDL reads and K-SVD misreads"),
        paragraph(
            f"The bars are those of {LINEAR}. The other way round there are "
            f"{(read_linear & ~read).sum()}."
        ),
        _cards(noisy, linear, y, only),
    )


def _cards(
    X: np.ndarray, residuals: np.ndarray, y: np.ndarray, which: np.ndarray
) -> Html:
    cards = (_card(X[i], residuals[i], int(y[i])) for i in which[:CARDS])
    more = len(which) - CARDS
    rest = paragraph(f"… and {more} more.") if more > 0 else Html()
    return html(row(*cards, class_="cards"), rest)


def _card(image: np.ndarray, residuals: np.ndarray, truth: int) -> Html:
    answer = int(residuals.argmin())
    label = f"a {truth} read as {answer}"
    image = 1 - image.reshape(IMAGE_SHAPE)
    bars = bar_chart(
        residuals.tolist(),
        range(len(residuals)),
        f"residuals over the ten dictionaries, {label}",
        {truth: "truth", answer: "answer"},
        width=120,
    )
    shown = tag("div", picture(image, label, 56), bars, class_="pair")
    return figure(shown, tag("strong", truth), " read as ", tag("strong", answer))


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
            "A table with a column of labels, a folder of images, or arrays in Python:"
        ),
        tag("pre", OWN_DATA),
    )


def _described(model: Any) -> str:
    """The steps after normalisation, with the parameters that are not defaults."""
    last = getattr(model[-1], "learner", model[-1])
    return " → ".join(" ".join(repr(step).split()) for step in (*model[1:-1], last))
