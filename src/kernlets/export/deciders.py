"""Classifiers, detectors, maps and learners as graphs with named outputs."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from ..backend.arrays import to_numpy
from ..backend.pipelines import last_step
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
from ..outliers import DictionaryOutlierDetector, StreamOutlierDetector
from ..outliers.sampled import Member, SampledDictionaries
from .errors import refusal
from .graph import Graph, Value, joined, rows_of
from .kernels import l1_distances
from .parts import before_last, mapped
from .pursuits import Coded, Products, coded, products

Outputs = dict[str, Value]
CLASSIFIERS = (
    "use ResidualClassifier, SRCClassifier, LCKSVDClassifier or DKSVDClassifier"
)


def graph_of(model: Any, dtype: np.dtype) -> Graph:
    """A fitted model as a graph from "X" to its outputs."""
    graph = Graph(dtype)
    X = graph.input("X", model.n_features_in_)
    for name, value in decided(model, X).items():
        graph.output(name, value)
    graph.prune()
    return graph


@singledispatch
def decided(part: Any, X: Value) -> Outputs:
    """What a model says of rows; features, unless it decides."""
    if hasattr(part, "best_estimator_"):
        raise refusal(part, "export its best_estimator_")
    return {"features": mapped(part, X)}


@decided.register
def _(part: Pipeline, X: Value) -> Outputs:
    return decided(last_step(part), before_last(part, X))


@decided.register
def _(part: DictionaryLearner, X: Value) -> Outputs:
    found = _coded(part, X)
    return {"codes": found.codes, "error": found.residual.squeeze(1)}


# ---------------------------------------------------------------------- classifiers


@decided.register(KSADClassifier)
@decided.register(FDDLClassifier)
def _(part: Any, X: Value) -> Outputs:
    raise refusal(part, CLASSIFIERS)


@decided.register
def _(part: AutoDictionaryClassifier, X: Value) -> Outputs:
    return decided(part.best_pipeline_, X)


def _best(scores: Value, classes: np.ndarray) -> Outputs:
    """Labels of the best scores, and the scores."""
    names = np.asarray(classes)
    names = names.astype(str) if names.dtype.kind in "OSU" else names
    return {"label": rows_of(names, scores.argmax()), "scores": scores}


@decided.register(SRCClassifier)
@decided.register(LCKSVDClassifier)
@decided.register(DKSVDClassifier)
def _(part: Any, X: Value) -> Outputs:
    return _best(scored(part, X).scores, part.classes_)


@decided.register
def _(part: ResidualClassifier, X: Value) -> Outputs:
    scores = scored(part, X).scores
    unit = max(float(part.temperature_), float(np.finfo(X.graph.dtype).tiny) ** 0.5)
    weights = ((scores - scores.max(1)) / unit).exp()
    odds = {"probabilities": weights / weights.sum(1)}
    return _best(scores, part.classes_) | odds


class Scored(NamedTuple):
    """Scores of the classes, the largest wins, and the codes behind them."""

    scores: Value  # (n, C)
    codes: Value  # (n, m)


@singledispatch
def scored(part: Any, X: Value) -> Scored:
    """What a classifier with codes makes of rows."""
    raise refusal(part, CLASSIFIERS)


@scored.register
def _(part: ResidualClassifier, X: Value) -> Scored:
    found = [_coded(learner, X) for learner in part.learners_]
    residuals = joined([each.residual for each in found], 1)
    return Scored(-residuals, joined([each.codes for each in found], 1))


def _coded(learner: Any, X: Value) -> Coded:
    if not isinstance(learner, DictionaryLearner):
        raise refusal(learner, "use a learner of kernlets, e.g. KSVD")
    return coded(learner.coder_, products(learner.dictionary_, X))


@scored.register
def _(part: SRCClassifier, X: Value) -> Scored:
    seen = products(part.dictionary_, X)
    found = coded(part.coder_, seen)
    numbers, classes = range(len(part.classes_)), part.atom_classes_
    places = [np.flatnonzero(classes == c) for c in numbers]
    residuals = joined([_class_residual(found, seen, atoms) for atoms in places], 1)
    return Scored(-residuals, found.codes)


def _class_residual(found: Coded, seen: Products, atoms: np.ndarray) -> Value:
    """‖x − γ_c D_c‖² with the codes of one class only; see `class_residuals`."""
    codes, corr = found.codes.columns(atoms), seen.corr.columns(atoms)
    fit = codes * (2.0 * corr - codes @ seen.gram[np.ix_(atoms, atoms)])
    return (seen.energy - fit.sum(1)).at_least(0.0)


@scored.register(LCKSVDClassifier)
@scored.register(DKSVDClassifier)
def _(part: Any, X: Value) -> Scored:
    codes = coded(part.coder_, products(part.dictionary_, X)).codes
    return Scored(codes @ to_numpy(part.classifier_), codes)


@decided.register(LogisticRegression)
@decided.register(RidgeClassifier)
@decided.register(LinearSVC)
def _(part: Any, X: Value) -> Outputs:
    """Linear classifiers behind a map; two classes have one column of scores."""
    scores = X @ np.atleast_2d(part.coef_).T + np.asarray(part.intercept_)
    if len(part.classes_) == 2:
        scores = joined([-scores, scores], 1)
    return _best(scores, part.classes_)


# ------------------------------------------------------------------------- outliers


@decided.register
def _(part: StreamOutlierDetector, X: Value) -> Outputs:
    raise refusal(part, "use DictionaryOutlierDetector")


@decided.register
def _(part: DictionaryOutlierDetector, X: Value) -> Outputs:
    if part.standardize:
        X = _bounded((X - to_numpy(part.mean_)) / to_numpy(part.scale_))
    if isinstance(part.learner_, SampledDictionaries):
        score = _votes(part.learner_, X)
    else:
        rows = before_last(part.learner_, X)
        score = _coded(last_step(part.learner_), rows).residual
    label = (score > float(part.threshold_)).where(np.int64(-1), np.int64(1))
    return {"label": label.squeeze(1), "score": score.squeeze(1)}


def _bounded(X: Value) -> Value:
    """Cut off as in `OutlierDetector`, so that sums of fourth powers are finite."""
    most = float(np.finfo(X.graph.dtype).max) ** 0.2
    return X.at_least(-most).at_most(most)


def _votes(part: SampledDictionaries, X: Value) -> Value:  # (n, 1)
    """The weighted mean over dictionaries of the distance to the nearest atom."""
    rows = to_numpy(part.rows_)
    if X.graph.dtype != rows.dtype:
        raise refusal(
            f"SampledDictionaries in {X.graph.dtype}",
            f"which rows are atoms is known in {rows.dtype} only; export in that, or "
            f"fit to rows of {X.graph.dtype}",
        )
    is_own = _is_own(part, X, rows)
    free = None
    if hasattr(part, "whitening_"):
        whitening = to_numpy(part.whitening_)
        free = X @ whitening, rows @ whitening
    parts = []
    for member in part._members():
        samples, atoms = free if member.decorrelated and free else (X, rows)
        parts.append(_nearest(member, samples, atoms, is_own) * member.factor)
    return joined(parts, 1).sum(1)


def _is_own(part: SampledDictionaries, X: Value, rows: np.ndarray) -> Value:  # (n, r)
    """Whether a sample is the training row that an atom is, and no other one is."""
    apart = (X.expand(1) - rows[None]).abs().max(2).squeeze(2)
    return apart.equals(0.0) & (part.is_single_ == 1)[None]


def _nearest(member: Member, X: Value, rows: np.ndarray, is_own: Value) -> Value:
    """‖x − z‖₁ for the nearest atom z that is not the row itself, (n, 1)."""
    atoms = rows[member.atoms]
    if len(member.features) < rows.shape[1]:
        X, atoms = X.columns(member.features), atoms[:, member.features]
    distances = l1_distances(X, atoms)
    return is_own.columns(member.atoms).where(np.inf, distances).min(1)
