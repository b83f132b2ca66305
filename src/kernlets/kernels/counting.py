"""Kernels that count: strings and graphs as sparse vectors of small parts.

A part (a substring, a neighbourhood, a path) is known by a digest of 64 bits, so that
no vocabulary is needed: two different parts share a digest once in 10¹⁹ pairs.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import sparse

from .structured import Structured, typed

_UNIT = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Counting(Structured):
    """κ(x, y) = Σ over parts of count(x) · count(y)."""

    @abstractmethod
    def parts(self, sample: Any) -> tuple[np.ndarray, np.ndarray]:  # (k,), (k,)
        """Digests of the parts of a sample, which may repeat, and their weights."""

    def counts(self, samples: np.ndarray) -> Counts:
        """The counts of all samples."""
        return Counts.of([_added_up(*self.parts(sample)) for sample in samples])

    def prepared(self, samples: np.ndarray) -> Counts:
        return self.counts(samples)

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:  # (n, m)
        samples = self.samples(X)
        left = self.prepared(samples)
        right = left if Y is None or Y is X else self.prepared(self.samples(Y))
        known = np.union1d(left.digests, right.digests)
        rows, columns = left.matrix(known), right.matrix(known)
        return typed((rows @ columns.T).toarray(), samples)

    def tile(
        self, left: Counts, right: Counts, rows: slice, columns: slice
    ) -> np.ndarray:
        known = np.union1d(left.digests, right.digests)
        part = left.matrix(known)[rows] @ right.matrix(known)[columns].T
        return np.asarray(part.toarray())

    def own(self, prepared: Counts) -> np.ndarray:  # (n,)
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
        """From the digests and weights of each sample."""
        sizes = [len(digests) for digests, _ in samples]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        digests = [np.empty(0, np.uint64), *(digests for digests, _ in samples)]
        weights = [np.empty(0), *(weights for _, weights in samples)]
        return cls(np.concatenate(digests), np.concatenate(weights), starts)

    @property
    def sizes(self) -> np.ndarray:  # (n,)
        return np.diff(self.starts)

    def matrix(self, known: np.ndarray) -> sparse.csr_array:  # (n, len(known))
        """The counts of the parts in `known`, which is sorted; others are left out."""
        shape = len(self.sizes), len(known)
        if not len(known):
            return sparse.csr_array(shape, dtype=np.float64)
        places = np.minimum(np.searchsorted(known, self.digests), len(known) - 1)
        found = known[places] == self.digests
        starts = np.concatenate([[0], np.cumsum(found)])[self.starts]
        parts = self.weights[found], places[found], starts
        return sparse.csr_array(parts, shape=shape)


def _added_up(
    digests: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Each digest once, in order, with the sum of its weights."""
    once, place = np.unique(digests, return_inverse=True)
    return once, np.bincount(place, weights, minlength=len(once))


def mixed(values: np.ndarray) -> np.ndarray:
    """A digest of 64 bits of each number: the finaliser of SplitMix64."""
    z = np.asarray(values).astype(np.uint64) + _UNIT
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


def chained(columns: list[np.ndarray]) -> np.ndarray:
    """A digest of each sequence of numbers, given as columns."""
    digest = mixed(np.full(columns[0].shape, len(columns), dtype=np.uint64))
    for column in columns:
        digest = mixed(digest ^ mixed(column))
    return digest
