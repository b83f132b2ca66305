"""torch twins of `masked`, which has the formulas; batched over samples."""

from __future__ import annotations

import torch
from torch import Tensor

from .masked import FAINT, HOLD
from .reference import UNUSED, least_independent
from .torch_ import _clear_unbounded, _coefficients


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
    live = torch.ones(n, dtype=torch.bool, device=X.device)
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
        live &= (error > stop) & ~is_dependent & (value != 0)
        if not live.any():
            break
        v = atom - torch.einsum("nt,ntp->np", projections, V[:, :t])
        nu = torch.where(live, nu2, 1).sqrt()
        V[:, t] = torch.where(live[:, None], v / nu[:, None], 0)
        c[:, t] = (V[:, t] * X).sum(1)
        factor[:, t, :t], factor[:, t, t] = projections, nu
        residual = residual - c[:, t, None] * V[:, t]
        error = torch.where(live, (residual * residual).sum(1), error)
        indices[:, t] = torch.where(live, k, UNUSED)
    return _clear_unbounded(indices, _coefficients(factor, c, indices), error)


def _inverse_norms(energy: Tensor) -> Tensor:  # (n, m)
    usable = energy > FAINT * energy.amax(dim=1, keepdim=True)
    return torch.where(usable, torch.where(usable, energy, 1).rsqrt(), 0)


def masked_ksvd_sweep(
    residual: Tensor,
    observed: Tensor,
    atoms: Tensor,
    indices: Tensor,
    values: Tensor,
    order: Tensor,
) -> None:
    """One K-SVD pass over the observed entries, atom by atom."""
    for j in order.tolist():
        rows, slots = (indices == j).nonzero(as_tuple=True)
        if len(rows) == 0:
            continue
        o, coefs = observed[rows].to(atoms.dtype), values[rows, slots]
        error = residual[rows] + torch.outer(coefs, atoms[j]) * o
        hold = HOLD * (coefs @ coefs)
        atom = (coefs @ error + hold * atoms[j]) / ((coefs * coefs) @ o + hold)
        norm = (atom @ atom).sqrt()
        if not bool(norm > 0):
            continue
        atoms[j] = atom / norm
        norm2 = o @ (atoms[j] * atoms[j])
        divisor = torch.where(norm2 > 0, norm2, 1)
        values[rows, slots] = torch.where(norm2 > 0, error @ atoms[j] / divisor, 0)
        residual[rows] = error - torch.outer(values[rows, slots], atoms[j]) * o
