"""Elementwise functions that overwrite NumPy arrays, but no tensors.

The caller owns the first argument and uses only the result. Tensors are not
overwritten, because autograd may need them.
"""

from __future__ import annotations

import numpy as np

from .arrays import Array, is_torch


def times(a: Array, b: Array | float) -> Array:
    """Return a · b."""
    return a * b if is_torch(a) else np.multiply(a, b, out=a)


def plus(a: Array, b: Array | float) -> Array:
    """Return a + b."""
    return a + b if is_torch(a) else np.add(a, b, out=a)


def divide(a: Array, b: Array | float) -> Array:
    """Return a / b."""
    return a / b if is_torch(a) else np.divide(a, b, out=a)


def power(a: Array, exponent: float) -> Array:
    """Return a to the power `exponent`."""
    if is_torch(a):
        return a**exponent
    a **= exponent
    return a


def exp(a: Array) -> Array:
    """Return exp(a)."""
    return a.exp() if is_torch(a) else np.exp(a, out=a)


def tanh(a: Array) -> Array:
    """Return tanh(a)."""
    return a.tanh() if is_torch(a) else np.tanh(a, out=a)


def root(a: Array) -> Array:
    """√a."""
    return a.sqrt() if is_torch(a) else np.sqrt(a, out=a)


def not_negative(a: Array) -> Array:
    """Return max(a, 0)."""
    return a.clamp(min=0) if is_torch(a) else np.maximum(a, 0, out=a)


def zero_diagonal(a: Array) -> None:
    """Set the diagonal to 0, also in a tensor."""
    if is_torch(a):
        a.fill_diagonal_(0)
    else:
        np.fill_diagonal(a, 0)
