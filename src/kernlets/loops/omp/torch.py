"""torch twins of `omp`, `positive_omp` and `masked_omp`, batched over samples."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from functools import lru_cache
from types import ModuleType

import torch
from torch import Tensor

from .reference import FAINT, TRIES, UNUSED, least_independent


def omp(
    gram: Tensor,  # (m, m)
    corr: Tensor,  # (n, m)
    energy: Tensor,  # (n,)
    width: int,
    tol: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """OMP of all samples in step, by partial Cholesky of the Gram matrix.

    See `loops.omp.numba.omp` for the recursion. A sample that has stopped takes steps
    of length zero; a NaN among the correlations is the largest of all.
    """
    if corr.is_cuda and corr.dtype == torch.float32:
        triton_omp = load_triton("omp.triton")
        if triton_omp is not None and triton_omp.fits(corr.shape[1], width):
            return triton_omp.omp(gram, corr, energy, width, tol)
    (n, m), eps = corr.shape, torch.finfo(corr.dtype).eps
    indices = torch.full((n, width), UNUSED, dtype=torch.int64, device=corr.device)
    V = corr.new_zeros((n, width, m))
    c, L = corr.new_zeros((n, width)), corr.new_zeros((n, width, width))
    corr_residual, error = corr.clone(), energy.clone()
    stop = (4 * eps * energy).clamp(min=tol)
    is_live = torch.ones(n, dtype=torch.bool, device=corr.device)
    sample = torch.arange(n, device=corr.device)
    for t in range(width):
        k = corr_residual.abs().argmax(dim=1)
        V_k = V[sample, :t, k]  # (n, t)
        nu2 = gram[k, k] - (V_k * V_k).sum(1)
        alpha_k = corr_residual[sample, k]
        is_dependent = nu2 <= least_independent(eps) * gram[k, k]
        is_live &= (error > stop) & ~is_dependent & (alpha_k != 0)
        if not is_live.any():
            break
        inverse_nu = torch.where(is_live, torch.where(is_live, nu2, 1).rsqrt(), 0)
        v = gram[k] - torch.einsum("nt,ntm->nm", V_k, V[:, :t])
        V[:, t] = v * inverse_nu[:, None]
        c[:, t] = alpha_k * inverse_nu
        L[:, t, :t], L[:, t, t] = V_k, torch.where(is_live, nu2.sqrt(), 1)
        corr_residual -= c[:, t, None] * V[:, t]
        corr_residual.scatter_(1, k[:, None], 0)
        corr_residual.scatter_(1, indices[:, :t].clamp(min=0), 0)
        energy_drop = c[:, t] ** 2
        error = torch.where(
            energy_drop < torch.inf, (error - energy_drop).clamp(min=0), torch.nan
        )
        indices[:, t] = torch.where(is_live, k, UNUSED)
    return clear_unbounded(indices, _coefficients(L, c, indices), error)


def _coefficients(L: Tensor, c: Tensor, indices: Tensor) -> Tensor:
    """Solve Lᵀγ = c, with the identity in the slots that are not used."""
    is_used = indices >= 0
    are_used = is_used[:, :, None] & is_used[:, None, :]
    identity = torch.eye(c.shape[1], dtype=c.dtype, device=c.device)
    factors = torch.where(are_used, L, identity)
    solution = torch.linalg.solve_triangular(factors.mT, c[:, :, None], upper=True)
    return torch.where(is_used, solution[:, :, 0], 0)


def clear_unbounded(
    indices: Tensor, values: Tensor, error: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Replace codes that are not finite by empty ones with the residual NaN."""
    is_bad = ~(error.isfinite() & values.isfinite().all(dim=1))
    indices = indices.masked_fill(is_bad[:, None], UNUSED)
    values = values.masked_fill(is_bad[:, None], 0)
    return indices, values, error.masked_fill(is_bad, torch.nan)


@lru_cache
def load_triton(name: str) -> ModuleType | None:
    """A module of Triton loops, such as "omp.triton"; None without Triton."""
    try:
        return importlib.import_module(f"kernlets.loops.{name}")
    except ImportError:
        return None


def positive_omp(
    gram: Tensor,  # (m, m)
    corr: Tensor,  # (n, m)
    energy: Tensor,  # (n,)
    width: int,
    tol: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """All samples take their steps together; a sample that has stopped leaves."""
    n, eps = len(corr), torch.finfo(corr.dtype).eps
    indices = torch.full((n, width), UNUSED, dtype=torch.int64, device=corr.device)
    values, residual = corr.new_zeros((n, width)), energy.clone()
    residual[~corr.isfinite().all(dim=1) | ~energy.isfinite()] = torch.nan
    stop = (4 * eps * energy).clamp(min=tol)
    rows = (residual > stop).nonzero()[:, 0]
    for _ in range(TRIES * width):
        if len(rows) == 0:
            break
        state = indices[rows], values[rows]
        is_joined, support, coefs = _step(gram, corr[rows], *state)
        explained = (coefs * support_corr(corr[rows], support)).sum(1)
        error = torch.where(explained < torch.inf, energy[rows] - explained, torch.nan)
        indices[rows], values[rows] = support, coefs
        residual[rows] = torch.where(is_joined, error.clamp(min=0), residual[rows])
        is_full = (support >= 0).all(dim=1)
        rows = rows[is_joined & ~is_full & (residual[rows] > stop[rows])]
    return clear_unbounded(indices, values, residual)


def _step(
    gram: Tensor,
    corr: Tensor,  # (n, m)
    support: Tensor,  # (n, width), with a free slot in every row
    coefs: Tensor,  # (n, width)
) -> tuple[Tensor, Tensor, Tensor]:
    """Whether samples took an atom (n,), with their new supports and coefficients."""
    is_used = support >= 0
    # slots in use come first; rows of Gram are long
    n_used = int(is_used.sum(1).amax())
    rows = gram[support[:, :n_used].clamp(min=0)]
    corr_residual = corr - torch.einsum("nw,nwm->nm", coefs[:, :n_used], rows)
    alpha_k, k = largest_correlation(corr_residual, support)
    atoms = support.clamp(min=0)
    systems = torch.where(
        is_used[:, :, None] & is_used[:, None, :],
        gram[atoms[:, :, None], atoms[:, None, :]],
        0,
    )
    problem = SupportSystems(support, coefs, systems, support_corr(corr, support))
    gram_k = torch.where(is_used, gram[atoms, k[:, None]], 0)
    corr_k = corr.gather(1, k[:, None])[:, 0]
    is_joined, problem = problem.join_atom(k, alpha_k, gram_k, gram[k, k], corr_k)
    return is_joined, problem.support, problem.coefs


def largest_correlation(
    corr_residual: Tensor, support: Tensor
) -> tuple[Tensor, Tensor]:
    """The largest correlation of each sample with an atom not in its support, and the
    atom."""
    # free slots point past the atoms
    padded = torch.cat([corr_residual, corr_residual[:, :1]], dim=1)
    padded.scatter_(1, support.where(support >= 0, corr_residual.shape[1]), 0)
    alpha_k, k = padded[:, :-1].max(dim=1)
    return alpha_k, k


def support_corr(corr: Tensor, support: Tensor) -> Tensor:  # (n, width)
    """The correlations with the atoms of the support, zero in free slots."""
    return torch.where(support >= 0, corr.gather(1, support.clamp(min=0)), 0)


@dataclass(frozen=True)
class SupportSystems:
    """Supports with the systems of least squares over them; free slots come last."""

    support: Tensor  # (n, width)
    coefs: Tensor  # (n, width)
    systems: Tensor  # (n, width, width) inner products of the atoms, 0 in free slots
    corr: Tensor  # (n, width) inner products with the samples, 0 in free slots

    def join_atom(
        self,
        k: Tensor,  # (n,) the atoms to take
        alpha_k: Tensor,  # (n,) their correlations with the residuals
        gram_k: Tensor,  # (n, width) their inner products with the support
        gram_kk: Tensor,  # (n,) their squared norms
        corr_k: Tensor,  # (n,) their inner products with the samples
    ) -> tuple[Tensor, SupportSystems]:
        """Which samples took the atom (n,), and the state after least squares."""
        explained = (gram_k * self._solve(gram_k)).sum(1)
        least = least_independent(torch.finfo(gram_kk.dtype).eps) * gram_kk
        is_joined = ~(alpha_k <= 0) & ~(gram_kk - explained <= least)
        rows = is_joined.nonzero()[:, 0]
        slot = (self.support >= 0).sum(1)[rows]
        support, systems = self.support.clone(), self.systems.clone()
        new_corr = self.corr.clone()
        support[rows, slot], new_corr[rows, slot] = k[rows], corr_k[rows]
        systems[rows, slot] = systems[rows, :, slot] = gram_k[rows]
        systems[rows, slot, slot] = gram_kk[rows]
        return is_joined, SupportSystems(
            support, self.coefs, systems, new_corr
        )._solve_feasible()

    def _solve_feasible(self) -> SupportSystems:
        """Least squares on the atoms that keep a positive coefficient."""
        state = self
        while True:
            solution = state._solve(state.corr)
            is_low = (solution <= 0) & (state.support >= 0)
            if not is_low.any():
                return replace(state, coefs=solution)
            state = state._without_lowest(solution, is_low)

    def _without_lowest(self, solution: Tensor, is_low: Tensor) -> SupportSystems:
        """Move towards the solution until a coefficient is zero, and drop its atom."""
        is_affected, coefs = is_low.any(dim=1), self.coefs
        steps = torch.where(is_low, coefs / (coefs - solution), torch.inf)
        step, first_zero = steps.min(dim=1, keepdim=True)
        new_coefs = coefs + step.where(is_affected[:, None], 1) * (solution - coefs)
        is_dropped = (new_coefs <= 0) | (
            torch.zeros_like(is_low).scatter_(1, first_zero, True)
        )
        is_dropped = is_dropped & is_affected[:, None]
        support = self.support.masked_fill(is_dropped, UNUSED)
        order = torch.argsort((support < 0).to(torch.int8), dim=1, stable=True)
        is_cleared = is_dropped[:, :, None] | is_dropped[:, None, :]
        systems = self.systems.masked_fill(is_cleared, 0)
        systems = systems.gather(1, order[:, :, None].expand_as(systems))
        return SupportSystems(
            support.gather(1, order),
            new_coefs.masked_fill(is_dropped, 0).gather(1, order),
            systems.gather(2, order[:, None, :].expand_as(systems)),
            self.corr.masked_fill(is_dropped, 0).gather(1, order),
        )

    def _solve(self, rhs: Tensor) -> Tensor:  # (n, width)
        """The solutions of the systems, zero in free slots; NaN if there is none."""
        is_free = (self.support < 0).to(rhs.dtype)
        systems = self.systems + torch.diag_embed(is_free)
        solution, info = torch.linalg.solve_ex(systems, rhs[:, :, None])
        solution = torch.where(info[:, None] == 0, solution[:, :, 0], torch.nan)
        return torch.where(self.support >= 0, solution, 0)


def masked_omp(
    atoms: Tensor, X: Tensor, observed: Tensor, width: int, tol: float
) -> tuple[Tensor, Tensor, Tensor]:
    """All samples take one atom per step; V is orthonormal where observed."""
    (n, p), eps = X.shape, torch.finfo(X.dtype).eps
    o = observed.to(X.dtype)
    scale = _inverse_norms(o @ (atoms * atoms).T)
    indices = torch.full((n, width), UNUSED, dtype=torch.int64, device=X.device)
    V = X.new_zeros((n, width, p))
    c, factor = X.new_zeros((n, width)), X.new_zeros((n, width, width))
    residual, error = X.clone(), (X * X).sum(1)
    stop = torch.maximum(4 * eps * error, tol * o.mean(1))
    is_live = torch.ones(n, dtype=torch.bool, device=X.device)
    for t in range(width):
        corr = residual @ atoms.T * scale
        is_chosen = corr.new_zeros((n, len(atoms) + 1), dtype=torch.bool)
        is_chosen.scatter_(1, indices[:, :t] % (len(atoms) + 1), True)
        corr = corr.masked_fill(is_chosen[:, :-1], 0)
        k = corr.abs().argmax(dim=1)
        atom = atoms[k] * o
        energy = (atom * atom).sum(1)
        projections = torch.einsum("np,ntp->nt", atom, V[:, :t])
        nu2 = energy - (projections * projections).sum(1)
        value = corr.gather(1, k[:, None])[:, 0]
        is_dependent = nu2 <= least_independent(eps) * energy
        is_live &= (error > stop) & ~is_dependent & (value != 0)
        if not is_live.any():
            break
        v = atom - torch.einsum("nt,ntp->np", projections, V[:, :t])
        nu = torch.where(is_live, nu2, 1).sqrt()
        V[:, t] = torch.where(is_live[:, None], v / nu[:, None], 0)
        c[:, t] = (V[:, t] * X).sum(1)
        factor[:, t, :t], factor[:, t, t] = projections, nu
        residual = residual - c[:, t, None] * V[:, t]
        error = torch.where(is_live, (residual * residual).sum(1), error)
        indices[:, t] = torch.where(is_live, k, UNUSED)
    return clear_unbounded(indices, _coefficients(factor, c, indices), error)


def _inverse_norms(energy: Tensor) -> Tensor:  # (n, m)
    usable = energy > FAINT * energy.amax(dim=1, keepdim=True)
    return torch.where(usable, torch.where(usable, energy, 1).rsqrt(), 0)
