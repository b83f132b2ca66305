"""Sums over sparse codes for CUDA tensors; one program per atom reads its users."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

USERS, FEATURES = 16, 128  # sizes of the tiles


def code_gram(
    indices: Tensor,  # (n, w)
    values: Tensor,  # (n, w)
    user_slots: Tensor,  # slots, ordered by atom
    starts: Tensor,  # (m + 1,) where each atom's slots begin
    m: int,
) -> Tensor:  # (m, m)
    """ΓᵀΓ."""
    width = indices.shape[1]
    gram = values.new_zeros((m, m))
    _add_pairs[(m,)](
        indices.contiguous(),
        values.contiguous(),
        user_slots,
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
    user_slots: Tensor,
    starts: Tensor,  # (m + 1,)
    m: int,
) -> Tensor:  # (m, p)
    """ΓᵀX."""
    p = X.shape[1]
    cross = torch.empty((m, p), dtype=X.dtype, device=X.device)
    _add_rows[(m, triton.cdiv(p, FEATURES))](
        values.contiguous(),
        X.contiguous(),
        user_slots,
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
    user_slots,
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
        is_user = first + user < end
        user_slot = tl.load(user_slots + first + user, mask=is_user, other=0)
        value_j = tl.load(values + user_slot, mask=is_user, other=0.0)
        address = (user_slot // WIDTH * WIDTH)[:, None] + slot[None, :]
        mask = is_user[:, None] & (slot < WIDTH)[None, :]
        atom = tl.load(indices + address, mask=mask, other=-1)
        value = tl.load(values + address, mask=mask, other=0.0)
        tl.atomic_add(gram + j * m + atom, value_j[:, None] * value, mask=atom >= 0)


@triton.jit
def _add_rows(
    values,
    X,
    user_slots,
    starts,
    cross,
    p,
    WIDTH: tl.constexpr,
    USERS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    j = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    is_column = column < p
    begin, end = tl.load(starts + j), tl.load(starts + j + 1)
    user = tl.arange(0, USERS)
    total = tl.zeros((FEATURES,), tl.float32)
    for first in range(begin, end, USERS):
        is_user = first + user < end
        user_slot = tl.load(user_slots + first + user, mask=is_user, other=0)
        value_j = tl.load(values + user_slot, mask=is_user, other=0.0)
        address = (user_slot // WIDTH)[:, None] * p + column[None, :]
        mask = is_user[:, None] & is_column[None, :]
        total += tl.sum(
            tl.load(X + address, mask=mask, other=0.0) * value_j[:, None], axis=0
        )
    tl.store(cross + j * p + column, total, mask=is_column)
