"""Explanations of labels: scores of the classes, atoms in the code, training samples.

Each kind of classifier has its own function; a pipeline and the automatic classifier
use that of their last step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_outlier_detector
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..base.notebook import beside_map, text_portrait
from ..base.pipelines import before_last, last_step
from ..base.row_names import row_name, row_names
from ..contracts import Array, Dictionary, SparseCodes
from ..data.check import check_rows
from ..data.limits import work_context
from ..dictionaries import ExplicitDictionary, KernelDictionary
from ..learners.kernel_ksvd import KernelLearner
from ..numerics.arrays import to_numpy
from ..numerics.text import printable
from .auto import AutoDictionaryClassifier
from .base import CodingClassifier
from .image import ImageClassifier
from .ksad import KSADClassifier
from .residual import ResidualClassifier
from .src import SRCClassifier

MAX_SHOWN = 5  # classes, atoms and samples in the text
RESIDUAL = "squared residual"  # the smallest wins; of other measures the largest wins


@dataclass(frozen=True)
class AtomUse:
    """An atom in the code of a row."""

    atom: int  # index in the dictionary of its class, or of all classes
    label: Any  # its class, or None if it belongs to no class
    weight: float

    def __str__(self) -> str:
        return f"atom {self.atom}{_class_text(self.label)}: {self.weight:+.4g}"


@dataclass(frozen=True)
class SampleUse:
    """A training row behind the atoms, and its weight in the representation."""

    row: int  # its position in the X that the model was fitted to
    label: Any  # its class
    weight: float
    name: Any = None
    """Its label in the index of a dataframe, or its row in a file; None without."""

    def __str__(self) -> str:
        row = self.row if self.name is None else printable(self.name)
        return f"row {row}{_class_text(self.label)}: {self.weight:+.4g}"


@dataclass(frozen=True)
class Explanation:
    """Why a row got its label; `str` gives it as text."""

    label: Any
    classes: np.ndarray  # (C,)
    scores: np.ndarray  # (C,)
    measure: str
    """What the scores are: squared residuals, of which the smallest wins; or scores or
    probabilities, of which the largest does."""
    atoms: tuple[AtomUse, ...]  # largest weights first
    samples: tuple[SampleUse, ...]  # empty if the model does not refer to them
    image: np.ndarray | None = None  # (h, w) or (h, w, c)
    score_map: np.ndarray | None = None
    """Of an image, (h, w): what the score of the label, less the largest other score,
    loses at each pixel without the patches there."""

    @property
    def order(self) -> np.ndarray:  # (C,)
        """Class indices from best to worst."""
        best_first = self.scores if self.measure == RESIDUAL else -self.scores
        return np.argsort(best_first, kind="stable")

    def __repr__(self) -> str:
        best = [
            f"{printable(self.classes[c])}: {self.scores[c]:.4g}"
            for c in self.order[:2]
        ]
        label = printable(self.label)
        return f"<Explanation: label {label}, {self.measure} {', '.join(best)}>"

    def _repr_html_(self) -> str:
        picture = None
        if self.image is not None and self.score_map is not None:
            picture = beside_map(self.image, self.score_map)
        return text_portrait(str(self), picture)

    def __str__(self) -> str:
        lines = [f"label {printable(self.label)}", f"{self.measure} of each class:"]
        for c in self.order[:MAX_SHOWN]:
            lines.append(f"  class {printable(self.classes[c])}: {self.scores[c]:.4g}")
        if len(self.classes) > MAX_SHOWN:
            lines.append(f"  and {len(self.classes) - MAX_SHOWN} more")
        if self.atoms:
            lines.append("atoms of largest weight:")
            lines += [f"  {use}" for use in self.atoms[:MAX_SHOWN]]
        if self.samples:
            lines.append("training rows behind them:")
            lines += [f"  {use}" for use in self.samples[:MAX_SHOWN]]
        if self.score_map is not None:
            shape = self.score_map.shape
            row, column = np.unravel_index(self.score_map.argmax(), shape)
            lines.append(
                f"patches that speak for the label most: around row {row}, column "
                f"{column} of {shape[0]} x {shape[1]} pixels"
            )
        return "\n".join(lines)


def _class_text(label: Any) -> str:
    return "" if label is None else f", class {printable(label)}"


def explain(model: Any, x: Any) -> Explanation:
    """Explain why a fitted classifier gives a row its label.

    Parameters
    ----------
    model : estimator
        A fitted classifier of the library, a pipeline that ends in one, or a search
        such as `GridSearchCV` whose best estimator is one of these.
    x : array of shape (p,) or (1, p)
        The row; for an `ImageClassifier` also an image, (h, w) or (h, w, c).

    Returns
    -------
    Explanation
        With the residual or score of each class, the atoms in the code of the row with
        their weights, and the training rows behind those atoms, where atoms are
        samples or combinations of samples in the feature space of a kernel. Rows are
        counted from 0 on, and named by the index if X was a dataframe. For an
        `ImageClassifier` also a map of the image, and atoms of patches: their weights
        are what the score of the label, less the largest other score, loses without
        them.

    Examples
    --------
    >>> from kernlets import SRCClassifier, datasets, explain
    >>> digits = datasets.load("digits")
    >>> model = SRCClassifier("rbf", 5).fit(digits.X_train, digits.y_train)
    >>> print(explain(model, digits.X_test[0]).label)
    8
    """
    model = _best_estimator(model)
    row = _one_row(x, getattr(last_step(model), "image_shape_", None))
    is_automatic = isinstance(model, AutoDictionaryClassifier)
    if is_automatic:
        check_is_fitted(model)
    explained = _agreeing_pipeline(model, row) if is_automatic else model
    explanation = _explain_row(explained, row)
    names, row_numbers = row_names(model), getattr(model, "best_rows_", None)
    samples = []
    for use in explanation.samples:
        number = use.row if row_numbers is None else int(row_numbers[use.row])
        samples.append(replace(use, row=number, name=row_name(names, number)))
    return replace(explanation, samples=tuple(samples))


def _agreeing_pipeline(model: AutoDictionaryClassifier, row: Array) -> Any:
    """Return the best of the averaged pipelines that gives the row the same label."""
    label = to_numpy(model.predict(row))[0]
    for pipeline in model.pipelines_:
        if to_numpy(pipeline.predict(row))[0] == label:
            return pipeline
    raise ValueError(
        f"label {printable(label)} has the largest mean probability, but it is the "
        "first choice of none of pipelines_: explain best_pipeline_ instead, or fit "
        "with n_averaged=1"
    )


def _best_estimator(model: Any) -> Any:
    """Return the best estimator of a search such as `GridSearchCV`, or the model."""
    if hasattr(model, "cv_results_") and not hasattr(model, "best_estimator_"):
        raise ValueError(
            f"model is a {type(model).__name__} with refit=False, which has no fitted "
            "estimator: set refit=True"
        )
    return getattr(model, "best_estimator_", model)


def _explain_row(model: Any, row: Array) -> Explanation:
    classifier = last_step(model)
    for kind, explain_row in EXPLAINERS.items():
        if isinstance(classifier, kind):
            label = to_numpy(model.predict(row))[0]
            is_behind_map = isinstance(model, Pipeline) and len(model) > 1
            feature_map = model[-2] if is_behind_map else None
            return explain_row(classifier, before_last(model, row), label, feature_map)
    advice = (
        "detectors explain themselves: call its method explain(X)"
        if is_outlier_detector(classifier)
        else "use a classifier of kernlets, or a pipeline that ends in one"
    )
    raise TypeError(
        f"{type(classifier).__name__} has no atoms to explain a label by: {advice}"
    )


def _one_row(x: Any, image_shape: tuple[int, ...] | None) -> Array:
    height_and_width = None if image_shape is None else tuple(image_shape[:2])
    if np.shape(x)[:2] == height_and_width:
        x = np.asarray(x).reshape(-1)
    row = x if getattr(x, "ndim", None) == 2 else np.asarray(x)[None]
    if row.ndim != 2 or row.shape[0] != 1:
        or_image = ""
        if height_and_width is not None:
            or_image = f", or of an image of {height_and_width} pixels"
        raise ValueError(
            f"x has the shape {np.shape(x)}, not that of one row{or_image}: explain "
            "one row at a time, explain(model, X[0])"
        )
    return row


def _explain_residual_classifier(
    model: ResidualClassifier, row: Array, label: Any, feature_map: Any
) -> Explanation:
    """Explain by the codes over the dictionary of the winning class."""
    winner = int(np.flatnonzero(model.classes_ == label)[0])
    learner, rows = model.learners_[winner], model.class_rows_[winner]
    weights = _dense(learner.encode(row))
    atoms = _atom_uses(weights, [label] * len(weights))
    # The anchors of a kernel learner are all training rows of the class, in order.
    anchor_rows = rows if isinstance(learner, KernelLearner) else None
    rows, row_weights = _sample_weights(
        learner.dictionary_, weights, feature_map, anchor_rows
    )
    class_rows = zip(model.classes_, model.class_rows_, strict=True)
    labels = {int(row): c for c, rows in class_rows for row in rows}
    samples = _sample_uses(rows, row_weights, labels)
    scores = to_numpy(model.residuals(row))[0]
    return Explanation(label, model.classes_, scores, RESIDUAL, atoms, samples)


def _explain_src(
    model: SRCClassifier, row: Array, label: Any, feature_map: Any
) -> Explanation:
    """Explain by codes whose atoms are training rows."""
    weights = _dense(model.encode(row))
    rows, labels = model.atom_rows_, model.classes_[model.atom_classes_]
    atoms = _atom_uses(weights, labels)
    samples = _sample_uses(rows, weights, dict(zip(rows.tolist(), labels, strict=True)))
    scores = to_numpy(model.residuals(row))[0]
    return Explanation(label, model.classes_, scores, RESIDUAL, atoms, samples)


def _explain_coding_classifier(
    model: Any, row: Array, label: Any, feature_map: Any
) -> Explanation:
    """Explain by codes over one dictionary whose atoms belong to classes."""
    weights = _dense(model.encode(row))
    atoms = _atom_uses(weights, model.classes_[model.atom_classes_])
    sample_weights = _sample_weights(model.dictionary_, weights, feature_map, None)
    samples = _sample_uses(*sample_weights, {})
    has_residuals = hasattr(model, "residuals")
    scores = to_numpy(model.residuals(row) if has_residuals else model._scores(row))[0]
    measure = RESIDUAL if has_residuals else "score"
    return Explanation(label, model.classes_, scores, measure, atoms, samples)


def _explain_ksad(
    model: KSADClassifier, row: Array, label: Any, feature_map: Any
) -> Explanation:
    """Explain by the nearest training codes, whose weights are shares of the votes."""
    code = _dense(model.encode(row))
    atoms = _atom_uses(code, [None] * len(code))
    distances = np.sum((to_numpy(model.codes_) - code) ** 2, axis=1)
    nearest = np.argsort(distances, kind="stable")[: model.n_neighbors]
    rows = getattr(model, "code_rows_", np.arange(len(distances)))[nearest]
    labels = model.classes_[model.code_classes_[nearest]]
    shares = np.full(len(rows), 1 / model.n_neighbors)
    samples = _sample_uses(rows, shares, dict(zip(rows.tolist(), labels, strict=True)))
    scores = to_numpy(model.predict_proba(row))[0]
    return Explanation(label, model.classes_, scores, "probability", atoms, samples)


def _explain_image_classifier(
    model: ImageClassifier, row: Array, label: Any, feature_map: Any
) -> Explanation:
    """Explain by the patches of the image, and by the atoms of patches."""
    rows = check_rows(model, row, like=model.patches_._model_array, allow_nan=True)
    with work_context():
        reasons = model._reasons(rows)
    atoms = _atom_uses(reasons.atom_weights, [None] * len(reasons.atom_weights))
    height, width, channels = model.image_shape_
    shape = (height, width, channels) if channels > 1 else (height, width)
    image = to_numpy(rows).reshape(shape)
    return Explanation(
        label,
        model.classes_,
        reasons.scores,
        "score",
        atoms,
        (),
        image,
        reasons.score_map,
    )


def _dense(codes: SparseCodes) -> np.ndarray:  # (m,)
    return to_numpy(codes.toarray())[0]


def _atom_uses(weights: np.ndarray, labels: Sequence[Any]) -> tuple[AtomUse, ...]:
    return tuple(
        AtomUse(int(atom), labels[atom], float(weights[atom]))
        for atom in _largest(weights)
    )


def _largest(weights: np.ndarray) -> np.ndarray:
    """Return the indices of the non-zero weights, largest first."""
    order = np.argsort(-np.abs(weights), kind="stable")
    return order[weights[order] != 0]


def _sample_weights(
    dictionary: Dictionary,
    weights: np.ndarray,  # (m,)
    feature_map: Any,
    rows: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:  # (r,), (r,)
    """Return training rows and their weights γA in the representation of the sample.

    `rows` are the training rows that are the anchors of a kernel dictionary. Behind a
    map the landmarks are the anchors.
    """
    if isinstance(dictionary, ExplicitDictionary):
        rows = None
        if hasattr(feature_map, "projection_"):
            rows = getattr(feature_map, "landmark_indices_", None)
        if rows is not None:
            dictionary = KernelDictionary.behind(feature_map, dictionary)
    coefs = getattr(dictionary, "coefs", None)
    if rows is None or coefs is None or len(rows) != coefs.shape[1]:
        return np.empty(0, dtype=np.intp), np.empty(0)
    return to_numpy(rows), weights @ to_numpy(coefs)


def _sample_uses(
    rows: np.ndarray, weights: np.ndarray, labels: dict[int, Any]
) -> tuple[SampleUse, ...]:
    """List the rows by weight; the weights of a repeated row are added."""
    sums: dict[int, float] = dict.fromkeys(rows.tolist(), 0.0)
    for row, weight in zip(rows.tolist(), weights.tolist(), strict=True):
        sums[row] += weight
    numbers, totals = list(sums), np.array(list(sums.values()))
    uses = [(numbers[i], float(totals[i])) for i in _largest(totals)]
    return tuple(SampleUse(row, labels.get(row), weight) for row, weight in uses)


EXPLAINERS: dict[type, Callable[..., Explanation]] = {
    ResidualClassifier: _explain_residual_classifier,
    SRCClassifier: _explain_src,
    CodingClassifier: _explain_coding_classifier,
    KSADClassifier: _explain_ksad,
    ImageClassifier: _explain_image_classifier,
}
