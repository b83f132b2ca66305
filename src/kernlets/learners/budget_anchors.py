"""`AnchorStock` holds the anchors and atoms of a dictionary on a budget.

`BudgetPasses` learns them from passes over samples.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np

from ..coders import OMP, Lasso
from ..coders.lasso import unfinished_message
from ..contracts import Array, SparseCoder
from ..data.missing import all_in_memory, any_missing, drop_empty_rows, has_missing
from ..data.rows import take_rows
from ..data.sparse_rows import stack_rows
from ..dictionaries import KernelDictionary
from ..io.checkpoint import fitting
from ..kernels import Kernel
from ..kernels.complete import completed_rows, filled_over
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
from ..numerics.convergence import warn_unfinished
from ..numerics.scaling import all_finite
from ..schema import Declared, Either, Floats, Indices, Whole, check
from ..updates.budget_rules import Budget, as_gradient_step, pursuit_of
from .loop import Alternation

BLOCK = 64  # samples whose kernel rows are evaluated together
N_FIRST_INCOMPLETE = 4 * BLOCK  # first samples with missing values, if X has any
NORM_TOLERANCE = 1e-4  # deviation of squared norms from 1 that rounding explains
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


class BudgetPasses(Alternation):
    """The alternation whose step is a pass over samples; the stock is its state."""

    def __init__(
        self,
        stock: AnchorStock,
        n_samples_seen: int,
        kernel: Kernel,
        coder: SparseCoder,
        budget: Budget,
        passes: Iterator[Iterable[Array]],
        rng: np.random.Generator | None = None,
    ) -> None:
        self.stock, self.n_samples_seen = stock, n_samples_seen
        self.kernel, self.coder, self.budget = kernel, coder, budget
        self.passes, self.rng = passes, rng

    @property
    def dictionary(self) -> KernelDictionary:
        """The dictionary of the atoms and anchors in stock."""
        stock = self.stock
        if len(stock) == 0:
            raise ValueError(
                "X has no non-zero samples (in feature space) to begin with"
            )
        coefs = namespace(stock.coefs).asarray(stock.coefs.T, copy=True)
        gram = stock.gram()
        if isinstance(self.coder, OMP):
            coefs, gram = _rescale_atoms(coefs, gram, diagonal(stock.matrix))
        return KernelDictionary(self.kernel, stock.anchors, coefs, known_gram=gram)

    def current(self) -> KernelDictionary:
        return self.dictionary

    def step(self, keep: Callable[[], None]) -> dict[str, float]:
        """Learn from one pass; return the mean squared error and the mean cost."""
        stock, n_seen = self.stock, self.n_samples_seen
        update = as_gradient_step(self.budget.update)
        rules = self.budget.rules(isinstance(self.coder, OMP), stock.start)
        pursuit = pursuit_of(self.coder, stock.start)
        n_learned, n_unstable, sums, converged = 0, 0, np.zeros(2), True
        for batch in next(self.passes):
            samples = _complete_batch(stock, batch)
            steps = update.steps(n_seen, samples.shape[0])
            stock, outcome = stock.learn(self.kernel, samples, steps, rules, pursuit)
            n_seen += samples.shape[0]
            n_learned += len(outcome.errors)
            n_unstable += outcome.n_unstable
            converged = converged and bool(outcome.converged.all())
            sums += [float(outcome.errors.sum()), float(outcome.costs.sum())]
        if not all(all_finite(array) for array in (sums, stock.coefs, stock.gram())):
            raise ValueError(
                "the coefficients have grown without bound: scale the samples, e.g. "
                "with UnitNorm, set guard=True in the update of the budget, or a "
                "smaller step"
            )
        n_skipped = n_seen - self.n_samples_seen - n_learned
        _warn_of_pass(n_unstable if not update.guard else 0, n_skipped)
        if not converged:
            warn_unfinished(unfinished_message(cast(Lasso, self.coder)))
        self.stock, self.n_samples_seen = stock, n_seen
        error, cost = sums / max(n_learned, 1)
        return {"objective": float(error), "cost": float(cost)}

    def state(self) -> dict[str, Any]:
        stock, n_seen = vars(self.stock), self.n_samples_seen
        return {"stock": stock, "n_samples_seen": n_seen, "rng": self.rng}

    def resume(self, state: dict[str, Any]) -> None:
        if self.rng is not None:
            self.rng.bit_generator.state = state["rng"].bit_generator.state
        stock, (_, p) = AnchorStock(**state["stock"]), self.stock.anchors.shape
        fitting(stock.start, self.stock.start)
        if check(stock)["p"] != p:
            raise ValueError(f"it has anchors of other samples than those with {p}")
        self.stock, self.n_samples_seen = stock, state["n_samples_seen"]


def _warn_of_pass(n_unstable: int, n_skipped: int) -> None:
    """Warn of steps that were too long, and of samples that were too large."""
    if n_unstable:
        warnings.warn(
            f"{n_unstable} steps were too long to lower the cost of their sample, "
            "and the coefficients may grow without bound: set guard=True or a "
            "smaller step in update",
            stacklevel=7,
        )
    if n_skipped:
        warnings.warn(
            f"{n_skipped} samples were not learned from: their κ(x, x) is over "
            f"{GIANT:g} times that of any anchor, and they would outweigh all "
            "others for good. Scale the samples, e.g. with UnitNorm; if the stream "
            "has changed its scale, fit a new learner",
            stacklevel=7,
        )


def complete_first_samples(X: Array) -> Array:
    """Return X, or, if values are missing, its first samples, completed."""
    if not any_missing(X):
        return X
    if not all_in_memory(X):
        X = take_rows(X, np.arange(min(X.shape[0], 16 * N_FIRST_INCOMPLETE)))
    observed = drop_empty_rows(X)[:N_FIRST_INCOMPLETE]
    if observed.shape[0] == 0:
        raise ValueError(
            "X has no sample of which anything is known to begin with: pass "
            "samples with at least one entry that is not NaN"
        )
    return completed_rows(observed)


def _complete_batch(stock: AnchorStock, batch: Array) -> Array:
    """Complete missing values of a batch; rows with nothing observed are left out."""
    if not has_missing(batch):
        return batch
    observed = drop_empty_rows(batch)
    return (
        filled_over(observed, stock.anchors) if len(stock) else completed_rows(observed)
    )


def _rescale_atoms(
    coefs: Array,  # (m, r)
    gram: Array,  # (m, m)
    energies: Array,  # (r,) of the anchors
) -> tuple[Array, Array | None]:
    """Scale atoms to unit norm if rounding or pruning has changed their norm.

    An atom that lost all its anchors is replaced by φ of one of the anchors.
    """
    squared_norms = to_numpy(diagonal(gram)).astype(np.float64)
    deviating = np.flatnonzero(~(np.abs(squared_norms - 1) <= NORM_TOLERANCE))
    if len(deviating) == 0:
        return coefs, gram
    for j in deviating:
        if not squared_norms[j] > 0:
            anchor = int(j) % coefs.shape[1]
            coefs[j], coefs[j, anchor] = 0, 1
            squared_norms[j] = float(energies[anchor])
        coefs[j] /= float(np.sqrt(squared_norms[j]))
    return coefs, None
