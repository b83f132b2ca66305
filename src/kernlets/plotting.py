"""Plots of dictionaries and of results, on Matplotlib axes.

Every function takes an optional `ax`, draws on it and returns it. Matplotlib is in the
extra ``plot`` and is imported only when new axes are needed; no other module of the
library imports it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, prod
from textwrap import wrap
from typing import Any

import numpy as np

from .base.notebook import beside_map, image_side, tiles
from .dictionaries import KernelDictionary
from .numerics.arrays import to_numpy

__all__ = [
    "mosaic",
    "plot_accuracy",
    "plot_explanation",
    "plot_history",
    "plot_kernel_error",
    "plot_outlier",
    "plot_recovery",
    "plot_residuals",
    "plot_score_map",
    "show_atoms",
]

SCORE = "score"  # the history of a search has this instead of an objective
ERROR = "objective"
TITLE_SIZE = 9  # points
Curve = Mapping[float, float | Sequence[float]]  # x -> y, or y of several seeds


def show_atoms(
    learner: Any,
    image_shape: tuple[int, ...] | None = None,
    ax: Any = None,
    n_atoms: int | None = None,
    n_columns: int | None = None,
) -> Any:
    """Show atoms as a mosaic of images, or as lines; each has its own scale.

    In images zero is grey.

    Parameters
    ----------
    learner : fitted learner, classifier, pipeline ending in one, or array
        An array holds one atom per row. One dictionary per class gives one row per
        class. Atoms in the feature space of a kernel (kernel learners, learners after
        a `NystroemMap`, `KSADClassifier`) are shown by their pre-images.
    image_shape : (height, width), (height, width, 3) or (length,), optional
        Shape of the training images. Atoms of one dimension, e.g. of series, are drawn
        as lines. Default: square images where atoms look like such, otherwise lines.
    ax : Axes, optional
        Where to draw. Default: new axes.
    n_atoms : int, optional
        Show only the first `n_atoms` atoms (of each class).
    n_columns : int, optional
        Images or lines per row. Default: a square, or one row per class.

    Examples
    --------
    >>> from kernlets import KSVD, datasets, plotting
    >>> X = datasets.load("digits").X_train
    >>> learner = KSVD(16, 3, max_iter=2, random_state=0).fit(X)
    >>> ax = plotting.show_atoms(learner, (8, 8))
    >>> ax.images[0].get_array().shape
    (35, 35)
    """
    groups = [np.asarray(atoms)[:n_atoms] for atoms in _atom_groups(learner, n_atoms)]
    if image_shape is None:
        side = image_side(np.concatenate(groups).astype(float))
        image_shape = (side, side) if side else groups[0].shape[1:]
    _check_image_shape(groups[0], image_shape)
    title = f"{sum(map(len, groups))} atoms"
    if len(groups) > 1:
        title += f" of {len(groups)} classes"
    if n_columns is None and len(groups) > 1:
        n_columns = max(map(len, groups))
        # rows of NaN are drawn white, so that each class starts a new line
        lines = np.full((len(groups), n_columns, groups[0].shape[1]), np.nan)
        for line, group in zip(lines, groups, strict=True):
            line[: len(group)] = group
        groups = list(lines)
    atoms, ax = np.concatenate(groups), _get_axes(ax)
    if max(image_shape) == prod(image_shape):
        _draw_lines(ax, atoms, n_columns)
    else:
        _draw_image(ax, mosaic(atoms, image_shape, n_columns))
    ax.set_title(title, fontsize="medium")
    ax.set_axis_off()
    return ax


def _draw_image(ax: Any, picture: np.ndarray) -> None:
    """Draw an image with values in [0, 1] in grey or colour, without axes."""
    ax.imshow(picture, cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest")
    ax.set_axis_off()


def _draw_lines(
    ax: Any,
    atoms: np.ndarray,  # (m, p)
    n_columns: int | None,
) -> None:
    """Draw each atom as a line on a grid, around a thin line at zero."""
    n_columns = n_columns or ceil(len(atoms) ** 0.5)
    x = np.linspace(0, 0.9, atoms.shape[1])
    for index, atom in enumerate(np.asarray(atoms, dtype=float)):
        if np.isnan(atom).any():  # after the last atom of a class
            continue
        row, column = divmod(index, n_columns)
        largest = np.abs(atom).max() or 1.0
        ax.plot(column + x[[0, -1]], [-row, -row], color="0.8", linewidth=0.5)
        ax.plot(column + x, 0.45 * atom / largest - row, color="0.2", linewidth=1)


def mosaic(
    atoms: np.ndarray,  # (m, p)
    image_shape: tuple[int, ...],
    n_columns: int | None = None,
) -> np.ndarray:
    """Arrange atoms in one image with values in [0, 1]; 0.5 is zero, gaps are white.

    Parameters
    ----------
    atoms : array (m, p)
        One atom per row.
    image_shape : (height, width) or (height, width, 3)
        Shape of an atom.
    n_columns : int, optional
        Images per row. Default: a square.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import plotting
    >>> plotting.mosaic(np.eye(4), (2, 2)).shape
    (5, 5)
    """
    if len(image_shape) not in (2, 3):
        raise ValueError(
            f"image_shape={image_shape} must be (height, width) or (height, width, 3)"
        )
    return tiles(atoms, image_shape, n_columns)


def plot_history(
    learner: Any, ax: Any = None, x: str = "iteration", **line: Any
) -> Any:
    """Plot the objective of each iteration against its number or against time.

    Parameters
    ----------
    learner : fitted learner, classifier, detector, pipeline or dict
        Something with a `history_`, a pipeline that ends in it, or a `history_`. One
        dictionary per class gives one line per class; a search its best score so far.
        Several are given by their names, as in ``{"K-SVD": one, "MOD": other}``.
    ax : Axes, optional
        Where to draw. Default: new axes.
    x : {"iteration", "seconds"}
        The horizontal axis.
    **line
        Options of Matplotlib's `plot`, e.g. ``label``.

    Examples
    --------
    >>> from kernlets import plotting
    >>> ax = plotting.plot_history({"objective": [3.0, 2.0], "seconds": [0.1, 0.2]})
    >>> ax.lines[0].get_xydata().tolist()
    [[1.0, 3.0], [2.0, 2.0]]
    """
    histories = _named_histories(learner)
    measures = {SCORE if SCORE in history else ERROR for _, history in histories}
    if len(measures) > 1:
        raise ValueError(
            "learner has searches, whose scores rise, and others, whose errors fall: "
            "plot them on two axes"
        )
    (measure,) = measures
    if x != "iteration" and not (x == "seconds" and all(x in h for _, h in histories)):
        raise ValueError(f"x={x!r} must be 'iteration' or 'seconds'")
    ax, has_names = _get_axes(ax), histories[0][0] is not None
    for name, history in histories:
        y = history[measure]
        positions = list(history[x] if x == "seconds" else range(1, len(y) + 1))
        style = {"marker": ".", **({"label": name} if has_names else {}), **line}
        ax.plot(positions, y, **style)
    ylabel = "best score so far" if measure == SCORE else "mean squared error"
    ax.set(xlabel=x, ylabel=ylabel)
    return _finish_axes(ax, legend=has_names or "label" in line)


def _named_histories(model: Any) -> list[tuple[str | None, Mapping[str, Any]]]:
    """Return histories with their names, where there are several."""
    while hasattr(model, "steps") or hasattr(model, "learner_"):
        model = model.steps[-1][1] if hasattr(model, "steps") else model.learner_
    if not isinstance(model, Mapping):
        learners = getattr(model, "learners_", [model])
        if not all(hasattr(learner, "history_") for learner in learners):
            raise TypeError(
                f"{type(model).__name__} has no history_: fit it first, or choose a "
                "method that learns by iterations"
            )
        of_classes = hasattr(model, "learners_")
        names = list(map(str, model.classes_)) if of_classes else [None]
        histories = [learner.history_ for learner in learners]
        return list(zip(names, histories, strict=True))
    if SCORE in model or ERROR in model:
        return [(None, model)]
    if not model:
        raise ValueError("learner is an empty dict: give histories or learners by name")
    return [
        (str(name) if class_name is None else f"{name}, class {class_name}", history)
        for name, named_model in model.items()
        for class_name, history in _named_histories(named_model)
    ]


def plot_kernel_error(
    errors: Mapping[str, Curve],
    ax: Any = None,
    lower_bound: Curve | None = None,
) -> Any:
    """Plot the error of kernel approximations against the number of landmarks.

    Parameters
    ----------
    errors : dict
        Name of a sampler -> {n_landmarks: error}.
    ax : Axes, optional
        Where to draw. Default: new axes.
    lower_bound : dict, optional
        {n_landmarks: error} of the best approximation of that rank (LKDL, Fig. 1a).

    Examples
    --------
    >>> from kernlets import plotting
    >>> ax = plotting.plot_kernel_error({"uniform": {10: 0.3, 20: 0.1}})
    >>> ax.get_yscale()
    'log'
    """
    ax = plot_accuracy(errors, ax)
    if lower_bound:
        points = sorted(lower_bound.items())
        ax.plot(*zip(*points, strict=True), "k--", lw=1, label="best rank c")
    ax.set(
        xlabel="number of landmarks",
        ylabel="relative error of the kernel matrix",
        yscale="log",
    )
    return _finish_axes(ax)


def plot_accuracy(
    accuracy: Mapping[str, Curve],
    ax: Any = None,
    xlabel: str = "level of corruption",
    ylabel: str = "accuracy",
) -> Any:
    """Plot one line per method; the values of several seeds give a mean and a band.

    Parameters
    ----------
    accuracy : dict
        Name of a method -> {corruption level: value or values}.
    ax : Axes, optional
        Where to draw. Default: new axes.
    xlabel, ylabel : str
        Labels of the axes.

    Examples
    --------
    >>> from kernlets import plotting
    >>> ax = plotting.plot_accuracy({"K-SVD": {0.0: [0.9, 1.0], 0.5: [0.7, 0.8]}})
    >>> ax.lines[0].get_ydata().round(2).tolist()
    [0.95, 0.75]
    """
    ax = _get_axes(ax)
    for name, curve in accuracy.items():
        x = sorted(curve)
        values = [np.atleast_1d(np.asarray(curve[level], float)) for level in x]
        mean = np.array([v.mean() for v in values])
        std = np.array([v.std() for v in values])
        (line,) = ax.plot(x, mean, marker="o", ms=4, label=name)
        if std.any():
            colour = line.get_color()
            ax.fill_between(x, mean - std, mean + std, color=colour, alpha=0.15)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    return _finish_axes(ax)


def plot_recovery(
    found: Mapping[str, Any],
    ax: Any = None,
    least: float = 0.5,
) -> Any:
    """Plot the share of true atoms that were found against the cosine asked for.

    Parameters
    ----------
    found : dict
        Name of a method -> what `metrics.recovery` gave, or a sequence of it for
        several seeds, which give a mean and a band.
    ax : Axes, optional
        Where to draw. Default: new axes.
    least : float
        The smallest cosine.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import metrics, plotting
    >>> atoms = np.random.default_rng(0).standard_normal((20, 10))
    >>> near = metrics.recovery(atoms, atoms + 0.1)
    >>> ax = plotting.plot_recovery({"shifted": near})
    >>> float(ax.lines[0].get_ydata()[0]), ax.get_ylabel()
    (1.0, 'share of true atoms found')
    """
    cosines = np.linspace(least, 1, 101)
    curves: dict[str, Curve] = {}
    for name, recoveries in found.items():
        seeds = recoveries if isinstance(recoveries, Sequence) else [recoveries]
        shares = np.empty((len(seeds), len(cosines)))
        for share, recovery in zip(shares, seeds, strict=True):
            sizes = np.abs(recovery.match.cosines)  # of matched atoms; some have none
            n_true = len(sizes)
            if recovery.cosine:
                n_true = round(sizes.sum() / recovery.cosine)
            is_near = sizes >= cosines[:, None] * (1 - 1e-12)
            share[:] = is_near.sum(axis=1) / n_true
        curves[name] = dict(zip(cosines, shares.T.tolist(), strict=True))
    ax = plot_accuracy(curves, ax, "cosine asked for", "share of true atoms found")
    for line in ax.lines:
        line.set_marker("")
    ax.set_ylim(-0.02, 1.02)
    return ax


def plot_residuals(
    residuals: Sequence[float],
    ax: Any = None,
    classes: Sequence[Any] | None = None,
    truth: Any = None,
) -> Any:
    """Plot the residuals of one sample for all classes; the smallest one wins.

    The winner's bar is dark, and the bar of the true class is hatched.

    Parameters
    ----------
    residuals : array (n_classes,)
        One row of `ResidualClassifier.residuals`.
    ax : Axes, optional
        Where to draw. Default: new axes.
    classes : sequence, optional
        Labels. Default: numbers from 0.
    truth : label, optional
        The true class.

    Examples
    --------
    >>> from kernlets import plotting
    >>> ax = plotting.plot_residuals([0.3, 0.1, 0.5], classes="abc", truth="a")
    >>> len(ax.patches)
    3
    """
    residuals = np.asarray(residuals, dtype=float)
    names = [str(c) for c in (range(len(residuals)) if classes is None else classes)]
    ax = _get_axes(ax)
    bars = ax.bar(names, residuals, color="0.75")
    bars[int(residuals.argmin())].set_color("0.2")
    if str(truth) in names:
        bars[names.index(str(truth))].set_hatch("//")
    predicted = names[int(residuals.argmin())]
    true_label = "" if truth is None else f", truth {truth}"
    ax.set(
        xlabel="class",
        ylabel="squared residual",
        title=f"answer {predicted}{true_label}",
    )
    return ax


def plot_explanation(
    explanation: Any,
    x: Any = None,
    image_shape: tuple[int, ...] | None = None,
    ax: Any = None,
    X_train: Any = None,
    n_samples: int = 7,
) -> Any:
    """Plot the image of a row beside the training images that gave it its label.

    For an `ImageClassifier` it is a map that is beside the image: red where patches
    speak for the label, blue where they speak against it.

    Parameters
    ----------
    explanation : Explanation
        What `kernlets.explain` gave for x.
    x : array (p,), optional
        The row; that of an `ImageClassifier` is in the explanation.
    image_shape : tuple, optional
        (height, width) or (height, width, 3).
    ax : Axes, optional
        Where to draw. Default: new axes.
    X_train : array (n, p), optional
        The rows that the model was fitted to; without them only x is shown.
    n_samples : int
        The largest number of training images, those of the largest weight first.

    Examples
    --------
    >>> from kernlets import SRCClassifier, datasets, explain, plotting
    >>> digits = datasets.load("digits")
    >>> X, y = digits.X_train[:200], digits.y_train[:200]
    >>> model = SRCClassifier("rbf", n_nonzero_coefs=5).fit(X, y)
    >>> found = explain(model, digits.X_test[0])
    >>> ax = plotting.plot_explanation(found, digits.X_test[0], (8, 8), X_train=X)
    >>> len(ax.images)
    1
    """
    if explanation.score_map is not None:
        ax = _get_axes(ax)
        _draw_image(ax, beside_map(explanation.image, explanation.score_map))
        ax.set_title(f"{explanation.label}".replace("$", r"\$"), fontsize=TITLE_SIZE)
        return ax
    if x is None or image_shape is None:
        raise ValueError(
            "x and image_shape are needed to draw the row: plot_explanation(reason, "
            "X[0], (28, 28))"
        )
    uses = explanation.samples[:n_samples] if X_train is not None else ()
    rows = [x, *(X_train[use.row] for use in uses)]
    images = np.stack([np.asarray(row, dtype=float).reshape(-1) for row in rows])
    _check_image_shape(images, image_shape)
    ax = _get_axes(ax)
    _draw_image(ax, mosaic(images, image_shape, len(images)))
    weights = ", ".join(f"{use.weight:+.2g} ({use.label})" for use in uses)
    title = f"{explanation.label}" + (f" = {weights}" if uses else "")
    # two lines of the width of the axes; the rest is cut off
    pixels = TITLE_SIZE * ax.figure.dpi / 72
    n_letters = max(10, int(ax.get_window_extent().width / (0.6 * pixels)))
    title = title.replace("$", r"\$")
    lines = wrap(title, n_letters, max_lines=2, placeholder=" ...")
    ax.set_title("\n".join(lines), fontsize=TITLE_SIZE)
    return ax


def plot_outlier(
    explanation: Any,
    ax: Any = None,
    image_shape: tuple[int, ...] | None = None,
    n_features: int = 10,
    series: bool = False,
) -> Any:
    """Plot which features make a row an outlier, and how much.

    Parameters
    ----------
    explanation : OutlierExplanation
        What `DictionaryOutlierDetector.explain` gave for the row.
    ax : Axes, optional
        Where to draw. Default: new axes.
    image_shape : (height, width), optional
        For rows that are images: the image, its usual form and a map of the shares,
        side by side.
    n_features : int
        The number of bars, those of the largest shares.
    series : bool
        For rows that are series or windows: the row and its usual form as lines, with
        the shares as a shadow.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import DictionaryOutlierDetector, plotting
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> found = DictionaryOutlierDetector(random_state=0).fit(X)
    >>> ax = plotting.plot_outlier(found.explain([[0.1, 12.0, 0.2]])[0])
    >>> ax.get_yticklabels()[0].get_text()
    'x1 = 12 (usual 0.881)'
    """
    ax = _get_axes(ax)
    if image_shape is not None:
        _draw_outlier_image(explanation, ax, image_shape)
    elif series:
        _draw_outlier_series(explanation, ax)
    else:
        _draw_outlier_bars(explanation, ax, n_features)
    kind = "outlier" if explanation.is_outlier else "normal"
    score, threshold = explanation.score, explanation.threshold
    ax.set_title(f"{kind}: score {score:.3g}, threshold {threshold:.3g}")
    return ax


def _draw_outlier_bars(explanation: Any, ax: Any, n_features: int) -> None:
    features = explanation.order[:n_features]
    names = [
        f"{explanation.names[j]} = {explanation.values[j]:.3g} "
        f"(usual {explanation.expected[j]:.3g})"
        for j in features
    ]
    ax.barh(np.arange(len(features)), explanation.shares[features], color="0.35")
    ax.set_yticks(np.arange(len(features)), names)
    ax.invert_yaxis()
    ax.set_xlabel("share of the score")


def _draw_outlier_image(
    explanation: Any, ax: Any, image_shape: tuple[int, ...]
) -> None:
    """Draw image and usual form in one scale of grey; the largest share is black."""
    images = np.stack([explanation.values, explanation.expected])
    _check_image_shape(images, image_shape)
    low, high = float(images.min()), float(images.max())
    images = (images - low) / ((high - low) or 1.0)
    largest = float(explanation.shares.max()) or 1.0
    panels = [*images, 1 - explanation.shares / largest]
    panels = [panel.reshape(image_shape) for panel in panels]
    _draw_image(ax, np.concatenate(panels, axis=1))


def _draw_outlier_series(explanation: Any, ax: Any) -> None:
    steps = np.arange(len(explanation.values))
    ax.plot(steps, explanation.values, color="0.1", label="row")
    ax.plot(steps, explanation.expected, "--", color="0.5", label="usual")
    shadow = explanation.shares / (float(explanation.shares.max()) or 1.0)
    low, high = ax.get_ylim()
    top = low + shadow * (high - low)
    ax.fill_between(steps, low, top, color="0.85", label="share", zorder=0)
    ax.legend(frameon=False)


def plot_score_map(
    scores: Any,
    image: Any = None,
    ax: Any = None,
    threshold: float | None = None,
) -> Any:
    """Plot where an image or a series is unusual, as a heat map over it.

    Parameters
    ----------
    scores : array (h, w) or (n,)
        What `PatchOutlierDetector.score_map` gave.
    image : array (h, w), (h, w, c), (n,) or (n, c), optional
        The image or series, which is drawn in grey below.
    ax : Axes, optional
        Where to draw. Default: new axes.
    threshold : float, optional
        The score above which a place is an outlier: a contour, or a line.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import plotting
    >>> ax = plotting.plot_score_map(np.eye(8), threshold=0.5)
    >>> ax.get_title()
    'outlier score: largest 1, above the threshold 0.5 at 12.5 % of places'
    """
    ax, scores = _get_axes(ax), to_numpy(scores)
    draw = _draw_score_line if scores.ndim == 1 else _draw_heat_map
    draw(scores, None if image is None else to_numpy(image), ax, threshold)
    above = ""
    if threshold is not None:
        percent = 100 * float((scores > threshold).mean())
        above = f", above the threshold {threshold:.3g} at {percent:.3g} % of places"
    ax.set_title(f"outlier score: largest {scores.max():.3g}{above}", fontsize="medium")
    return ax


def _draw_heat_map(
    scores: np.ndarray, image: Any, ax: Any, threshold: float | None
) -> None:
    """Draw colours from the median score on, above the image in grey."""
    if image is not None:
        grey = image.mean(axis=2) if image.ndim == 3 else image
        ax.imshow(grey, cmap="gray", interpolation="nearest")
    low, alpha = float(np.median(scores)), 1.0 if image is None else 0.6
    heat = ax.imshow(scores, cmap="inferno", vmin=low, alpha=alpha)
    ax.figure.colorbar(heat, ax=ax, label="score")
    if threshold is not None and scores.min() < threshold < scores.max():
        ax.contour(scores, [threshold], colors="cyan", linewidths=1)
    ax.set_axis_off()


def _draw_score_line(
    scores: np.ndarray, image: Any, ax: Any, threshold: float | None
) -> None:
    """Draw scores over time, and the series on an axis of its own."""
    ax.plot(scores, color="C3", label="score")
    if threshold is not None:
        ax.axhline(threshold, color="C3", linestyle=":", label="threshold")
    ax.set_xlabel("step")
    ax.set_ylabel("score")
    if image is not None:
        series_ax = ax.twinx()
        series_ax.plot(image, color="0.6", linewidth=0.8)
        series_ax.set_ylabel("series")
    ax.legend(loc="upper left", frameon=False)


def _atom_groups(learner: Any, n_atoms: int | None) -> list[Any]:
    """Return arrays of atoms; there is one for each class if there are classes."""
    feature_map = None
    while hasattr(learner, "steps"):
        *earlier_steps, (_, learner) = learner.steps
        feature_map = earlier_steps[-1][1] if earlier_steps else feature_map
    if not hasattr(learner, "fit"):
        return [np.atleast_2d(np.asarray(learner))]
    learners = getattr(learner, "learners_", [learner])
    return [_components(fitted, feature_map, n_atoms) for fitted in learners]


def _components(learner: Any, feature_map: Any, n_atoms: int | None) -> Any:
    """Return atoms that are rows of a matrix, or pre-images of atoms."""
    has_components = hasattr(learner, "components_")
    dictionary: KernelDictionary | None = getattr(learner, "kernel_dictionary_", None)
    if dictionary is None and hasattr(learner, "coefs_"):
        dictionary = learner.dictionary_
    elif dictionary is None and has_components and hasattr(feature_map, "projection_"):
        dictionary = KernelDictionary.behind(feature_map, learner.dictionary_)
    if dictionary is not None:
        first_atoms = dictionary.with_weights(dictionary.coefs[:n_atoms])
        return to_numpy(first_atoms.preimages().points)
    if not has_components:
        raise TypeError(
            f"{type(learner).__name__} has no atoms that are rows of a matrix "
            "(components_): fit it first, or pass an array of images"
        )
    return to_numpy(learner.components_)


def _check_image_shape(atoms: np.ndarray, image_shape: tuple[int, ...]) -> None:
    if atoms.shape[1] != prod(image_shape):
        raise ValueError(
            f"image_shape={image_shape} has {prod(image_shape)} values but an atom has "
            f"{atoms.shape[1]}: pass the shape of the training images. Atoms after a "
            "feature map other than NystroemMap are not images"
        )


def _get_axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "plotting needs Matplotlib: pip install 'kernlets[plot]'"
        ) from error
    return pyplot.subplots(layout="constrained")[1]


def _finish_axes(ax: Any, legend: bool = True) -> Any:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25)
    if legend:
        ax.legend(frameon=False)
    return ax
