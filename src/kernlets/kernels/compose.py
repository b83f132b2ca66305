"""Kernels built from kernels: sums, products, constants and normalisation.

Samples may be of any kind that the inner kernels accept.
"""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from ..base.constraints import NOT_NEGATIVE
from ..contracts import Array, Kernel
from ..data.rows import map_rows
from ..data.weights import Weights
from ..numerics.arrays import as_float, as_like, broadcast, namespace
from ..numerics.overwrite import plus, times
from .base import ElementwiseKernel, finite, no_overflow
from .custom import floats_like, length


def is_definite(kernel: Kernel) -> bool:
    """Whether a kernel is said to be positive semi-definite, as most are."""
    return bool(getattr(kernel, "psd", True))


def as_kernel(value: Kernel | float) -> Kernel:
    """Return a kernel unchanged and turn a number into a constant kernel."""
    if isinstance(value, Kernel):
        return value
    if isinstance(value, Real):
        return Constant(float(value))
    raise TypeError(f"a kernel combines with kernels and numbers, not with {value!r}")


class _Pair(Kernel):
    """A combination of two kernels on the same samples."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "first": [Kernel],
        "second": [Kernel],
    }

    def __init__(self, first: Kernel, second: Kernel) -> None:
        self.first = first
        self.second = second

    @property
    def differentiable(self) -> bool:  # type: ignore[override]
        return self.first.differentiable and self.second.differentiable

    @property
    def restrictable(self) -> bool:  # type: ignore[override]
        return self.first.restrictable and self.second.restrictable

    @property
    def psd(self) -> bool:
        """Whether both kernels are positive semi-definite."""
        return is_definite(self.first) and is_definite(self.second)

    @property
    def takes(self) -> str:  # type: ignore[override]
        """The kind of samples that both take; a constant takes any."""
        kinds = {kernel.takes for kernel in (self.first, self.second)} - {"any"}
        if len(kinds) > 1:
            raise ValueError(
                f"{self.first!r} takes {self.first.takes} and {self.second!r} takes "
                f"{self.second.takes}: combine kernels of the same samples"
            )
        return kinds.pop() if kinds else "any"

    def restricted(self, share: float) -> Kernel:
        """Scale both kernels alike; scaling only one of them would change the sum."""
        kernels = (_stretch(kernel, share) for kernel in (self.first, self.second))
        return type(self)(*kernels)

    @abstractmethod
    def combine(self, a: Array, b: Array) -> Array:
        """Combine the values of both kernels; may overwrite the NumPy array `a`."""

    def __call__(self, X: Array, Y: Array | None = None) -> Array:  # (n, m)
        first, second = _writable_matrix(self.first, X, Y), self.second(X, Y)
        with no_overflow(self, first.dtype):
            return finite(self, self.combine(first, second))

    def diag(self, X: Array) -> Array:  # (n,)
        first, second = self.first.diag(X) * 1.0, self.second.diag(X)
        with no_overflow(self, first.dtype):
            return finite(self, self.combine(first, second))

    def bound(self, X: Array, weights: Weights = None) -> Kernel:
        first, second = (k.bound(X, weights) for k in (self.first, self.second))
        unchanged = first is self.first and second is self.second
        return self if unchanged else type(self)(first, second)

    def take(self, X: Array, indices: Array) -> Array:
        kernel = self.second if isinstance(self.first, Constant) else self.first
        return kernel.take(X, indices)


class Sum(_Pair):
    """κ = κ₁ + κ₂, also written ``first + second``."""

    def combine(self, a: Array, b: Array) -> Array:
        return plus(a, b)

    def pull(self, X: Array, Y: Array, W: Array) -> Array:  # (n, p)
        return self.first.pull(X, Y, W) + self.second.pull(X, Y, W)


class Product(_Pair):
    """κ = κ₁ · κ₂, also written ``first * second``; ``2.0 * kernel`` scales one."""

    def combine(self, a: Array, b: Array) -> Array:
        return times(a, b)

    def pull(self, X: Array, Y: Array, W: Array) -> Array:  # (n, p)
        gradient = self.first.pull(X, Y, W * self.second(X, Y))
        return gradient + self.second.pull(X, Y, W * self.first(X, Y))


class Constant(Kernel):
    """κ(x, y) = value; a number becomes this in ``2.0 * kernel`` and ``kernel + 1``.

    The matrix is a read-only view of one number.

    Parameters
    ----------
    value : float, default=1.0
        The constant, 0 or positive.
    """

    differentiable: ClassVar[bool] = True
    restrictable: ClassVar[bool] = True
    takes: ClassVar[str] = "any"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "value": [NOT_NEGATIVE],
    }

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    def __call__(self, X: Array, Y: Array | None = None) -> Array:  # (n, m)
        return self._constant_array(X, (length(X), length(X if Y is None else Y)))

    def diag(self, X: Array) -> Array:  # (n,)
        return self._constant_array(X, (length(X),))

    def pull(self, X: Array, Y: Array, W: Array) -> Array:  # (n, p)
        return namespace(X).zeros_like(as_float(X))

    def restricted(self, share: float) -> Kernel:
        return self

    def _constant_array(self, X: Array, shape: tuple[int, ...]) -> Array:
        if not 0 <= self.value < np.inf:
            raise ValueError(
                f"Constant: value={self.value!r} must be 0 or a positive number, or "
                "the kernel would not be positive semi-definite"
            )
        return broadcast(floats_like(self.value, X), shape)


class Normalized(Kernel):
    """κ(x, y)/√(κ(x, x) κ(y, y)), which gives every φ(x) unit norm.

    The value is 0 where κ(x, x) or κ(y, y) is 0.

    Parameters
    ----------
    kernel : Kernel
        The kernel to normalise.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import Normalized, Polynomial
    >>> Normalized(Polynomial(2))(np.array([[1.0, 0.0], [2.0, 2.0]])).round(2).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [Kernel],
    }

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    @property
    def differentiable(self) -> bool:  # type: ignore[override]
        return self.kernel.differentiable

    @property
    def restrictable(self) -> bool:  # type: ignore[override]
        return self.kernel.restrictable

    @property
    def psd(self) -> bool:
        """Whether the inner kernel is positive semi-definite."""
        return is_definite(self.kernel)

    @property
    def takes(self) -> str:  # type: ignore[override]
        """The samples of the inner kernel."""
        return self.kernel.takes

    def restricted(self, share: float) -> Kernel:
        return Normalized(self.kernel.restricted(share))

    def __call__(self, X: Array, Y: Array | None = None) -> Array:  # (n, m)
        X_scale = self._inverse_norms(X)
        Y_scale = X_scale if Y is None else self._inverse_norms(Y)
        return times(
            times(_writable_matrix(self.kernel, X, Y), X_scale[:, None]), Y_scale
        )

    def diag(self, X: Array) -> Array:  # (n,)
        norms = self.kernel.diag(X)
        return namespace(norms).astype(norms > 0, norms.dtype)

    def pull(self, X: Array, Y: Array, W: Array) -> Array:  # (n, p)
        """With a = κ(x, x), κ̃ = κ/√(a b): ∂κ̃ = ∂κ/√(a b) - κ̃ ∂a/(2a)."""
        X_scale, Y_scale = self._inverse_norms(X), self._inverse_norms(Y)
        gradient = self.kernel.pull(X, Y, W * X_scale[:, None] * Y_scale)
        shares = namespace(W).vecdot(W, self(X, Y)) * X_scale * X_scale
        return gradient - shares[:, None] * self._half_energy_gradient(X)

    def bound(self, X: Array, weights: Weights = None) -> Kernel:
        kernel = self.kernel.bound(X, weights)
        return self if kernel is self.kernel else type(self)(kernel)

    def take(self, X: Array, indices: Array) -> Array:
        return self.kernel.take(X, indices)

    def _inverse_norms(self, X: Array) -> Array:  # (n,)
        energies = self.kernel.diag(X)
        xp = namespace(energies)
        if bool(xp.any(energies < 0)):
            raise ValueError(
                f"Normalized: {self.kernel!r} gives negative κ(x, x) and cannot be "
                "normalised; use a positive semi-definite kernel"
            )
        return 1.0 / xp.sqrt(xp.where(energies > 0, energies, np.inf))

    def _half_energy_gradient(self, X: Array) -> Array:  # (n, p)
        """∂κ(x, y)/∂x at y = x, half the gradient of κ(x, x) as κ is symmetric."""

        def block(rows: Array) -> Array:
            eye = namespace(rows).eye(rows.shape[0], dtype=rows.dtype)
            return self.kernel.pull(rows, rows, as_like(eye, rows))

        return map_rows(block, X, row_bytes=8 * X.shape[1])


def _stretch(kernel: Kernel, share: float) -> Kernel:
    """Return a kernel of the observed features with the scale of all features."""
    if isinstance(kernel, ElementwiseKernel):
        return kernel.stretch(share)
    return kernel.restricted(share)


def _writable_matrix(kernel: Kernel, X: Array, Y: Array | None) -> Array:  # (n, m)
    """Kernel values in an array that the caller may overwrite.

    The arrays of kernels outside this package are copied, because such a kernel may
    still use the array that it returned.
    """
    K = kernel(X, Y)
    return K if isinstance(kernel, (ElementwiseKernel, _Pair, Normalized)) else K * 1.0


def _add(kernel: Kernel, other: Kernel | float) -> Sum:
    return Sum(kernel, as_kernel(other))


def _multiply(kernel: Kernel, other: Kernel | float) -> Product:
    return Product(kernel, as_kernel(other))


Kernel.combinations.update({"+": _add, "*": _multiply})
