"""Codes of FDDL: accelerated proximal steps on all samples at once.

The squared terms of objective (7) in a code γ are γQγᵀ − 2γcᵀ, with the same Q = DDᵀ +
the blocks D_jD_jᵀ on the diagonal for all classes. Samples interact only through the
means of the classes, so one step is a few matrix products and a soft threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from ..contracts import Array
from ..dictionaries import ExplicitDictionary
from ..io.checkpoint import Checkpoint, fitting
from ..learners.loop import Alternation, Monitor, iterate
from ..numerics.arrays import as_like, double, inner, namespace, row_norms, zeros
from ..numerics.convergence import warn_unfinished
from ..numerics.threads import parallel
from .fddl_objective import (
    ClassLayout,
    FisherSums,
    Moments,
    Penalties,
    improve_atoms,
)
from .ksad_atoms import soft_threshold

STEPS = 100  # largest number of proximal steps in one iteration
FIRST_STEPS = 300  # the same if the codes start at zero
TOLERANCE = 1e-5


class Quadratic:
    """Q as an operator on codes, applied with as few multiplications as possible."""

    def __init__(self, atoms: Array, layout: ClassLayout) -> None:
        self.atoms, self.columns = atoms, layout.columns
        class_atoms = [atoms[columns] for columns in layout.columns]
        self.grams = [D_j @ D_j.T for D_j in class_atoms]
        bounds = [largest_eigenvalue(D_j) for D_j in class_atoms]
        self.bound = largest_eigenvalue(atoms) + max(bounds)
        self.dense: Array | None = None
        if atoms.shape[0] <= 2 * atoms.shape[1]:
            self.dense = atoms @ atoms.T
            for columns, gram in zip(self.columns, self.grams, strict=True):
                self.dense[columns, columns] += gram

    def __call__(self, codes: Array) -> Array:  # (n, m)
        """ΓQ."""
        if self.dense is not None:
            return codes @ self.dense
        product = (codes @ self.atoms) @ self.atoms.T
        for columns, gram in zip(self.columns, self.grams, strict=True):
            product[:, columns] += codes[:, columns] @ gram
        return product


def largest_eigenvalue(rows: Array) -> float:
    """Return the largest eigenvalue of rows · rowsᵀ, or equally of rowsᵀ · rows."""
    wide = double(rows)
    product = wide @ wide.T if rows.shape[0] <= rows.shape[1] else wide.T @ wide
    return float(namespace(product).linalg.eigvalsh(product)[-1])


class CodeDescent:
    """Accelerated proximal descent on J; `codes` are the best so far."""

    def __init__(
        self,
        X: Array,  # (n, p)
        atoms: Array,  # (m, p)
        codes: Array,  # (n, m)
        layout: ClassLayout,
        penalties: Penalties,
    ) -> None:
        self.layout, self.penalties = layout, penalties
        self.quadratic = Quadratic(atoms, layout)
        self.curvature = self.quadratic.bound + penalties.lambda2 * (1 + penalties.eta)
        self.counts = as_like(layout.counts, double(X[:0]))
        self.energy = 2 * float(double(row_norms(X)).sum())
        self.blocks = layout.blocks(X)
        self.codes, self.converged = codes, False
        empty_like = namespace(codes).empty_like
        self.previous_codes, self.target = empty_like(codes), empty_like(codes)
        self.products, self.previous_products = empty_like(codes), empty_like(codes)
        self.sums = self.previous_sums = self._sum_blocks(self._start_block, X, atoms)

    def value(self, sums: FisherSums | None = None) -> float:
        """J of codes with these sums, or of the current codes."""
        sums = self.sums if sums is None else sums
        return self.energy + sums.data_terms + self.penalties.value(sums, self.counts)

    def run(self, max_steps: int, tol: float) -> float:
        """Take up to `max_steps` steps; stop when one lowers J by less than tol · J.

        A step that would raise J is not taken, and momentum restarts. `converged` says
        afterwards whether it stopped so.
        """
        self.converged = False
        value, t = self.value(), 1.0
        for _ in range(max_steps):
            t_previous, t = t, (1 + (1 + 4 * t * t) ** 0.5) / 2
            momentum = (t_previous - 1) / t
            sums = self._step(momentum)
            decrease = value - self.value(sums)
            if decrease >= 0:
                self._accept(sums)
                value -= decrease
            elif momentum > 0:
                t = 1.0
                continue
            if decrease <= tol * value:
                self.converged = True
                break
        return value

    def _start_block(self, c: int, rows: slice, X: Array, atoms: Array) -> FisherSums:
        """Set up one block: its target XDᵀ, doubled for atoms of its class, and ΓQ."""
        products = self.quadratic(self.codes[rows])
        self.previous_codes[rows] = self.codes[rows]
        self.products[rows] = self.previous_products[rows] = products
        self.target[rows] = X[rows] @ atoms.T
        self.target[rows, self.layout.columns[c]] *= 2
        return self._block_sums(c, rows, self.codes, self.products)

    def _step(self, momentum: float) -> FisherSums:
        """Step from codes + momentum · (codes − previous), overwriting the previous."""
        sums, previous_sums = self.sums.class_sums, self.previous_sums.class_sums
        class_sums = sums + momentum * (sums - previous_sums)
        mean_terms = self.penalties.mean_terms(class_sums, self.counts)
        return self._sum_blocks(
            self._block_step, momentum, as_like(mean_terms, self.codes)
        )

    def _block_step(
        self,
        c: int,
        rows: slice,
        momentum: float,
        mean_terms: Array,  # (C, m)
    ) -> FisherSums:
        """γ ← T(γ − slope/L) with the soft threshold T at λ₁/L, L twice the bound."""
        penalties, scale = self.penalties, 1 / self.curvature
        previous_codes, previous_products = self.previous_codes, self.previous_products
        point = _extrapolate(self.codes[rows], previous_codes[rows], momentum)
        slope = _extrapolate(self.products[rows], previous_products[rows], momentum)
        slope -= self.target[rows]
        slope += penalties.lambda2 * (1 + penalties.eta) * point
        slope -= mean_terms[c]
        point -= scale * slope
        previous_codes[rows] = soft_threshold(point, penalties.lambda1 * scale / 2)
        previous_products[rows] = self.quadratic(previous_codes[rows])
        return self._block_sums(c, rows, previous_codes, previous_products)

    def _accept(self, sums: FisherSums) -> None:
        """Make the last step the current codes, and these the previous codes."""
        self.codes, self.previous_codes = self.previous_codes, self.codes
        self.products, self.previous_products = self.previous_products, self.products
        self.sums, self.previous_sums = sums, self.sums

    def _block_sums(
        self, c: int, rows: slice, codes: Array, products: Array
    ) -> FisherSums:
        codes, products, target = codes[rows], products[rows], self.target[rows]
        data_terms = inner(codes, products) - 2 * inner(codes, target)
        return FisherSums.of(codes, c, len(self.layout.rows), data_terms)

    def _sum_blocks(
        self, sum_block: Callable[..., FisherSums], *arguments: Any
    ) -> FisherSums:
        """Add up what `sum_block` returns for each block of samples."""
        block_sums = parallel(lambda block: sum_block(*block, *arguments), self.blocks)
        return reduce(add, block_sums)


def _extrapolate(current: Array, previous: Array, momentum: float) -> Array:
    """Return current + momentum · (current − previous) as a new array."""
    if momentum == 0:
        return namespace(current).asarray(current, copy=True)
    point = current - previous
    point *= momentum
    point += current
    return point


class FisherProblem:
    """Samples of one or more classes, with codes and atoms that are updated in turn.

    `X` has the samples of one class after the other, as `layout` says. Codes start at
    zero if none are given.
    """

    def __init__(
        self,
        X: Array,  # (n, p)
        atoms: Array,  # (m, p)
        layout: ClassLayout,
        penalties: Penalties,
        codes: Array | None = None,  # (n, m)
    ) -> None:
        self.X, self.atoms = X, atoms
        self.layout, self.penalties = layout, penalties
        self.codes = zeros(layout.shape, X) if codes is None else codes
        self._steps = FIRST_STEPS if codes is None else STEPS

    def resume(self, atoms: Array, codes: Array) -> None:
        """Continue from these atoms and codes."""
        self.atoms = fitting(atoms, self.atoms)
        self.codes, self._steps = fitting(codes, self.codes), STEPS

    def code(self) -> CodeDescent:
        """Improve the codes for the current atoms."""
        descent = CodeDescent(
            self.X, self.atoms, self.codes, self.layout, self.penalties
        )
        descent.run(self._steps, TOLERANCE)
        self.codes, self._steps = descent.codes, STEPS
        return descent

    def improve(self) -> float:
        """Update the codes, then the atoms, and return J."""
        descent = self.code()
        moments = Moments.of(self.X, self.codes, self.layout)
        self.atoms = improve_atoms(self.atoms, moments, self.layout)
        data_terms = descent.energy + moments.data_terms(self.atoms, self.layout)
        return data_terms + self.penalties.value(descent.sums, descent.counts)

    @property
    def means(self) -> Array:  # (C, m)
        """Mean codes of the classes."""
        means = [double(self.codes[rows]).mean(0) for rows in self.layout.rows]
        return as_like(namespace(means[0]).stack(means), self.X)


class FisherProblems(Alternation):
    """The iterations of FDDL, which improve all problems in parallel."""

    def __init__(self, problems: list[FisherProblem]) -> None:
        self.problems = problems
        self._n_samples = sum(problem.X.shape[0] for problem in problems)

    def current(self) -> ExplicitDictionary:
        """The atoms of all problems, one below the other."""
        atoms = [problem.atoms for problem in self.problems]
        return ExplicitDictionary(namespace(atoms[0]).concat(atoms))

    def step(self, keep: Callable[[], None]) -> dict[str, float]:
        value = sum(parallel(FisherProblem.improve, self.problems))
        return {"objective": value / self._n_samples}

    def state(self) -> dict[str, Any]:
        return {"parts": [{"atoms": p.atoms, "codes": p.codes} for p in self.problems]}

    def resume(self, state: dict[str, Any]) -> None:
        for problem, problem_state in zip(self.problems, state["parts"], strict=True):
            problem.resume(**problem_state)


def fisher_problems(
    X: Array,  # (n, p), class by class
    atoms: Array,  # (m, p)
    layout: ClassLayout,
    penalties: Penalties,
    simplified: bool,
) -> list[FisherProblem]:
    """Return one problem per class if `simplified`, otherwise one for all classes.

    The latter starts from the codes of the former: few codes of a solution use atoms of
    other classes, and the small problems are fast.
    """
    largest_weight = float(namespace(X).finfo(X.dtype).max) ** 0.5
    if not penalties.lambda2 * (1 + penalties.eta) <= largest_weight:
        raise ValueError(
            f"lambda2={penalties.lambda2:g}, eta={penalties.eta:g} are too large for "
            f"numbers of {X.dtype}: the weights of the paper are below 1"
        )
    class_problems = []
    for rows, columns in zip(layout.rows, layout.columns, strict=True):
        n_rows, n_atoms = rows.stop - rows.start, columns.stop - columns.start
        class_layout = ClassLayout.of([n_rows], [n_atoms])
        class_problems.append(
            FisherProblem(X[rows], atoms[columns], class_layout, penalties)
        )
    if simplified:
        return class_problems
    parallel(FisherProblem.code, class_problems)
    codes = zeros(layout.shape, X)
    classes = zip(class_problems, layout.rows, layout.columns, strict=True)
    for problem, rows, columns in classes:
        codes[rows, columns] = problem.codes
    return [FisherProblem(X, atoms, layout, penalties, codes)]


def minimise(
    problems: list[FisherProblem], classifier: Any
) -> tuple[dict[str, list[float]], int]:
    """Alternate between codes and atoms, then update the codes once more.

    Return the history and the number of iterations.
    """
    checkpoint = Checkpoint.of(
        classifier,
        samples=[problem.X for problem in problems],
        labels=np.concatenate([problem.layout.counts for problem in problems]),
        start=[problem.atoms for problem in problems],
    )
    monitor = Monitor.of(classifier, measure="mean objective")
    history, n_iter = iterate(FisherProblems(problems), monitor, checkpoint)
    descents = parallel(FisherProblem.code, problems)
    # Earlier descents need not converge, because the next iteration continues them.
    if not all(descent.converged for descent in descents):
        warn_unfinished(
            f"{type(classifier).__name__}: codes of the training samples still moved "
            f"after max_iter={classifier.max_iter} iterations: raise max_iter"
        )
    return history, n_iter
