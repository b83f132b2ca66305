"""torch twin of `lasso`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..updates.reference import code_slots
from .reference import FAINT, ROUNDING

FEW_CODES = 10**6  # entries up to which the lasso of a GPU's rows runs on the host


def lasso(
    gram: Tensor, corr: Tensor, alpha: float, positive: bool, max_iter: int, tol: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The compiled loop in host memory, coordinate descent in step on a GPU.

    On a GPU each atom of a pass is a few calls, however many samples there are. The
    loop on the host is faster where there are few samples.
    """
    if not corr.is_cuda or corr.numel() < FEW_CODES:
        from .numba import lasso as numba_lasso

        host_arrays = gram.detach().cpu().numpy(), corr.detach().cpu().numpy()
        results = numba_lasso(*host_arrays, alpha, positive, max_iter, tol)
        indices, values, explained, converged = [
            torch.from_numpy(result).to(corr.device) for result in results
        ]
        return indices.long(), values, explained, converged
    codes, converged = lasso_in_step(gram, corr, alpha, positive, max_iter, tol)
    explained = (codes * (2 * corr - codes @ gram)).sum(dim=1)
    codes = codes.masked_fill(~explained.isfinite()[:, None], 0)
    return *code_slots(codes), explained, converged


def lasso_in_step(
    gram: Tensor, corr: Tensor, alpha: float, positive: bool, max_iter: int, tol: float
) -> tuple[Tensor, Tensor]:
    """Coordinate descent, one atom at a time for all samples at once.

    A few samples may need a thousand passes, and a pass is a dozen calls for each
    atom. So samples that have converged leave the loop, and only atoms with a non-zero
    coefficient are visited between full passes. Each sample takes the steps that it
    would take alone.
    """
    shrink = _one_sided if positive else torch.nn.functional.softshrink
    all_atoms = (gram.diagonal() > 0).nonzero()[:, 0].tolist()  # no atom that is 0
    codes, rows = torch.zeros_like(corr), torch.arange(len(corr), device=corr.device)
    converged = torch.zeros_like(rows, dtype=torch.bool)
    corr_residual, code = corr.clone(), codes.clone()
    n_passes, largest_corr = rows * 0, corr.abs().amax(dim=1)
    asked = tol * (FAINT * largest_corr).clamp(min=alpha)
    tolerance = asked.maximum(ROUNDING * torch.finfo(corr.dtype).eps * largest_corr)
    while len(rows) and max_iter > 0:
        visits = torch.ones_like(code)
        violations = _lasso_pass(
            gram, corr_residual, code, all_atoms, visits, alpha, shrink
        )
        n_passes += 1
        is_moving, visits = violations > tolerance, (code != 0).to(code.dtype)
        has_converged = ~is_moving
        active_atoms = visits[is_moving].any(dim=0).nonzero()[:, 0].tolist()
        is_moving = is_moving & (n_passes < max_iter)
        while bool(is_moving.any()):
            visits = visits * is_moving[:, None]
            violations = _lasso_pass(
                gram, corr_residual, code, active_atoms, visits, alpha, shrink
            )
            n_passes += is_moving
            is_moving = is_moving & (violations > tolerance) & (n_passes < max_iter)
        codes[rows], converged[rows] = code, has_converged
        continuing = (~has_converged & (n_passes < max_iter)).nonzero()[:, 0]
        corr_residual, code = corr_residual[continuing], code[continuing]
        tolerance, n_passes = tolerance[continuing], n_passes[continuing]
        rows = rows[continuing]
    is_finite = codes.isfinite().all(dim=1) & corr.isfinite().all(dim=1)
    return codes.masked_fill(~is_finite[:, None], torch.nan), converged


def _lasso_pass(
    gram: Tensor,
    corr_residual: Tensor,  # (n, m) changed in place
    code: Tensor,  # (n, m) changed in place
    atoms: list[int],
    visits: Tensor,  # (n, m) 1 where a sample visits an atom, else 0
    alpha: float,
    shrink: Callable[[Tensor, float], Tensor],
) -> Tensor:  # (n,)
    """One pass over some atoms, for all samples at once; the largest violations."""
    violations = torch.zeros_like(corr_residual[:, 0])
    for j in atoms:
        gram_j, old_coefs = gram[j], code[:, j]
        delta = (
            shrink(corr_residual[:, j] + gram_j[j] * old_coefs, alpha) / gram_j[j]
            - old_coefs
        )
        delta = delta * visits[:, j]
        code[:, j] += delta
        corr_residual.addr_(delta, gram_j, alpha=-1)
        violations = torch.maximum(violations, delta.abs() * gram_j[j])
    return violations


def _one_sided(value: Tensor, alpha: float) -> Tensor:
    return (value - alpha).clamp(min=0)
