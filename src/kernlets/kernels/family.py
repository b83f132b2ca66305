"""Kernels that are an elementwise function of one number per pair of rows.

κ(x, y) = profile(s(x, y)). A family defines s (`Radial`: squared distance, `Dot`:
inner product, ...) and a kernel defines `profile` and its derivative `slope`. Matrix
blocks, diagonal, gradient, default bandwidth and overflow check follow from these.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import clone

from ..backend.arrays import as_float, is_array, is_torch, namespace
from ..backend.rows import sum_rows, take_rows
from ..backend.stored import is_elsewhere
from ..core import Array, Kernel


class Family(Kernel):
    """κ(x, y) = profile(s(x, y)) on rows of numbers.

    `profile` and `slope` may overwrite their NumPy argument.
    """

    differentiable: ClassVar[bool] = True
    accept_sparse: ClassVar[bool] = False
    """Whether X and Y may be SciPy sparse matrices."""
    psd: ClassVar[bool] = True
    """Whether κ is positive semi-definite."""
    non_negative: ClassVar[bool] = False
    """Whether κ is defined only on rows without negative entries."""

    @abstractmethod
    def profile(self, s: Array) -> Array:
        """κ as a function of s."""

    @abstractmethod
    def slope(self, s: Array) -> Array:
        """dκ/ds."""

    @abstractmethod
    def pairs(self, X: Array, Y: Array) -> Array:  # (n, m)
        """s(xᵢ, yⱼ) in a new array; Y is X itself for a symmetric matrix."""

    @abstractmethod
    def own(self, X: Array) -> Array:  # (n,)
        """s(xᵢ, xᵢ) in a new array."""

    @abstractmethod
    def spread(self, X: Array, Y: Array, V: Array) -> Array:  # (n, p)
        """Σⱼ Vᵢⱼ ∂s(xᵢ, yⱼ)/∂xᵢ."""

    @property
    def unset(self) -> bool:
        """Whether a parameter is still None and will be set from the data."""
        return False

    def with_rate(self, rate: float) -> Kernel:
        """A copy whose unset parameter is chosen so that κ varies with rate · s."""
        raise NotImplementedError(f"{type(self).__name__} has no unset parameter")

    def default_rate(self, X: Array) -> float:
        """The rate that `bound` sets: 1/(p·var), scikit-learn's ``gamma="scale"``."""
        return 1.0 / (X.shape[1] * (variance(X) or 1.0))

    def extent(self, X: Array) -> Array:  # (n,)
        """The numbers that must be finite for κ to be finite on X."""
        return self.diag(X)

    def __call__(self, X: Array, Y: Array | None = None) -> Array:  # (n, m)
        X, Y = self._both(X, Y)
        kernel = self._ready(X)
        with no_overflow(self):
            return kernel.profile(kernel.pairs(X, Y))

    def diag(self, X: Array) -> Array:  # (n,)
        X = self._rows(X, "X")
        kernel = self._ready(X)
        with no_overflow(self):
            return kernel.profile(kernel.own(X))

    def pull(self, X: Array, Y: Array, W: Array) -> Array:  # (n, p)
        if sparse.issparse(X) or sparse.issparse(Y):
            raise TypeError("gradients need dense rows; pass X.toarray(), Y.toarray()")
        X, Y = self._both(X, Y)
        kernel = self._ready(X)
        with no_overflow(self):
            return kernel.spread(X, Y, W * kernel.slope(kernel.pairs(X, Y)))

    def bound(self, X: Array) -> Kernel:
        if not (is_array(X) or sparse.issparse(X) or is_elsewhere(X)):
            X = np.asarray(X)
        kernel = self.with_rate(self.default_rate(X)) if self.unset else self

        def n_infinite(block: Array) -> int:
            extent = kernel.extent(block)
            return int((~namespace(extent).isfinite(extent)).sum())

        if sum_rows(n_infinite, X, row_bytes=8 * X.shape[1]):
            raise _overflow(self)
        return kernel

    def _ready(self, X: Array) -> Any:
        """A copy without unset parameters: rate 1/p, as in scikit-learn's functions."""
        return self.with_rate(1.0 / X.shape[1]) if self.unset else self

    def _both(self, X: Array, Y: Array | None) -> tuple[Array, Array]:
        rows = self._rows(X, "X")
        if Y is None or Y is X:
            return rows, rows
        points = self._rows(Y, "Y")
        if points.shape[1] != rows.shape[1]:
            raise ValueError(
                f"X has {rows.shape[1]} features but Y has {points.shape[1]}; "
                "pass two arrays with the same number of features"
            )
        return rows, points

    def _rows(self, X: Array, name: str) -> Array:
        if sparse.issparse(X):
            if self.accept_sparse:
                return as_float(X.tocsr())
            raise TypeError(
                f"{type(self).__name__} accepts only dense rows; pass {name}.toarray()"
            )
        X = as_float(X if is_array(X) else np.asarray(X))
        if X.ndim != 2 or X.shape[1] < 1:
            raise ValueError(
                f"{type(self).__name__} takes rows of numbers, but {name} has shape "
                f"{tuple(X.shape)}; reshape it to (n_samples, n_features), or use "
                "Callable for other kinds of samples"
            )
        return X


class Exponential(Family):
    """κ = exp(-rate · s)."""

    @property
    @abstractmethod
    def rate(self) -> float:
        """The factor of s."""

    def profile(self, s: Array) -> Array:
        return decay(s, self.rate)

    def slope(self, s: Array) -> Array:
        e = decay(s, self.rate)
        e *= -self.rate
        return e


class Identity(Family):
    """κ = s."""

    def profile(self, s: Array) -> Array:
        return s

    def slope(self, s: Array) -> Array:
        return namespace(s).ones_like(s)


def decay(s: Array, rate: float = 1.0) -> Array:
    """exp(-rate · s), in place on NumPy arrays."""
    if is_torch(s):
        return (s * -rate).exp()
    s *= -rate
    return np.exp(s, out=s)


def reset(kernel: Kernel, **params: Any) -> Kernel:
    """A copy of the kernel with some parameters changed."""
    return clone(kernel).set_params(**params)


def positive(kernel: Kernel, name: str, value: Any = None) -> float:
    """Return a kernel parameter as a float; raise if it is not finite and positive."""
    given = getattr(kernel, name)
    value = given if value is None else value
    if not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise ValueError(
            f"{type(kernel).__name__}: {name}={given!r} must be a positive number"
        )
    return float(value)


def variance(X: Array) -> float:
    """Variance of all entries of X, exactly 0 when they are all equal."""
    if sparse.issparse(X):
        return _sparse_variance(X.tocsr())
    origin = take_rows(X, np.array([0]))[0, 0]
    if is_torch(X):
        return float((as_float(X) - origin).var(correction=0))

    def moments(block: Array) -> Array:
        shifted = np.subtract(block, origin, dtype=np.float64)
        return np.array([shifted.sum(), np.vdot(shifted, shifted)])

    total, squares = sum_rows(moments, X, row_bytes=8 * X.shape[1]) / X.size
    return max(0.0, float(squares - total**2))


def _sparse_variance(X: Any) -> float:
    size = X.shape[0] * X.shape[1]
    values = X.data.astype(np.float64)
    if values.size == size:  # every entry is stored, so any origin will do
        values -= values[0]
    return max(0.0, float(np.vdot(values, values) / size - (values.sum() / size) ** 2))


@contextmanager
def no_overflow(kernel: Kernel) -> Iterator[None]:
    """Turn NumPy's overflow flag into an error; reading the flag costs nothing."""
    try:
        with np.errstate(over="raise"):
            yield
    except FloatingPointError:
        raise _overflow(kernel) from None


def _overflow(kernel: Kernel) -> ValueError:
    return ValueError(
        f"{kernel!r} overflows on these data: scale them, e.g. to rows of unit norm "
        "or with StandardScaler, or pass float64"
    )
