"""torch twin of `positive.positive_omp`; see there for what is computed and why."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .positive import TRIES
from .reference import UNUSED, least_independent
from .torch_ import _finite


def positive_omp(
    gram: Tensor,  # (m, m)
    corr: Tensor,  # (n, m)
    energy: Tensor,  # (n,)
    width: int,
    tol: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """All samples in step; one that has ended leaves."""
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
        going, support, coefs = _step(gram, corr[rows], *state)
        fit = (coefs * taken(corr[rows], support)).sum(1)
        error = torch.where(fit < torch.inf, energy[rows] - fit, torch.nan)
        indices[rows], values[rows] = support, coefs
        residual[rows] = torch.where(going, error.clamp(min=0), residual[rows])
        full = (support >= 0).all(dim=1)
        rows = rows[going & ~full & (residual[rows] > stop[rows])]
    return _finite(indices, values, residual)


def _step(
    gram: Tensor,
    corr: Tensor,  # (n, m)
    support: Tensor,  # (n, width), with a free slot in every row
    coefs: Tensor,  # (n, width)
) -> tuple[Tensor, Tensor, Tensor]:
    """Whether samples took an atom (n,), and their supports and coefficients then."""
    used = support >= 0
    in_use = int(used.sum(1).amax())  # slots in use come first; rows of Gram are long
    rows = gram[support[:, :in_use].clamp(min=0)]
    left = corr - torch.einsum("nw,nwm->nm", coefs[:, :in_use], rows)
    most, best = largest(left, support)
    atoms = support.clamp(min=0)
    systems = torch.where(
        used[:, :, None] & used[:, None, :],
        gram[atoms[:, :, None], atoms[:, None, :]],
        0,
    )
    local = Local(support, coefs, systems, taken(corr, support))
    inner = torch.where(used, gram[atoms, best[:, None]], 0)
    right = corr.gather(1, best[:, None])[:, 0]
    going, local = local.joined(best, most, inner, gram[best, best], right)
    return going, local.support, local.coefs


def largest(left: Tensor, support: Tensor) -> tuple[Tensor, Tensor]:
    """The largest correlation of each sample with an atom not in its support."""
    padded = torch.cat([left, left[:, :1]], dim=1)  # free slots point past the atoms
    padded.scatter_(1, support.where(support >= 0, left.shape[1]), 0)
    most, best = padded[:, :-1].max(dim=1)
    return most, best


def taken(corr: Tensor, support: Tensor) -> Tensor:  # (n, width)
    """The correlations with the atoms of the support, zero in free slots."""
    return torch.where(support >= 0, corr.gather(1, support.clamp(min=0)), 0)


@dataclass(frozen=True)
class Local:
    """Supports and what least squares over them needs; free slots come last."""

    support: Tensor  # (n, width)
    coefs: Tensor  # (n, width)
    systems: Tensor  # (n, width, width) inner products of the atoms, 0 in free slots
    right: Tensor  # (n, width) inner products with the samples, 0 in free slots

    def joined(
        self,
        best: Tensor,  # (n,) the atoms to take
        most: Tensor,  # (n,) their correlations with the residuals
        inner: Tensor,  # (n, width) their inner products with the support
        own: Tensor,  # (n,) their squared norms
        right: Tensor,  # (n,) their inner products with the samples
    ) -> tuple[Tensor, Local]:
        """Which samples took the atom (n,), and the state after least squares."""
        part = (inner * self._solve(inner)).sum(1)
        tiny = least_independent(torch.finfo(own.dtype).eps) * own
        going = ~(most <= 0) & ~(own - part <= tiny)
        rows = going.nonzero()[:, 0]
        slot = (self.support >= 0).sum(1)[rows]
        support, systems = self.support.clone(), self.systems.clone()
        known = self.right.clone()
        support[rows, slot], known[rows, slot] = best[rows], right[rows]
        systems[rows, slot] = systems[rows, :, slot] = inner[rows]
        systems[rows, slot, slot] = own[rows]
        return going, Local(support, self.coefs, systems, known)._feasible()

    def _feasible(self) -> Local:
        """Least squares on the atoms that keep a positive coefficient."""
        state = self
        while True:
            wanted = state._solve(state.right)
            low = (wanted <= 0) & (state.support >= 0)
            if not low.any():
                return replace(state, coefs=wanted)
            state = state._without_lowest(wanted, low)

    def _without_lowest(self, wanted: Tensor, low: Tensor) -> Local:
        """As far towards the wanted coefficients as none is negative."""
        rows, coefs = low.any(dim=1), self.coefs
        shares = torch.where(low, coefs / (coefs - wanted), torch.inf)
        share, out = shares.min(dim=1, keepdim=True)
        moved = coefs + share.where(rows[:, None], 1) * (wanted - coefs)
        drop = (moved <= 0) | (torch.zeros_like(low).scatter_(1, out, True))
        drop = drop & rows[:, None]
        support = self.support.masked_fill(drop, UNUSED)
        order = torch.argsort((support < 0).to(torch.int8), dim=1, stable=True)
        either = drop[:, :, None] | drop[:, None, :]
        systems = self.systems.masked_fill(either, 0)
        systems = systems.gather(1, order[:, :, None].expand_as(systems))
        return Local(
            support.gather(1, order),
            moved.masked_fill(drop, 0).gather(1, order),
            systems.gather(2, order[:, None, :].expand_as(systems)),
            self.right.masked_fill(drop, 0).gather(1, order),
        )

    def _solve(self, right: Tensor) -> Tensor:  # (n, width)
        """The solutions of the systems, zero in free slots; NaN if there is none."""
        free = (self.support < 0).to(right.dtype)
        systems = self.systems + torch.diag_embed(free)
        solved, info = torch.linalg.solve_ex(systems, right[:, :, None])
        solved = torch.where(info[:, None] == 0, solved[:, :, 0], torch.nan)
        return torch.where(self.support >= 0, solved, 0)
