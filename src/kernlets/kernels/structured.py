"""Base classes of kernels of series, strings, graphs, matrices and bags.

A subclass of `Structured` says which samples it takes (`takes`), converts samples once
(`prepare`), and computes a tile of the matrix (`tile`). Each number depends on two
samples only, so that threads, blocks and the order of samples change nothing.

A subclass of `Counting` describes a sample by the parts that it has. A part (a
substring, a neighbourhood, a path) is represented by a digest of 64 bits, so that no
vocabulary is stored: two different parts share a digest once in 10¹⁹ pairs.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..contracts import Array
from ..data.samples import float_like
from ..data.weights import Weights, row_numbers_by_weight
from ..numerics.threads import parallel
from .base import Kernel, finite, reset
from .samples import as_samples

TILE_ROWS = 16  # rows that one thread works on
_UNIT = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Structured(Kernel):
    """A kernel of samples that are not rows of numbers."""

    psd: ClassVar[bool] = True
    """Whether κ is positive semi-definite."""
    set_from_data: ClassVar[tuple[str, ...]] = ()
    """Parameters that `bound` sets from the data if one of them is None."""

    @abstractmethod
    def prepare(self, samples: np.ndarray) -> Any:
        """Convert checked samples to the form that `tile` and `energies` take."""

    def tile(self, left: Any, right: Any, rows: slice, columns: slice) -> np.ndarray:
        """Compute κ of the prepared samples left[rows] and right[columns]."""
        raise NotImplementedError

    @abstractmethod
    def energies(self, prepared: Any) -> np.ndarray:  # (n,)
        """Compute κ(x, x) of prepared samples."""

    @property
    def unset(self) -> bool:
        """Whether a parameter is still None and will be set from the data."""
        return any(getattr(self, name) is None for name in self.set_from_data)

    def defaults(self, samples: np.ndarray) -> dict[str, Any]:
        """Return the parameters that `bound` sets from checked samples."""
        return {}

    def __call__(self, X: Array, Y: Array | None = None) -> Array:  # (n, m)
        samples = self.samples(X)
        left = right = self.prepare(samples)
        n = m = len(samples)
        if Y is not None and Y is not X:
            Y_samples = self.samples(Y)
            right, m = self.prepare(Y_samples), len(Y_samples)
        K = finite(self, self.finish(self.matrix(left, right, n, m), left, right))
        return as_sample_dtype(K, samples)

    def matrix(self, left: Any, right: Any, n: int, m: int) -> np.ndarray:  # (n, m)
        """The matrix of all tiles; its upper half is mirrored if right is left."""
        K = np.empty((n, m))

        def fill_rows(start: int) -> None:
            rows = slice(start, min(start + TILE_ROWS, n))
            columns = slice(start if right is left else 0, m)
            K[rows, columns] = self.tile(left, right, rows, columns)

        parallel(fill_rows, range(0, n, TILE_ROWS))
        if right is left:
            lower = np.tril_indices(n, -1)
            K[lower] = K.T[lower]
        return K

    def finish(self, K: np.ndarray, left: Any, right: Any) -> np.ndarray:  # (n, m)
        """Turn the matrix of all tiles into κ, where that needs more than one tile."""
        return K

    def diag(self, X: Array) -> Array:  # (n,)
        samples = self.samples(X)
        if not len(samples):
            return np.empty(0)
        energies = finite(self, self.energies(self.prepare(samples)))
        return as_sample_dtype(energies, samples)

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
        """Return X as an array of checked samples; the parameters are checked, too."""
        self._validate_params()
        return as_samples(self.takes, X)


class AllAlignments(Structured):
    """κ(x, y) = k(x, y)/√(k(x, x) k(y, y)), k a sum over alignments of x and y.

    A tile has the logarithms of k.
    """

    def finish(self, K: np.ndarray, left: Any, right: Any) -> np.ndarray:
        K = self.normalized_logs(K, left, right)
        return np.exp(np.minimum(K, 0.0, out=K), out=K)  # above 0 by rounding only

    def normalized_logs(self, K: np.ndarray, left: Any, right: Any) -> np.ndarray:
        """Subtract ½ log k(x, x) + ½ log k(y, y) from log k(x, y), in place."""
        if right is left:
            left_logs = right_logs = np.diagonal(K).copy()
        else:
            left_logs = self._self_logs(left, K.shape[0])
            right_logs = self._self_logs(right, K.shape[1])
        K -= left_logs[:, None] / 2
        K -= right_logs / 2
        return K

    def _self_logs(self, prepared: Any, n: int) -> np.ndarray:  # (n,)
        """Return log k(x, x)."""

        def self_log(i: int) -> float:
            one = slice(i, i + 1)
            return float(self.tile(prepared, prepared, one, one)[0, 0])

        return np.array(parallel(self_log, range(n)))


class Counting(Structured):
    """κ(x, y) = Σ over parts of count(x) · count(y)."""

    @abstractmethod
    def parts(self, sample: Any) -> tuple[np.ndarray, np.ndarray]:  # (k,), (k,)
        """Return digests and weights of the parts of a sample; digests may repeat."""

    def prepare(self, samples: np.ndarray) -> Counts:
        """Return the counts of all samples."""
        return Counts([self.parts(sample) for sample in samples])

    def matrix(self, left: Counts, right: Counts, n: int, m: int) -> np.ndarray:
        vocabulary = np.union1d(left.digests, right.digests)
        return (left.matrix(vocabulary) @ right.matrix(vocabulary).T).toarray()

    def energies(self, prepared: Counts) -> np.ndarray:  # (n,)
        n = len(prepared.sizes)
        samples = np.repeat(np.arange(n), prepared.sizes)
        return np.bincount(samples, prepared.weights**2, minlength=n)


class Counts:
    """Sparse vectors with digests for columns: sorted and distinct in each sample."""

    def __init__(self, parts: list[tuple[np.ndarray, np.ndarray]]) -> None:
        digest_blocks: list[np.ndarray] = [np.empty(0, np.uint64)]
        weight_blocks: list[np.ndarray] = [np.empty(0)]
        for digests, weights in parts:
            distinct, inverse = np.unique(digests, return_inverse=True)
            digest_blocks.append(distinct)
            weight_blocks.append(np.bincount(inverse, weights, len(distinct)))
        self.digests = np.concatenate(digest_blocks)
        self.weights = np.concatenate(weight_blocks)
        self.sizes = np.array([len(block) for block in digest_blocks[1:]], np.int64)

    def matrix(self, vocabulary: np.ndarray) -> sparse.csr_array:  # (n, m)
        """The counts as a matrix with a column for each digest of the `vocabulary`."""
        shape = len(self.sizes), len(vocabulary)
        if not len(vocabulary):
            return sparse.csr_array(shape, dtype=np.float64)
        columns = np.minimum(
            np.searchsorted(vocabulary, self.digests), len(vocabulary) - 1
        )
        is_listed = vocabulary[columns] == self.digests
        ends = np.concatenate([[0], np.cumsum(self.sizes)])
        starts = np.concatenate([[0], np.cumsum(is_listed)])[ends]
        csr = self.weights[is_listed], columns[is_listed], starts
        return sparse.csr_array(csr, shape=shape)


def as_sample_dtype(values: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Convert values to the floating-point type of the samples."""
    return values.astype(float_like(samples).dtype, copy=False)


def median_positive(values: np.ndarray, default: float = 1.0) -> float:
    """Return the median of the positive finite numbers; without any, the default."""
    values = values[np.isfinite(values) & (values > 0)]
    # the median of an even count adds two numbers, which may overflow
    return float(2 * np.median(values / 2)) if len(values) else default


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
