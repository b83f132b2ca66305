"""Kernels that are an elementwise function of one number per pair of rows.

κ(x, y) = profile(s(x, y)). A family defines s (`Radial`: squared distance, `Dot`:
inner product, ...) and a kernel defines `profile` and its derivative `slope`. Matrix
blocks, diagonal, gradient, default bandwidth and overflow check follow from these.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from ..contracts import Array
from ..data.rows import as_source, sum_rows, take_rows
from ..data.sparse_rows import float_rows, refuse_sparse, stored_entries, variance
from ..data.weights import Weights
from ..numerics.arrays import FLOATS, as_float, namespace, or_wider
from ..numerics.overwrite import exp, times
from ..numerics.scaling import least_energy
from .base import Kernel, finite, no_overflow, of_inner, overflow_error, reset

HEADROOM = 2.0**20  # sums over κ may be larger than κ by this factor


class ElementwiseKernel(Kernel):
    """κ(x, y) = profile(s(x, y)) on rows of numbers.

    `profile` and `slope` may overwrite their NumPy argument.
    """

    differentiable: ClassVar[bool] = True
    bounded: ClassVar[bool] = False
    """Whether κ is finite wherever s is a number, so that blocks are not checked."""
    restrictable: ClassVar[bool] = True
    returns_new_array: ClassVar[bool] = True
    homogeneous: ClassVar[bool] = False
    """Whether κ is a power of s, up to a factor: a scale of s is one of κ."""
    rate_parameter: ClassVar[str] = ""
    """The parameter that `bound` sets to `default_rate` if it is None."""

    @abstractmethod
    def profile(self, s: Array) -> Array:
        """Compute κ as a function of s."""

    @abstractmethod
    def slope(self, s: Array) -> Array:
        """Return dκ/ds."""

    def inverse(self, values: Array) -> Array:
        """Compute s from κ = profile(s), for kernels that are `invertible`."""
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    @abstractmethod
    def pairs(self, X: Array, Y: Array) -> Array:  # (n, m)
        """Return s(xᵢ, yⱼ) in a new array; Y is X itself for a symmetric matrix."""

    @abstractmethod
    def self_pairs(self, X: Array) -> Array:  # (n,)
        """Return s(xᵢ, xᵢ) in a new array."""

    @abstractmethod
    def weighted_gradient(self, X: Array, Y: Array, V: Array) -> Array:  # (n, p)
        """Compute Σⱼ Vᵢⱼ ∂s(xᵢ, yⱼ)/∂xᵢ."""

    def restricted(self, share: float) -> Kernel:
        """Return the kernel profile(s(x_o, y_o)/share) of the observed features o.

        s is a sum over features, so |o| of p features have about |o|/p = `share` of it:
        κ = exp(−γ (p/|o|) ‖x_o − y_o‖²) for `RBF`. Where κ is homogeneous, like
        (x_oᵀy_o)^d, the scale would be the same for all pairs and is left out.
        """
        return self if self.homogeneous else self.stretch(share)

    def stretch(self, share: float) -> Kernel:
        """Return the kernel profile(s/share), which has the scale of all features."""
        return self if share == 1 else Stretched(self, 1 / share)

    @property
    def unset(self) -> bool:
        """Whether the rate is still None and will be set from the data."""
        has_rate = bool(self.rate_parameter)
        return has_rate and getattr(self, self.rate_parameter) is None

    def with_rate(self, rate: float) -> Kernel:
        """Return a copy with its open parameter set so that κ varies with rate · s."""
        return reset(self, **{self.rate_parameter: rate})

    def default_rate(self, X: Array, weights: Weights = None) -> float:
        """Return the rate that `bound` sets: 1/(p·var), as ``gamma="scale"`` does."""
        return 1.0 / (X.shape[1] * (variance(X, weights) or 1.0))

    def extent(self, X: Array) -> Array:  # (n,)
        """Return the numbers that must be finite for κ to be finite on X."""
        return self.diag(X)

    def __call__(self, X: Array, Y: Array | None = None) -> Array:  # (n, m)
        X, Y = self._check_both(X, Y)
        kernel = self._with_default_rate(X)
        with no_overflow(self, X.dtype):
            K = kernel.profile(kernel.pairs(X, Y))
        return K if self.bounded else finite(self, K)

    def diag(self, X: Array) -> Array:  # (n,)
        X = self._rows(X, "X")
        kernel = self._with_default_rate(X)
        with no_overflow(self, X.dtype):
            return finite(self, kernel.profile(kernel.self_pairs(X)))

    def pull(self, X: Array, Y: Array, W: Array) -> Array:  # (n, p)
        refuse_sparse("gradients need dense rows; pass X.toarray(), Y.toarray()", X, Y)
        X, Y = self._check_both(X, Y)
        kernel = self._with_default_rate(X)
        with no_overflow(self, X.dtype):
            gradient = kernel.weighted_gradient(
                X, Y, W * kernel.slope(kernel.pairs(X, Y))
            )
        return finite(self, gradient)

    def bound(self, X: Array, weights: Weights = None) -> Kernel:
        X = as_source(X)
        rate = self._default_rate(X, weights) if self.unset else None
        kernel: Any = self if rate is None else self.with_rate(rate)
        with no_overflow(self, X.dtype):
            counts = sum_rows(kernel._row_counts, X, row_bytes=8 * X.shape[1])
        n_large, n_usable, n_nonzero = counts.tolist()
        if n_large:
            raise overflow_error(self, X.dtype)
        if n_nonzero and not n_usable:
            raise ValueError(
                f"{self!r} vanishes on these data, which are tiny: scale them, e.g. to "
                f"rows of unit norm or with StandardScaler{or_wider(X.dtype)}"
            )
        return kernel

    def _row_counts(self, X: Array) -> np.ndarray:  # (3,)
        """Count rows with sums that may overflow, with accurate κ(x, x), and not 0."""
        extent, energy = self.extent(X), self.diag(X)
        info = namespace(extent).finfo(extent.dtype)
        large = ~(extent <= float(info.max) / HEADROOM)
        nonzero = abs(X).sum(1) > 0
        usable = abs(energy) > least_energy(energy)  # negative for some sigmoids
        masks = large, usable, nonzero
        return np.array([int(mask.sum()) for mask in masks])

    def _default_rate(self, X: Array, weights: Weights) -> float:
        """Return `default_rate`; raise if s vanishes or overflows in the dtype of X."""
        rate = self.default_rate(X, weights)
        first_row = as_float(take_rows(X, np.array([0])))
        if not 0 < rate < 1 / least_energy(stored_entries(first_row)):
            raise ValueError(
                f"{self!r}: the samples hardly differ, so that distances between them "
                "vanish or overflow in their dtype. Scale them, e.g. with "
                "StandardScaler, or set the width of the kernel"
            )
        return rate

    def _with_default_rate(self, X: Array) -> Any:
        """Return a copy with the rate 1/p, as scikit-learn has it, if none is set."""
        return self.with_rate(1.0 / X.shape[1]) if self.unset else self

    def _check_both(self, X: Array, Y: Array | None) -> tuple[Array, Array]:
        rows = self._rows(X, "X")
        if Y is None or Y is X:
            return rows, rows
        columns = self._rows(Y, "Y")
        if columns.shape[1] != rows.shape[1]:
            raise ValueError(
                f"X has {rows.shape[1]} features but Y has {columns.shape[1]}; "
                "pass two arrays with the same number of features"
            )
        return rows, columns

    def _rows(self, X: Array, name: str) -> Array:
        if type(X) is not np.ndarray or X.dtype not in FLOATS:
            X = float_rows(X, self.accept_sparse, type(self).__name__, name)
        if X.ndim != 2 or X.shape[1] < 1:
            raise ValueError(
                f"{type(self).__name__} takes rows of numbers, but {name} has shape "
                f"{tuple(X.shape)}; reshape it to (n_samples, n_features), or use "
                "Callable for other kinds of samples"
            )
        return X


class Exponential(ElementwiseKernel):
    """κ = exp(-rate · s)."""

    bounded = True

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


class Identity(ElementwiseKernel):
    """κ = s."""

    homogeneous = True

    def restricted_share(self, share: float) -> float:
        return share

    def profile(self, s: Array) -> Array:
        return s

    def slope(self, s: Array) -> Array:
        return namespace(s).ones_like(s)


class Stretched(ElementwiseKernel):
    """κ(x, y) = profile(factor · s(x, y)) for the profile and s of another kernel."""

    bounded = of_inner("bounded")
    psd = of_inner("psd")

    def __init__(self, kernel: ElementwiseKernel, factor: float) -> None:
        self.kernel = kernel
        self.factor = factor

    def profile(self, s: Array) -> Array:
        s *= self.factor
        return self.kernel.profile(s)

    def slope(self, s: Array) -> Array:
        s *= self.factor
        return self.kernel.slope(s) * self.factor

    def pairs(self, X: Array, Y: Array) -> Array:  # (n, m)
        return self.kernel.pairs(X, Y)

    def self_pairs(self, X: Array) -> Array:  # (n,)
        return self.kernel.self_pairs(X)

    def weighted_gradient(self, X: Array, Y: Array, V: Array) -> Array:  # (n, p)
        return self.kernel.weighted_gradient(X, Y, V)


def decay(s: Array, rate: float = 1.0) -> Array:
    """Return exp(-rate · s), in place on NumPy arrays."""
    return exp(times(s, -rate))
