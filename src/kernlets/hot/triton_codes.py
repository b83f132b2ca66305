"""Sums of `torch_codes` for CUDA tensors; one program per atom goes over its users."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

USERS, FEATURES = 16, 128  # sizes of the tiles


def code_gram(
    indices: Tensor,  # (n, w)
    values: Tensor,  # (n, w)
    places: Tensor,  # slots, ordered by atom
    starts: Tensor,  # (m + 1,) where each atom's slots begin
    m: int,
) -> Tensor:  # (m, m)
    """ΓᵀΓ."""
    width = indices.shape[1]
    gram = values.new_zeros((m, m))
    _add_pairs[(m,)](
        indices.contiguous(),
        values.contiguous(),
        places,
        starts,
        gram,
        m,
        WIDTH=width,
        SLOTS=triton.next_power_of_2(width),
        USERS=USERS,
        num_warps=4,
    )
    return gram


def code_cross(
    values: Tensor,  # (n, w)
    X: Tensor,  # (n, p)
    places: Tensor,
    starts: Tensor,  # (m + 1,)
    m: int,
) -> Tensor:  # (m, p)
    """ΓᵀX."""
    p = X.shape[1]
    cross = torch.empty((m, p), dtype=X.dtype, device=X.device)
    _add_rows[(m, triton.cdiv(p, FEATURES))](
        values.contiguous(),
        X.contiguous(),
        places,
        starts,
        cross,
        p,
        WIDTH=values.shape[1],
        USERS=USERS,
        FEATURES=FEATURES,
        num_warps=4,
    )
    return cross


@triton.jit
def _add_pairs(
    indices,
    values,
    places,
    starts,
    gram,
    m,
    WIDTH: tl.constexpr,
    SLOTS: tl.constexpr,
    USERS: tl.constexpr,
):
    j = tl.program_id(0).to(tl.int64)
    begin, end = tl.load(starts + j), tl.load(starts + j + 1)
    user, slot = tl.arange(0, USERS), tl.arange(0, SLOTS)
    for first in range(begin, end, USERS):
        real = first + user < end
        place = tl.load(places + first + user, mask=real, other=0)
        own = tl.load(values + place, mask=real, other=0.0)
        at = (place // WIDTH * WIDTH)[:, None] + slot[None, :]
        both = real[:, None] & (slot < WIDTH)[None, :]
        atom = tl.load(indices + at, mask=both, other=-1)
        value = tl.load(values + at, mask=both, other=0.0)
        tl.atomic_add(gram + j * m + atom, own[:, None] * value, mask=atom >= 0)


@triton.jit
def _add_rows(
    values,
    X,
    places,
    starts,
    cross,
    p,
    WIDTH: tl.constexpr,
    USERS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    j = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    inside = column < p
    begin, end = tl.load(starts + j), tl.load(starts + j + 1)
    user = tl.arange(0, USERS)
    total = tl.zeros((FEATURES,), tl.float32)
    for first in range(begin, end, USERS):
        real = first + user < end
        place = tl.load(places + first + user, mask=real, other=0)
        own = tl.load(values + place, mask=real, other=0.0)
        at = (place // WIDTH)[:, None] * p + column[None, :]
        both = real[:, None] & inside[None, :]
        total += tl.sum(tl.load(X + at, mask=both, other=0.0) * own[:, None], axis=0)
    tl.store(cross + j * p + column, total, mask=inside)
