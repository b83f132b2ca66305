"""Distances of rows, and kernels of them: RBF, Matérn, rational quadratic, Laplacian.

A radial kernel is defined by two functions of the squared distance s = ‖x - y‖². If
its bandwidth is None, `bound` sets it from the data to gamma = 1/(p·var(X)). A kernel
that is called without being bound uses 1/p, like scikit-learn's pairwise kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from ..base.constraints import POSITIVE, Options
from ..contracts import Array
from ..data.rows import map_rows
from ..data.sparse_rows import centre_rows, variance
from ..data.weights import Weights
from ..loops import table
from ..numerics.arrays import namespace, or_wider, row_norms, zeros
from ..numerics.overwrite import not_negative, power, root, zero_diagonal
from .base import Kernel, positive, reset
from .dot import products
from .elementwise import ElementwiseKernel, Exponential, decay


class Radial(ElementwiseKernel):
    """κ(x, y) = profile(s), s = ‖x - y‖²; a subclass defines `profile` and `slope`."""

    accept_sparse: ClassVar[bool] = True
    bounded = True

    def pairs(self, X: Array, Y: Array) -> Array:  # (n, m)
        return squared_distances(X, Y)

    def self_pairs(self, X: Array) -> Array:  # (n,)
        return zeros((X.shape[0],), X)

    def weighted_gradient(self, X: Array, Y: Array, V: Array) -> Array:  # (n, p)
        """Compute Σⱼ Vᵢⱼ · 2(xᵢ - yⱼ)."""
        X, Y = centre_rows(X, Y)
        gradient = X * V.sum(1)[:, None]
        gradient -= V @ Y
        gradient *= 2.0
        return gradient

    def extent(self, X: Array) -> Array:  # (n,)
        return row_norms(self._rows(X, "X"))


class RBF(Exponential, Radial):
    """κ(x, y) = exp(-‖x - y‖²/(2σ²)) = exp(-γ‖x - y‖²).

    Parameters
    ----------
    sigma : float, default=None
        Width σ.
    gamma : float, default=None
        γ = 1/(2σ²), the name that scikit-learn uses. Give one of the two, or neither:
        the width is then set from the data.

    Examples
    --------
    >>> from kernlets import RBF
    >>> RBF(sigma=1.0)([[0.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]).round(4).tolist()
    [[1.0, 0.3679]]
    """

    invertible = True
    rate_parameter = "gamma"
    _parameter_constraints = {"sigma": [POSITIVE, None], "gamma": [POSITIVE, None]}

    def __init__(self, sigma: float | None = None, gamma: float | None = None) -> None:
        self.sigma = sigma
        self.gamma = gamma
        self._check_spelling()

    def _check_spelling(self) -> None:
        if self.sigma is not None and self.gamma is not None:
            raise ValueError(
                f"RBF: sigma={self.sigma!r} and gamma={self.gamma!r} are two "
                "names for one parameter; set one of them to None"
            )

    @property
    def unset(self) -> bool:
        return self.sigma is None and self.gamma is None

    @property
    def rate(self) -> float:
        self._check_spelling()
        if self.sigma is None:
            return positive(self, "gamma")
        sigma = positive(self, "sigma")
        return positive(self, "sigma", 0.5 / sigma / sigma)

    def inverse(self, values: Array) -> Array:
        """Compute ‖x - y‖² = -log(κ)/γ."""
        return -namespace(values).log(values) / self.rate


class _LengthScale(Radial):
    """A radial kernel with a length scale l; l² = 1/(2γ), by analogy with RBF."""

    length_scale: float | None
    rate_parameter = "length_scale"

    def with_rate(self, rate: float) -> Kernel:
        return reset(self, length_scale=sqrt(0.5 / rate))

    @property
    def _rate(self) -> float:
        """1/(2l²), which a length scale can be too small or too large for."""
        scale = positive(self, "length_scale")
        return positive(self, "length_scale", 0.5 / scale / scale)


class Matern(_LengthScale):
    """Matérn kernel: a polynomial of r = √(2ν)·‖x - y‖/l times exp(-r).

    κ = e⁻ʳ (ν = 1/2), (1 + r) e⁻ʳ (ν = 3/2), (1 + r + r²/3) e⁻ʳ (ν = 5/2).

    Parameters
    ----------
    length_scale : float, default=None
        Length scale l; None sets it from the data.
    nu : {0.5, 1.5, 2.5}, default=1.5
        Smoothness ν. With 0.5 the kernel has no gradient at x = y; `pull` uses 0 there.

    Examples
    --------
    >>> from kernlets import Matern
    >>> Matern(length_scale=1.0, nu=0.5)([[0.0]], [[0.0], [1.0]]).round(4).tolist()
    [[1.0, 0.3679]]
    """

    _parameter_constraints = {
        "length_scale": [POSITIVE, None],
        "nu": [Options(Real, {0.5, 1.5, 2.5})],
    }

    def __init__(self, length_scale: float | None = None, nu: float = 1.5) -> None:
        self.length_scale = length_scale
        self.nu = nu

    def profile(self, s: Array) -> Array:
        r = self._radius(s)
        if self.nu == 0.5:
            return decay(r)
        factor = r + 1.0 if self.nu == 1.5 else _horner(r)
        factor *= decay(r)
        return factor

    def slope(self, s: Array) -> Array:
        """Return dκ/ds: -a² e⁻ʳ times 1/(2r), 1/2 and (1 + r)/6, with r = a·‖x - y‖."""
        r = self._radius(s)
        factor = -self._squared_frequency()
        if self.nu == 0.5:
            inverse = 1.0 / namespace(r).where(r > 0, r, np.inf)  # 0 at r = 0
            return inverse * decay(r) * (factor / 2)
        if self.nu == 1.5:
            return decay(r) * (factor / 2)
        return (r + 1.0) * decay(r) * (factor / 6)

    def _radius(self, s: Array) -> Array:
        """Compute r = √(a²s)."""
        s *= self._squared_frequency()
        return root(s)

    def _squared_frequency(self) -> float:
        """Return a² = 2ν/l²."""
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"Matern: nu={self.nu!r} must be one of 0.5, 1.5, 2.5")
        return 4.0 * self.nu * self._rate


class RationalQuadratic(_LengthScale):
    """κ(x, y) = (1 + ‖x - y‖²/(2αl²))^(-α), a mixture of RBF kernels.

    Parameters
    ----------
    length_scale : float, default=None
        Length scale l; None sets it from the data.
    alpha : float, default=1.0
        Exponent α. Small values mix more widths; for large values the kernel
        approaches RBF with σ = l.

    Examples
    --------
    >>> from kernlets import RationalQuadratic
    >>> RationalQuadratic(length_scale=1.0)([[0.0]], [[0.0], [2.0]]).round(4).tolist()
    [[1.0, 0.3333]]
    """

    invertible = True
    _parameter_constraints = {"length_scale": [POSITIVE, None], "alpha": [POSITIVE]}

    def __init__(self, length_scale: float | None = None, alpha: float = 1.0) -> None:
        self.length_scale = length_scale
        self.alpha = alpha

    def profile(self, s: Array) -> Array:
        return self._power(s, 0.0)

    def slope(self, s: Array) -> Array:
        derivative = self._power(s, 1.0)
        derivative *= -self._rate
        return derivative

    def inverse(self, values: Array) -> Array:
        """Compute ‖x - y‖² = 2αl² (κ^(-1/α) - 1)."""
        raised = values ** (-1.0 / self.alpha)
        return (raised - 1.0) * (2 * self.alpha * positive(self, "length_scale") ** 2)

    def _power(self, s: Array, increment: float) -> Array:
        """Compute (1 + s/(2αl²))^(-α - increment)."""
        alpha = positive(self, "alpha")
        s *= self._rate / alpha
        s += 1.0
        return power(s, -(alpha + increment))


class Laplacian(Exponential):
    """κ(x, y) = exp(-γ Σ|x - y|), with the L1 distance as in scikit-learn.

    Parameters
    ----------
    gamma : float, default=None
        Factor γ. None sets it from the data to 1/(p·std(X)). As for RBF, the exponent
        of two random rows is then about 1 whatever the number and unit of the features.

    Notes
    -----
    Where two rows agree in a feature the kernel has no gradient; `pull` uses 0.

    Examples
    --------
    >>> from kernlets import Laplacian
    >>> Laplacian(gamma=1.0)([[0.0, 0.0]], [[0.5, 0.5]]).round(4).tolist()
    [[0.3679]]
    """

    rate_parameter = "gamma"
    _parameter_constraints = {"gamma": [POSITIVE, None]}

    def __init__(self, gamma: float | None = None) -> None:
        self.gamma = gamma

    def default_rate(self, X: Array, weights: Weights = None) -> float:
        return 1.0 / (X.shape[1] * sqrt(variance(X, weights) or 1.0))

    @property
    def rate(self) -> float:
        return positive(self, "gamma")

    def pairs(self, X: Array, Y: Array) -> Array:  # (n, m)
        return l1_distances(X, Y)

    def self_pairs(self, X: Array) -> Array:  # (n,)
        return zeros((X.shape[0],), X)

    def weighted_gradient(self, X: Array, Y: Array, V: Array) -> Array:  # (n, p)
        sign = namespace(X).sign
        return feature_pull(X, Y, V, lambda x, y: sign(x - y))


def _horner(r: Array) -> Array:
    """Compute 1 + r + r²/3 with one temporary."""
    value = r / 3.0
    value += 1.0
    value *= r
    value += 1.0
    return value


def squared_distances(
    X: Array,  # (n, p), dense or CSR
    Y: Array,  # (m, p), dense or CSR
) -> Array:  # (n, m)
    """Compute |xᵢ - yⱼ|² by one matrix product, never negative.

    Dense rows are centred first: |x|² + |y|² - 2xᵀy then subtracts no large numbers
    when the data lie far from the origin.
    When X and Y are one object the product is symmetric, at half the operations, and
    the diagonal is exactly 0.
    """
    X, Y = centre_rows(X, Y)
    same = Y is X
    norms_X = row_norms(X)
    norms_Y = norms_X if same else row_norms(Y)
    _refuse_overflow(norms_X, norms_Y)
    if same:
        s = products(X, X)
        s *= -2.0
    else:
        s = products(X, Y * -2.0)
    s += norms_X[:, None]
    s += norms_Y
    s = not_negative(s)  # rounding can make a distance slightly negative
    if same:
        zero_diagonal(s)
    return s


def l1_distances(X: Array, Y: Array) -> Array:  # (n, p), (m, p) -> (n, m)
    """Compute Σ |xᵢ - yⱼ|, in blocks of rows."""
    row_bytes = X.dtype.itemsize * Y.shape[0]
    return map_rows(lambda block: table.l1_distances(block, Y), X, row_bytes)


def feature_pull(
    X: Array, Y: Array, V: Array, derivative: Callable[[Array, Array], Array]
) -> Array:  # (n, p), (m, p), (n, m) -> (n, p)
    """Compute Σⱼ Vᵢⱼ derivative(xᵢ, yⱼ) of each feature, one (n, m) array at a time."""
    xp = namespace(X)
    columns = [
        xp.vecdot(V, derivative(X[:, c, None], Y[None, :, c]))
        for c in range(X.shape[1])
    ]
    return xp.stack(columns, axis=1)


def _refuse_overflow(*norms: Any) -> None:
    """Raise if norms are so large that |x|² + |y|² - 2xᵀy may be ∞ - ∞."""
    for values in norms:
        xp = namespace(values)
        if not bool(xp.all(values <= float(xp.finfo(values.dtype).max) / 8)):
            raise ValueError(
                f"squared distances overflow in {values.dtype}: scale the data, "
                f"e.g. with StandardScaler{or_wider(values.dtype)}"
            )
