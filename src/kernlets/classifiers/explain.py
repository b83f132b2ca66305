"""Explanations of labels: scores of the classes, atoms in the code, training samples.

Each kind of classifier has its own function; a pipeline and the automatic classifier
use that of their last step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_outlier_detector
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..base.pipelines import before_last, last_step
from ..base.row_names import row_name, row_names
from ..contracts import Array, Dictionary, SparseCodes
from ..dictionaries import ExplicitDictionary, KernelDictionary
from ..learners.kernel_learner import KernelLearner
from ..numerics.arrays import to_numpy
from ..numerics.text import printable
from .auto import AutoDictionaryClassifier
from .coding import CodingClassifier
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
    shares of votes, of which the largest does."""
    atoms: tuple[AtomUse, ...]  # largest weights first
    samples: tuple[SampleUse, ...]  # empty if the model does not refer to them

    @property
    def order(self) -> np.ndarray:  # (C,)
        """Class indices from best to worst."""
        best_first = self.scores if self.measure == RESIDUAL else -self.scores
        return np.argsort(best_first, kind="stable")

    def __str__(self) -> str:
        label = f"label {printable(self.label)}"
        return "\n".join([label, *self._class_lines(), *self._use_lines()])

    def _class_lines(self) -> list[str]:
        lines = [
            f"  class {printable(self.classes[c])}: {self.scores[c]:.4g}"
            for c in self.order[:MAX_SHOWN]
        ]
        n_omitted = len(self.classes) - len(lines)
        omission = [f"  and {n_omitted} more"] if n_omitted > 0 else []
        return [f"{self.measure} of each class:", *lines, *omission]

    def _use_lines(self) -> list[str]:
        atoms = [
            f"  atom {use.atom}{_class_text(use.label)}: {use.weight:+.4g}"
            for use in self.atoms[:MAX_SHOWN]
        ]
        rows = [f"  {use}" for use in self.samples[:MAX_SHOWN]]
        return [
            *(["atoms of largest weight:", *atoms] if atoms else []),
            *(["training rows behind them:", *rows] if rows else []),
        ]


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
        The row.

    Returns
    -------
    Explanation
        With the residual or score of each class, the atoms in the code of the row with
        their weights, and the training rows behind those atoms, where atoms are
        samples or combinations of samples in the feature space of a kernel. Rows are
        counted from 0 on, and named by the index if X was a dataframe.

    Examples
    --------
    >>> from kernlets import SRCClassifier, datasets, explain
    >>> digits = datasets.load("digits")
    >>> model = SRCClassifier("rbf", 5).fit(digits.X_train, digits.y_train)
    >>> print(explain(model, digits.X_test[0]).label)
    8
    """
    row = _one_row(x)
    model = _best_estimator(model)
    if not isinstance(model, AutoDictionaryClassifier):
        return _with_names(_explain_row(model, row), row_names(model))
    check_is_fitted(model)
    explanation = _explain_row(model.best_pipeline_, row)
    row_numbers = getattr(model, "best_rows_", None)
    if row_numbers is not None:
        samples = (
            replace(use, row=int(row_numbers[use.row])) for use in explanation.samples
        )
        explanation = replace(explanation, samples=tuple(samples))
    return _with_names(explanation, row_names(model))


def _best_estimator(model: Any) -> Any:
    """Return the best estimator of a search such as `GridSearchCV`, or the model."""
    if hasattr(model, "cv_results_") and not hasattr(model, "best_estimator_"):
        raise ValueError(
            f"model is a {type(model).__name__} with refit=False, which has no fitted "
            "estimator: set refit=True"
        )
    return getattr(model, "best_estimator_", model)


def _with_names(explanation: Explanation, names: np.ndarray | None) -> Explanation:
    """Add the names of training rows to an explanation, if they have any."""
    samples = (
        replace(use, name=row_name(names, use.row)) for use in explanation.samples
    )
    return replace(explanation, samples=tuple(samples))


def _explain_row(model: Any, row: Array) -> Explanation:
    classifier = last_step(model)
    explain_row = next(
        (
            function
            for kind, function in EXPLAINERS.items()
            if isinstance(classifier, kind)
        ),
        None,
    )
    if explain_row is None:
        advice = (
            "detectors explain themselves: call its method explain(X)"
            if is_outlier_detector(classifier)
            else "use a classifier of kernlets, or a pipeline that ends in one"
        )
        raise TypeError(
            f"{type(classifier).__name__} has no atoms to explain a label by: {advice}"
        )
    label = to_numpy(model.predict(row))[0]
    return explain_row(classifier, before_last(model, row), label, _step_before(model))


def _step_before(model: Any) -> Any:
    """Return the pipeline step before the last one, or None."""
    has_steps_before = isinstance(model, Pipeline) and len(model) > 1
    return model[-2] if has_steps_before else None


def _one_row(x: Any) -> Array:
    row = x if getattr(x, "ndim", None) == 2 else np.asarray(x)[None]
    if row.ndim != 2 or row.shape[0] != 1:
        raise ValueError(
            f"x has the shape {np.shape(x)}, not that of one row: explain one row at a "
            "time, explain(model, X[0])"
        )
    return row


def _explain_residual_classifier(
    model: ResidualClassifier, row: Array, label: Any, feature_map: Any
) -> Explanation:
    """Explain by the codes over the dictionary of the winning class."""
    winner = int(np.flatnonzero(model.classes_ == label)[0])
    learner = model.learners_[winner]
    weights = _dense(learner.encode(row))
    atoms = _atom_uses(weights, lambda atom: label)
    # The anchors of these learners are all training rows of the class, in order.
    class_rows = (
        model.class_rows_[winner] if isinstance(learner, KernelLearner) else None
    )
    sample_weights = _sample_weights(
        learner.dictionary_, weights, feature_map, class_rows
    )
    samples = _sample_uses(*sample_weights, lambda row: _label_of(model, row))
    scores = to_numpy(model.residuals(row))[0]
    return Explanation(label, model.classes_, scores, RESIDUAL, atoms, samples)


def _label_of(model: ResidualClassifier, row: int) -> Any:
    """Return the class of a training row, or None."""
    for label, rows in zip(model.classes_, model.class_rows_, strict=True):
        if row in rows:
            return label
    return None


def _explain_src(
    model: SRCClassifier, row: Array, label: Any, feature_map: Any
) -> Explanation:
    """Explain by codes whose atoms are training rows."""
    weights = _dense(model.encode(row))
    labels = model.classes_[model.atom_classes_]
    atoms = _atom_uses(weights, labels.__getitem__)
    rows = model.atom_rows_
    classes = dict(zip(rows.tolist(), labels, strict=True))
    samples = _sample_uses(rows, weights, classes.__getitem__)
    scores = to_numpy(model.residuals(row))[0]
    return Explanation(label, model.classes_, scores, RESIDUAL, atoms, samples)


def _explain_coding_classifier(
    model: Any, row: Array, label: Any, feature_map: Any
) -> Explanation:
    """Explain by codes over one dictionary whose atoms belong to classes."""
    weights = _dense(model.encode(row))
    labels = model.classes_[model.atom_classes_]
    atoms = _atom_uses(weights, labels.__getitem__)
    sample_weights = _sample_weights(model.dictionary_, weights, feature_map, None)
    samples = _sample_uses(*sample_weights, lambda row: None)
    has_residuals = hasattr(model, "residuals")
    scores = to_numpy(model.residuals(row) if has_residuals else model._scores(row))[0]
    measure = RESIDUAL if has_residuals else "score"
    return Explanation(label, model.classes_, scores, measure, atoms, samples)


def _explain_ksad(
    model: KSADClassifier, row: Array, label: Any, feature_map: Any
) -> Explanation:
    """Explain by the nearest training codes, whose weights are shares of the votes."""
    code = _dense(model.encode(row))
    distances = np.sum((to_numpy(model.codes_) - code) ** 2, axis=1)
    nearest_rows = np.argsort(distances, kind="stable")[: model.n_neighbors]
    share = 1 / model.n_neighbors
    rows = getattr(model, "code_rows_", np.arange(len(distances)))[nearest_rows]
    labels = model.classes_[model.code_classes_[nearest_rows]]
    classes = dict(zip(rows.tolist(), labels, strict=True))
    shares = np.full(len(rows), share)
    samples = _sample_uses(rows, shares, classes.__getitem__)
    atoms = _atom_uses(code, lambda atom: None)
    scores = to_numpy(model.predict_proba(row))[0]
    return Explanation(label, model.classes_, scores, "share of votes", atoms, samples)


def _dense(codes: SparseCodes) -> np.ndarray:  # (m,)
    return to_numpy(codes.toarray())[0]


def _atom_uses(
    weights: np.ndarray, label_of: Callable[[int], Any]
) -> tuple[AtomUse, ...]:
    atom_indices = _largest(weights)
    return tuple(
        AtomUse(int(atom), label_of(atom), float(weights[atom]))
        for atom in atom_indices
    )


def _largest(weights: np.ndarray) -> np.ndarray:
    """Return the indices of the non-zero weights, largest first."""
    order = np.argsort(-np.abs(weights), kind="stable")
    return order[weights[order] != 0]


def _sample_weights(
    dictionary: Dictionary,
    weights: np.ndarray,  # (m,)
    feature_map: Any,
    class_rows: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:  # (r,), (r,)
    """Return training rows and their weights γA in the representation of the sample.

    `class_rows` are the training rows of a class, if they are the anchors of its kernel
    dictionary. Behind a map the landmarks are the anchors.
    """
    rows = None
    if isinstance(dictionary, KernelDictionary) and class_rows is not None:
        rows = class_rows
    indices = getattr(feature_map, "landmark_indices_", None)
    is_mapped = indices is not None and hasattr(feature_map, "projection_")
    if is_mapped and isinstance(dictionary, ExplicitDictionary):
        dictionary, rows = KernelDictionary.behind(feature_map, dictionary), indices
    coefs = getattr(dictionary, "coefs", None)
    if rows is None or coefs is None or len(rows) != coefs.shape[1]:
        return np.empty(0, dtype=np.intp), np.empty(0)
    return to_numpy(rows), weights @ to_numpy(coefs)


def _sample_uses(
    rows: np.ndarray, weights: np.ndarray, label_of: Callable[[int], Any]
) -> tuple[SampleUse, ...]:
    """List the rows by weight; the weights of a repeated row are added."""
    distinct_rows, first_positions, positions = np.unique(
        rows, return_index=True, return_inverse=True
    )
    order = np.argsort(first_positions)  # rows of equal weight stay in this order
    sums = np.bincount(positions, weights, len(distinct_rows))[order]
    rows = distinct_rows[order]
    return tuple(
        SampleUse(int(rows[i]), label_of(int(rows[i])), float(sums[i]))
        for i in _largest(sums)
    )


EXPLAINERS: dict[type, Callable[..., Explanation]] = {
    ResidualClassifier: _explain_residual_classifier,
    SRCClassifier: _explain_src,
    CodingClassifier: _explain_coding_classifier,
    KSADClassifier: _explain_ksad,
}
