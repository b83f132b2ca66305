"""Kernels supplied by the user: a function on samples, or the kernel matrix itself.

Samples need not be rows of numbers; any sequence that can be sliced will do.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from typing import Any, ClassVar

import numpy as np

from ..contracts import Array
from ..data.rows import row_diagonal
from ..numerics.arrays import as_float, is_array
from ..numerics.scaling import all_finite
from .base import Kernel, floats_like, length


class Callable(Kernel):
    """A kernel given as a function, on samples of any kind.

    Parameters
    ----------
    function : callable
        ``function(X, Y) -> (n, m)`` on two blocks of samples or, with
        ``pairwise=True``, ``function(x, y) -> float`` on two samples. It must be
        symmetric and positive semi-definite.
    pairwise : bool, default=False
        Whether `function` takes two samples instead of two blocks.
    diagonal : callable, default=None
        ``diagonal(X) -> (n,)`` returns κ(x, x). By default `function` is called once
        per sample.
    gradient : callable, default=None
        ``gradient(X, Y, W) -> (n, p)``; see `Kernel.pull`.

    Examples
    --------
    Strings compared by the letters they share:

    >>> from kernlets import Callable
    >>> kernel = Callable(lambda x, y: float(len(set(x) & set(y))), pairwise=True)
    >>> kernel(["kernel", "lets"]).tolist()
    [[5.0, 2.0], [2.0, 4.0]]
    """

    takes: ClassVar[str] = "any"
    _parameter_constraints = {
        "function": [callable],
        "pairwise": ["boolean"],
        "diagonal": [callable, None],
        "gradient": [callable, None],
    }

    def __init__(
        self,
        function: Function[..., Any],
        pairwise: bool = False,
        *,
        diagonal: Function[[Any], Any] | None = None,
        gradient: Function[[Any, Any, Any], Any] | None = None,
    ) -> None:
        self.function = function
        self.pairwise = pairwise
        self.diagonal = diagonal
        self.gradient = gradient

    @property
    def differentiable(self) -> bool:  # type: ignore[override]
        return self.gradient is not None

    def __call__(self, X: Array, Y: Array | None = None) -> Array:  # (n, m)
        shape = (length(X), length(X if Y is None else Y))
        if not self.pairwise:
            K = self.function(X, X if Y is None else Y)
        elif Y is None:
            K = np.empty(shape)
            for i, x in enumerate(X):
                for j in range(i + 1):
                    K[i, j] = K[j, i] = float(self.function(x, X[j]))
        else:
            K = [[float(self.function(x, y)) for y in Y] for x in X]
        return self._check_values(K, X, shape)

    def diag(self, X: Array) -> Array:  # (n,)
        if self.diagonal is not None:
            values = self.diagonal(X)
        elif self.pairwise:
            values = [float(self.function(x, x)) for x in X]
        else:
            ones = (X[i : i + 1] for i in range(length(X)))
            values = [float(self.function(one, one)[0][0]) for one in ones]
        return self._check_values(values, X, (length(X),))

    def pull(self, X: Array, Y: Array, W: Array) -> Array:  # (n, p)
        gradient = super().pull if self.gradient is None else self.gradient
        return gradient(X, Y, W)

    def take(self, X: Array, indices: Array) -> Array:
        return X[indices] if hasattr(X, "shape") else [X[i] for i in indices]

    def _check_values(self, values: Any, X: Array, shape: tuple[int, ...]) -> Array:
        values = floats_like(values, X)
        if tuple(values.shape) != shape:
            raise ValueError(
                f"Callable: function returned shape {tuple(values.shape)} where "
                f"{shape} was expected; set pairwise=True if it takes two samples"
            )
        if not all_finite(values):
            raise ValueError(
                f"Callable: function={self.function!r} returned NaN or infinity, or "
                f"numbers beyond {values.dtype}: scale the samples, or bound it"
            )
        return values


class Precomputed(Kernel):
    """A kernel matrix that the user has computed: X holds the rows K(X_new, X_train).

    The kernel knows a sample only by its index among the training samples. `take`
    returns such indices, and ``kernel(X, indices)`` expects them.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import Precomputed
    >>> K = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> Precomputed()(K, np.array([1])).tolist()
    [[1.0], [3.0]]
    """

    by_index: ClassVar[bool] = True

    def __call__(self, X: Array, Y: Array | None = None) -> Array:  # (n, m)
        X = as_float(X if is_array(X) else np.asarray(X))
        if Y is None:
            return _refuse_non_finite(X)
        if len(getattr(Y, "shape", (0,))) != 1:
            raise ValueError(
                "Precomputed: Y must be the indices of training samples, the columns "
                f"of X; got an array of shape {tuple(Y.shape)}"
            )
        return _refuse_non_finite(X[:, Y])

    def diag(self, X: Array) -> Array:  # (n,)
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed: X of shape {tuple(X.shape)} holds K(X_new, X_train) but "
                "not κ(x, x) of the new samples; only the square K(X, X) has a "
                "diagonal. If it is needed for new samples, use a kernel function, "
                "e.g. Callable"
            )
        return _refuse_non_finite(row_diagonal(X))

    def take(self, X: Array, indices: Array) -> Array:
        return indices


def _refuse_non_finite(values: Array) -> Array:
    """Return values of a precomputed matrix; raise if one is NaN or infinite."""
    if not all_finite(values):
        raise ValueError(
            "Precomputed: X contains NaN or infinity, which no kernel has: compute it "
            "again from scaled samples"
        )
    return values


def not_square(X: Any) -> str:
    """Return the error message for an X that is not square in a fit."""
    return (
        f"X of shape {tuple(X.shape)} is not the square matrix K(X, X) of the training "
        "samples, which kernel='precomputed' needs"
    )
