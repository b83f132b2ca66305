"""Kernels as operations: κ(x, z) for points z that the model holds, and κ(x, x).

Formulas are those of the classes in `kernlets.kernels`, which explain them. A factor of
inner products goes into the points: behind the product, onnxruntime would round it to
float32 in a model of float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..contracts import Array
from ..data.sparse_rows import as_dense
from ..kernels import (
    RBF,
    Chi2,
    Cosine,
    Intersection,
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
from .graph import Value, refusal

SUPPORTED = (
    "use RBF, Laplacian, Matern, RationalQuadratic, Linear, Polynomial, Sigmoid, "
    "Cosine, Chi2 or Intersection, or sums, products and Normalized of these"
)


def kernel_matrix(
    kernel: Any,
    X: Value,  # (n, p)
    Z: np.ndarray,  # (m, p)
) -> Value:  # (n, m)
    """κ(xᵢ, zⱼ)."""
    match kernel:
        case RBF():
            return (_squared_distances(X, Z) * -kernel.rate).exp()
        case Matern():
            r = (_squared_distances(X, Z) * kernel._squared_frequency()).sqrt()
            decay = (-r).exp()
            if kernel.nu == 0.5:
                return decay
            return (r + 1.0 if kernel.nu == 1.5 else (r / 3.0 + 1.0) * r + 1.0) * decay
        case RationalQuadratic():
            s = _squared_distances(X, Z) * (kernel._rate / kernel.alpha)
            return (s + 1.0).power(-kernel.alpha)
        case Laplacian():
            return (l1_distances(X, Z) * -kernel.rate).exp()
        case Chi2():
            rows, tiny = X.expand(1), np.finfo(X.graph.dtype).tiny
            differences = rows - Z[None]
            terms = differences * differences / ((rows + tiny) + Z[None])
            return (terms.sum(2).squeeze(2) * -kernel.rate).exp()
        case Linear():
            return X @ Z.T
        case Polynomial():
            return _polynomial(kernel, X @ (kernel.scale * Z.T))
        case Sigmoid():
            return (X @ (kernel.scale * Z.T) + float(kernel.coef0)).tanh()
        case Cosine():
            lengths = np.linalg.norm(Z, axis=1, keepdims=True)
            unit_rows = Z / np.where(lengths > 0, lengths, 1.0)
            return (X / nonzero_divisor(squared_norms(X).sqrt())) @ unit_rows.T
        case Intersection():
            return (X.sum(1) + Z.sum(axis=1) - l1_distances(X, Z)) * 0.5
        case Sum() | Product():
            first = kernel_matrix(kernel.first, X, Z)
            second = kernel_matrix(kernel.second, X, Z)
            return first + second if isinstance(kernel, Sum) else first * second
        case Constant():
            return _column(X, 0.0) + np.full((1, len(Z)), float(kernel.value))
        case Normalized():
            energies, diagonal = energy(kernel.kernel, X), kernel.kernel.diag(Z)
            scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, np.inf))
            is_positive = energies > 0.0
            inverse = is_positive.floats() / is_positive.where(energies, 1.0).sqrt()
            return kernel_matrix(kernel.kernel, X, Z) * inverse * scale
    raise refusal(kernel, SUPPORTED)


def energy(kernel: Any, X: Value) -> Value:  # (n, p) -> (n, 1)
    """κ(x, x)."""
    match kernel:
        case Radial() | Laplacian() | Chi2():
            return _column(X, 1.0)
        case Linear():
            return squared_norms(X)
        case Polynomial():
            return _polynomial(kernel, squared_norms(X) * float(kernel.scale))
        case Sigmoid():
            scale = positive(kernel, "scale")
            return (squared_norms(X) * scale + float(kernel.coef0)).tanh()
        case Cosine():
            return (squared_norms(X) > 0.0).floats()
        case Intersection():
            return X.sum(1)
        case Sum():
            return energy(kernel.first, X) + energy(kernel.second, X)
        case Product():
            return energy(kernel.first, X) * energy(kernel.second, X)
        case Constant():
            return _column(X, float(kernel.value))
        case Normalized():
            return (energy(kernel.kernel, X) > 0.0).floats()
    raise refusal(kernel, SUPPORTED)


def dense_points(Z: Array) -> np.ndarray:  # (m, p)
    """Convert landmarks or anchors to a dense array in memory."""
    if not hasattr(Z, "shape") or len(Z.shape) != 2:
        raise refusal("a kernel of structured samples", SUPPORTED)
    return to_numpy(as_dense(Z))


def squared_norms(X: Value) -> Value:  # (n, 1)
    """‖x‖²."""
    return (X * X).sum(1)


def l1_distances(X: Value, Z: np.ndarray) -> Value:  # (n, m)
    """Σ |x − z|."""
    return (X.expand(1) - Z[None]).abs().sum(2).squeeze(2)


def nonzero_divisor(size: Value) -> Value:
    """Return a divisor that is 1 where a length is zero."""
    return size.equals(0.0).where(1.0, size)


def _squared_distances(X: Value, Z: np.ndarray) -> Value:  # (n, m)
    """‖x − z‖² from centred rows, as in `kernels.distance`."""
    centre = Z.mean(axis=0)
    X, Z = X - centre, Z - centre
    norm_sums = squared_norms(X) + np.square(Z).sum(axis=1)
    return (norm_sums - X @ (2 * Z.T)).at_least(0.0)


def _polynomial(kernel: Polynomial, s: Value) -> Value:
    base = s + float(kernel.coef0)
    power = base
    for _ in range(kernel.degree - 1):
        power = power * base
    return power


def _column(X: Value, number: float) -> Value:  # (n, 1)
    """Return the same number for all rows."""
    return X.columns([0]) * 0.0 + number
