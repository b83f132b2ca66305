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

from ..backend.arrays import as_like, double, empty, inner, namespace, row_norms
from ..backend.threads import parallel
from ..core import Array
from ..dictionaries import ExplicitDictionary
from ..learners.loop import Alternation
from ..persistence.checkpoint import fitting
from .fisher import CodeSums, Layout, Moments, Penalties, improved_atoms, zeros
from .ksad_codes import soft

STEPS = 100  # largest number of steps over the codes in one iteration
FIRST_STEPS = 300  # from codes that are zero
TOLERANCE = 1e-5


class Quadratic:
    """Q as an operator on codes, applied with as few multiplications as possible."""

    def __init__(self, atoms: Array, layout: Layout) -> None:
        self.atoms, self.columns = atoms, layout.columns
        parts = [atoms[columns] for columns in layout.columns]
        self.grams = [part @ part.T for part in parts]
        self.bound = largest(atoms) + max(largest(part) for part in parts)
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


def largest(rows: Array) -> float:
    """The largest eigenvalue of rows · rowsᵀ, from the smaller of the two products."""
    wide = double(rows)
    small = wide @ wide.T if rows.shape[0] <= rows.shape[1] else wide.T @ wide
    return float(namespace(small).linalg.eigvalsh(small)[-1])


class CodeDescent:
    """Descent from given codes; `codes` are the best so far, and J never rises."""

    def __init__(
        self,
        X: Array,  # (n, p)
        atoms: Array,  # (m, p)
        codes: Array,  # (n, m)
        layout: Layout,
        penalties: Penalties,
    ) -> None:
        self.layout, self.penalties = layout, penalties
        self.quadratic = Quadratic(atoms, layout)
        self.curvature = self.quadratic.bound + penalties.lambda2 * (1 + penalties.eta)
        self.counts = as_like(layout.counts, double(X[:0]))
        self.energy = 2 * float(double(row_norms(X)).sum())
        self.blocks = layout.blocks(X)
        self.codes, self.converged = codes, False
        self.older, self.products, self.older_products, self.target = (
            empty(codes.shape, like=codes) for _ in range(4)
        )
        self.sums = self.older_sums = self._total(self._begin, X, atoms)

    def value(self) -> float:
        """J."""
        return self._value(self.sums)

    def _value(self, sums: CodeSums) -> float:
        return self.energy + sums.fit + self.penalties.value(sums, self.counts)

    def run(self, max_steps: int, tol: float) -> float:
        """Take up to `max_steps` steps; stop when one lowers J by less than tol · J.

        A step that would raise J is not taken, and momentum restarts. `converged` says
        afterwards whether it stopped so.
        """
        self.converged = False
        value, age = self.value(), 1.0
        for _ in range(max_steps):
            younger, age = age, (1 + (1 + 4 * age * age) ** 0.5) / 2
            push = (younger - 1) / age
            sums = self._step(push)
            lowered = value - self._value(sums)
            if lowered >= 0:
                self._accept(sums)
                value -= lowered
            elif push > 0:
                age = 1.0
                continue
            if lowered <= tol * value:
                self.converged = True
                break
        return value

    def _begin(self, c: int, rows: slice, X: Array, atoms: Array) -> CodeSums:
        """Set up one block: correlations, doubled for own atoms, and first products."""
        self.older[rows] = self.codes[rows]
        self.products[rows] = self.older_products[rows] = self.quadratic(
            self.codes[rows]
        )
        self.target[rows] = X[rows] @ atoms.T
        self.target[rows, self.layout.columns[c]] *= 2
        return self._sums(c, rows, self.codes, self.products)

    def _step(self, push: float) -> CodeSums:
        """One step from codes + push · (codes − older), which overwrites the older."""
        now, then = self.sums.classes, self.older_sums.classes
        pull = self.penalties.pull(now + push * (now - then), self.counts)
        pull = as_like(pull, self.codes)
        return self._total(self._block_step, push, pull)

    def _block_step(
        self,
        c: int,
        rows: slice,
        push: float,
        pull: Array,  # (C, m)
    ) -> CodeSums:
        """γ ← T(γ − slope/L) with the soft threshold T at λ₁/L, L twice the bound."""
        penalties, scale = self.penalties, 1 / self.curvature
        point = _ahead(self.codes[rows], self.older[rows], push)
        slope = _ahead(self.products[rows], self.older_products[rows], push)
        slope -= self.target[rows]
        slope += penalties.lambda2 * (1 + penalties.eta) * point
        slope -= pull[c]
        point -= scale * slope
        self.older[rows] = soft(point, penalties.lambda1 * scale / 2)
        self.older_products[rows] = self.quadratic(self.older[rows])
        return self._sums(c, rows, self.older, self.older_products)

    def _accept(self, sums: CodeSums) -> None:
        """Make the step the current codes, and the current codes the older ones."""
        self.codes, self.older = self.older, self.codes
        self.products, self.older_products = self.older_products, self.products
        self.sums, self.older_sums = sums, self.sums

    def _sums(self, c: int, rows: slice, codes: Array, products: Array) -> CodeSums:
        part = codes[rows]
        fit = inner(part, products[rows]) - 2 * inner(part, self.target[rows])
        return CodeSums.of(part, c, len(self.layout.rows), fit)

    def _total(self, job: Callable[..., CodeSums], *given: Any) -> CodeSums:
        """Sums over all samples of what `job` returns for each block."""
        return reduce(add, parallel(lambda block: job(*block, *given), self.blocks))


def _ahead(now: Array, then: Array, push: float) -> Array:
    """now + push · (now − then), as a new array."""
    if push == 0:
        return namespace(now).asarray(now, copy=True)
    ahead = now - then
    ahead *= push
    ahead += now
    return ahead


class FisherProblem:
    """Samples of some classes, with their codes and atoms, improved by turns.

    `X` has the samples of one class after the other, as `layout` says. Codes start at
    zero if none are given.
    """

    def __init__(
        self,
        X: Array,  # (n, p)
        atoms: Array,  # (m, p)
        layout: Layout,
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
        given = self.X, self.atoms, self.codes, self.layout, self.penalties
        descent = CodeDescent(*given)
        descent.run(self._steps, TOLERANCE)
        self.codes, self._steps = descent.codes, STEPS
        return descent

    def improve(self) -> float:
        """Codes, then atoms; J after that."""
        descent = self.code()
        moments = Moments.of(self.X, self.codes, self.layout)
        self.atoms = improved_atoms(self.atoms, moments, self.layout)
        fit = descent.energy + moments.fit(self.atoms, self.layout)
        return fit + self.penalties.value(descent.sums, descent.counts)

    @property
    def means(self) -> Array:  # (C, m)
        """Mean codes of the classes."""
        means = [double(self.codes[rows]).mean(0) for rows in self.layout.rows]
        return as_like(namespace(means[0]).stack(means), self.X)


class FisherProblems(Alternation):
    """FDDL: a turn of each problem, all at once."""

    def __init__(self, parts: list[FisherProblem]) -> None:
        self.parts = parts
        self._n_samples = sum(part.X.shape[0] for part in parts)

    def current(self) -> ExplicitDictionary:
        """The atoms of all problems, one below the other."""
        atoms = [part.atoms for part in self.parts]
        return ExplicitDictionary(namespace(atoms[0]).concat(atoms))

    def step(self, keep: Callable[[], None]) -> dict[str, float]:
        value = sum(parallel(FisherProblem.improve, self.parts))
        return {"objective": value / self._n_samples}

    def state(self) -> dict[str, Any]:
        parts = [{"atoms": part.atoms, "codes": part.codes} for part in self.parts]
        return {"parts": parts}

    def resume(self, state: dict[str, Any]) -> None:
        for part, saved in zip(self.parts, state["parts"], strict=True):
            part.resume(**saved)
