"""Kernels of the inner product s = xᵀy: linear, polynomial, sigmoid and cosine."""

from __future__ import annotations

from numbers import Integral, Real
from typing import ClassVar

import numpy as np

from ..base.constraints import AT_LEAST_1, NOT_NEGATIVE, POSITIVE
from ..contracts import Array
from ..data.sparse_rows import as_dense, row_lengths, scaled_rows
from ..data.weights import Weights
from ..numerics.arrays import namespace, row_norms
from ..numerics.overwrite import tanh, times
from ..numerics.products import matmul, outer_products
from .base import Kernel, positive
from .elementwise import ElementwiseKernel, Identity


class Dot(ElementwiseKernel):
    """κ(x, y) = profile(s) with s = xᵀy; a subclass defines `profile` and `slope`."""

    accept_sparse: ClassVar[bool] = True

    def pairs(self, X: Array, Y: Array) -> Array:  # (n, m)
        return products(X, Y)

    def self_pairs(self, X: Array) -> Array:  # (n,)
        return row_norms(X)

    def weighted_gradient(self, X: Array, Y: Array, V: Array) -> Array:  # (n, p)
        """Compute Σⱼ Vᵢⱼ yⱼ."""
        return V @ Y


class Linear(Identity, Dot):
    """κ(x, y) = xᵀy.

    Examples
    --------
    >>> from kernlets import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0], [0.0, 1.0]]).tolist()
    [[11.0, 2.0]]
    """

    invertible = True

    def inverse(self, values: Array) -> Array:
        """Return xᵀy, which is κ."""
        return values


class Polynomial(Dot):
    """κ(x, y) = (scale · xᵀy + coef0)^degree.

    Parameters
    ----------
    degree : int, default=2
        Exponent, at least 1.
    coef0 : float, default=0.0
        Offset; 0 gives the homogeneous kernel. Negative values raise an error, because
        the kernel would not be positive semi-definite.
    scale : float, default=1.0
        Factor of the inner product (scikit-learn calls it ``gamma``).

    Examples
    --------
    >>> from kernlets import Polynomial
    >>> Polynomial(degree=2, coef0=1.0)([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[144.0]]
    """

    invertible = True
    overflow_remedy = ", lower degree or scale"
    _parameter_constraints = {
        "degree": [AT_LEAST_1],
        "coef0": [NOT_NEGATIVE],
        "scale": [POSITIVE],
    }

    def __init__(
        self, degree: int = 2, coef0: float = 0.0, *, scale: float = 1.0
    ) -> None:
        self.degree = degree
        self.coef0 = coef0
        self.scale = scale

    @property
    def homogeneous(self) -> bool:  # type: ignore[override]
        return self.coef0 == 0

    def restricted_share(self, share: float) -> float:
        return share**self.degree if self.homogeneous else 1.0

    def profile(self, s: Array) -> Array:
        return power(self._base(s), self.degree)

    def slope(self, s: Array) -> Array:
        derivative = power(self._base(s), self.degree - 1)
        derivative *= self.degree * float(self.scale)
        return derivative

    def inverse(self, values: Array) -> Array:
        """Compute xᵀy from a root of κ, which is not negative if the degree is even."""
        xp, degree = namespace(values), self.degree
        if degree % 2:
            root = xp.sign(values) * xp.abs(values) ** (1.0 / degree)
        else:
            root = xp.clip(values, 0, None) ** (1.0 / degree)
        return (root - self.coef0) / self.scale

    def _base(self, s: Array) -> Array:
        self._check()
        return _affine(s, float(self.scale), float(self.coef0))

    def _check(self) -> None:
        positive(self, "scale")
        if not isinstance(self.degree, Integral) or self.degree < 1:
            raise ValueError(
                f"Polynomial: degree={self.degree!r} must be an integer of at least 1"
            )
        if not isinstance(self.coef0, Real) or not 0 <= self.coef0 < np.inf:
            raise ValueError(
                f"Polynomial: coef0={self.coef0!r} must be 0 or a positive number"
            )


class Sigmoid(Dot):
    """κ(x, y) = tanh(scale · xᵀy + coef0).

    The kernel is not positive semi-definite in general. Methods that factor a kernel
    matrix drop its negative eigenvalues.

    Parameters
    ----------
    scale : float, default=None
        Factor of the inner product; None means 1/p.
    coef0 : float, default=1.0
        Offset.

    Examples
    --------
    >>> from kernlets import Sigmoid
    >>> Sigmoid(scale=0.5, coef0=0.0)([[1.0, 0.0]], [[2.0, 5.0]]).round(4).tolist()
    [[0.7616]]
    """

    psd: ClassVar[bool] = False
    rate_parameter = "scale"
    _parameter_constraints = {"scale": [POSITIVE, None], "coef0": [Real]}

    def __init__(self, scale: float | None = None, coef0: float = 1.0) -> None:
        self.scale = scale
        self.coef0 = coef0

    def default_rate(self, X: Array, weights: Weights = None) -> float:
        return 1.0 / X.shape[1]

    def profile(self, s: Array) -> Array:
        s = _affine(s, positive(self, "scale"), float(self.coef0))
        return tanh(s)

    def slope(self, s: Array) -> Array:
        t = self.profile(s)
        return (1.0 - t * t) * positive(self, "scale")


class Cosine(Identity):
    """κ(x, y) = xᵀy/(|x||y|), and 0 where a row is zero.

    Examples
    --------
    >>> from kernlets import Cosine
    >>> Cosine()([[3.0, 4.0]], [[6.0, 8.0], [0.0, 2.0], [0.0, 0.0]]).round(4).tolist()
    [[1.0, 0.8, 0.0]]
    """

    accept_sparse: ClassVar[bool] = True

    def stretch(self, share: float) -> Kernel:
        return self  # the scale of an angle does not depend on the number of features

    def restricted_share(self, share: float) -> float:
        return 1.0

    def pairs(self, X: Array, Y: Array) -> Array:  # (n, m)
        U = _unit_rows(X)
        return products(U, U if Y is X else _unit_rows(Y))

    def self_pairs(self, X: Array) -> Array:  # (n,)
        lengths = row_lengths(X)
        return namespace(lengths).astype(lengths > 0, lengths.dtype)

    def weighted_gradient(self, X: Array, Y: Array, V: Array) -> Array:  # (n, p)
        """Compute (I - uᵢuᵢᵀ)/|xᵢ| · Σⱼ Vᵢⱼ yⱼ/|yⱼ|, with uᵢ = xᵢ/|xᵢ|."""
        U = _unit_rows(X)
        gradient = V @ _unit_rows(Y)
        radial_part = namespace(X).vecdot(gradient, U)
        return (gradient - radial_part[:, None] * U) * _inverse_lengths(X)[:, None]


def _affine(s: Array, scale: float, offset: float) -> Array:
    """Compute scale · s + offset in place; skip a step that would change nothing."""
    if scale != 1.0:
        s *= scale
    if offset != 0.0:
        s += offset
    return s


def power(s: Array, exponent: int) -> Array:
    """Return s^exponent by repeated squaring, in place on NumPy arrays."""
    if exponent == 0:
        return namespace(s).ones_like(s)
    result = None
    while True:
        exponent, odd = divmod(exponent, 2)
        if odd and exponent == 0:
            return s if result is None else times(result, s)
        if odd:
            result = s * 1.0 if result is None else times(result, s)
        s = times(s, s)


def _inverse_lengths(X: Array) -> Array:  # (n,)
    """Compute 1/|xᵢ|, and 0 for zero rows."""
    lengths = row_lengths(X)
    return 1.0 / namespace(lengths).where(lengths > 0, lengths, np.inf)


def _unit_rows(X: Array) -> Array:  # (n, p)
    return scaled_rows(X, _inverse_lengths(X))


def products(
    X: Array,  # (n, p), dense or CSR
    Y: Array,  # (m, p), dense or CSR
) -> Array:  # (n, m)
    """Compute xᵢᵀyⱼ, dense; at half the operations if X and Y are the same object."""
    return as_dense(outer_products(X) if Y is X else matmul(X, Y.T))
