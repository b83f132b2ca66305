"""`AnchorStock` holds the anchors and atoms of a dictionary on a budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..contracts import Array
from ..data.sparse_rows import stack_rows
from ..kernels import Kernel
from ..loops.budget.types import ERROR, BudgetOutcome, BudgetPursuit, Rules, Stock
from ..loops.table import budget_stream
from ..numerics.arrays import (
    as_like,
    diagonal,
    double,
    eps,
    index_like,
    move_like,
    namespace,
    to_numpy,
    zeros,
)
from ..numerics.scaling import all_finite
from ..schema import Declared, Either, Floats, Indices, Whole

MAX_AGE = 64  # after so many changes of the anchors their matrix is inverted anew
DRIFT = 1e-4  # relative error of squared norms above which atoms are solved anew
GIANT = 1e4  # samples with κ(x, x) above this times the anchors' largest are skipped


@dataclass(frozen=True)
class AnchorStock:
    """Anchors, their kernel matrix, and the atoms over them.

    Each anchor that is admitted adds a row to the matrix; kernel values of anchors
    are never computed again.
    """

    _declared: ClassVar[Declared] = {
        "anchors": Floats("r", "p", csr=True),
        "matrix": Floats("r", "r", like="anchors"),
        "coefs": Floats("r", "m", like="anchors"),
        "start": Floats("s", "m", like="anchors"),
        "inverse": Either(
            Floats("r", "r", like="float64"), Floats(0, 0, like="float64")
        ),
        "idle": Indices("m", like="int64"),
        "age": Whole(),
    }

    anchors: Array  # (r, p)
    matrix: Array  # (r, r)
    coefs: Array  # (r, m) Ω
    start: Array  # (s, m) coefficients of the first s anchors
    inverse: Array  # (r, r) float64, of the matrix; (0, 0) if no rule needs it
    idle: Array  # (m,) samples since an atom was last used
    age: int = 0  # changes since the inverse was computed

    @classmethod
    def empty(cls, kernel: Kernel, X: Array, start: np.ndarray) -> AnchorStock:
        """Return a stock without anchors for samples of the type of X."""
        float_like = kernel.diag(X[:1])
        start = as_like(start, float_like)
        no_rows = index_like([], X)
        return cls(
            anchors=kernel.take(X, no_rows),
            matrix=zeros((0, 0), float_like),
            coefs=zeros((0, start.shape[1]), float_like),
            start=start,
            inverse=double(zeros((0, 0), float_like)),
            idle=index_like(np.zeros(start.shape[1], np.int64), float_like),
        )

    def __len__(self) -> int:
        return self.coefs.shape[0]

    def gram(self) -> Array:  # (m, m)
        """Return the inner products of the atoms."""
        return self.coefs.T @ (self.matrix @ self.coefs)

    def learn(
        self,
        kernel: Kernel,
        X: Array,  # (n, p)
        steps: np.ndarray,  # (n,)
        rules: Rules,
        pursuit: BudgetPursuit,
    ) -> tuple[AnchorStock, BudgetOutcome]:
        """Learn from a block of samples; return the new stock and the errors.

        Samples that are far too large are skipped: one with a thousand times the usual
        norm turns atoms into itself, and because atoms shrink slowly, the learner would
        not recover for a very long time.
        """
        energy = kernel.diag(X)
        usable_rows = np.flatnonzero(to_numpy(energy) <= self._largest_energy(energy))
        if len(usable_rows) < X.shape[0]:
            rows, steps = index_like(usable_rows, energy), steps[usable_rows]
            X, energy = X[rows], energy[rows]
        candidates = stack_rows(self.anchors, X)
        cross = kernel(X, candidates)
        stock = self._allocate(X.shape[0], rules)
        steps = as_like(steps, energy)
        n_anchors = len(self)
        outcome = budget_stream(stock, n_anchors, cross, energy, steps, rules, pursuit)
        return self._after_block(stock, outcome, candidates), outcome

    def _largest_energy(self, energy: Array) -> float:
        """Return the largest κ(x, x) that a sample to learn from may have."""
        if len(self):
            return GIANT * float(to_numpy(diagonal(self.matrix)).max())
        energies = to_numpy(energy)[to_numpy(energy) > 0]
        return GIANT**2 * float(np.median(energies)) if len(energies) else 0.0

    def _allocate(self, n: int, rules: Rules) -> Stock:
        """Copy the state into arrays that hold all anchors after n more samples."""
        n_anchors, m = self.coefs.shape
        capacity = max(n_anchors, min(n_anchors + n, rules.budget)) + 1
        matrix, coefs = (
            _enlarge(self.matrix, (capacity, capacity)),
            _enlarge(self.coefs, (capacity, m)),
        )
        products = matrix @ coefs
        inverse, slots = double(matrix[:0, :0]), np.zeros(capacity, dtype=np.int64)
        is_projected = rules.feature_space and rules.learn_rejected
        if is_projected or rules.pruning == ERROR or rules.dependence >= 0:
            inverse = _enlarge(self._inverse(rules.jitter), (capacity, capacity))
        slots[:n_anchors] = np.arange(n_anchors)
        return Stock(
            matrix,
            coefs,
            products,
            coefs.T @ products,
            inverse,
            move_like(slots, matrix),
            self.start,
            namespace(self.idle).asarray(self.idle, copy=True),
        )

    def _inverse(self, jitter: float) -> Array:  # (r, r)
        """Return (K + jitter diag K)⁻¹, where K is the matrix."""
        if self.inverse.shape[0] == len(self) and self.age <= MAX_AGE:
            return self.inverse
        matrix = double(self.matrix)
        xp = namespace(matrix)
        jitters = diagonal(matrix) * jitter
        # K is scaled to a diagonal of ones: norms of anchors may be very different
        scale = 1 / xp.sqrt(diagonal(matrix))
        scales = scale[:, None] * scale
        matrix = (matrix + move_like(np.eye(len(self)), matrix) * jitters) * scales
        return xp.linalg.inv(matrix) * scales

    def _after_block(
        self, stock: Stock, outcome: BudgetOutcome, candidates: Array
    ) -> AnchorStock:
        n_anchors = outcome.size
        has_inverse = len(stock.inverse) > 0
        is_recomputed = self.inverse.shape[0] != len(self) or self.age > MAX_AGE
        return replace(
            self,
            anchors=candidates[stock.slots[:n_anchors]],
            matrix=stock.matrix[:n_anchors, :n_anchors],
            coefs=_stable_coefs(stock, n_anchors),
            inverse=(
                stock.inverse[:n_anchors, :n_anchors] if has_inverse else stock.inverse
            ),
            idle=stock.idle,
            age=outcome.n_admitted + (0 if is_recomputed else self.age),
        )


def _stable_coefs(stock: Stock, n_anchors: int) -> Array:  # (r, m)
    """Return the coefficients, solved again from KΩ if they have grown too large.

    If anchors depend on each other, gradient steps add coefficients that cancel in the
    product with the matrix, until the norms of atoms consist of rounding errors.
    """
    matrix, coefs = stock.matrix[:n_anchors, :n_anchors], stock.coefs[:n_anchors]
    xp, norms = namespace(coefs), namespace(coefs).sqrt(diagonal(matrix))[:, None]
    if not _has_drifted(matrix, coefs, norms, stock.gram):
        return coefs
    eigenvalues, eigenvectors = xp.linalg.eigh(double(matrix / norms / norms.T))
    is_significant = eigenvalues > eigenvalues[-1] * eps(coefs) ** 0.5
    inverse_values = xp.where(
        is_significant, 1 / xp.where(is_significant, eigenvalues, 1.0), 0.0
    )
    rotated_products = eigenvectors.T @ double(stock.products[:n_anchors] / norms)
    return (
        as_like(eigenvectors @ (inverse_values[:, None] * rotated_products), coefs)
        / norms
    )


def _has_drifted(
    matrix: Array,  # (r, r)
    coefs: Array,  # (r, m)
    norms: Array,  # (r, 1) of the anchors
    gram: Array,  # (m, m) as the steps have left it
) -> bool:
    """Whether the norms of atoms, computed anew, differ from those in `gram`.

    They are computed only if coefficients are so large that rounding can matter.
    """
    xp = namespace(coefs)
    if not len(coefs) or not all_finite(coefs) or not all_finite(gram):
        return False
    largest_sum = float(xp.max(xp.sum(xp.abs(coefs) * norms, axis=0)))
    largest_square = max(float(xp.max(diagonal(gram))), 0.0)
    if largest_sum <= (DRIFT * largest_square / eps(coefs)) ** 0.5:
        return False
    drift = diagonal(coefs.T @ (matrix @ coefs)) - diagonal(gram)
    return float(xp.max(xp.abs(drift))) > DRIFT * largest_square


def _enlarge(array: Array, shape: tuple[int, int]) -> Array:
    """Copy the array into the corner of a larger array of zeros."""
    enlarged = zeros(shape, array)
    enlarged[: array.shape[0], : array.shape[1]] = array
    return enlarged
