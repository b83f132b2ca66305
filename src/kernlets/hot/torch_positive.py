"""torch twin of `positive.positive_omp`; see there for what is computed and why."""

from __future__ import annotations

import torch
from torch import Tensor

from .positive import TRIES
from .reference import UNUSED
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
        fit = (coefs * _taken(corr[rows], support)).sum(1)
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
    sample = torch.arange(len(corr), device=corr.device)
    used = support >= 0
    taken = int(used.sum(1).amax())  # slots in use come first; rows of Gram are long
    rows = gram[support[:, :taken].clamp(min=0)]
    left = corr - torch.einsum("nw,nwm->nm", coefs[:, :taken], rows)
    padded = torch.cat([left, left[:, :1]], dim=1)  # free slots point past the atoms
    padded.scatter_(1, support.where(used, corr.shape[1]), 0)
    most, best = padded[:, :-1].max(dim=1)
    seen = torch.where(used, gram[support.clamp(min=0), best[:, None]], 0)
    part = (seen * _solved(gram, support, seen)).sum(1)
    own = gram[best, best]
    tiny = 10 * torch.finfo(corr.dtype).eps * own
    going = ~(most <= 0) & ~(own - part <= tiny)
    slot = used.sum(1)
    wider = support.clone()
    wider[sample[going], slot[going]] = best[going]
    return going, *_feasible(gram, corr, wider, coefs)


def _feasible(
    gram: Tensor, corr: Tensor, support: Tensor, coefs: Tensor
) -> tuple[Tensor, Tensor]:
    """Least squares on the atoms that keep a positive coefficient."""
    while True:
        wanted = _solved(gram, support, _taken(corr, support))
        low = (wanted <= 0) & (support >= 0)
        rows = low.any(dim=1)
        if not rows.any():
            return support, wanted
        shares = torch.where(low, coefs / (coefs - wanted), torch.inf)
        share, out = shares.min(dim=1, keepdim=True)
        moved = coefs + share.where(rows[:, None], 1) * (wanted - coefs)
        drop = (moved <= 0) | (torch.zeros_like(low).scatter_(1, out, True))
        drop = drop & rows[:, None]
        support = support.masked_fill(drop, UNUSED)
        order = torch.argsort((support < 0).to(torch.int8), dim=1, stable=True)
        support = support.gather(1, order)
        coefs = moved.masked_fill(drop, 0).gather(1, order)


def _taken(corr: Tensor, support: Tensor) -> Tensor:  # (n, width)
    """The correlations with the atoms of the support, zero in free slots."""
    return torch.where(support >= 0, corr.gather(1, support.clamp(min=0)), 0)


def _solved(gram: Tensor, support: Tensor, right: Tensor) -> Tensor:  # (n, width)
    """The solutions of the systems of the supports, zero in free slots.

    NaN where a system has none.
    """
    used = support >= 0
    both = used[:, :, None] & used[:, None, :]
    atoms = support.clamp(min=0)
    identity = torch.eye(right.shape[1], dtype=right.dtype, device=right.device)
    systems = torch.where(both, gram[atoms[:, :, None], atoms[:, None, :]], identity)
    solved, info = torch.linalg.solve_ex(systems, right[:, :, None])
    return torch.where(info[:, None] == 0, solved[:, :, 0], torch.nan)
