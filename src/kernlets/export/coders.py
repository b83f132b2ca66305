"""Turns dictionaries and pursuits into operations, with a fixed number of steps.

`OMP` is unrolled. Its atoms are orthogonalised as they are chosen, which gives the
same codes as `loops.omp.reference.omp` up to rounding, and stops for the same reasons.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..coders import OMP, Threshold
from ..dictionaries import ExplicitDictionary, KernelDictionary
from ..kernels import Precomputed
from ..loops.omp.reference import least_independent
from ..numerics.arrays import to_numpy
from .graph import Value, concatenate, refusal, take_rows
from .kernels import dense_points, energy, kernel_matrix, squared_norms

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
