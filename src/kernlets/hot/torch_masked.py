"""torch twins of `masked`, batched over samples; see there for what is computed."""

from __future__ import annotations

import torch
from torch import Tensor

from .masked import FAINT, HOLD
from .reference import UNUSED, least_independent
from .torch_ import _coefficients, _finite


def masked_omp(
    atoms: Tensor, X: Tensor, known: Tensor, width: int, tol: float
) -> tuple[Tensor, Tensor, Tensor]:
    """All samples in step; the chosen atoms are made orthonormal where observed."""
    (n, p), eps = X.shape, torch.finfo(X.dtype).eps
    seen = known.to(X.dtype)
    scale = _inverse_norms(seen @ (atoms * atoms).T)
    indices = torch.full((n, width), UNUSED, dtype=torch.int64, device=X.device)
    rows = X.new_zeros((n, width, p))
    parts, factor = X.new_zeros((n, width)), X.new_zeros((n, width, width))
    left, error = X.clone(), (X * X).sum(1)
    stop = torch.maximum(4 * eps * error, tol * seen.mean(1))
    live = torch.ones(n, dtype=torch.bool, device=X.device)
    for t in range(width):
        corr = left @ atoms.T * scale
        taken = corr.new_zeros((n, len(atoms) + 1), dtype=torch.bool)
        taken.scatter_(1, indices[:, :t] % (len(atoms) + 1), True)
        corr = corr.masked_fill(taken[:, :-1], 0)
        k = corr.abs().argmax(dim=1)
        atom = atoms[k] * seen
        own = (atom * atom).sum(1)
        inside = torch.einsum("np,ntp->nt", atom, rows[:, :t])
        norm = own - (inside * inside).sum(1)
        value = corr.gather(1, k[:, None])[:, 0]
        live &= (error > stop) & ~(norm <= least_independent(eps) * own) & (value != 0)
        if not live.any():
            break
        new = atom - torch.einsum("nt,ntp->np", inside, rows[:, :t])
        root = torch.where(live, norm, 1).sqrt()
        rows[:, t] = torch.where(live[:, None], new / root[:, None], 0)
        parts[:, t] = (rows[:, t] * X).sum(1)
        factor[:, t, :t], factor[:, t, t] = inside, root
        left = left - parts[:, t, None] * rows[:, t]
        error = torch.where(live, (left * left).sum(1), error)
        indices[:, t] = torch.where(live, k, UNUSED)
    return _finite(indices, _coefficients(factor, parts, indices), error)


def _inverse_norms(energy: Tensor) -> Tensor:  # (n, m)
    usable = energy > FAINT * energy.amax(dim=1, keepdim=True)
    return torch.where(usable, torch.where(usable, energy, 1).rsqrt(), 0)


def masked_ksvd_sweep(
    residual: Tensor,
    known: Tensor,
    atoms: Tensor,
    indices: Tensor,
    values: Tensor,
    order: Tensor,
) -> None:
    """One K-SVD pass over what was observed, atom by atom."""
    for j in order.tolist():
        rows, slots = (indices == j).nonzero(as_tuple=True)
        if len(rows) == 0:
            continue
        seen, coefs = known[rows].to(atoms.dtype), values[rows, slots]
        error = residual[rows] + torch.outer(coefs, atoms[j]) * seen
        hold = HOLD * (coefs @ coefs)
        atom = (coefs @ error + hold * atoms[j]) / ((coefs * coefs) @ seen + hold)
        norm = (atom @ atom).sqrt()
        if not bool(norm > 0):
            continue
        atoms[j] = atom / norm
        share = seen @ (atoms[j] * atoms[j])
        some = torch.where(share > 0, share, 1)
        values[rows, slots] = torch.where(share > 0, error @ atoms[j] / some, 0)
        residual[rows] = error - torch.outer(values[rows, slots], atoms[j]) * seen
