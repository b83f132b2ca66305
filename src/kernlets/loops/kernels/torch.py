"""torch twins of `l1_distances` and `fwht`."""

from __future__ import annotations

import torch
from torch import Tensor


def l1_distances(X: Tensor, Y: Tensor) -> Tensor:
    """Σ |xᵢ − yⱼ|."""
    return torch.cdist(X, Y, p=1.0)


def fwht(X: Tensor) -> None:
    """X ← X H as two small matrix products, for H = H_a ⊗ H_b with ab = d."""
    n, d = X.shape
    bits = d.bit_length() - 1
    H_a, H_b = _hadamard(bits // 2, X), _hadamard(bits - bits // 2, X)
    X.copy_((H_a @ (X.reshape(n, len(H_a), len(H_b)) @ H_b)).reshape(n, d))


def _hadamard(bits: int, like: Tensor) -> Tensor:
    matrix = like.new_ones((1, 1))
    step = like.new_tensor([[1, 1], [1, -1]])
    for _ in range(bits):
        matrix = torch.kron(matrix, step)
    return matrix
