"""Sums over sparse codes of torch tensors, ΓᵀΓ and ΓᵀX.

On a GPU each atom sums over the samples that use it, so Γ is never dense. The terms of
ΓᵀΓ are then added in no fixed order, and two runs may differ by rounding.
"""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor

from ..omp.torch import load_triton
from . import reference
from .reference import users_by_atom

MIN_SPARSE_ATOMS = 1024  # with fewer, a dense product is as fast


def code_gram(indices: Tensor, values: Tensor, m: int) -> Tensor:  # (m, m)
    """ΓᵀΓ."""
    triton_sums = _triton_sums(values, m)
    if triton_sums is not None:
        return triton_sums.code_gram(indices, values, *users_by_atom(indices, m), m)
    return reference.code_gram(indices, values, m)


def code_cross(indices: Tensor, values: Tensor, X: Tensor, m: int) -> Tensor:  # (m, p)
    """ΓᵀX."""
    triton_sums = _triton_sums(values, m)
    if triton_sums is not None and X.dtype == values.dtype:
        return triton_sums.code_cross(values, X, *users_by_atom(indices, m), m)
    return reference.code_cross(indices, values, X, m)


def _triton_sums(values: Tensor, m: int) -> ModuleType | None:
    """The Triton twins, where they can be used and are faster; else None."""
    is_usable = values.is_cuda and values.dtype == torch.float32
    return load_triton("updates.triton") if is_usable and m > MIN_SPARSE_ATOMS else None
