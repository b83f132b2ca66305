"""`to_onnx`: a fitted model as a file that runs without Python.

`model_outputs` turns maps, scalers, learners, classifiers and detectors into the
operations of `graph.py`, with those of `codes.py`.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from math import pi, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from ..base.pipelines import last_step, steps_of
from ..classifiers import (
    AutoDictionaryClassifier,
    DKSVDClassifier,
    FDDLClassifier,
    KSADClassifier,
    LCKSVDClassifier,
    ResidualClassifier,
    SRCClassifier,
)
from ..classifiers.temperature import FLOOR
from ..contracts import Array
from ..io.atomic_write import atomic_write
from ..kernels import Precomputed
from ..learners.base import DictionaryLearner
from ..maps import (
    FastfoodMap,
    FourierMap,
    HybridMap,
    IKAMap,
    NystroemMap,
    Standardize,
    UnitNorm,
)
from ..numerics.arrays import is_array, to_numpy
from ..outliers import DictionaryOutlierDetector, StreamOutlierDetector
from ..outliers.sampled import SampledDictionaries
from .codes import (
    CodedRows,
    dense_points,
    inner_products,
    kernel_matrix,
    l1_distances,
    nonzero_divisor,
    sparse_codes,
    squared_norms,
)
from .graph import OperationGraph, Value, concatenate, refusal, take_rows

TYPES = ("float32", "float64")


def to_onnx(model: Any, path: str | Path | None = None, *, dtype: Any = None) -> Any:
    """A fitted model in the format ONNX, which other languages and devices run.

    Maps give ``features``; dictionary learners ``codes`` and ``error``; classifiers
    ``label`` and ``scores``, a column for each class, of which the largest wins, and
    `ResidualClassifier` also ``probabilities``; detectors ``label`` (1 or -1) and
    ``score``, higher for less normal rows. The input is ``X``, any number of rows.
    Rows must be complete and finite: nothing is checked or filled in.

    Parameters
    ----------
    model : estimator
        A fitted map, dictionary learner, classifier or outlier detector, or a
        scikit-learn Pipeline of these with scalers, `PCA` and linear classifiers.
    path : path, optional
        A file to write, which takes its place only when it is complete.
    dtype : {"float32", "float64"}, optional
        The type of all numbers. Default: that of the model.

    Returns
    -------
    onnx.ModelProto
        The model.

    Raises
    ------
    ExportError
        If a part has no such form; it names the part and what to use instead.

    Examples
    --------
    >>> from kernlets import KSVD, ResidualClassifier, datasets, to_onnx
    >>> digits = datasets.load("digits")
    >>> model = ResidualClassifier(KSVD(30, n_nonzero_coefs=4, random_state=0))
    >>> exported = to_onnx(model.fit(digits.X_train, digits.y_train), dtype="float32")
    >>> [output.name for output in exported.graph.output]
    ['label', 'scores', 'probabilities']
    """
    try:
        onnx: Any = import_module("onnx")
    except ImportError as error:
        raise ImportError("to_onnx needs onnx: pip install 'kernlets[onnx]'") from error
    check_is_fitted(model)
    proto = graph_of(model, precision(model, dtype)).to_proto(onnx, model)
    onnx.checker.check_model(proto)
    if path is not None:
        with atomic_write(path) as file:
            file.write(proto.SerializeToString())
    return proto


def precision(model: Any, dtype: Any = None) -> np.dtype:
    """Return the requested type, or the widest type among the tables of a model."""
    if dtype is None:
        is_narrow = _number_types(model) == {"float32"}
        return np.dtype("float32" if is_narrow else "float64")
    if str(np.dtype(dtype)) not in TYPES:
        raise ValueError(f"dtype={dtype!r} must be one of {', '.join(TYPES)}")
    return np.dtype(dtype)


def _number_types(value: Any) -> set[str]:
    """Return the floating-point types of the atoms, landmarks and projections.

    Attributes of scikit-learn's classes are skipped: they are in float64 whatever the
    type of the rows is.
    """
    if isinstance(value, Pipeline):
        value = [step for _, step in value.steps]
    if isinstance(value, (list, tuple)):
        return set().union(*map(_number_types, value))
    if hasattr(value, "_model_array") or (is_array(value) and value.ndim == 2):
        array = getattr(value, "_model_array", value)
        name = "none" if array is None else to_numpy(array[:0]).dtype.name
        return {name} if name.startswith("float") else set()
    if type(value).__module__.startswith("kernlets."):
        return _number_types(list(vars(value).values()))
    return set()


Outputs = dict[str, Value]
MAPS = (
    "export the steps before it, or use NystroemMap, IKAMap, FourierMap, FastfoodMap, "
    "HybridMap, UnitNorm, Standardize, or a scaler or PCA of scikit-learn"
)
CLASSIFIERS = (
    "use ResidualClassifier, SRCClassifier, LCKSVDClassifier or DKSVDClassifier"
)
MAX_ROUNDING = 1e-3  # digits of the last feature that float32 may take


def graph_of(model: Any, dtype: np.dtype) -> OperationGraph:
    """Return the graph that computes the outputs of a fitted model from "X"."""
    graph = OperationGraph(dtype)
    X = graph.input("X", model.n_features_in_)
    for name, value in model_outputs(model, X).items():
        graph.output(name, value)
    graph.prune()
    return graph


def model_outputs(model: Any, X: Value) -> Outputs:
    """Return the outputs of a model by name; a map has the output "features"."""
    match model:
        case Pipeline():
            return model_outputs(last_step(model), before_last(model, X))
        case AutoDictionaryClassifier():
            if len(model.pipelines_) > 1:
                raise refusal(model, "export its best_pipeline_, or set n_averaged=1")
            return model_outputs(model.best_pipeline_, X)
        case DictionaryLearner():
            coded = _learner_codes(model, X)
            return {"codes": coded.codes, "error": coded.residual.squeeze(1)}
        case ResidualClassifier() | SRCClassifier():
            scores = class_scores(model, X).scores
            probabilities = {"probabilities": _probabilities(-scores, model)}
            return _best_labels(scores, model.classes_) | probabilities
        case LCKSVDClassifier() | DKSVDClassifier():
            return _best_labels(class_scores(model, X).scores, model.classes_)
        case LogisticRegression() | RidgeClassifier() | LinearSVC():
            scores = X @ np.atleast_2d(model.coef_).T + np.asarray(model.intercept_)
            if len(model.classes_) == 2:  # one column of scores for both classes
                scores = concatenate([-scores, scores], 1)
            return _best_labels(scores, model.classes_)
        case KSADClassifier() | FDDLClassifier():
            raise refusal(model, CLASSIFIERS)
        case DictionaryOutlierDetector():
            return _outlier_outputs(model, X)
        case StreamOutlierDetector():
            raise refusal(model, "use DictionaryOutlierDetector")
    if hasattr(model, "best_estimator_"):
        raise refusal(model, "export its best_estimator_")
    return {"features": transform_rows(model, X)}


# ----------------------------------------------------------------------------- maps


def before_last(model: Any, X: Value) -> Value:
    """Apply all steps of a pipeline but the last one."""
    for step in steps_of(model)[:-1]:
        X = transform_rows(step, X)
    return X


def transform_rows(step: Any, X: Value) -> Value:  # (n, p) -> (n, k)
    """Apply the operations that `transform` of a fitted step does."""
    match step:
        case Pipeline():
            return transform_rows(last_step(step), before_last(step, X))
        case str():
            return X  # "passthrough", the only word that may stand for a step
        case DictionaryLearner():
            return _learner_codes(step, X).codes
        case NystroemMap():
            _refuse_matrix(step)
            _warn_of_lost_digits(step, X)
            values = kernel_matrix(step.kernel_, X, dense_points(step.landmarks_))
            return values @ to_numpy(step.projection_)
        case IKAMap():
            _refuse_matrix(step)
            return _basis_values(step, X) @ to_numpy(step.projection_)
        case FourierMap():
            angles = X @ to_numpy(step.frequencies_).T
            return _fourier_features(angles, step.n_components, step.phase_)
        case FastfoodMap():
            # angles are linear in the rows, so the unit vectors tell the frequencies
            lengths = to_numpy(step.lengths_)
            eye = step._pad(np.eye(step.n_features_in_, dtype=lengths.dtype))
            blocks = [step._project(eye, b) for b in range(len(step.diagonals_))]
            frequencies = np.concatenate(blocks, axis=1)[:, : len(lengths)] * lengths
            return _fourier_features(X @ frequencies, step.n_components, step.phase_)
        case HybridMap():
            head, tail = transform_rows(step.head_, X), transform_rows(step.tail_, X)
            return concatenate([head, tail - head @ to_numpy(step.removal_)], 1)
        case UnitNorm():
            return _unit_rows(X)
        case Standardize():
            return (X - to_numpy(step.mean_)) / to_numpy(step.scale_)
        case StandardScaler():
            mean = step.mean_ if step.with_mean else None
            return _centre_and_scale(X, mean, step.scale_)
        case RobustScaler():
            return _centre_and_scale(X, step.center_, step.scale_)
        case MaxAbsScaler():
            return X / step.scale_
        case MinMaxScaler():
            X = X * step.scale_ + step.min_
            low, high = map(float, step.feature_range)
            return X.at_least(low).at_most(high) if step.clip else X
        case Normalizer():
            if step.norm == "l2":
                return _unit_rows(X)
            size = X.abs()
            return X / nonzero_divisor(
                size.sum(1) if step.norm == "l1" else size.max(1)
            )
        case PCA():
            features = (X - step.mean_) @ step.components_.T
            if not step.whiten:
                return features
            scale = np.sqrt(step.explained_variance_)
            tiny = np.finfo(scale.dtype).eps  # as PCA.transform does
            return features / np.where(scale < tiny, tiny, scale)
    raise refusal(step, MAPS)


def _refuse_matrix(step: Any) -> None:
    if isinstance(step.kernel_, Precomputed):
        raise refusal(step.kernel_, "fit to rows, with the kernel that made the matrix")


def _warn_of_lost_digits(step: NystroemMap, X: Value) -> None:
    """Warn if rounding, divided by roots of eigenvalues, spoils the last features."""
    values = to_numpy(step.eigenvalues_).astype(np.float64)
    narrower = X.graph.dtype.itemsize < step.eigenvalues_.dtype.itemsize
    rounding = np.finfo(X.graph.dtype).eps * sqrt(values.max() / values.min())
    if narrower and rounding > MAX_ROUNDING:
        warnings.warn(
            f"the last features of {type(step).__name__} lose their digits in "
            f"{X.graph.dtype}: export in float64, or fit with fewer n_components",
            stacklevel=2,
        )


def _basis_values(step: IKAMap, X: Value) -> Value:  # (n, m)
    if callable(step.basis):
        raise refusal("IKAMap with a basis of your own", "use basis='kernel'")
    landmarks = dense_points(step.landmarks_)
    if step.basis == "kernel":
        return kernel_matrix(step.kernel_, X, landmarks)
    s = X @ landmarks.T - to_numpy(step.offsets_)
    if step.basis == "relu":
        return s.at_least(0.0)
    return 0.5 + 0.5 * (0.5 * s).tanh() if step.basis == "sigmoid" else _cosine(s)


def _fourier_features(
    angles: Value, k: int, phase: float
) -> Value:  # (n, ⌈k/2⌉) -> (n, k)
    """√(2/k) [cos, sin], the last cosine with a phase if k is odd."""
    shift = np.zeros((1, (k + 1) // 2))
    shift[0, -1] = phase if k % 2 else 0.0
    cosines, sines = _cosine(angles + shift), angles.columns(np.arange(k // 2)).sin()
    features = concatenate([cosines, sines], 1) if k > 1 else cosines
    return features * sqrt(2.0 / k)


def _cosine(s: Value) -> Value:
    """Compute cos s as a sine, which runtimes also have for float64."""
    return (s + pi / 2).sin()


def _centre_and_scale(X: Value, centre: Array | None, scale: Array | None) -> Value:
    X = X if centre is None else X - centre
    return X if scale is None else X / scale


def _unit_rows(X: Value) -> Value:
    X = X / nonzero_divisor(X.abs().max(1))
    return X / nonzero_divisor(squared_norms(X).sqrt())


# ---------------------------------------------------------------------- classifiers


class ClassScores(NamedTuple):
    """The scores of the classes, of which the largest wins, and the codes."""

    scores: Value  # (n, C)
    codes: Value  # (n, m)


def class_scores(model: Any, X: Value) -> ClassScores:
    """Return the scores and codes that a classifier computes for rows."""
    match model:
        case ResidualClassifier():
            coded = [_learner_codes(learner, X) for learner in model.learners_]
            residuals = concatenate([rows.residual for rows in coded], 1)
            return ClassScores(
                -residuals, concatenate([rows.codes for rows in coded], 1)
            )
        case SRCClassifier():
            return _scores_of_shared_codes(model, X)
        case LCKSVDClassifier() | DKSVDClassifier():
            products = inner_products(model.dictionary_, X)
            codes = sparse_codes(model.coder_, products).codes
            return ClassScores(codes @ to_numpy(model.classifier_), codes)
    raise refusal(model, CLASSIFIERS)


def _scores_of_shared_codes(model: SRCClassifier, X: Value) -> ClassScores:
    """Return −‖x − γ_c D_c‖² with the codes of each class; see `class_residuals`."""
    products = inner_products(model.dictionary_, X)
    coded = sparse_codes(model.coder_, products)
    residuals = []
    for c in range(len(model.classes_)):
        atoms = np.flatnonzero(model.atom_classes_ == c)
        codes, corr = coded.codes.columns(atoms), products.corr.columns(atoms)
        fit = codes * (2.0 * corr - codes @ products.gram[np.ix_(atoms, atoms)])
        residuals.append((products.energy - fit.sum(1)).at_least(0.0))
    return ClassScores(-concatenate(residuals, 1), coded.codes)


def _learner_codes(learner: Any, X: Value) -> CodedRows:
    if not isinstance(learner, DictionaryLearner):
        raise refusal(learner, "use a learner of kernlets, e.g. KSVD")
    return sparse_codes(learner.coder_, inner_products(learner.dictionary_, X))


def _probabilities(residuals: Value, model: Any) -> Value:
    """Compute `class_probabilities`."""
    tiny = float(np.finfo(residuals.graph.dtype).tiny)
    levels = residuals / residuals.max(1).at_least(tiny) + FLOOR
    lowest = -(-levels).max(1)
    weights = (lowest / levels).power(1 / float(model.temperature_))
    return weights / weights.sum(1)


def _best_labels(scores: Value, classes: np.ndarray) -> Outputs:
    """Return the label of the largest score of each row, and the scores."""
    names = np.asarray(classes)
    names = names.astype(str) if names.dtype.kind in "OSU" else names
    return {"label": take_rows(names, scores.argmax()), "scores": scores}


# ------------------------------------------------------------------------- outliers


def _outlier_outputs(model: DictionaryOutlierDetector, X: Value) -> Outputs:
    if model.standardize:
        X = (X - to_numpy(model.mean_)) / to_numpy(model.scale_)
        # as `OutlierDetector` does, so that sums of fourth powers are finite
        bound = float(np.finfo(X.graph.dtype).max) ** 0.2
        X = X.at_least(-bound).at_most(bound)
    if isinstance(model.learner_, SampledDictionaries):
        score = _mean_nearest_distance(model.learner_, X)
    else:
        rows = before_last(model.learner_, X)
        score = _learner_codes(last_step(model.learner_), rows).residual
    label = (score > float(model.threshold_)).where(np.int64(-1), np.int64(1))
    return {"label": label.squeeze(1), "score": score.squeeze(1)}


def _mean_nearest_distance(model: SampledDictionaries, X: Value) -> Value:  # (n, 1)
    """Return the weighted mean over dictionaries of ‖x − z‖₁ for the nearest atom z.

    A sample that equals a training row which occurs only once is taken to be that row,
    which is not its own nearest atom.
    """
    rows = to_numpy(model.rows_)
    if X.graph.dtype != rows.dtype:
        raise refusal(
            f"SampledDictionaries in {X.graph.dtype}",
            f"which rows are atoms is known in {rows.dtype} only; export in that, or "
            f"fit to rows of {X.graph.dtype}",
        )
    largest_difference = (X.expand(1) - rows[None]).abs().max(2).squeeze(2)
    is_same_row = (
        largest_difference.equals(0.0) & (model.is_single_ == 1)[None]
    )  # (n, r)
    whitened = X, rows
    if hasattr(model, "whitening_"):
        whitening = to_numpy(model.whitening_)
        whitened = X @ whitening, rows @ whitening
    distances = []
    for t, atom_rows in enumerate(model.atoms_):
        samples, atoms = whitened if model.views_[t] == 2 else (X, rows)
        atoms, features = atoms[atom_rows], np.flatnonzero(model.features_[t])
        if len(features) < rows.shape[1]:
            samples, atoms = samples.columns(features), atoms[:, features]
        is_itself = is_same_row.columns(atom_rows)
        nearest = is_itself.where(np.inf, l1_distances(samples, atoms)).min(1)
        distances.append(nearest * float(model.weights_[t] / model.units_[t]))
    return concatenate(distances, 1).sum(1)
