"""Sums over sparse codes of torch tensors: ΓᵀΓ and ΓᵀX.

On a GPU each atom sums over the samples that use it, so Γ is never dense. ΓᵀΓ is then
added up in no fixed order, and two runs may differ by rounding.
"""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor

from .torch_ import _fused, users_by_atom

MANY = 1024  # with fewer atoms a dense product is as fast


def code_gram(indices: Tensor, values: Tensor, m: int) -> Tensor:  # (m, m)
    """ΓᵀΓ."""
    fused = _fused_sums(values, m)
    if fused is not None:
        return fused.code_gram(indices, values, *users_by_atom(indices, m), m)
    Gamma = _dense(indices, values, m)
    return Gamma.T @ Gamma


def code_cross(indices: Tensor, values: Tensor, X: Tensor, m: int) -> Tensor:  # (m, p)
    """ΓᵀX."""
    fused = _fused_sums(values, m)
    if fused is not None and X.dtype == values.dtype:
        return fused.code_cross(values, X, *users_by_atom(indices, m), m)
    return _dense(indices, values, m).T @ X


def _fused_sums(values: Tensor, m: int) -> ModuleType | None:
    """The Triton twins, where they can be used and pay."""
    on_gpu = values.is_cuda and values.dtype == torch.float32
    fused = _fused() if on_gpu and m > MANY else None
    return None if fused is None else fused.triton_codes


def _dense(indices: Tensor, values: Tensor, m: int) -> Tensor:  # (n, m)
    dense = values.new_zeros((len(indices), m))
    return dense.scatter_add_(1, indices.clamp(min=0), values)
