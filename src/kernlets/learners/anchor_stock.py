"""The anchors of a dictionary on a budget, and their update by a block of samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..backend import ops
from ..backend.arrays import (
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
from ..backend.scale import all_finite
from ..backend.sparse_rows import stack_rows
from ..core import Array, Kernel
from ..fields import Declared, Either, Floats, Indices, Whole

MAX_AGE = 64  # changes of the anchors after which their matrix is inverted again
DRIFT = 1e-4  # of squared norms of atoms: from here on coefficients are solved again
GIANT = 1e4  # samples with κ(x, x) above this times the anchors' largest are skipped


@dataclass(frozen=True)
class AnchorStock:
    """Anchors, their kernel matrix, and the atoms over them.

    The matrix gets one row per admission and is never evaluated again.
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
    inverse: Array  # (r, r) float64 of the matrix, or (0, 0) where it is not needed
    idle: Array  # (m,) samples since an atom was last used
    age: int = 0  # changes since the inverse was computed

    @classmethod
    def empty(cls, kernel: Kernel, X: Array, start: np.ndarray) -> AnchorStock:
        """No anchors yet, for samples like X."""
        like = kernel.diag(X[:1])
        start = as_like(start, like)
        none = index_like([], X)
        return cls(
            anchors=kernel.take(X, none),
            matrix=zeros((0, 0), like),
            coefs=zeros((0, start.shape[1]), like),
            start=start,
            inverse=double(zeros((0, 0), like)),
            idle=index_like(np.zeros(start.shape[1], np.int64), like),
        )

    def __len__(self) -> int:
        return self.coefs.shape[0]

    def gram(self) -> Array:  # (m, m)
        """Inner products of the atoms."""
        return self.coefs.T @ (self.matrix @ self.coefs)

    def learn(
        self,
        kernel: Kernel,
        X: Array,  # (n, p)
        steps: np.ndarray,  # (n,)
        rules: ops.Rules,
        pursuit: ops.BudgetPursuit,
    ) -> tuple[AnchorStock, ops.BudgetOutcome]:
        """The anchors and atoms after a block of samples, and a summary of the block.

        Samples that are far too large are skipped: one with a thousand times the usual
        norm turns atoms into itself, and because atoms shrink slowly, the learner would
        not recover for a very long time.
        """
        energy = kernel.diag(X)
        kept = np.flatnonzero(to_numpy(energy) <= self._largest_energy(energy))
        if len(kept) < X.shape[0]:
            rows, steps = index_like(kept, energy), steps[kept]
            X, energy = X[rows], energy[rows]
        pool = stack_rows(self.anchors, X)
        cross = kernel(X, pool)
        stock = self._opened(X.shape[0], rules)
        steps = as_like(steps, energy)
        size = len(self)
        done = ops.budget_stream(stock, size, cross, energy, steps, rules, pursuit)
        return self._closed(stock, done, pool), done

    def _largest_energy(self, energy: Array) -> float:
        """The largest κ(x, x) of samples to learn from."""
        if len(self):
            return GIANT * float(to_numpy(diagonal(self.matrix)).max())
        known = to_numpy(energy)[to_numpy(energy) > 0]
        return GIANT**2 * float(np.median(known)) if len(known) else 0.0

    def _opened(self, n: int, rules: ops.Rules) -> ops.Stock:
        """Allocate room for the anchors that a block of n samples may add."""
        size, m = self.coefs.shape
        c = max(size, min(size + n, rules.budget)) + 1
        matrix, coefs = _grown(self.matrix, (c, c)), _grown(self.coefs, (c, m))
        products = matrix @ coefs
        inverse, slots = double(matrix[:0, :0]), np.zeros(c, dtype=np.int64)
        projects = rules.feature_space and rules.learn_rejected
        if projects or rules.pruning == ops.ERROR or rules.dependence >= 0:
            inverse = _grown(self._inverse(rules.jitter), (c, c))
        slots[:size] = np.arange(size)
        return ops.Stock(
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
        """The inverse of the matrix with `jitter` added to its diagonal."""
        if self.inverse.shape[0] == len(self) and self.age <= MAX_AGE:
            return self.inverse
        matrix = double(self.matrix)
        xp = namespace(matrix)
        more = diagonal(matrix) * jitter
        # scaled to ones on the diagonal, because anchors may have very different norms
        unit = 1 / xp.sqrt(diagonal(matrix))
        units = unit[:, None] * unit
        matrix = (matrix + move_like(np.eye(len(self)), matrix) * more) * units
        return xp.linalg.inv(matrix) * units

    def _closed(
        self, stock: ops.Stock, done: ops.BudgetOutcome, pool: Array
    ) -> AnchorStock:
        size = done.size
        kept = len(stock.inverse) > 0
        fresh = self.inverse.shape[0] != len(self) or self.age > MAX_AGE
        return replace(
            self,
            anchors=pool[stock.slots[:size]],
            matrix=stock.matrix[:size, :size],
            coefs=_settled(stock, size),
            inverse=stock.inverse[:size, :size] if kept else stock.inverse,
            idle=stock.idle,
            age=done.n_admitted + (0 if fresh else self.age),
        )


def _settled(stock: ops.Stock, size: int) -> Array:  # (r, m)
    """The coefficients, solved again from the products if they are too large.

    Where anchors depend on each other, steps add to what the matrix cannot see, until
    its rounding makes up the norms of atoms.
    """
    matrix, coefs = stock.matrix[:size, :size], stock.coefs[:size]
    xp, norms = namespace(coefs), namespace(coefs).sqrt(diagonal(matrix))[:, None]
    if not _drifts(matrix, coefs, norms, stock.gram):
        return coefs
    values, vectors = xp.linalg.eigh(double(matrix / norms / norms.T))
    seen = values > values[-1] * eps(coefs) ** 0.5
    scale = xp.where(seen, 1 / xp.where(seen, values, 1.0), 0.0)
    right = vectors.T @ double(stock.products[:size] / norms)
    return as_like(vectors @ (scale[:, None] * right), coefs) / norms


def _drifts(
    matrix: Array,  # (r, r)
    coefs: Array,  # (r, m)
    norms: Array,  # (r, 1) of the anchors
    gram: Array,  # (m, m) as the steps have left it
) -> bool:
    """Whether the norms of atoms, computed anew, are not those of `gram`.

    That is computed only where rounding can matter.
    """
    xp = namespace(coefs)
    if not len(coefs) or not all_finite(coefs) or not all_finite(gram):
        return False
    spread = float(xp.max(xp.sum(xp.abs(coefs) * norms, axis=0)))
    longest = max(float(xp.max(diagonal(gram))), 0.0)
    if spread <= (DRIFT * longest / eps(coefs)) ** 0.5:
        return False
    drift = diagonal(coefs.T @ (matrix @ coefs)) - diagonal(gram)
    return float(xp.max(xp.abs(drift))) > DRIFT * longest


def _grown(array: Array, shape: tuple[int, int]) -> Array:
    """The array in the corner of a larger array of zeros."""
    grown = zeros(shape, array)
    grown[: array.shape[0], : array.shape[1]] = array
    return grown
