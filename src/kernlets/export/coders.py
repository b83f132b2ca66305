"""Turns dictionaries and pursuits into operations, with a fixed number of steps.

`OMP` is unrolled. Its atoms are orthogonalised as they are chosen, which gives the
same codes as `loops.reference.omp` up to rounding, and stops for the same reasons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import numpy as np

from ..coders import OMP, Threshold
from ..dictionaries import ExplicitDictionary, KernelDictionary
from ..kernels import Precomputed
from ..loops import ops
from ..numerics.arrays import to_numpy
from .errors import refusal
from .graph import Value, concatenate, take_rows
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


@singledispatch
def inner_products(dictionary: Any, X: Value) -> AtomProducts:
    """Compute the inner products of rows with the atoms of a dictionary."""
    raise refusal(dictionary, "use ExplicitDictionary or KernelDictionary")


@inner_products.register
def _(dictionary: ExplicitDictionary, X: Value) -> AtomProducts:
    atoms = to_numpy(dictionary.atoms)
    return AtomProducts(to_numpy(dictionary.gram()), X @ atoms.T, squared_norms(X))


@inner_products.register
def _(dictionary: KernelDictionary, X: Value) -> AtomProducts:
    kernel = dictionary.kernel
    if isinstance(kernel, Precomputed):
        raise refusal(kernel, "fit to rows, with the kernel that made the matrix")
    corr = (
        kernel_matrix(kernel, X, dense_points(dictionary.anchors))
        @ to_numpy(dictionary.coefs).T
    )
    return AtomProducts(to_numpy(dictionary.gram()), corr, energy(kernel, X))


@singledispatch
def sparse_codes(coder: Any, products: AtomProducts) -> CodedRows:
    """Compute sparse codes of samples from inner products."""
    raise refusal(coder, CODERS)


# --------------------------------------------------------------------- thresholds


@sparse_codes.register
def _(coder: Threshold, products: AtomProducts) -> CodedRows:
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
    return corr * _largest_mask(magnitudes, coder._count(corr.shape[1] or 0))


def _largest_mask(magnitudes: Value, count: int) -> Value:  # (n, m)
    """Return 1 at the largest entries of each row, the first of equal ones."""
    mask = one_hot = _one_hot(magnitudes.argmax(), magnitudes)
    for _ in range(count - 1):
        magnitudes = (one_hot > 0.0).where(-1.0, magnitudes)
        one_hot = _one_hot(magnitudes.argmax(), magnitudes)
        mask = mask + one_hot
    return mask


def _one_hot(index: Value, like: Value) -> Value:  # (n, 1), (n, m) -> (n, m)
    return index.equals(np.arange(like.shape[1] or 0)[None]).floats()


# ------------------------------------------------------------------------ matching


@sparse_codes.register
def _(coder: OMP, products: AtomProducts) -> CodedRows:
    if coder.positive:
        raise refusal("OMP with positive=True", "use OMP without it")
    n_steps = coder.width(products.n_atoms)
    state = Matching(products, n_steps, float(coder.tol or 0.0))
    for step in range(n_steps):
        state.choose(step)
    return CodedRows(state.codes(), state.residual)


@dataclass
class Matching:
    """Orthogonal matching pursuit after some steps, for all samples at once.

    The t-th chosen atom, without its part in the span of those before, is a unit
    vector uₜ. The state holds ⟨uₜ, atoms⟩, uₜ as a combination of the chosen atoms,
    and ⟨x, uₜ⟩. A sample that has stopped gets zeros from there on.
    """

    products: AtomProducts
    n_steps: int
    tol: float
    correlations: Value = field(init=False)  # (n, m), 0 at chosen atoms
    residual: Value = field(init=False)  # (n, 1)
    stop: Value = field(init=False)  # (n, 1)
    active: Value | None = None  # (n, 1) 1 while a sample goes on, then 0
    atom_indices: list[Value] = field(default_factory=list)  # (n, 1) chosen atoms
    u_atom_products: list[Value] = field(default_factory=list)  # (n, 1, m) ⟨u, atoms⟩
    u_combinations: list[Value] = field(default_factory=list)  # (n, 1, n_steps) of u
    x_u_products: list[Value] = field(default_factory=list)  # (n, 1) ⟨x, u⟩

    def __post_init__(self) -> None:
        eps = float(np.finfo(self.products.corr.graph.dtype).eps)
        self.correlations, self.residual = self.products.corr, self.products.energy
        self.stop = (4 * eps * self.products.energy).at_least(self.tol)
        self.tiny = ops.least_independent(eps)

    def choose(self, step: int) -> None:
        """Choose the atom with the largest correlation for each sample."""
        atom_index = self.correlations.abs().argmax()
        one_hot = _one_hot(atom_index, self.correlations)
        atom_products = take_rows(self.products.gram, atom_index)  # (n, m)
        combination = self.correlations.graph.value(np.eye(self.n_steps)[step, None])
        norm = (one_hot * atom_products).sum(1)
        least_norm = self.tiny * norm
        if step:
            earlier_products = concatenate(self.u_atom_products, 1)  # (n, step, m)
            shares = earlier_products @ one_hot.expand(2)  # (n, step, 1)
            norm = norm - (shares * shares).sum(1).squeeze(2)
            atom_products = atom_products - (shares * earlier_products).sum(1).squeeze(
                1
            )
            earlier_combinations = (
                (shares * concatenate(self.u_combinations, 1)).sum(1).squeeze(1)
            )
            combination = combination - earlier_combinations
        correlation = (one_hot * self.correlations).sum(1)
        goes_on = (
            (self.residual > self.stop)
            & (norm > least_norm)
            & (correlation.abs() > 0.0)
        )
        active = goes_on.floats()
        self.active = active if self.active is None else self.active * active
        scale = self.active / (norm > least_norm).where(norm, 1.0).sqrt()
        atom_products, x_u_product = atom_products * scale, correlation * scale
        self.residual = (self.residual - x_u_product * x_u_product).at_least(0.0)
        self.correlations = (self.correlations - x_u_product * atom_products) * (
            1.0 - one_hot
        )
        self.atom_indices.append(atom_index)
        self.x_u_products.append(x_u_product)
        self.u_atom_products.append(atom_products.expand(1))
        self.u_combinations.append((combination * scale).expand(1))

    def codes(self) -> Value:  # (n, m)
        """Return the codes: the coefficients of the chosen atoms, zeros elsewhere."""
        values = concatenate(self.x_u_products, 1).expand(1) @ concatenate(
            self.u_combinations, 1
        )
        values = values.squeeze(1)  # (n, width)
        nothing = self.products.corr * 0.0
        inputs = nothing, concatenate(self.atom_indices, 1), values
        settings: dict[str, Any] = {"axis": 1, "reduction": "add"}
        graph, shape = nothing.graph, nothing.shape
        return graph.node("ScatterElements", *inputs, shape=shape, **settings)
