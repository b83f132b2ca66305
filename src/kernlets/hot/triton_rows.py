"""A step of `torch_rows` for CUDA tensors in two kernels.

The first finds the atom with the largest correlation among those that a product in
half precision leaves in question, the second takes it into the support. One program
works on one sample; atoms are read from the L2 cache, tile by tile.
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

MAX_WIDTH = 128  # slots of a sample that fit into registers beside a tile of atoms
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
    """Products in half precision are summed in float32, as the bound assumes."""
    settings = torch.backends.cuda.matmul
    before = settings.allow_fp16_reduced_precision_reduction
    settings.allow_fp16_reduced_precision_reduction = False
    try:
        yield
    finally:
        settings.allow_fp16_reduced_precision_reduction = before


class Steps:
    """What the steps need beside the state of a `torch_rows.Pursuit`."""

    def __init__(self, atoms: Tensor, pursuit: Any) -> None:
        self.atoms = atoms.contiguous()
        peak = self.atoms.norm(dim=1).amax().clamp(min=torch.finfo(torch.float32).tiny)
        self.half_atoms = (self.atoms / peak).half()
        self.half = self.halved(pursuit.residual)
        self.bound = rounding_bound(atoms.shape[1])

    @staticmethod
    def halved(residual: Tensor) -> Tensor:
        """Residuals of unit norm in half precision."""
        norm = residual.norm(dim=1, keepdim=True)
        return (residual / norm.where(norm > 0, 1)).half()

    def take(self, pursuit: Any, t: int) -> None:
        """Every sample in `pursuit.rows` takes an atom as its t-th."""
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
            pursuit.parts,
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
        """The atom with the largest correlation for each sample that goes on."""
        rows, (m, p) = pursuit.rows, self.atoms.shape
        half = self.half if len(rows) == len(self.half) else self.half[rows]
        with full_sums():
            scores = half @ self.half_atoms.T
        if support.shape[1]:  # an empty slot is as the first, which may be empty too
            first = support[:, :1]
            known = support.where(support >= 0, first.clamp(min=0))
            scores.scatter_(1, known, scores.gather(1, known).where(first < 0, 0))
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
    place = tl.program_id(0).to(tl.int64)
    row = tl.load(rows + place)
    tile, feature = tl.arange(0, ATOMS), tl.arange(0, FEATURES)
    top = tl.full((ATOMS,), -1.0, tl.float32)
    for begin in range(0, m, ATOMS):
        inside = begin + tile < m
        score = tl.load(scores + place * m + begin + tile, mask=inside, other=0.0)
        score = score.to(tl.float32)
        top = tl.maximum(top, score if SIGNED else tl.abs(score))
    least = tl.max(top, axis=0) - margin
    best, most = tl.zeros((), tl.int64), tl.full((), -float("inf"), tl.float32)
    for begin in range(0, m, ATOMS):
        inside = begin + tile < m
        score = tl.load(scores + place * m + begin + tile, mask=inside, other=0.0)
        score = score.to(tl.float32)
        possible = inside & ((score if SIGNED else tl.abs(score)) >= least)
        number = tl.sum(possible.to(tl.int32), axis=0)
        while number > 0:
            j = tl.min(tl.where(possible, tile, ATOMS), axis=0)
            atom = (begin + j).to(tl.int64)
            products = tl.zeros((FEATURES,), tl.float32)
            for first in range(0, p, FEATURES):
                column = first + feature
                real = column < p
                left = tl.load(residual + row * p + column, mask=real, other=0.0)
                right = tl.load(atoms + atom * p + column, mask=real, other=0.0)
                products += left * right
            size = tl.sum(products, axis=0)
            size = size if SIGNED else tl.abs(size)
            best = tl.where(size > most, atom, best)
            most = tl.maximum(most, size)
            possible = possible & (tile != j)
            number -= 1
    tl.store(winner + place, best)


@triton.jit
def _take_atom(
    atoms,
    residual,
    half,
    rows,
    winner,
    indices,
    inverse,
    parts,
    error,
    p,
    t,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    FEATURES: tl.constexpr,
    LEAST: tl.constexpr,
    EMPTY: tl.constexpr,
):
    place = tl.program_id(0).to(tl.int64)
    row, k = tl.load(rows + place), tl.load(winner + place)
    slot, feature = tl.arange(0, ROWS), tl.arange(0, FEATURES)
    known = slot < t
    others = tl.load(indices + row * WIDTH + slot, mask=known, other=0)
    inner = tl.zeros((ROWS,), tl.float32)
    squares = tl.zeros((FEATURES,), tl.float32)
    products = tl.zeros((FEATURES,), tl.float32)
    for first in range(0, p, FEATURES):
        column = first + feature
        real = column < p
        atom = tl.load(atoms + k * p + column, mask=real, other=0.0)
        left = tl.load(residual + row * p + column, mask=real, other=0.0)
        both = known[:, None] & real[None, :]
        place_of = others[:, None] * p + column[None, :]
        inner += tl.sum(tl.load(atoms + place_of, mask=both, other=0.0) * atom, axis=1)
        squares += atom * atom
        products += left * atom
    own, value = tl.sum(squares, axis=0), tl.sum(products, axis=0)
    square = row * WIDTH * WIDTH + slot[:, None] * WIDTH + slot[None, :]
    filled = known[:, None] & known[None, :]
    lower = tl.load(inverse + square, mask=filled, other=0.0)
    seen = tl.sum(lower * inner[None, :], axis=1)
    norm = own - tl.sum(seen * seen, axis=0)
    going = (norm > LEAST * own) & (value != 0.0)
    scale = tl.where(going, tl.rsqrt(tl.where(going, norm, 1.0)), 0.0)
    line = -scale * tl.sum(seen[:, None] * lower, axis=0)
    line = tl.where(slot == t, scale, line)
    part = value * scale
    used = slot <= t
    tl.store(inverse + row * WIDTH * WIDTH + t * WIDTH + slot, line, mask=used)
    tl.store(parts + row * WIDTH + t, part)
    tl.store(indices + row * WIDTH + t, tl.where(going, k, EMPTY))
    tl.store(error + row, tl.maximum(tl.load(error + row) - part * part, 0.0))
    others = tl.where(slot == t, k, others)
    shift = line * part
    total = tl.zeros((FEATURES,), tl.float32)
    for first in range(0, p, FEATURES):
        column = first + feature
        real = column < p
        both = used[:, None] & real[None, :]
        place_of = others[:, None] * p + column[None, :]
        block = tl.load(atoms + place_of, mask=both, other=0.0)
        left = tl.load(residual + row * p + column, mask=real, other=0.0)
        left -= tl.sum(shift[:, None] * block, axis=0)
        tl.store(residual + row * p + column, left, mask=real)
        total += left * left
    energy = tl.sum(total, axis=0)
    unit = tl.where(energy > 0.0, tl.rsqrt(tl.where(energy > 0.0, energy, 1.0)), 0.0)
    tl.debug_barrier()
    for first in range(0, p, FEATURES):
        column = first + feature
        real = column < p
        left = tl.load(residual + row * p + column, mask=real, other=0.0)
        tl.store(half + row * p + column, (left * unit).to(tl.float16), mask=real)
