"""Turns maps, scalers and learners into operations on rows."""

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

from ..base.pipelines import steps_of
from ..contracts import Array
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
from ..numerics.arrays import to_numpy
from .coders import inner_products, sparse_codes
from .errors import refusal
from .graph import Value, concatenate
from .kernels import dense_points, kernel_matrix, nonzero_divisor, squared_norms

MAPS = (
    "export the steps before it, or use NystroemMap, IKAMap, FourierMap, FastfoodMap, "
    "HybridMap, UnitNorm, Standardize, or a scaler or PCA of scikit-learn"
)
MAX_ROUNDING = 1e-3  # digits of the last feature that float32 may take


@singledispatch
def transform_rows(step: Any, X: Value) -> Value:  # (n, p) -> (n, k)
    """Apply the operations that `transform` of a fitted step does."""
    raise refusal(step, MAPS)


def before_last(model: Any, X: Value) -> Value:
    """Apply all steps of a pipeline but the last one."""
    for step in steps_of(model)[:-1]:
        X = transform_rows(step, X)
    return X


@transform_rows.register
def _(step: Pipeline, X: Value) -> Value:
    return transform_rows(steps_of(step)[-1], before_last(step, X))


@transform_rows.register
def _(step: str, X: Value) -> Value:
    return X  # "passthrough", the only word that may stand for a step


@transform_rows.register
def _(step: DictionaryLearner, X: Value) -> Value:
    return sparse_codes(step.coder_, inner_products(step.dictionary_, X)).codes


# ----------------------------------------------------------------------------- maps


@transform_rows.register
def _(step: NystroemMap, X: Value) -> Value:
    _refuse_matrix(step)
    _warn_of_lost_digits(step, X)
    values = kernel_matrix(step.kernel_, X, dense_points(step.landmarks_))
    return values @ to_numpy(step.projection_)


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


@transform_rows.register
def _(step: IKAMap, X: Value) -> Value:
    _refuse_matrix(step)
    if callable(step.basis):
        raise refusal("IKAMap with a basis of your own", "use basis='kernel'")
    return _basis_values(step, X) @ to_numpy(step.projection_)


def _basis_values(step: IKAMap, X: Value) -> Value:  # (n, m)
    if step.basis == "kernel":
        return kernel_matrix(step.kernel_, X, dense_points(step.landmarks_))
    s = X @ dense_points(step.landmarks_).T - to_numpy(step.offsets_)
    if step.basis == "relu":
        return s.at_least(0.0)
    return 0.5 + 0.5 * (0.5 * s).tanh() if step.basis == "sigmoid" else _cosine(s)


@transform_rows.register
def _(step: FourierMap, X: Value) -> Value:
    frequencies = to_numpy(step.frequencies_)
    return _fourier_features(X @ frequencies.T, step.n_components, step.phase_)


@transform_rows.register
def _(step: FastfoodMap, X: Value) -> Value:
    """The angles are linear in the rows, so the unit vectors tell the frequencies."""
    frequencies = _fastfood_frequencies(step)
    return _fourier_features(X @ frequencies.T, step.n_components, step.phase_)


def _fastfood_frequencies(step: FastfoodMap) -> np.ndarray:  # (⌈k/2⌉, p)
    lengths = to_numpy(step.lengths_)
    unit_vectors = step._pad(np.eye(step.n_features_in_, dtype=lengths.dtype))
    blocks = [step._project(unit_vectors, b) for b in range(len(step.diagonals_))]
    return (np.concatenate(blocks, axis=1)[:, : len(lengths)] * lengths).T


def _fourier_features(
    angles: Value, k: int, phase: float
) -> Value:  # (n, ⌈k/2⌉) -> (n, k)
    """√(2/k) [cos, sin], the last cosine with a phase if k is odd."""
    n_frequencies = (k + 1) // 2
    shift = np.zeros((1, n_frequencies))
    shift[0, -1] = phase if k % 2 else 0.0
    cosines, sines = _cosine(angles + shift), angles.columns(np.arange(k // 2)).sin()
    return (
        concatenate([cosines, sines], 1) * sqrt(2.0 / k)
        if k > 1
        else cosines * sqrt(2.0)
    )


def _cosine(s: Value) -> Value:
    """Compute cos s as a sine, which runtimes also have for float64."""
    return (s + pi / 2).sin()


@transform_rows.register
def _(step: HybridMap, X: Value) -> Value:
    head, tail = transform_rows(step.head_, X), transform_rows(step.tail_, X)
    return concatenate([head, tail - head @ to_numpy(step.removal_)], 1)


@transform_rows.register
def _(step: UnitNorm, X: Value) -> Value:
    return _unit_rows(X)


def _unit_rows(X: Value) -> Value:
    X = X / nonzero_divisor(X.abs().max(1))
    return X / nonzero_divisor(squared_norms(X).sqrt())


@transform_rows.register
def _(step: Standardize, X: Value) -> Value:
    return (X - to_numpy(step.mean_)) / to_numpy(step.scale_)


# --------------------------------------------------------------------- scikit-learn


@transform_rows.register
def _(step: StandardScaler, X: Value) -> Value:
    return _centre_and_scale(X, step.mean_ if step.with_mean else None, step.scale_)


@transform_rows.register
def _(step: RobustScaler, X: Value) -> Value:
    return _centre_and_scale(X, step.center_, step.scale_)


@transform_rows.register
def _(step: MaxAbsScaler, X: Value) -> Value:
    return _centre_and_scale(X, None, step.scale_)


def _centre_and_scale(X: Value, centre: Array | None, scale: Array | None) -> Value:
    X = X if centre is None else X - centre
    return X if scale is None else X / scale


@transform_rows.register
def _(step: MinMaxScaler, X: Value) -> Value:
    X = X * step.scale_ + step.min_
    low, high = map(float, step.feature_range)
    return X.at_least(low).at_most(high) if step.clip else X


@transform_rows.register
def _(step: Normalizer, X: Value) -> Value:
    if step.norm == "l2":
        return _unit_rows(X)
    size = X.abs()
    return X / nonzero_divisor(size.sum(1) if step.norm == "l1" else size.max(1))


@transform_rows.register
def _(step: PCA, X: Value) -> Value:
    features = (X - step.mean_) @ step.components_.T
    if not step.whiten:
        return features
    scale = np.sqrt(step.explained_variance_)
    tiny = np.finfo(scale.dtype).eps  # as PCA.transform does
    return features / np.where(scale < tiny, tiny, scale)
