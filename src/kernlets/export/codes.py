"""Kernels, dictionaries and pursuits as operations: κ(x, z), inner products and codes.

Formulas of kernels are those of the classes in `kernlets.kernels`, which explain them.
A factor of inner products goes into the points: behind the product, onnxruntime would
round it to float32 in a model of float64.

`OMP` is unrolled, with a fixed number of steps. Its atoms are orthogonalised as they
are chosen, which gives the same codes as `loops.omp.reference.omp` up to rounding, and
stops for the same reasons.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..coders import OMP, Threshold
from ..contracts import Array
from ..data.sparse_rows import as_dense
from ..dictionaries import ExplicitDictionary, KernelDictionary
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
    Precomputed,
    RationalQuadratic,
    Sigmoid,
)
from ..kernels.base import Constant, Product, Sum, positive
from ..kernels.distance import Radial
from ..loops.omp.reference import least_independent
from ..numerics.arrays import to_numpy
from .graph import Value, concatenate, refusal, take_rows

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


CODERS = "use OMP with n_nonzero_coefs, or Threshold, as its coder"


@dataclass(frozen=True)
class AtomProducts:
    """The inner products of samples and atoms that a pursuit needs."""

    gram: np.ndarray  # (m, m)
    corr: Value  # (n, m)
    energy: Value  # (n, 1)

    @property
    def n_atoms(self) -> int:
        return self.gram.shape[0]


@dataclass(frozen=True)
class CodedRows:
    """The codes of samples, and their squared residuals."""

    codes: Value  # (n, m)
    residual: Value  # (n, 1)


def inner_products(dictionary: Any, X: Value) -> AtomProducts:
    """Compute the inner products of rows with the atoms of a dictionary."""
    if isinstance(dictionary, ExplicitDictionary):
        atoms, gram = to_numpy(dictionary.atoms), to_numpy(dictionary.gram())
        return AtomProducts(gram, X @ atoms.T, squared_norms(X))
    if not isinstance(dictionary, KernelDictionary):
        raise refusal(dictionary, "use ExplicitDictionary or KernelDictionary")
    kernel = dictionary.kernel
    if isinstance(kernel, Precomputed):
        raise refusal(kernel, "fit to rows, with the kernel that made the matrix")
    K = kernel_matrix(kernel, X, dense_points(dictionary.anchors))
    corr = K @ to_numpy(dictionary.coefs).T
    return AtomProducts(to_numpy(dictionary.gram()), corr, energy(kernel, X))


def sparse_codes(coder: Any, products: AtomProducts) -> CodedRows:
    """Compute sparse codes of samples from inner products."""
    if isinstance(coder, OMP):
        return _matching_pursuit(coder, products)
    if not isinstance(coder, Threshold):
        raise refusal(coder, CODERS)
    codes = _threshold_codes(coder, products.corr)
    fit = (codes * (2.0 * products.corr - codes @ products.gram)).sum(1)
    return CodedRows(codes, (products.energy - fit).at_least(0.0))


def _threshold_codes(coder: Threshold, corr: Value) -> Value:  # (n, m)
    if coder.positive:
        corr = corr.at_least(0.0)
    magnitudes = corr.abs()
    if coder.kind == "soft":
        shrunk = (magnitudes - float(coder.alpha)).at_least(0.0)
        return (corr > 0.0).where(shrunk, -shrunk)
    if coder.kind == "hard":
        return (magnitudes > float(coder.alpha)).where(corr, 0.0)
    # the largest entries of each row, the first of equal ones
    mask = one_hot = _one_hot(magnitudes.argmax(), magnitudes)
    for _ in range(coder._count(corr.shape[1] or 0) - 1):
        magnitudes = (one_hot > 0.0).where(-1.0, magnitudes)
        one_hot = _one_hot(magnitudes.argmax(), magnitudes)
        mask = mask + one_hot
    return corr * mask


def _one_hot(index: Value, like: Value) -> Value:  # (n, 1), (n, m) -> (n, m)
    return index.equals(np.arange(like.shape[1] or 0)[None]).floats()


def _matching_pursuit(coder: OMP, products: AtomProducts) -> CodedRows:
    """Orthogonal matching pursuit for all samples at once.

    The t-th chosen atom, without its part in the span of those before, is a unit
    vector uₜ. The lists hold, for each t, ⟨uₜ, atoms⟩, uₜ as a combination of the
    chosen atoms, and ⟨x, uₜ⟩. A sample that has stopped gets zeros from there on.
    """
    if coder.positive:
        raise refusal("OMP with positive=True", "use OMP without it")
    n_steps, graph = coder.width(products.n_atoms), products.corr.graph
    eps = float(np.finfo(graph.dtype).eps)
    stop = (4 * eps * products.energy).at_least(float(coder.tol or 0.0))  # (n, 1)
    corr, residual = products.corr, products.energy  # corr is 0 at chosen atoms
    active: Value | None = None  # (n, 1) 1 while a sample goes on, then 0
    atom_indices: list[Value] = []  # (n, 1)
    u_atom_products: list[Value] = []  # (n, 1, m) ⟨u, atoms⟩
    u_combinations: list[Value] = []  # (n, 1, n_steps)
    x_u_products: list[Value] = []  # (n, 1) ⟨x, u⟩
    for step in range(n_steps):
        atom_index = corr.abs().argmax()
        one_hot = _one_hot(atom_index, corr)
        atom_products = take_rows(products.gram, atom_index)  # (n, m)
        combination = graph.value(np.eye(n_steps)[step, None])
        norm = (one_hot * atom_products).sum(1)
        least_norm = least_independent(eps) * norm
        if step:
            earlier_products = concatenate(u_atom_products, 1)  # (n, step, m)
            earlier_combinations = concatenate(u_combinations, 1)
            shares = earlier_products @ one_hot.expand(2)  # (n, step, 1)
            norm = norm - (shares * shares).sum(1).squeeze(2)
            in_span = (shares * earlier_products).sum(1).squeeze(1)
            atom_products = atom_products - in_span
            combination = combination - (shares * earlier_combinations).sum(1).squeeze(
                1
            )
        correlation = (one_hot * corr).sum(1)
        is_independent = norm > least_norm
        goes_on = (residual > stop) & is_independent & (correlation.abs() > 0.0)
        active = goes_on.floats() if active is None else active * goes_on.floats()
        scale = active / is_independent.where(norm, 1.0).sqrt()
        atom_products, x_u_product = atom_products * scale, correlation * scale
        residual = (residual - x_u_product * x_u_product).at_least(0.0)
        corr = (corr - x_u_product * atom_products) * (1.0 - one_hot)
        atom_indices.append(atom_index)
        u_atom_products.append(atom_products.expand(1))
        u_combinations.append((combination * scale).expand(1))
        x_u_products.append(x_u_product)
    coefs = concatenate(x_u_products, 1).expand(1) @ concatenate(u_combinations, 1)
    zeros = products.corr * 0.0
    inputs = zeros, concatenate(atom_indices, 1), coefs.squeeze(1)
    settings: dict[str, Any] = {"axis": 1, "reduction": "add"}
    codes = graph.node("ScatterElements", *inputs, shape=zeros.shape, **settings)
    return CodedRows(codes, residual)
