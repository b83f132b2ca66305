"""Kernels that count: strings and graphs as sparse vectors of small parts.

A part (a substring, a neighbourhood, a path) is represented by a digest of 64 bits, so
that no vocabulary is stored: two different parts share a digest once in 10¹⁹ pairs.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import sparse

from .structured import Structured, as_sample_dtype

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
