"""Fused OMP for CUDA tensors, and the door to all that needs triton.

One program codes one sample from the first correlation to the last coefficient. What
the steps need stays in registers, the rows of the Gram matrix come from the L2 cache,
and nothing but the codes is written.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from . import triton_codes as triton_codes
from . import triton_rows as triton_rows
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
    """OMP by partial Cholesky of the Gram matrix, see `kernlets.hot.numba_.omp`."""
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
    inside = atom < m
    left = tl.load(corr + i * m + atom, mask=inside, other=0.0)
    error = tl.load(energy + i)
    stop = tl.maximum(tol, 4 * EPS * error)
    rows = tl.zeros((ROWS, ATOMS), tl.float32)
    factor = tl.zeros((ROWS, ROWS), tl.float32)
    parts = tl.zeros((ROWS,), tl.float32)
    support = tl.full((ROWS,), EMPTY, tl.int32)
    live, free = error > stop, inside
    finite = error < INFINITY
    for t in range(WIDTH):
        # NaN is the largest, what pads the atoms the smallest: k is always an atom
        size = tl.where(left == left, tl.abs(left), INFINITY)
        k = tl.argmax(tl.where(inside, size, -1.0), axis=0)
        here = atom == k
        value = tl.sum(tl.where(here, left, 0.0), axis=0)
        seen = tl.sum(tl.where(here[None, :], rows, 0.0), axis=1)
        row = tl.load(gram + k.to(tl.int64) * m + atom, mask=inside, other=0.0)
        own = tl.sum(tl.where(here, row, 0.0), axis=0)
        norm = own - tl.sum(seen * seen, axis=0)
        independent = tl.where(norm <= LEAST * own, 0, 1) != 0  # so is NaN
        live = live & (error > stop) & independent & (value != 0.0)
        inverse = tl.where(live, tl.rsqrt(tl.where(live, norm, 1.0)), 0.0)
        new = (row - tl.sum(seen[:, None] * rows, axis=0)) * inverse
        part = tl.where(live, value * inverse, 0.0)
        finite = finite & (part * part < INFINITY)
        free = free & (atom != k)
        left = tl.where(free, left - part * new, 0.0)
        now = slot == t
        rows = tl.where(now[:, None], new[None, :], rows)
        line = tl.where(slot == t, norm * inverse, seen)
        factor = tl.where(now[:, None], line[None, :], factor)
        parts = tl.where(now, part, parts)
        support = tl.where(now, tl.where(live, k, EMPTY), support)
        error = tl.maximum(error - part * part, 0.0)
    coefs = tl.zeros((ROWS,), tl.float32)
    for back in range(WIDTH):
        t = WIDTH - 1 - back
        now = slot == t
        column = tl.sum(tl.where(now[None, :], factor, 0.0), axis=1)  # L[:, t]
        own = tl.sum(tl.where(now, column, 0.0), axis=0)
        known = tl.sum(tl.where(slot > t, column * coefs, 0.0), axis=0)
        wanted = tl.sum(tl.where(now, parts, 0.0), axis=0)
        used = tl.sum(tl.where(now, support, 0), axis=0) != EMPTY
        coef = tl.where(used, (wanted - known) / tl.where(used, own, 1.0), 0.0)
        coefs = tl.where(now, coef, coefs)
        finite = finite & (tl.abs(coef) < INFINITY)
    support = tl.where(finite, support, EMPTY)
    coefs = tl.where(finite, coefs, 0.0)
    error = tl.where(finite, error, float("nan"))
    keep = slot < WIDTH
    tl.store(indices + i * WIDTH + slot, support.to(tl.int64), mask=keep)
    tl.store(values + i * WIDTH + slot, coefs, mask=keep)
    tl.store(residual + i, error)
