"""Turns classifiers, detectors, maps and learners into graphs with named outputs."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from ..base.pipelines import last_step
from ..classifiers import (
    AutoDictionaryClassifier,
    DKSVDClassifier,
    FDDLClassifier,
    KSADClassifier,
    LCKSVDClassifier,
    ResidualClassifier,
    SRCClassifier,
)
from ..learners.base import DictionaryLearner
from ..numerics.arrays import to_numpy
from ..outliers import DictionaryOutlierDetector, StreamOutlierDetector
from ..outliers.sampled import Member, SampledDictionaries
from .coders import AtomProducts, CodedRows, inner_products, sparse_codes
from .errors import refusal
from .graph import OperationGraph, Value, concatenate, take_rows
from .kernels import l1_distances
from .transforms import before_last, transform_rows

Outputs = dict[str, Value]
CLASSIFIERS = (
    "use ResidualClassifier, SRCClassifier, LCKSVDClassifier or DKSVDClassifier"
)


def graph_of(model: Any, dtype: np.dtype) -> OperationGraph:
    """Return the graph that computes the outputs of a fitted model from "X"."""
    graph = OperationGraph(dtype)
    X = graph.input("X", model.n_features_in_)
    for name, value in model_outputs(model, X).items():
        graph.output(name, value)
    graph.prune()
    return graph


@singledispatch
def model_outputs(model: Any, X: Value) -> Outputs:
    """Return the outputs of a model by name; a map has the output "features"."""
    if hasattr(model, "best_estimator_"):
        raise refusal(model, "export its best_estimator_")
    return {"features": transform_rows(model, X)}


@model_outputs.register
def _(model: Pipeline, X: Value) -> Outputs:
    return model_outputs(last_step(model), before_last(model, X))


@model_outputs.register
def _(model: DictionaryLearner, X: Value) -> Outputs:
    coded = _learner_codes(model, X)
    return {"codes": coded.codes, "error": coded.residual.squeeze(1)}


# ---------------------------------------------------------------------- classifiers


@model_outputs.register(KSADClassifier)
@model_outputs.register(FDDLClassifier)
def _(model: Any, X: Value) -> Outputs:
    raise refusal(model, CLASSIFIERS)


@model_outputs.register
def _(model: AutoDictionaryClassifier, X: Value) -> Outputs:
    return model_outputs(model.best_pipeline_, X)


def _best_labels(scores: Value, classes: np.ndarray) -> Outputs:
    """Return the label of the largest score of each row, and the scores."""
    names = np.asarray(classes)
    names = names.astype(str) if names.dtype.kind in "OSU" else names
    return {"label": take_rows(names, scores.argmax()), "scores": scores}


@model_outputs.register(SRCClassifier)
@model_outputs.register(LCKSVDClassifier)
@model_outputs.register(DKSVDClassifier)
def _(model: Any, X: Value) -> Outputs:
    return _best_labels(class_scores(model, X).scores, model.classes_)


@model_outputs.register
def _(model: ResidualClassifier, X: Value) -> Outputs:
    scores = class_scores(model, X).scores
    temperature = max(
        float(model.temperature_), float(np.finfo(X.graph.dtype).tiny) ** 0.5
    )
    weights = ((scores - scores.max(1)) / temperature).exp()
    probabilities = {"probabilities": weights / weights.sum(1)}
    return _best_labels(scores, model.classes_) | probabilities


class ClassScores(NamedTuple):
    """The scores of the classes, of which the largest wins, and the codes."""

    scores: Value  # (n, C)
    codes: Value  # (n, m)


@singledispatch
def class_scores(model: Any, X: Value) -> ClassScores:
    """Return the scores and codes that a classifier computes for rows."""
    raise refusal(model, CLASSIFIERS)


@class_scores.register
def _(model: ResidualClassifier, X: Value) -> ClassScores:
    coded_by_class = [_learner_codes(learner, X) for learner in model.learners_]
    residuals = concatenate([coded.residual for coded in coded_by_class], 1)
    return ClassScores(
        -residuals, concatenate([coded.codes for coded in coded_by_class], 1)
    )


def _learner_codes(learner: Any, X: Value) -> CodedRows:
    if not isinstance(learner, DictionaryLearner):
        raise refusal(learner, "use a learner of kernlets, e.g. KSVD")
    return sparse_codes(learner.coder_, inner_products(learner.dictionary_, X))


@class_scores.register
def _(model: SRCClassifier, X: Value) -> ClassScores:
    products = inner_products(model.dictionary_, X)
    coded = sparse_codes(model.coder_, products)
    class_numbers, atom_classes = range(len(model.classes_)), model.atom_classes_
    class_atoms = [np.flatnonzero(atom_classes == c) for c in class_numbers]
    residuals = concatenate(
        [_class_residual(coded, products, atoms) for atoms in class_atoms], 1
    )
    return ClassScores(-residuals, coded.codes)


def _class_residual(
    coded: CodedRows, products: AtomProducts, atoms: np.ndarray
) -> Value:
    """Return ‖x − γ_c D_c‖² with the codes of one class; see `class_residuals`."""
    codes, corr = coded.codes.columns(atoms), products.corr.columns(atoms)
    fit = codes * (2.0 * corr - codes @ products.gram[np.ix_(atoms, atoms)])
    return (products.energy - fit.sum(1)).at_least(0.0)


@class_scores.register(LCKSVDClassifier)
@class_scores.register(DKSVDClassifier)
def _(model: Any, X: Value) -> ClassScores:
    codes = sparse_codes(model.coder_, inner_products(model.dictionary_, X)).codes
    return ClassScores(codes @ to_numpy(model.classifier_), codes)


@model_outputs.register(LogisticRegression)
@model_outputs.register(RidgeClassifier)
@model_outputs.register(LinearSVC)
def _(model: Any, X: Value) -> Outputs:
    """scikit-learn's linear classifiers have one column of scores for two classes."""
    scores = X @ np.atleast_2d(model.coef_).T + np.asarray(model.intercept_)
    if len(model.classes_) == 2:
        scores = concatenate([-scores, scores], 1)
    return _best_labels(scores, model.classes_)


# ------------------------------------------------------------------------- outliers


@model_outputs.register
def _(model: StreamOutlierDetector, X: Value) -> Outputs:
    raise refusal(model, "use DictionaryOutlierDetector")


@model_outputs.register
def _(model: DictionaryOutlierDetector, X: Value) -> Outputs:
    if model.standardize:
        X = _cut_off((X - to_numpy(model.mean_)) / to_numpy(model.scale_))
    if isinstance(model.learner_, SampledDictionaries):
        score = _mean_nearest_distance(model.learner_, X)
    else:
        rows = before_last(model.learner_, X)
        score = _learner_codes(last_step(model.learner_), rows).residual
    label = (score > float(model.threshold_)).where(np.int64(-1), np.int64(1))
    return {"label": label.squeeze(1), "score": score.squeeze(1)}


def _cut_off(X: Value) -> Value:
    """Cut entries off as `OutlierDetector` does: sums of fourth powers are finite."""
    bound = float(np.finfo(X.graph.dtype).max) ** 0.2
    return X.at_least(-bound).at_most(bound)


def _mean_nearest_distance(model: SampledDictionaries, X: Value) -> Value:  # (n, 1)
    """Return the weighted mean over dictionaries of distances to the nearest atom."""
    rows = to_numpy(model.rows_)
    if X.graph.dtype != rows.dtype:
        raise refusal(
            f"SampledDictionaries in {X.graph.dtype}",
            f"which rows are atoms is known in {rows.dtype} only; export in that, or "
            f"fit to rows of {X.graph.dtype}",
        )
    is_training_row = _is_training_row(model, X, rows)
    whitened = None
    if hasattr(model, "whitening_"):
        whitening = to_numpy(model.whitening_)
        whitened = X @ whitening, rows @ whitening
    distances = []
    for member in model._members():
        samples, atoms = whitened if member.decorrelated and whitened else (X, rows)
        distances.append(
            _nearest_atom_distance(member, samples, atoms, is_training_row)
            * member.factor
        )
    return concatenate(distances, 1).sum(1)


def _is_training_row(
    model: SampledDictionaries, X: Value, rows: np.ndarray
) -> Value:  # (n, r)
    """Return whether a sample equals a training row that occurs only once."""
    largest_difference = (X.expand(1) - rows[None]).abs().max(2).squeeze(2)
    return largest_difference.equals(0.0) & (model.is_single_ == 1)[None]


def _nearest_atom_distance(
    member: Member, X: Value, rows: np.ndarray, is_training_row: Value
) -> Value:
    """Return ‖x − z‖₁ for the nearest atom z that is not the row itself, (n, 1)."""
    atoms = rows[member.atoms]
    if len(member.features) < rows.shape[1]:
        X, atoms = X.columns(member.features), atoms[:, member.features]
    distances = l1_distances(X, atoms)
    return is_training_row.columns(member.atoms).where(np.inf, distances).min(1)
