"""Base classes of kernels of series, strings, graphs, matrices and bags.

A subclass of `Structured` says which samples it takes (`takes`), converts samples once
(`prepare`), and computes a tile of the matrix (`tile`). Each number depends on two
samples only, so that threads, blocks and the order of samples change nothing.

A subclass of `Counting` describes a sample by the parts that it has. A part (a
substring, a neighbourhood, a path) is represented by a digest of 64 bits, so that no
vocabulary is stored: two different parts share a digest once in 10¹⁹ pairs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..contracts import Array, Kernel
from ..data.samples import float_like, is_objects
from ..data.weights import Weights, row_numbers_by_weight
from ..numerics.threads import parallel
from .base import finite, reset
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


_UNIT = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Counting(Structured):
    """κ(x, y) = Σ over parts of count(x) · count(y)."""

    @abstractmethod
    def parts(self, sample: Any) -> tuple[np.ndarray, np.ndarray]:  # (k,), (k,)
        """Digests of the parts of a sample, which may repeat, and their weights."""

    def counts(self, samples: np.ndarray) -> Counts:
        """The counts of all samples."""
        return Counts.of([_sum_repeated(*self.parts(sample)) for sample in samples])

    def prepare(self, samples: np.ndarray) -> Counts:
        return self.counts(samples)

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:  # (n, m)
        samples = self.samples(X)
        left = self.prepare(samples)
        right = left if Y is None or Y is X else self.prepare(self.samples(Y))
        vocabulary = np.union1d(left.digests, right.digests)
        rows, columns = left.matrix(vocabulary), right.matrix(vocabulary)
        return as_sample_dtype((rows @ columns.T).toarray(), samples)

    def tile(
        self, left: Counts, right: Counts, rows: slice, columns: slice
    ) -> np.ndarray:
        vocabulary = np.union1d(left.digests, right.digests)
        products = left.matrix(vocabulary)[rows] @ right.matrix(vocabulary)[columns].T
        return np.asarray(products.toarray())

    def energies(self, prepared: Counts) -> np.ndarray:  # (n,)
        squares = np.append(prepared.weights**2, 0.0)  # samples may have no parts
        sums = np.add.reduceat(squares, prepared.starts[:-1])
        return np.where(prepared.sizes > 0, sums, 0.0)


class Counts:
    """Sparse vectors with digests for columns."""

    def __init__(
        self, digests: np.ndarray, weights: np.ndarray, starts: np.ndarray
    ) -> None:
        self.digests, self.weights, self.starts = digests, weights, starts

    @classmethod
    def of(cls, samples: list[tuple[np.ndarray, np.ndarray]]) -> Counts:
        """Join the digests and weights of all samples."""
        sizes = [len(digests) for digests, _ in samples]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        digests = [np.empty(0, np.uint64), *(digests for digests, _ in samples)]
        weights = [np.empty(0), *(weights for _, weights in samples)]
        return cls(np.concatenate(digests), np.concatenate(weights), starts)

    @property
    def sizes(self) -> np.ndarray:  # (n,)
        return np.diff(self.starts)

    def matrix(
        self, vocabulary: np.ndarray
    ) -> sparse.csr_array:  # (n, len(vocabulary))
        """The counts as a matrix with a column for each digest of the `vocabulary`."""
        shape = len(self.sizes), len(vocabulary)
        if not len(vocabulary):
            return sparse.csr_array(shape, dtype=np.float64)
        columns = np.minimum(
            np.searchsorted(vocabulary, self.digests), len(vocabulary) - 1
        )
        is_listed = vocabulary[columns] == self.digests
        starts = np.concatenate([[0], np.cumsum(is_listed)])[self.starts]
        csr = self.weights[is_listed], columns[is_listed], starts
        return sparse.csr_array(csr, shape=shape)


def _sum_repeated(
    digests: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted distinct digests, and the sum of the weights of each."""
    distinct, inverse = np.unique(digests, return_inverse=True)
    return distinct, np.bincount(inverse, weights, minlength=len(distinct))


def digest_numbers(values: np.ndarray) -> np.ndarray:
    """Return a digest of 64 bits of each number, by the finaliser of SplitMix64."""
    z = np.asarray(values).astype(np.uint64) + _UNIT
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


def digest_sequences(columns: list[np.ndarray]) -> np.ndarray:
    """Return a digest of each sequence of numbers; column t has the numbers at t."""
    digest = digest_numbers(np.full(columns[0].shape, len(columns), dtype=np.uint64))
    for column in columns:
        digest = digest_numbers(digest ^ digest_numbers(column))
    return digest
