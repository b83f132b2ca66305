"""Dictionaries and pursuits as operations: inner products, then a fixed count of steps.

`OMP` is unrolled. Its atoms are orthogonalised as they are chosen, which gives the
same codes as `hot.reference.omp` up to rounding, and stops for the same reasons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import numpy as np

from ..backend import ops
from ..backend.arrays import to_numpy
from ..dictionaries import ExplicitDictionary, KernelDictionary
from ..kernels import Precomputed
from ..pursuits import OMP, Threshold
from .errors import refusal
from .graph import Value, joined, rows_of
from .kernels import energy, matrix, points, squared_norms

CODERS = "use OMP with n_nonzero_coefs, or Threshold, as its coder"


@dataclass(frozen=True)
class Products:
    """What a pursuit needs of samples and atoms."""

    gram: np.ndarray  # (m, m)
    corr: Value  # (n, m)
    energy: Value  # (n, 1)

    @property
    def n_atoms(self) -> int:
        return self.gram.shape[0]


@dataclass(frozen=True)
class Coded:
    """Codes of samples, and their squared residuals."""

    codes: Value  # (n, m)
    residual: Value  # (n, 1)


@singledispatch
def products(dictionary: Any, X: Value) -> Products:
    """Inner products of rows with the atoms of a dictionary."""
    raise refusal(dictionary, "use ExplicitDictionary or KernelDictionary")


@products.register
def _(dictionary: ExplicitDictionary, X: Value) -> Products:
    atoms = to_numpy(dictionary.atoms)
    return Products(to_numpy(dictionary.gram()), X @ atoms.T, squared_norms(X))


@products.register
def _(dictionary: KernelDictionary, X: Value) -> Products:
    kernel = dictionary.kernel
    if isinstance(kernel, Precomputed):
        raise refusal(kernel, "fit to rows, with the kernel that made the matrix")
    corr = matrix(kernel, X, points(dictionary.anchors)) @ to_numpy(dictionary.coefs).T
    return Products(to_numpy(dictionary.gram()), corr, energy(kernel, X))


@singledispatch
def coded(coder: Any, seen: Products) -> Coded:
    """Sparse codes of samples."""
    raise refusal(coder, CODERS)


# --------------------------------------------------------------------- thresholds


@coded.register
def _(coder: Threshold, seen: Products) -> Coded:
    codes = _shrunk(coder, seen.corr)
    fit = (codes * (2.0 * seen.corr - codes @ seen.gram)).sum(1)
    return Coded(codes, (seen.energy - fit).at_least(0.0))


def _shrunk(coder: Threshold, corr: Value) -> Value:  # (n, m)
    size = corr.abs()
    if coder.kind == "soft":
        shrunk = (size - float(coder.alpha)).at_least(0.0)
        return (corr > 0.0).where(shrunk, -shrunk)
    if coder.kind == "hard":
        return (size > float(coder.alpha)).where(corr, 0.0)
    return corr * _largest(size, coder._count(corr.shape[1] or 0))


def _largest(size: Value, count: int) -> Value:  # (n, m)
    """1 at the largest entries of each row, the first of equal ones."""
    chosen = hot = _one_hot(size.argmax(), size)
    for _ in range(count - 1):
        size = (hot > 0.0).where(-1.0, size)
        hot = _one_hot(size.argmax(), size)
        chosen = chosen + hot
    return chosen


def _one_hot(place: Value, like: Value) -> Value:  # (n, 1), (n, m) -> (n, m)
    return place.equals(np.arange(like.shape[1] or 0)[None]).floats()


# ------------------------------------------------------------------------ matching


@coded.register
def _(coder: OMP, seen: Products) -> Coded:
    if coder.positive:
        raise refusal("OMP with positive=True", "use OMP without it")
    width = coder.width(seen.n_atoms)
    state = Matching(seen, width, float(coder.tol or 0.0))
    for step in range(width):
        state.choose(step)
    return Coded(state.codes(), state.residual)


@dataclass
class Matching:
    """Orthogonal matching pursuit after some steps, for all samples at once.

    The t-th chosen atom, without its part in the span of those before, is a unit
    vector uₜ. The state holds ⟨uₜ, atoms⟩, uₜ as a combination of the chosen atoms,
    and ⟨x, uₜ⟩. A sample that has stopped gets zeros from there on.
    """

    seen: Products
    width: int
    tol: float
    left: Value = field(init=False)  # (n, m) correlations, 0 at chosen atoms
    residual: Value = field(init=False)  # (n, 1)
    stop: Value = field(init=False)  # (n, 1)
    active: Value | None = None  # (n, 1) 1 while a sample goes on, then 0
    places: list[Value] = field(default_factory=list)  # (n, 1) chosen atoms
    along: list[Value] = field(default_factory=list)  # (n, 1, m) ⟨u, atoms⟩
    made_of: list[Value] = field(default_factory=list)  # (n, 1, width) u over places
    lengths: list[Value] = field(default_factory=list)  # (n, 1) ⟨x, u⟩

    def __post_init__(self) -> None:
        eps = float(np.finfo(self.seen.corr.graph.dtype).eps)
        self.left, self.residual = self.seen.corr, self.seen.energy
        self.stop = (4 * eps * self.seen.energy).at_least(self.tol)
        self.tiny = ops.least_independent(eps)

    def choose(self, step: int) -> None:
        """Add the atom with the largest correlation."""
        place = self.left.abs().argmax()
        hot = _one_hot(place, self.left)
        products = rows_of(self.seen.gram, place)  # (n, m)
        combination = self.left.graph.value(np.eye(self.width)[step, None])
        norm = (hot * products).sum(1)
        enough = self.tiny * norm
        if step:
            known = joined(self.along, 1)  # (n, step, m)
            shares = known @ hot.expand(2)  # (n, step, 1)
            norm = norm - (shares * shares).sum(1).squeeze(2)
            products = products - (shares * known).sum(1).squeeze(1)
            made_of = (shares * joined(self.made_of, 1)).sum(1).squeeze(1)
            combination = combination - made_of
        at = (hot * self.left).sum(1)
        goes_on = (self.residual > self.stop) & (norm > enough) & (at.abs() > 0.0)
        active = goes_on.floats()
        self.active = active if self.active is None else self.active * active
        scale = self.active / (norm > enough).where(norm, 1.0).sqrt()
        products, length = products * scale, at * scale
        self.residual = (self.residual - length * length).at_least(0.0)
        self.left = (self.left - length * products) * (1.0 - hot)
        self.places.append(place)
        self.lengths.append(length)
        self.along.append(products.expand(1))
        self.made_of.append((combination * scale).expand(1))

    def codes(self) -> Value:  # (n, m)
        """Coefficients of the chosen atoms at their places."""
        values = joined(self.lengths, 1).expand(1) @ joined(self.made_of, 1)
        values = values.squeeze(1)  # (n, width)
        nothing = self.seen.corr * 0.0
        inputs = nothing, joined(self.places, 1), values
        settings: dict[str, Any] = {"axis": 1, "reduction": "add"}
        graph, shape = nothing.graph, nothing.shape
        return graph.node("ScatterElements", *inputs, shape=shape, **settings)
