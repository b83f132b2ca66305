"""Maps, scalers and learners as operations: rows in, rows out."""

from __future__ import annotations

import warnings
from functools import singledispatch
from math import pi, sqrt
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

from ..backend.arrays import to_numpy
from ..backend.pipelines import steps_of
from ..core import Array
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
from .errors import refusal
from .graph import Value, joined
from .kernels import matrix, nonzero, points, squared_norms
from .pursuits import coded, products

MAPS = (
    "export the steps before it, or use NystroemMap, IKAMap, FourierMap, FastfoodMap, "
    "HybridMap, UnitNorm, Standardize, or a scaler or PCA of scikit-learn"
)
LOST = 1e-3  # digits of the last feature that float32 may take


@singledispatch
def mapped(part: Any, X: Value) -> Value:  # (n, p) -> (n, k)
    """What `transform` of a fitted part makes of rows."""
    raise refusal(part, MAPS)


def before_last(model: Any, X: Value) -> Value:
    """Rows as the last step of a pipeline gets them."""
    for step in steps_of(model)[:-1]:
        X = mapped(step, X)
    return X


@mapped.register
def _(part: Pipeline, X: Value) -> Value:
    return mapped(steps_of(part)[-1], before_last(part, X))


@mapped.register
def _(part: str, X: Value) -> Value:
    return X  # "passthrough", the only word that may stand for a step


@mapped.register
def _(part: DictionaryLearner, X: Value) -> Value:
    return coded(part.coder_, products(part.dictionary_, X)).codes


# ----------------------------------------------------------------------------- maps


@mapped.register
def _(part: NystroemMap, X: Value) -> Value:
    _refuse_matrix(part)
    _warn_of_lost_digits(part, X)
    values = matrix(part.kernel_, X, points(part.landmarks_))
    return values @ to_numpy(part.projection_)


def _refuse_matrix(part: Any) -> None:
    if isinstance(part.kernel_, Precomputed):
        raise refusal(part.kernel_, "fit to rows, with the kernel that made the matrix")


def _warn_of_lost_digits(part: NystroemMap, X: Value) -> None:
    """Features are divided by roots of eigenvalues, and so is their rounding."""
    values = to_numpy(part.eigenvalues_).astype(np.float64)
    narrower = X.graph.dtype.itemsize < part.eigenvalues_.dtype.itemsize
    rounding = np.finfo(X.graph.dtype).eps * sqrt(values.max() / values.min())
    if narrower and rounding > LOST:
        warnings.warn(
            f"the last features of {type(part).__name__} lose their digits in "
            f"{X.graph.dtype}: export in float64, or fit with fewer n_components",
            stacklevel=2,
        )


@mapped.register
def _(part: IKAMap, X: Value) -> Value:
    _refuse_matrix(part)
    if callable(part.basis):
        raise refusal("IKAMap with a basis of your own", "use basis='kernel'")
    return _basis(part, X) @ to_numpy(part.projection_)


def _basis(part: IKAMap, X: Value) -> Value:  # (n, m)
    if part.basis == "kernel":
        return matrix(part.kernel_, X, points(part.landmarks_))
    s = X @ points(part.landmarks_).T - to_numpy(part.offsets_)
    if part.basis == "relu":
        return s.at_least(0.0)
    return 0.5 + 0.5 * (0.5 * s).tanh() if part.basis == "sigmoid" else _cosine(s)


@mapped.register
def _(part: FourierMap, X: Value) -> Value:
    frequencies = to_numpy(part.frequencies_)
    return _waves(X @ frequencies.T, part.n_components, part.phase_)


@mapped.register
def _(part: FastfoodMap, X: Value) -> Value:
    """The angles are linear in the rows, so the unit vectors tell the frequencies."""
    frequencies = _fast_frequencies(part)
    return _waves(X @ frequencies.T, part.n_components, part.phase_)


def _fast_frequencies(part: FastfoodMap) -> np.ndarray:  # (⌈k/2⌉, p)
    like = to_numpy(part.lengths_)
    unit = part._pad(np.eye(part.n_features_in_, dtype=like.dtype))
    blocks = [part._project(unit, b) for b in range(len(part.diagonals_))]
    return (np.concatenate(blocks, axis=1)[:, : len(like)] * like).T


def _waves(angles: Value, k: int, phase: float) -> Value:  # (n, ⌈k/2⌉) -> (n, k)
    """√(2/k) [cos, sin], the last cosine with a phase if k is odd."""
    width = (k + 1) // 2
    shift = np.zeros((1, width))
    shift[0, -1] = phase if k % 2 else 0.0
    cosines, sines = _cosine(angles + shift), angles.columns(np.arange(k // 2)).sin()
    return joined([cosines, sines], 1) * sqrt(2.0 / k) if k > 1 else cosines * sqrt(2.0)


def _cosine(s: Value) -> Value:
    """By the sine, which runtimes know in float64, too."""
    return (s + pi / 2).sin()


@mapped.register
def _(part: HybridMap, X: Value) -> Value:
    head, tail = mapped(part.head_, X), mapped(part.tail_, X)
    return joined([head, tail - head @ to_numpy(part.removal_)], 1)


@mapped.register
def _(part: UnitNorm, X: Value) -> Value:
    return _unit_rows(X)


def _unit_rows(X: Value) -> Value:
    X = X / nonzero(X.abs().max(1))
    return X / nonzero(squared_norms(X).sqrt())


@mapped.register
def _(part: Standardize, X: Value) -> Value:
    return (X - to_numpy(part.mean_)) / to_numpy(part.scale_)


# --------------------------------------------------------------------- scikit-learn


@mapped.register
def _(part: StandardScaler, X: Value) -> Value:
    return _scaled(X, part.mean_ if part.with_mean else None, part.scale_)


@mapped.register
def _(part: RobustScaler, X: Value) -> Value:
    return _scaled(X, part.center_, part.scale_)


@mapped.register
def _(part: MaxAbsScaler, X: Value) -> Value:
    return _scaled(X, None, part.scale_)


def _scaled(X: Value, centre: Array | None, scale: Array | None) -> Value:
    X = X if centre is None else X - centre
    return X if scale is None else X / scale


@mapped.register
def _(part: MinMaxScaler, X: Value) -> Value:
    X = X * part.scale_ + part.min_
    low, high = map(float, part.feature_range)
    return X.at_least(low).at_most(high) if part.clip else X


@mapped.register
def _(part: Normalizer, X: Value) -> Value:
    if part.norm == "l2":
        return _unit_rows(X)
    size = X.abs()
    return X / nonzero(size.sum(1) if part.norm == "l1" else size.max(1))


@mapped.register
def _(part: PCA, X: Value) -> Value:
    features = (X - part.mean_) @ part.components_.T
    if not part.whiten:
        return features
    scale = np.sqrt(part.explained_variance_)
    tiny = np.finfo(scale.dtype).eps  # as PCA.transform does
    return features / np.where(scale < tiny, tiny, scale)
