"""torch twins of `rows_omp` and `positive_rows_omp`; see `omp.reference`.

On a GPU the correlations that select an atom come from a product in half precision,
which is several times faster. Its error is bounded, so every atom that could be the
best one is compared in float32: the atoms are those of a product in float32.
"""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor

from .reference import TRIES, UNUSED, least_independent
from .torch import SupportSystems, clear_unbounded, largest_correlation, load_triton


def rows_omp(
    atoms: Tensor,  # (m, p)
    X: Tensor,  # (n, p)
    energy: Tensor,  # (n,)
    width: int,
    tol: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """All samples take their steps together; a sample that has stopped leaves."""
    pursuit = Pursuit(atoms, X, energy, width, tol)
    for t in range(width):
        if not pursuit.take(t):
            break
    return pursuit.codes()


class PursuitState:
    """The arrays of a pursuit of all samples; `rows` have not stopped."""

    def __init__(
        self, atoms: Tensor, X: Tensor, energy: Tensor, width: int, tol: float
    ) -> None:
        self.eps = torch.finfo(X.dtype).eps
        self.atoms, self.residual, self.error = atoms, X.clone(), energy.clone()
        self.stop = (4 * self.eps * energy).clamp(min=tol)
        self.indices = torch.full((len(X), width), UNUSED, device=X.device)
        is_active = (self.error > self.stop) & self.error.isfinite()
        self.rows = is_active.nonzero()[:, 0]
        triton_rows = fused_steps(atoms, X, width)
        self.fused_steps = triton_rows and triton_rows.Steps(atoms, self)


class Pursuit(PursuitState):
    """The state of all samples, in plain torch."""

    def __init__(
        self, atoms: Tensor, X: Tensor, energy: Tensor, width: int, tol: float
    ) -> None:
        super().__init__(atoms, X, energy, width, tol)
        self.inverse = X.new_zeros((len(X), width, width))
        self.c = X.new_zeros((len(X), width))

    def take(self, t: int) -> bool:
        """Let each sample in `rows` take an atom; return whether any is left there."""
        rows = self.rows
        if len(rows) and self.fused_steps:
            self.fused_steps.take(self, t)
        elif len(rows):
            self._take(t)
        is_taken = self.indices[rows, t] >= 0
        self.rows = rows[is_taken & (self.error[rows] > self.stop[rows])]
        return len(self.rows) > 0

    def _take(self, t: int) -> None:
        atoms, rows = self.atoms, self.rows
        support = self.indices[rows, :t]
        corr_residual = self.residual[rows] @ atoms.T
        corr_residual.scatter_(1, support, 0)
        k = corr_residual.abs().argmax(dim=1)
        value = corr_residual.gather(1, k[:, None])[:, 0]
        gram_k = torch.einsum("ntp,np->nt", atoms[support], atoms[k])
        projections = torch.einsum("nst,nt->ns", self.inverse[rows, :t, :t], gram_k)
        energy_k = atoms[k].square().sum(dim=1)
        nu2 = energy_k - projections.square().sum(dim=1)
        is_taken = ~(nu2 <= least_independent(self.eps) * energy_k) & (value != 0)
        rows, k, projections = rows[is_taken], k[is_taken], projections[is_taken]
        scale = nu2[is_taken].rsqrt()
        combined_rows = torch.einsum(
            "ns,nst->nt", projections, self.inverse[rows, :t, :t]
        )
        self.inverse[rows, t, :t] = -scale[:, None] * combined_rows
        self.inverse[rows, t, t] = scale
        self.indices[rows, t], self.c[rows, t] = k, value[is_taken] * scale
        step_coefs = self.c[rows, t, None] * self.inverse[rows, t, : t + 1]
        support_atoms = atoms[self.indices[rows, : t + 1]]
        self.residual[rows] -= torch.einsum("nt,ntp->np", step_coefs, support_atoms)
        energy_drop = self.c[rows, t] ** 2
        self.error[rows] = (self.error[rows] - energy_drop).clamp(min=0)

    def codes(self) -> tuple[Tensor, Tensor, Tensor]:
        values = torch.einsum("ns,nst->nt", self.c, self.inverse)
        return clear_unbounded(self.indices, values, self.error)


def positive_rows_omp(
    atoms: Tensor,  # (m, p)
    X: Tensor,  # (n, p)
    energy: Tensor,  # (n,)
    width: int,
    tol: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """All samples take their steps together; a sample that has stopped leaves."""
    pursuit = PositivePursuit(atoms, X, energy, width, tol)
    for _ in range(TRIES * width):
        if not pursuit.step():
            break
    return pursuit.codes()


class PositivePursuit(PursuitState):
    """The state of all samples of a non-negative pursuit."""

    def __init__(
        self, atoms: Tensor, X: Tensor, energy: Tensor, width: int, tol: float
    ) -> None:
        super().__init__(atoms, X, energy, width, tol)
        self.X, self.energy = X, energy
        self.values = X.new_zeros((len(X), width))
        self.systems = X.new_zeros((len(X), width, width))
        self.corr = X.new_zeros((len(X), width))

    def step(self) -> bool:
        """Let each sample in `rows` take an atom; return whether any is left there."""
        if len(self.rows) == 0:
            return False
        rows = self.rows
        alpha_k, k = self._largest_correlation()
        problem = SupportSystems(*(array[rows] for array in self._state_arrays()))
        d_k = self.atoms[k]
        gram_k = torch.einsum("nwp,np->nw", self._atoms_of(problem.support), d_k)
        gram_k = torch.where(problem.support >= 0, gram_k, 0)
        gram_kk, corr_k = d_k.square().sum(1), (d_k * self.X[rows]).sum(1)
        is_joined, problem = problem.join_atom(k, alpha_k, gram_k, gram_kk, corr_k)
        state = problem.support, problem.coefs, problem.systems, problem.corr
        for array, new_values in zip(self._state_arrays(), state, strict=True):
            array[rows] = new_values
        explained = (problem.coefs * problem.corr).sum(1)
        error = torch.where(
            explained < torch.inf, self.energy[rows] - explained, torch.nan
        )
        self.error[rows] = torch.where(is_joined, error.clamp(min=0), self.error[rows])
        support_atoms = self._atoms_of(problem.support)
        new_residual = self.X[rows] - torch.einsum(
            "nw,nwp->np", problem.coefs, support_atoms
        )
        self.residual[rows] = new_residual
        if self.fused_steps:
            self.fused_steps.half[rows] = self.fused_steps.as_half(new_residual)
        is_full = (problem.support >= 0).all(dim=1)
        self.rows = rows[is_joined & ~is_full & (self.error[rows] > self.stop[rows])]
        return len(self.rows) > 0

    def _state_arrays(self) -> tuple[Tensor, ...]:
        return self.indices, self.values, self.systems, self.corr

    def _atoms_of(self, support: Tensor) -> Tensor:  # (rows, width, p)
        return self.atoms[support.clamp(min=0)]

    def _largest_correlation(self) -> tuple[Tensor, Tensor]:
        """The largest correlations of the samples in `rows`, and their atoms."""
        rows = self.rows
        if not self.fused_steps:
            return largest_correlation(
                self.residual[rows] @ self.atoms.T, self.indices[rows]
            )
        k = self.fused_steps.winners(self, self.indices[rows], signed=True)
        return (self.residual[rows] * self.atoms[k]).sum(1), k

    def codes(self) -> tuple[Tensor, Tensor, Tensor]:
        return clear_unbounded(self.indices, self.values, self.error)


def fused_steps(atoms: Tensor, X: Tensor, width: int) -> ModuleType | None:
    """The Triton twin of a step, where it can be used."""
    is_usable = X.is_cuda and X.dtype == torch.float32
    triton_rows = load_triton("omp.triton_rows") if is_usable else None
    if triton_rows is None or not triton_rows.fits(width):
        return None
    is_finite = bool(atoms.isfinite().all())  # otherwise no bound holds
    return triton_rows if is_finite else None
