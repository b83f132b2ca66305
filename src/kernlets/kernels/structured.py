"""What kernels of series, strings, graphs, matrices and bags share.

A kernel says what it takes (`takes`), how samples are prepared once (`prepared`), and
how a tile of the matrix is computed (`tile`). Each number depends on two samples only,
so that threads, blocks and the order of samples change nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..backend.samples import floats_of, is_objects
from ..backend.threads import parallel
from ..backend.weights import Weights, counted_rows
from ..core import Array, Kernel
from .family import finite, reset
from .samples import as_samples

TILE_ROWS = 16  # rows that one thread works on


class Structured(Kernel):
    """A kernel of samples that are not rows of numbers."""

    psd: ClassVar[bool] = True
    """Whether κ is positive semi-definite."""

    @abstractmethod
    def prepared(self, samples: np.ndarray) -> Any:
        """Checked samples in the form that `tile` and `own` take."""

    @abstractmethod
    def tile(self, left: Any, right: Any, rows: slice, columns: slice) -> np.ndarray:
        """κ of some prepared samples with some others."""

    @abstractmethod
    def own(self, prepared: Any) -> np.ndarray:  # (n,)
        """κ(x, x) of prepared samples."""

    @property
    def unset(self) -> bool:
        """Whether a parameter is still None and will be set from the data."""
        return False

    def defaults(self, samples: np.ndarray) -> dict[str, Any]:
        """The parameters that `bound` sets from checked samples."""
        return {}

    def __call__(self, X: Array, Y: Array | None = None) -> Array:  # (n, m)
        samples = self.samples(X)
        left = self.prepared(samples)
        if Y is None or Y is X:
            right, K = left, symmetric_tiles(self.tile, left, len(samples))
        else:
            others = self.samples(Y)
            right = self.prepared(others)
            K = tiles(self.tile, left, right, len(samples), len(others))
        return typed(finite(self, self.finished(K, left, right)), samples)

    def finished(self, K: np.ndarray, left: Any, right: Any) -> np.ndarray:  # (n, m)
        """κ from what `tile` gave, for what needs more than a tile."""
        return K

    def diag(self, X: Array) -> Array:  # (n,)
        samples = self.samples(X)
        if not len(samples):
            return np.empty(0)
        return typed(finite(self, self.own(self.prepared(samples))), samples)

    def bound(self, X: Array, weights: Weights = None) -> Kernel:
        self._validate_params()
        if not self.unset:
            return self
        samples = self.samples(X)
        if not len(samples):
            raise ValueError(
                f"{type(self).__name__}: what is None is set from samples, and X has "
                "none"
            )
        rows = counted_rows(len(samples), weights)
        return reset(self, **self.defaults(samples[rows]))

    def samples(self, X: Any) -> np.ndarray:  # (n,)
        """X as an array of checked samples; the parameters are checked, too."""
        self._validate_params()
        return as_samples(self.takes, X)


def symmetric_tiles(tile: Callable[..., np.ndarray], both: Any, n: int) -> np.ndarray:
    """The matrix of samples with themselves: tiles from the diagonal on, mirrored."""
    K = np.empty((n, n))

    def work(rows: slice) -> None:
        columns = slice(rows.start, n)
        K[rows, columns] = tile(both, both, rows, columns)

    parallel(work, _slices(n))
    lower = np.tril_indices(n, -1)
    K[lower] = K.T[lower]
    return K


def tiles(
    tile: Callable[..., np.ndarray], left: Any, right: Any, n: int, m: int
) -> np.ndarray:
    """The matrix of samples with others, some rows at a time."""
    K = np.empty((n, m))

    def work(rows: slice) -> None:
        K[rows] = tile(left, right, rows, slice(0, m))

    parallel(work, _slices(n))
    return K


def _slices(n: int) -> list[slice]:
    return [slice(i, min(i + TILE_ROWS, n)) for i in range(0, n, TILE_ROWS)]


def typed(values: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Values in the floating-point type of the samples."""
    like = floats_of(samples) if is_objects(samples) else samples
    return values.astype(like.dtype, copy=False)
