"""A step of `torch_rows` for CUDA tensors in two kernels.

The first finds the atom with the largest correlation among the candidates of a product
in half precision; the second adds it to the support. One program works on one sample;
atoms are read from the L2 cache, tile by tile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .reference import UNUSED, least_independent

MAX_WIDTH = 128  # slots of a sample that fit into registers with a tile of atoms
ATOMS, FEATURES = 1024, 512  # sizes of the tiles
TILE = 2**14  # numbers of a tile of atoms that fit into registers


def fits(width: int) -> bool:
    """Whether the state of a sample fits into registers."""
    return width <= MAX_WIDTH


def rounding_bound(p: int) -> float:
    """Largest error of ⟨r, d⟩ in half precision, for norms of at most 1.

    Both vectors are rounded to 11 bits, 2⁻¹¹ each, and so is the result; sums are
    accumulated in float32, where p additions lose at most p · 2⁻²³ each way.
    """
    return 3 * 2.0**-11 + p * 2.0**-22


def _features(atoms: Tensor) -> int:
    """Number of features in a tile."""
    return min(FEATURES, max(16, triton.next_power_of_2(atoms.shape[1])))


@contextmanager
def full_sums() -> Iterator[None]:
    """Make products in half precision sum in float32, as the bound assumes."""
    settings = torch.backends.cuda.matmul
    previous = settings.allow_fp16_reduced_precision_reduction
    settings.allow_fp16_reduced_precision_reduction = False
    try:
        yield
    finally:
        settings.allow_fp16_reduced_precision_reduction = previous


class Steps:
    """Arrays that the steps need besides the state of a `torch_rows.Pursuit`."""

    def __init__(self, atoms: Tensor, pursuit: Any) -> None:
        self.atoms = atoms.contiguous()
        peak = self.atoms.norm(dim=1).amax().clamp(min=torch.finfo(torch.float32).tiny)
        self.half_atoms = (self.atoms / peak).half()
        self.half = self.as_half(pursuit.residual)
        self.bound = rounding_bound(atoms.shape[1])

    @staticmethod
    def as_half(residual: Tensor) -> Tensor:
        """Convert residuals to unit norm in half precision."""
        norm = residual.norm(dim=1, keepdim=True)
        return (residual / norm.where(norm > 0, 1)).half()

    def take(self, pursuit: Any, t: int) -> None:
        """Add a t-th atom to the support of every sample in `pursuit.rows`."""
        rows = pursuit.rows
        winner = self.winners(pursuit, pursuit.indices[rows, :t], signed=False)
        width = pursuit.indices.shape[1]
        slots = max(4, triton.next_power_of_2(t + 1))  # one variant for each power
        _take_atom[(len(rows),)](
            self.atoms,
            pursuit.residual,
            self.half,
            rows,
            winner,
            pursuit.indices,
            pursuit.inverse,
            pursuit.c,
            pursuit.error,
            self.atoms.shape[1],
            t,
            WIDTH=width,
            ROWS=slots,
            FEATURES=min(_features(self.atoms), TILE // slots),
            LEAST=least_independent(pursuit.eps),
            EMPTY=UNUSED,
            num_warps=4,
        )

    def winners(self, pursuit: Any, support: Tensor, signed: bool) -> Tensor:
        """The atom with the largest correlation for each sample in `pursuit.rows`."""
        rows, (m, p) = pursuit.rows, self.atoms.shape
        half = self.half if len(rows) == len(self.half) else self.half[rows]
        with full_sums():
            scores = half @ self.half_atoms.T
        if support.shape[1]:  # empty slots repeat slot 0, which may itself be empty
            first = support[:, :1]
            columns = support.where(support >= 0, first.clamp(min=0))
            scores.scatter_(1, columns, scores.gather(1, columns).where(first < 0, 0))
        winner = torch.empty_like(rows)
        _find_largest[(len(rows),)](
            scores,
            rows,
            pursuit.residual,
            self.atoms,
            winner,
            m,
            p,
            2 * self.bound,
            SIGNED=signed,
            ATOMS=ATOMS,
            FEATURES=_features(self.atoms),
            num_warps=4,
        )
        return winner


@triton.jit
def _find_largest(
    scores,  # (rows, m) half
    rows,
    residual,
    atoms,
    winner,
    m,
    p,
    margin,
    SIGNED: tl.constexpr,
    ATOMS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    row = tl.load(rows + program)
    offset, feature = tl.arange(0, ATOMS), tl.arange(0, FEATURES)
    top = tl.full((ATOMS,), -1.0, tl.float32)
    for begin in range(0, m, ATOMS):
        is_atom = begin + offset < m
        score = tl.load(scores + program * m + begin + offset, mask=is_atom, other=0.0)
        score = score.to(tl.float32)
        top = tl.maximum(top, score if SIGNED else tl.abs(score))
    least = tl.max(top, axis=0) - margin
    best, largest = tl.zeros((), tl.int64), tl.full((), -float("inf"), tl.float32)
    for begin in range(0, m, ATOMS):
        is_atom = begin + offset < m
        score = tl.load(scores + program * m + begin + offset, mask=is_atom, other=0.0)
        score = score.to(tl.float32)
        possible = is_atom & ((score if SIGNED else tl.abs(score)) >= least)
        n_possible = tl.sum(possible.to(tl.int32), axis=0)
        while n_possible > 0:
            j = tl.min(tl.where(possible, offset, ATOMS), axis=0)
            atom = (begin + j).to(tl.int64)
            products = tl.zeros((FEATURES,), tl.float32)
            for first in range(0, p, FEATURES):
                column = first + feature
                is_feature = column < p
                r = tl.load(residual + row * p + column, mask=is_feature, other=0.0)
                d = tl.load(atoms + atom * p + column, mask=is_feature, other=0.0)
                products += r * d
            product = tl.sum(products, axis=0)
            product = product if SIGNED else tl.abs(product)
            best = tl.where(product > largest, atom, best)
            largest = tl.maximum(largest, product)
            possible = possible & (offset != j)
            n_possible -= 1
    tl.store(winner + program, best)


@triton.jit
def _take_atom(
    atoms,
    residual,
    half,
    rows,
    winner,
    indices,
    inverse,
    c,
    error,
    p,
    t,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    FEATURES: tl.constexpr,
    LEAST: tl.constexpr,
    EMPTY: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    row, k = tl.load(rows + program), tl.load(winner + program)
    slot, feature = tl.arange(0, ROWS), tl.arange(0, FEATURES)
    is_support = slot < t
    support = tl.load(indices + row * WIDTH + slot, mask=is_support, other=0)
    inner = tl.zeros((ROWS,), tl.float32)
    squares = tl.zeros((FEATURES,), tl.float32)
    products = tl.zeros((FEATURES,), tl.float32)
    for first in range(0, p, FEATURES):
        column = first + feature
        is_feature = column < p
        atom = tl.load(atoms + k * p + column, mask=is_feature, other=0.0)
        r = tl.load(residual + row * p + column, mask=is_feature, other=0.0)
        mask = is_support[:, None] & is_feature[None, :]
        address = support[:, None] * p + column[None, :]
        inner += tl.sum(tl.load(atoms + address, mask=mask, other=0.0) * atom, axis=1)
        squares += atom * atom
        products += r * atom
    energy_k, value = tl.sum(squares, axis=0), tl.sum(products, axis=0)
    address_L = row * WIDTH * WIDTH + slot[:, None] * WIDTH + slot[None, :]
    is_filled = is_support[:, None] & is_support[None, :]
    lower = tl.load(inverse + address_L, mask=is_filled, other=0.0)
    projections = tl.sum(lower * inner[None, :], axis=1)
    nu2 = energy_k - tl.sum(projections * projections, axis=0)
    is_live = (nu2 > LEAST * energy_k) & (value != 0.0)
    scale = tl.where(is_live, tl.rsqrt(tl.where(is_live, nu2, 1.0)), 0.0)
    inverse_row = -scale * tl.sum(projections[:, None] * lower, axis=0)
    inverse_row = tl.where(slot == t, scale, inverse_row)
    c_t = value * scale
    is_used = slot <= t
    tl.store(
        inverse + row * WIDTH * WIDTH + t * WIDTH + slot, inverse_row, mask=is_used
    )
    tl.store(c + row * WIDTH + t, c_t)
    tl.store(indices + row * WIDTH + t, tl.where(is_live, k, EMPTY))
    tl.store(error + row, tl.maximum(tl.load(error + row) - c_t * c_t, 0.0))
    support = tl.where(slot == t, k, support)
    shift = inverse_row * c_t
    new_squares = tl.zeros((FEATURES,), tl.float32)
    for first in range(0, p, FEATURES):
        column = first + feature
        is_feature = column < p
        mask = is_used[:, None] & is_feature[None, :]
        address = support[:, None] * p + column[None, :]
        block = tl.load(atoms + address, mask=mask, other=0.0)
        r = tl.load(residual + row * p + column, mask=is_feature, other=0.0)
        r -= tl.sum(shift[:, None] * block, axis=0)
        tl.store(residual + row * p + column, r, mask=is_feature)
        new_squares += r * r
    error2 = tl.sum(new_squares, axis=0)
    inverse_norm = tl.where(
        error2 > 0.0, tl.rsqrt(tl.where(error2 > 0.0, error2, 1.0)), 0.0
    )
    tl.debug_barrier()
    for first in range(0, p, FEATURES):
        column = first + feature
        is_feature = column < p
        r = tl.load(residual + row * p + column, mask=is_feature, other=0.0)
        tl.store(
            half + row * p + column, (r * inverse_norm).to(tl.float16), mask=is_feature
        )
