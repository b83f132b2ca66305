"""torch twin of `positive.positive_omp`; see there for what is computed and why."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .positive import TRIES
from .reference import UNUSED, least_independent
from .torch_ import _clear_unbounded


def positive_omp(
    gram: Tensor,  # (m, m)
    corr: Tensor,  # (n, m)
    energy: Tensor,  # (n,)
    width: int,
    tol: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """All samples take their steps together; a sample that has ended leaves."""
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
    return _clear_unbounded(indices, values, residual)


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
