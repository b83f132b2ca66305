"""Fused OMP for CUDA tensors.

One program codes one sample from the first correlation to the last coefficient. The
state of the sample stays in registers, the rows of the Gram matrix come from the L2
cache, and only the codes are written.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from .reference import UNUSED, least_independent

MAX_STATE = 2**15  # numbers per sample that fit into registers


def fits(m: int, width: int) -> bool:
    """Whether the state of one sample, width rows of m numbers, fits."""
    return _power_of_two(m) * _power_of_two(width) <= MAX_STATE


def _power_of_two(n: int) -> int:
    return max(16, triton.next_power_of_2(n))


def omp(
    gram: Tensor,  # (m, m) float32
    corr: Tensor,  # (n, m) float32
    energy: Tensor,  # (n,)
    width: int,
    tol: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """OMP by partial Cholesky of the Gram matrix, see `loops.omp.numba.omp`."""
    n, m = corr.shape
    indices = torch.empty((n, width), dtype=torch.int64, device=corr.device)
    values, residual = corr.new_empty((n, width)), corr.new_empty(n)
    atoms, rows = _power_of_two(m), _power_of_two(width)
    if n:
        _omp_sample[(n,)](
            gram.contiguous(),
            corr.contiguous(),
            energy.contiguous(),
            indices,
            values,
            residual,
            tol,
            m,
            WIDTH=width,
            ROWS=rows,
            ATOMS=atoms,
            EPS=torch.finfo(corr.dtype).eps,
            LEAST=least_independent(torch.finfo(corr.dtype).eps),
            EMPTY=UNUSED,
            INFINITY=float("inf"),
            num_warps=max(1, min(16, atoms * rows // 2048)),
        )
    return indices, values, residual


@triton.jit
def _omp_sample(
    gram,
    corr,
    energy,
    indices,
    values,
    residual,
    tol,
    m,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    ATOMS: tl.constexpr,
    EPS: tl.constexpr,
    LEAST: tl.constexpr,
    EMPTY: tl.constexpr,
    INFINITY: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64)
    atom, slot = tl.arange(0, ATOMS), tl.arange(0, ROWS)
    is_atom = atom < m
    corr_residual = tl.load(corr + i * m + atom, mask=is_atom, other=0.0)
    error = tl.load(energy + i)
    stop = tl.maximum(tol, 4 * EPS * error)
    V = tl.zeros((ROWS, ATOMS), tl.float32)
    L = tl.zeros((ROWS, ROWS), tl.float32)
    c = tl.zeros((ROWS,), tl.float32)
    support = tl.full((ROWS,), EMPTY, tl.int32)
    live, free = error > stop, is_atom
    finite = error < INFINITY
    for t in range(WIDTH):
        # NaN counts as the largest and padding as the smallest: k is always an atom
        magnitude = tl.where(
            corr_residual == corr_residual, tl.abs(corr_residual), INFINITY
        )
        k = tl.argmax(tl.where(is_atom, magnitude, -1.0), axis=0)
        is_k = atom == k
        alpha_k = tl.sum(tl.where(is_k, corr_residual, 0.0), axis=0)
        V_k = tl.sum(tl.where(is_k[None, :], V, 0.0), axis=1)
        gram_row = tl.load(gram + k.to(tl.int64) * m + atom, mask=is_atom, other=0.0)
        gram_kk = tl.sum(tl.where(is_k, gram_row, 0.0), axis=0)
        nu2 = gram_kk - tl.sum(V_k * V_k, axis=0)
        # NaN counts as independent
        is_independent = tl.where(nu2 <= LEAST * gram_kk, 0, 1) != 0
        live = live & (error > stop) & is_independent & (alpha_k != 0.0)
        inverse_nu = tl.where(live, tl.rsqrt(tl.where(live, nu2, 1.0)), 0.0)
        v = (gram_row - tl.sum(V_k[:, None] * V, axis=0)) * inverse_nu
        c_t = tl.where(live, alpha_k * inverse_nu, 0.0)
        finite = finite & (c_t * c_t < INFINITY)
        free = free & (atom != k)
        corr_residual = tl.where(free, corr_residual - c_t * v, 0.0)
        is_t = slot == t
        V = tl.where(is_t[:, None], v[None, :], V)
        L_row = tl.where(slot == t, nu2 * inverse_nu, V_k)
        L = tl.where(is_t[:, None], L_row[None, :], L)
        c = tl.where(is_t, c_t, c)
        support = tl.where(is_t, tl.where(live, k, EMPTY), support)
        error = tl.maximum(error - c_t * c_t, 0.0)
    gamma = tl.zeros((ROWS,), tl.float32)
    for back in range(WIDTH):
        t = WIDTH - 1 - back
        is_t = slot == t
        L_column = tl.sum(tl.where(is_t[None, :], L, 0.0), axis=1)  # L[:, t]
        L_tt = tl.sum(tl.where(is_t, L_column, 0.0), axis=0)
        explained = tl.sum(tl.where(slot > t, L_column * gamma, 0.0), axis=0)
        rhs = tl.sum(tl.where(is_t, c, 0.0), axis=0)
        is_used = tl.sum(tl.where(is_t, support, 0), axis=0) != EMPTY
        gamma_t = tl.where(
            is_used, (rhs - explained) / tl.where(is_used, L_tt, 1.0), 0.0
        )
        gamma = tl.where(is_t, gamma_t, gamma)
        finite = finite & (tl.abs(gamma_t) < INFINITY)
    support = tl.where(finite, support, EMPTY)
    gamma = tl.where(finite, gamma, 0.0)
    error = tl.where(finite, error, float("nan"))
    is_slot = slot < WIDTH
    tl.store(indices + i * WIDTH + slot, support.to(tl.int64), mask=is_slot)
    tl.store(values + i * WIDTH + slot, gamma, mask=is_slot)
    tl.store(residual + i, error)
