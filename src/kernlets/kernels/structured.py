"""Base class of kernels of series, strings, graphs, matrices and bags.

A subclass says which samples it takes (`takes`), converts samples once (`prepare`), and
computes a tile of the matrix (`tile`). Each number depends on two samples only, so that
threads, blocks and the order of samples change nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..contracts import Array, Kernel
from ..data.samples import float_like, is_objects
from ..data.weights import Weights, row_numbers_by_weight
from ..numerics.threads import parallel
from .family import finite, reset
from .samples import as_samples

TILE_ROWS = 16  # rows that one thread works on


class Structured(Kernel):
    """A kernel of samples that are not rows of numbers."""

    psd: ClassVar[bool] = True
    """Whether κ is positive semi-definite."""

    @abstractmethod
    def prepare(self, samples: np.ndarray) -> Any:
        """Convert checked samples to the form that `tile` and `energies` take."""

    @abstractmethod
    def tile(self, left: Any, right: Any, rows: slice, columns: slice) -> np.ndarray:
        """κ of the prepared samples left[rows] and right[columns]."""

    @abstractmethod
    def energies(self, prepared: Any) -> np.ndarray:  # (n,)
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
        left = self.prepare(samples)
        if Y is None or Y is X:
            right, K = left, symmetric_tiles(self.tile, left, len(samples))
        else:
            Y_samples = self.samples(Y)
            right = self.prepare(Y_samples)
            K = tiles(self.tile, left, right, len(samples), len(Y_samples))
        return as_sample_dtype(finite(self, self.finish(K, left, right)), samples)

    def finish(self, K: np.ndarray, left: Any, right: Any) -> np.ndarray:  # (n, m)
        """Turn the matrix of all tiles into κ, where that needs more than one tile."""
        return K

    def diag(self, X: Array) -> Array:  # (n,)
        samples = self.samples(X)
        if not len(samples):
            return np.empty(0)
        return as_sample_dtype(
            finite(self, self.energies(self.prepare(samples))), samples
        )

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
        rows = row_numbers_by_weight(len(samples), weights)
        return reset(self, **self.defaults(samples[rows]))

    def samples(self, X: Any) -> np.ndarray:  # (n,)
        """X as an array of checked samples; the parameters are checked, too."""
        self._validate_params()
        return as_samples(self.takes, X)


def symmetric_tiles(
    tile: Callable[..., np.ndarray], prepared: Any, n: int
) -> np.ndarray:
    """Compute the upper triangle of a symmetric matrix by tiles, and mirror it."""
    K = np.empty((n, n))

    def work(rows: slice) -> None:
        columns = slice(rows.start, n)
        K[rows, columns] = tile(prepared, prepared, rows, columns)

    parallel(work, _tile_slices(n))
    lower = np.tril_indices(n, -1)
    K[lower] = K.T[lower]
    return K


def tiles(
    tile: Callable[..., np.ndarray], left: Any, right: Any, n: int, m: int
) -> np.ndarray:
    """Compute the matrix of two sets of samples, TILE_ROWS rows at a time."""
    K = np.empty((n, m))

    def work(rows: slice) -> None:
        K[rows] = tile(left, right, rows, slice(0, m))

    parallel(work, _tile_slices(n))
    return K


def _tile_slices(n: int) -> list[slice]:
    return [slice(i, min(i + TILE_ROWS, n)) for i in range(0, n, TILE_ROWS)]


def as_sample_dtype(values: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Convert values to the floating-point type of the samples."""
    like = float_like(samples) if is_objects(samples) else samples
    return values.astype(like.dtype, copy=False)
