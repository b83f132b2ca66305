"""Kernels as operations: κ(x, z) for points z that the model holds, and κ(x, x).

Formulas are those of the classes in `kernlets.kernels`, which explain them. A factor of
inner products goes into the points: behind the product, onnxruntime would round it to
float32 in a model of float64.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from ..contracts import Array
from ..data.sparse_rows import as_dense
from ..kernels import (
    RBF,
    Chi2,
    Cosine,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
)
from ..kernels.base import Constant, Product, Sum, positive
from ..kernels.distance import Radial
from ..numerics.arrays import to_numpy
from .errors import refusal
from .graph import Value

SUPPORTED = (
    "use RBF, Laplacian, Matern, RationalQuadratic, Linear, Polynomial, Sigmoid, "
    "Cosine, Chi2 or Intersection, or sums, products and Normalized of these"
)


@singledispatch
def kernel_matrix(
    kernel: Any,
    X: Value,  # (n, p)
    Z: np.ndarray,  # (m, p)
) -> Value:  # (n, m)
    """κ(xᵢ, zⱼ)."""
    raise refusal(kernel, SUPPORTED)


@singledispatch
def energy(kernel: Any, X: Value) -> Value:  # (n, p) -> (n, 1)
    """κ(x, x)."""
    raise refusal(kernel, SUPPORTED)


def dense_points(Z: Array) -> np.ndarray:  # (m, p)
    """Convert landmarks or anchors to a dense array in memory."""
    if not hasattr(Z, "shape") or len(Z.shape) != 2:
        raise refusal("a kernel of structured samples", SUPPORTED)
    return to_numpy(as_dense(Z))


def squared_norms(X: Value) -> Value:  # (n, 1)
    """‖x‖²."""
    return (X * X).sum(1)


# ------------------------------------------------------------------- distances


def _squared_distances(X: Value, Z: np.ndarray) -> Value:  # (n, m)
    """‖x − z‖² from centred rows, as in `kernels.distance`."""
    centre = Z.mean(axis=0)
    X, Z = X - centre, Z - centre
    norm_sums = squared_norms(X) + np.square(Z).sum(axis=1)
    return (norm_sums - X @ (2 * Z.T)).at_least(0.0)


def l1_distances(X: Value, Z: np.ndarray) -> Value:  # (n, m)
    """Σ |x − z|."""
    return (X.expand(1) - Z[None]).abs().sum(2).squeeze(2)


@kernel_matrix.register(RBF)
def _(kernel: RBF, X: Value, Z: np.ndarray) -> Value:
    return (_squared_distances(X, Z) * -kernel.rate).exp()


@kernel_matrix.register(Matern)
def _(kernel: Matern, X: Value, Z: np.ndarray) -> Value:
    r = (_squared_distances(X, Z) * kernel._squared_frequency()).sqrt()
    decay = (-r).exp()
    if kernel.nu == 0.5:
        return decay
    return (r + 1.0 if kernel.nu == 1.5 else (r / 3.0 + 1.0) * r + 1.0) * decay


@kernel_matrix.register(RationalQuadratic)
def _(kernel: RationalQuadratic, X: Value, Z: np.ndarray) -> Value:
    s = _squared_distances(X, Z) * (kernel._rate / kernel.alpha)
    return (s + 1.0).power(-kernel.alpha)


@kernel_matrix.register(Laplacian)
def _(kernel: Laplacian, X: Value, Z: np.ndarray) -> Value:
    return (l1_distances(X, Z) * -kernel.rate).exp()


@kernel_matrix.register(Chi2)
def _(kernel: Chi2, X: Value, Z: np.ndarray) -> Value:
    rows, tiny = X.expand(1), np.finfo(X.graph.dtype).tiny
    differences = rows - Z[None]
    terms = differences * differences / ((rows + tiny) + Z[None])
    return (terms.sum(2).squeeze(2) * -kernel.rate).exp()


@energy.register(Radial)
@energy.register(Laplacian)
@energy.register(Chi2)
def _(kernel: Kernel, X: Value) -> Value:
    return X.columns([0]) * 0.0 + 1.0


# -------------------------------------------------------------- inner products


@kernel_matrix.register(Linear)
def _(kernel: Linear, X: Value, Z: np.ndarray) -> Value:
    return X @ Z.T


@energy.register(Linear)
def _(kernel: Linear, X: Value) -> Value:
    return squared_norms(X)


def _polynomial(kernel: Polynomial, s: Value) -> Value:
    base = s + float(kernel.coef0)
    power = base
    for _ in range(kernel.degree - 1):
        power = power * base
    return power


@kernel_matrix.register(Polynomial)
def _(kernel: Polynomial, X: Value, Z: np.ndarray) -> Value:
    return _polynomial(kernel, X @ (kernel.scale * Z.T))


@energy.register(Polynomial)
def _(kernel: Polynomial, X: Value) -> Value:
    return _polynomial(kernel, squared_norms(X) * float(kernel.scale))


@kernel_matrix.register(Sigmoid)
def _(kernel: Sigmoid, X: Value, Z: np.ndarray) -> Value:
    return (X @ (kernel.scale * Z.T) + float(kernel.coef0)).tanh()


@energy.register(Sigmoid)
def _(kernel: Sigmoid, X: Value) -> Value:
    scale = positive(kernel, "scale")
    return (squared_norms(X) * scale + float(kernel.coef0)).tanh()


def nonzero_divisor(size: Value) -> Value:
    """Return a divisor that is 1 where a length is zero."""
    return size.equals(0.0).where(1.0, size)


@kernel_matrix.register(Cosine)
def _(kernel: Cosine, X: Value, Z: np.ndarray) -> Value:
    lengths = np.linalg.norm(Z, axis=1, keepdims=True)
    unit_rows = Z / np.where(lengths > 0, lengths, 1.0)
    return (X / nonzero_divisor(squared_norms(X).sqrt())) @ unit_rows.T


@energy.register(Cosine)
def _(kernel: Cosine, X: Value) -> Value:
    return (squared_norms(X) > 0.0).floats()


@kernel_matrix.register(Intersection)
def _(kernel: Intersection, X: Value, Z: np.ndarray) -> Value:
    return (X.sum(1) + Z.sum(axis=1) - l1_distances(X, Z)) * 0.5


@energy.register(Intersection)
def _(kernel: Intersection, X: Value) -> Value:
    return X.sum(1)


# ---------------------------------------------------------------- combinations


@kernel_matrix.register(Sum)
def _(kernel: Sum, X: Value, Z: np.ndarray) -> Value:
    return kernel_matrix(kernel.first, X, Z) + kernel_matrix(kernel.second, X, Z)


@energy.register(Sum)
def _(kernel: Sum, X: Value) -> Value:
    return energy(kernel.first, X) + energy(kernel.second, X)


@kernel_matrix.register(Product)
def _(kernel: Product, X: Value, Z: np.ndarray) -> Value:
    return kernel_matrix(kernel.first, X, Z) * kernel_matrix(kernel.second, X, Z)


@energy.register(Product)
def _(kernel: Product, X: Value) -> Value:
    return energy(kernel.first, X) * energy(kernel.second, X)


@kernel_matrix.register(Constant)
def _(kernel: Constant, X: Value, Z: np.ndarray) -> Value:
    return X.columns([0]) * 0.0 + np.full((1, len(Z)), float(kernel.value))


@energy.register(Constant)
def _(kernel: Constant, X: Value) -> Value:
    return X.columns([0]) * 0.0 + float(kernel.value)


@kernel_matrix.register(Normalized)
def _(kernel: Normalized, X: Value, Z: np.ndarray) -> Value:
    energies, landmark_energies = energy(kernel.kernel, X), kernel.kernel.diag(Z)
    is_positive = energies > 0.0
    scale = 1.0 / np.sqrt(np.where(landmark_energies > 0, landmark_energies, np.inf))
    inverse = is_positive.floats() / is_positive.where(energies, 1.0).sqrt()
    return kernel_matrix(kernel.kernel, X, Z) * inverse * scale


@energy.register(Normalized)
def _(kernel: Normalized, X: Value) -> Value:
    return (energy(kernel.kernel, X) > 0.0).floats()
