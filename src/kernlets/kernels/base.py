"""The contract of a kernel, and kernels built from kernels.

A kernel says what κ(x, y) is on blocks of samples. Sums, products, constants and
normalised kernels take samples of any kind that the inner kernels accept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from ..base.constraints import NOT_NEGATIVE
from ..contracts import Array
from ..data.rows import map_rows
from ..data.weights import Weights
from ..numerics.arrays import (
    as_float,
    as_like,
    broadcast,
    holds_floats,
    namespace,
    or_wider,
)
from ..numerics.overwrite import plus, times
from ..numerics.scaling import all_finite
from ..sklearn_base import BaseEstimator


class Kernel(BaseEstimator, ABC):
    """A positive semi-definite function κ(x, y) = ⟨φ(x), φ(y)⟩ on rows.

    Parameters are constructor arguments, so that grid search reaches them by name
    (``nystroemmap__kernel__sigma``).
    """

    differentiable: ClassVar[bool] = False
    """Whether `pull` is defined."""
    restrictable: ClassVar[bool] = False
    """Whether `restricted` is defined."""
    invertible: ClassVar[bool] = False
    """Whether there is an `inverse`, which computes xᵀy or ‖x - y‖² from κ(x, y)."""
    psd: ClassVar[bool] = True
    """Whether κ is positive semi-definite, as most kernels are."""
    accept_sparse: ClassVar[bool] = False
    """Whether X and Y may be SciPy sparse matrices."""
    non_negative: ClassVar[bool] = False
    """Whether κ is defined only on rows without negative entries."""
    by_index: ClassVar[bool] = False
    """Whether samples are only indices into a precomputed matrix, without vectors."""
    returns_new_array: ClassVar[bool] = False
    """Whether a caller may overwrite what `__call__` returns."""
    overflow_remedy: ClassVar[str] = ""
    """What else than scaling the data helps if κ overflows, for the error message."""
    takes: ClassVar[str] = "rows"
    """The kind of samples: "rows" of numbers, "series", "strings", ..., or "any"."""

    @abstractmethod
    def __call__(
        self,
        X: Array,  # (n, p)
        Y: Array | None = None,  # (m, p), X itself if None
    ) -> Array:  # (n, m)
        """Return the matrix of κ(xᵢ, yⱼ)."""

    @abstractmethod
    def diag(self, X: Array) -> Array:  # (n,)
        """Return the energies κ(xᵢ, xᵢ), the diagonal of the matrix."""

    def pull(
        self, X: Array, Y: Array, W: Array
    ) -> Array:  # (n, p), (m, p), (n, m) -> (n, p)
        """Compute the weighted gradients Σⱼ Wᵢⱼ ∂κ(xᵢ, yⱼ)/∂xᵢ."""
        raise NotImplementedError(
            f"{type(self).__name__} has no gradient; use a differentiable kernel "
            "such as RBF or Polynomial"
        )

    def restricted(self, share: float) -> Kernel:
        """Return the kernel of rows of which this share of the features was observed.

        It takes only these features of x and y, and estimates κ(x, y) from them.
        """
        raise TypeError(
            f"{type(self).__name__} is not defined on a part of a sample, so values "
            "cannot be missing: fill them in, e.g. with kernlets.DictionaryImputer, or "
            "use a kernel such as RBF or Polynomial"
        )

    def stretch(self, share: float) -> Kernel:
        """Return the `restricted` kernel with the scale of all features."""
        return self.restricted(share)

    def restricted_share(self, share: float) -> float:
        """Return the expected `restricted` κ(x, y) as a share of κ(x, y)."""
        return 1.0

    def bound(self, X: Array, weights: np.ndarray | None = None) -> Kernel:
        """Return a copy with parameters of None set from the data, or this kernel.

        With weights (n,) a sample counts as often as its weight says.
        """
        return self

    def samples(self, X: Any) -> Any:
        """Convert X to an array of samples that the kernel takes; rows stay rows."""
        return X

    def take(self, X: Array, indices: Array) -> Array:
        """Return the samples `indices` of X, in the form that `__call__` takes as Y."""
        return X[indices]

    def __add__(self, other: Kernel | float) -> Kernel:
        return Sum(self, as_kernel(other))

    def __mul__(self, other: Kernel | float) -> Kernel:
        return Product(self, as_kernel(other))

    __radd__ = __add__
    __rmul__ = __mul__


def as_kernel(value: Kernel | float) -> Kernel:
    """Return a kernel unchanged and turn a number into a constant kernel."""
    if isinstance(value, Kernel):
        return value
    if isinstance(value, Real):
        return Constant(float(value))
    raise TypeError(f"a kernel combines with kernels and numbers, not with {value!r}")


def _of_both(name: str, combine: Callable[[list[bool]], bool]) -> Any:
    """An attribute of a combination, from those of its two kernels."""
    return property(
        lambda self: combine([getattr(self.first, name), getattr(self.second, name)])
    )


class _Pair(Kernel):
    """A combination of two kernels on the same samples."""

    returns_new_array: ClassVar[bool] = True
    differentiable = _of_both("differentiable", all)
    restrictable = _of_both("restrictable", all)
    psd = _of_both("psd", all)
    non_negative = _of_both("non_negative", any)
    by_index = _of_both("by_index", any)
    _parameter_constraints = {"first": [Kernel], "second": [Kernel]}

    def __init__(self, first: Kernel, second: Kernel) -> None:
        self.first = first
        self.second = second

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
        return type(self)(self.first.stretch(share), self.second.stretch(share))

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

    def samples(self, X: Any) -> Any:
        return self._of_samples.samples(X)

    def take(self, X: Array, indices: Array) -> Array:
        return self._of_samples.take(X, indices)

    @property
    def _of_samples(self) -> Kernel:
        """The first of the two that depends on the samples."""
        return self.second if isinstance(self.first, Constant) else self.first


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

    _parameter_constraints = {"value": [NOT_NEGATIVE]}

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


def of_inner(name: str) -> Any:
    """An attribute of a kernel made of another one, the same as that one has."""
    return property(lambda self: getattr(self.kernel, name))


class Wrapped(Kernel):
    """A kernel made of another one, on the same samples."""

    kernel: Kernel

    takes = of_inner("takes")
    by_index = of_inner("by_index")
    non_negative = of_inner("non_negative")

    def samples(self, X: Any) -> Any:
        return self.kernel.samples(X)

    def take(self, X: Array, indices: Array) -> Array:
        return self.kernel.take(X, indices)


class Normalized(Wrapped):
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

    returns_new_array: ClassVar[bool] = True
    differentiable = of_inner("differentiable")
    restrictable = of_inner("restrictable")
    psd = of_inner("psd")
    _parameter_constraints = {"kernel": [Kernel]}

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

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
        """Use that with a = κ(x, x), κ̃ = κ/√(a b): ∂κ̃ = ∂κ/√(a b) - κ̃ ∂a/(2a)."""
        X_scale, Y_scale = self._inverse_norms(X), self._inverse_norms(Y)
        gradient = self.kernel.pull(X, Y, W * X_scale[:, None] * Y_scale)
        shares = namespace(W).vecdot(W, self(X, Y)) * X_scale * X_scale
        return gradient - shares[:, None] * self._half_energy_gradient(X)

    def bound(self, X: Array, weights: Weights = None) -> Kernel:
        kernel = self.kernel.bound(X, weights)
        return self if kernel is self.kernel else type(self)(kernel)

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
        """Compute ∂κ(x, y)/∂x at y = x, half the gradient of κ(x, x)."""

        def block(rows: Array) -> Array:
            eye = namespace(rows).eye(rows.shape[0], dtype=rows.dtype)
            return self.kernel.pull(rows, rows, as_like(eye, rows))

        return map_rows(block, X, row_bytes=8 * X.shape[1])


def _writable_matrix(kernel: Kernel, X: Array, Y: Array | None) -> Array:  # (n, m)
    """Return kernel values in an array that may be overwritten, a copy where needed."""
    K = kernel(X, Y)
    return K if kernel.returns_new_array else K * 1.0


def reset(kernel: Kernel, **params: Any) -> Kernel:
    """Return a copy of the kernel with some parameters changed."""
    return clone(kernel).set_params(**params)


def positive(
    kernel: Kernel, name: str, value: Any = None, *, default: float | None = None
) -> float:
    """Return a kernel parameter as a float; raise if it is not finite and positive.

    A `value` that follows from the parameter is checked in its place. With a `default`
    the parameter may be None, which means that it is not set from data yet.
    """
    parameter = getattr(kernel, name)
    if parameter is None and default is not None:
        return default
    value = parameter if value is None else value
    if not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise ValueError(
            f"{type(kernel).__name__}: {name}={parameter!r} must be a positive number"
        )
    return float(value)


@contextmanager
def no_overflow(kernel: Kernel, dtype: Any) -> Iterator[None]:
    """Turn NumPy's overflow flag into an error; reading the flag costs nothing.

    Threads of BLAS have flags of their own, and torch has none: see `finite`.
    """
    try:
        with np.errstate(over="raise", invalid="ignore"):
            yield
    except FloatingPointError:
        raise overflow_error(kernel, dtype) from None


def finite(kernel: Kernel, values: Array) -> Array:
    """Return the values of a kernel, or an error if one is NaN or infinite."""
    if not all_finite(values):
        raise overflow_error(kernel, values.dtype)
    return values


def overflow_error(kernel: Kernel, dtype: Any) -> ValueError:
    return ValueError(
        f"{kernel!r} overflows on these data: scale them, e.g. to rows of unit norm "
        f"or with StandardScaler{kernel.overflow_remedy}{or_wider(dtype)}"
    )


def length(X: Any) -> int:
    """Return the number of samples in X."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def floats_like(values: Any, X: Any) -> Array:
    """Return values as floats like those of X, or as NumPy floats if X has none."""
    if holds_floats(X):
        return as_like(values, as_float(X[:0]))
    return as_float(np.asarray(values))
