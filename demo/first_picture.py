"""The README's picture: one damaged digit, its sparse parts, and what methods say.

``python -m demo.first_picture`` writes ``docs/images/damaged-digit.svg`` and prints
the accuracies that stand in the README. The model is the README's own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.impute import KNNImputer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC

from kernlets import KernelKSVD, ResidualClassifier, UnitNorm, datasets

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "damaged-digit.svg"
GREY = "#777777"  # can be read on white and on black
HOLE = "#e9a15b"
PARTS = 4

OURS, NEIGHBORS, IMPUTED, ZEROS = (
    "kernlets",
    "5-NN",
    "imputed SVM",
    "SVM, zeros",
)
SHOWN = OURS, NEIGHBORS, IMPUTED


class Experiment(NamedTuple):
    """Classifiers fitted on complete digits, and digits of which half is unknown."""

    models: dict[str, Pipeline]
    X: np.ndarray  # (n, 64) test digits as they were
    X_damaged: np.ndarray  # (n, 64), NaN where a pixel is unknown
    y: np.ndarray

    def predictions(self) -> dict[str, np.ndarray]:
        zeros = np.nan_to_num(self.X_damaged)
        return {
            name: model.predict(zeros if name == ZEROS else self.X_damaged)
            for name, model in self.models.items()
        }

    def accuracies(self) -> dict[str, float]:
        found = self.predictions()
        return {name: float(np.mean(found[name] == self.y)) for name in found}


def experiment() -> Experiment:
    """Split and damage of the README's code."""
    X_train, X, y_train, y = datasets.load("digits").split(0.5, random_state=0)
    damaged = datasets.drop_pixels(X, 0.5, random_state=0, value=np.nan)
    ours = ResidualClassifier(KernelKSVD("rbf", random_state=0))
    models = {
        OURS: make_pipeline(UnitNorm(), ours),
        NEIGHBORS: make_pipeline(KNeighborsClassifier(5, metric="nan_euclidean")),
        IMPUTED: make_pipeline(KNNImputer(), SVC(C=10.0)),
        ZEROS: make_pipeline(SVC(C=10.0)),
    }
    for model in models.values():
        model.fit(X_train, y_train)
    return Experiment(models, X, damaged, y)


def shown_digit(made: Experiment) -> int:
    """Of the digits that both others misread, the one that dictionaries read most
    surely: where the residuals of the two best classes differ most."""
    found = made.predictions()
    model = made.models[OURS]
    residuals = model[-1].residuals(model[:-1].transform(made.X_damaged))
    two = np.sort(residuals, axis=1)[:, :2]
    right = {name: labels == made.y for name, labels in found.items()}
    eligible = right[OURS] & ~right[NEIGHBORS] & ~right[IMPUTED]
    return int(np.argmax(np.where(eligible, two[:, 1] - two[:, 0], -1)))


def parts_of(model: Pipeline, x: np.ndarray, label: Any) -> tuple[Any, Any, Any]:
    """Weights and pictures of the atoms of a digit, and the digit filled in."""
    row = model[:-1].transform(x[None])
    classifier = model[-1]
    learner = classifier.learners_[list(classifier.classes_).index(label)]
    code = learner.transform(row)
    used = np.argsort(-np.abs(code[0]))[:PARTS]
    atoms = learner.dictionary_.preimages().points[used]
    return code[0][used], atoms, learner.inverse_transform(code)[0]


def draw(path: Path = PICTURE) -> dict[str, float]:
    """Write the picture; the accuracies of all methods."""
    import matplotlib

    matplotlib.use("Agg")
    look: Any = {"svg.hashsalt": "kernlets", "text.color": GREY, "font.size": 13}
    with matplotlib.rc_context(look):
        made = experiment()
        figure = _figure(made, shown_digit(made))
        figure.savefig(path, transparent=True, metadata={"Date": None})
    return made.accuracies()


def _figure(made: Experiment, i: int) -> Any:
    from matplotlib import pyplot as plt

    weights, atoms, filled = parts_of(made.models[OURS], made.X_damaged[i], made.y[i])
    widths = [1.3, 1.3, *[0.75] * PARTS, 1.3, 1.6]
    figure, axes = plt.subplots(1, 4 + PARTS, figsize=(11, 2), width_ratios=widths)
    figure.subplots_adjust(0.005, 0.02, 0.995, 0.84, wspace=0.3)
    _digit(axes[0], made.X[i], "a digit")
    _digit(axes[1], made.X_damaged[i], "half is lost")
    for k, axis in enumerate(axes[2:-2]):
        sign = "−" if weights[k] < 0 else "+" if k else "≈"
        _digit(axis, np.abs(atoms[k]), f"{sign} {abs(weights[k]):.2f} ×")
    _digit(axes[-2], filled, "filled in")
    found = made.predictions()
    answers = {name: labels[i] for name, labels in found.items() if name in SHOWN}
    _answers(axes[-1], answers, made.y[i])
    return figure


def _digit(axis: Any, x: np.ndarray, title: str) -> None:
    """A picture of 8 × 8 pixels; those that are unknown are orange."""
    from matplotlib import colormaps

    colors = colormaps["gray_r"].with_extremes(bad=HOLE)
    image = np.ma.masked_invalid(x.reshape(8, 8))
    axis.imshow(image, colors, vmin=0, vmax=np.nanmax(x))
    axis.set_title(title, fontsize="medium")
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_color(GREY)


def _answers(axis: Any, answers: dict[str, Any], truth: Any) -> None:
    axis.set_axis_off()
    for line, (name, answer) in enumerate(answers.items()):
        is_right = answer == truth
        height = 0.85 - 0.35 * line
        where = {"transform": axis.transAxes, "va": "center"}
        axis.text(0, height, name, weight="bold" if is_right else "normal", **where)
        color = "#2a9d5c" if is_right else "#d1495b"
        mark = f"{answer} {'✓' if is_right else '✗'}"
        axis.text(1, height, mark, color=color, ha="right", **where)


def main() -> None:
    for name, accuracy in draw().items():
        print(f"{name}: {accuracy:.2f}")


if __name__ == "__main__":
    main()
