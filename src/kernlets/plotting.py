"""Pictures of dictionaries and of results, on Matplotlib axes.

Every function takes an optional `ax`, draws on it and returns it. Matplotlib is the
extra ``plot`` and is loaded when a new axes is needed; no other module of the library
imports it. The HTML report draws its own pictures (`kernlets.lab.bench.charts`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, prod
from typing import Any

import numpy as np

from .backend.arrays import to_numpy
from .dictionaries import KernelDictionary

__all__ = [
    "mosaic",
    "plot_accuracy",
    "plot_explanation",
    "plot_history",
    "plot_kernel_error",
    "plot_residuals",
    "show_atoms",
]

Curve = Mapping[float, float | Sequence[float]]  # x -> y, or y of several seeds


def show_atoms(
    learner: Any,
    image_shape: tuple[int, ...],
    ax: Any = None,
    n_atoms: int | None = None,
    n_columns: int | None = None,
) -> Any:
    """Show atoms as a mosaic of images, grey at zero, each scaled to its own range.

    Parameters
    ----------
    learner : fitted learner, classifier, pipeline ending in one, or array
        An array holds one atom per row. One dictionary per class gives one row per
        class. Of atoms in the feature space of a kernel (kernel learners, learners
        behind a `NystroemMap`, `KSADClassifier`) the pre-images are shown.
    image_shape : (height, width) or (height, width, 3)
    ax : Axes, optional
    n_atoms : int, optional
        Show the first ones only (of each class).
    n_columns : int, optional
        Images per row of the mosaic. Default: a square, or one row per class.
    """
    groups = [np.asarray(atoms)[:n_atoms] for atoms in _atoms(learner, n_atoms)]
    _check_image_shape(groups[0], image_shape)
    if n_columns is None and len(groups) > 1:
        n_columns = max(map(len, groups))
        groups = [_padded(atoms, n_columns) for atoms in groups]
    picture = mosaic(np.concatenate(groups), image_shape, n_columns)
    ax = _axes(ax)
    ax.imshow(picture, cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest")
    ax.set_axis_off()
    return ax


def mosaic(
    atoms: np.ndarray,  # (m, p)
    image_shape: tuple[int, ...],
    n_columns: int | None = None,
) -> np.ndarray:
    """Atoms side by side in one image in [0, 1]: 0.5 is zero, gaps are white."""
    atoms = np.asarray(atoms, dtype=float)
    n_columns = n_columns or ceil(len(atoms) ** 0.5)
    n_rows = ceil(len(atoms) / n_columns)
    largest = np.nanmax(np.abs(atoms), axis=1, keepdims=True, initial=0.0)
    tiles = 0.5 + 0.5 * atoms / np.where(largest == 0, 1.0, largest)
    tiles = np.nan_to_num(tiles, nan=1.0).reshape(-1, *image_shape)
    height, width, *channels = image_shape
    shape = n_rows * (height + 1) - 1, n_columns * (width + 1) - 1
    picture = np.ones((*shape, *channels))
    for index, tile in enumerate(tiles):
        top, left = np.multiply(divmod(index, n_columns), (height + 1, width + 1))
        picture[top : top + height, left : left + width] = tile
    return picture


def plot_history(
    learner: Any, ax: Any = None, x: str = "iteration", **line: Any
) -> Any:
    """Objective of each iteration, against the iteration or (``x="seconds"``) time.

    `learner` is a fitted learner or its `history_`.
    """
    history = getattr(learner, "history_", learner)
    objective = history["objective"]
    ax = _axes(ax)
    positions = {
        "iteration": range(1, len(objective) + 1),
        "seconds": history.get("seconds"),
    }
    if positions.get(x) is None:
        raise ValueError(f"x={x!r} must be 'iteration' or 'seconds'")
    ax.plot(list(positions[x]), objective, **{"marker": ".", **line})
    ax.set(xlabel=x, ylabel="mean squared error")
    return _finished(ax, legend="label" in line)


def plot_kernel_error(
    errors: Mapping[str, Curve],
    ax: Any = None,
    lower_bound: Curve | None = None,
) -> Any:
    """Error of the kernel approximation against the number of landmarks.

    `errors` maps a sampler's name to {n_landmarks: error}; `lower_bound` is the best
    rank-c approximation (LKDL, Fig. 1a).
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
    return _finished(ax)


def plot_accuracy(
    accuracy: Mapping[str, Curve],
    ax: Any = None,
    xlabel: str = "",
    ylabel: str = "accuracy",
) -> Any:
    """One line per method; the values of several seeds become a mean and a band.

    `accuracy` maps a method's name to {corruption level: value or values}.
    """
    ax = _axes(ax)
    for name, curve in accuracy.items():
        x = sorted(curve)
        values = [np.atleast_1d(np.asarray(curve[level], float)) for level in x]
        mean = np.array([v.mean() for v in values])
        spread = np.array([v.std() for v in values])
        (line,) = ax.plot(x, mean, marker="o", ms=4, label=name)
        if spread.any():
            colour = line.get_color()
            ax.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.15)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    return _finished(ax)


def plot_residuals(
    residuals: Sequence[float],
    ax: Any = None,
    classes: Sequence[Any] | None = None,
    truth: Any = None,
) -> Any:
    """The residuals of one sample over the classes: smallest is the answer.

    The answer's bar is dark; the true class, when it is another, is hatched.
    """
    residuals = np.asarray(residuals, dtype=float)
    names = [str(c) for c in (range(len(residuals)) if classes is None else classes)]
    ax = _axes(ax)
    bars = ax.bar(names, residuals, color="0.75")
    bars[int(residuals.argmin())].set_color("0.2")
    if str(truth) in names:
        bars[names.index(str(truth))].set_hatch("//")
    ax.set(xlabel="class", ylabel="squared residual")
    return ax


def plot_explanation(
    explanation: Any,
    x: Any,
    image_shape: tuple[int, ...],
    ax: Any = None,
    X_train: Any = None,
    n_samples: int = 7,
) -> Any:
    """The image of a row, and beside it the training images that gave it its label.

    Parameters
    ----------
    explanation : Explanation
        What `kernlets.explain` gave for x.
    x : array (p,)
    image_shape : (height, width) or (height, width, 3)
    ax : Axes, optional
    X_train : array (n, p), optional
        The rows that the model was fitted to; without them only x is shown.
    n_samples : int
        Show at most so many training images, those of the largest weight first.
    """
    uses = explanation.samples[:n_samples] if X_train is not None else ()
    rows = [np.asarray(x, dtype=float).reshape(-1)]
    rows += [np.asarray(X_train[use.row], dtype=float).reshape(-1) for use in uses]
    _check_image_shape(np.stack(rows), image_shape)
    ax = _axes(ax)
    picture = mosaic(np.stack(rows), image_shape, len(rows))
    ax.imshow(picture, cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest")
    weights = ", ".join(f"{use.weight:+.2g} ({use.label})" for use in uses)
    ax.set_title(f"{explanation.label}" + (f" = {weights}" if uses else ""))
    ax.set_axis_off()
    return ax


def _atoms(learner: Any, n_atoms: int | None) -> list[Any]:
    """Arrays of atoms, one per class where there are classes."""
    before = None
    while hasattr(learner, "steps"):
        *earlier, (_, learner) = learner.steps
        before = earlier[-1][1] if earlier else before
    if not hasattr(learner, "fit"):
        return [np.atleast_2d(np.asarray(learner))]
    learners = getattr(learner, "learners_", [learner])
    return [_components(fitted, before, n_atoms) for fitted in learners]


def _components(learner: Any, before: Any, n_atoms: int | None) -> Any:
    dictionary = _in_feature_space(learner, before)
    if dictionary is not None:
        some = dictionary.with_weights(dictionary.coefs[:n_atoms])
        return to_numpy(some.preimages().points)
    if not hasattr(learner, "components_"):
        raise TypeError(
            f"{type(learner).__name__} has no atoms that are rows of a matrix "
            "(components_): fit it first, or pass an array of images"
        )
    return to_numpy(learner.components_)


def _in_feature_space(learner: Any, before: Any) -> KernelDictionary | None:
    """The atoms as combinations of φ(samples), where they are that."""
    if hasattr(learner, "kernel_dictionary_"):
        return learner.kernel_dictionary_
    if hasattr(learner, "coefs_"):
        return learner.dictionary_
    if hasattr(before, "projection_") and hasattr(learner, "components_"):
        return KernelDictionary.behind(before, learner.dictionary_)
    return None


def _check_image_shape(atoms: np.ndarray, image_shape: tuple[int, ...]) -> None:
    if atoms.shape[1] != prod(image_shape):
        raise ValueError(
            f"image_shape={image_shape} has {prod(image_shape)} values but an atom has "
            f"{atoms.shape[1]}: give the shape of the training images. Atoms behind a "
            "feature map other than NystroemMap are not images"
        )


def _padded(atoms: np.ndarray, n_rows: int) -> np.ndarray:
    """Rows of NaN (drawn white) below, so that each class starts a new line."""
    return np.pad(
        np.asarray(atoms, dtype=float),
        ((0, n_rows - len(atoms)), (0, 0)),
        constant_values=np.nan,
    )


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "plotting needs Matplotlib: pip install 'kernlets[plot]'"
        ) from error
    return pyplot.subplots(layout="constrained")[1]


def _finished(ax: Any, legend: bool = True) -> Any:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25)
    if legend:
        ax.legend(frameon=False)
    return ax
