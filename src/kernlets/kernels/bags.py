"""Kernels of bags of vectors: images as descriptors, patients as visits.

A bag is an array (k, p) of any number of vectors; samples are a list of bags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..contracts import Kernel
from ..data.weights import Weights, row_numbers_by_weight
from .radial import RBF
from .samples import spread_parts
from .structured import Structured

SOME_VECTORS = 5000  # vectors from which parameters of the inner kernel are set
VALUES_AT_ONCE = 2**21  # values of the inner kernel that one thread holds in memory


@dataclass(frozen=True)
class Bags:
    """The vectors of all bags one after another, and the start of each bag."""

    vectors: np.ndarray  # (total, p)
    starts: np.ndarray  # (n + 1,)

    def select(self, bags: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return the vectors of consecutive bags, and the sizes of these bags."""
        starts = self.starts[bags.start : bags.stop + 1]
        return self.vectors[starts[0] : starts[-1]], np.diff(starts)


class MeanEmbedding(Structured):
    """κ(A, B) = mean over a in A and b in B of k(a, b), the mean map of bags.

    Each bag is the mean of φ of its vectors. With a Gaussian k, κ depends
    on all moments of the distributions.

    Parameters
    ----------
    kernel : Kernel, default=None
        The kernel k of vectors; None means `RBF`, with its width set from the vectors
        of the training bags.

    Notes
    -----
    K. Muandet et al., Kernel mean embedding of distributions, 2017. Use
    ``Normalized(MeanEmbedding())`` to compare bags that are spread differently.

    Examples
    --------
    >>> from kernlets import Linear, MeanEmbedding
    >>> MeanEmbedding(Linear())([[[1.0, 0.0], [0.0, 1.0]]], [[[2.0, 4.0]]]).tolist()
    [[3.0]]
    """

    takes: ClassVar[str] = "bags"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [Kernel, None],
    }

    def __init__(self, kernel: Kernel | None = None) -> None:
        self.kernel = kernel

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """Whether the kernel of vectors is positive semi-definite."""
        return bool(getattr(self._inner(), "psd", True))

    def bound(self, X: Any, weights: Weights = None) -> Kernel:
        inner, samples = self._inner(), self.samples(X)
        bags = samples[row_numbers_by_weight(len(samples), weights)]
        if not len(bags):
            return self
        bound = inner.bound(spread_parts(bags, SOME_VECTORS))
        return self if bound is self.kernel else type(self)(bound)

    def prepare(self, samples: np.ndarray) -> Bags:
        sizes = [len(bag) for bag in samples]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        if not len(samples):
            return Bags(np.empty((0, 1)), starts)
        return Bags(np.concatenate(list(samples)).astype(np.float64), starts)

    def tile(self, left: Bags, right: Bags, rows: slice, columns: slice) -> np.ndarray:
        kernel = self._inner()
        row_vectors, row_sizes = left.select(rows)
        K = np.empty((len(row_sizes), columns.stop - columns.start))
        for run in _split_bags(
            right, columns, VALUES_AT_ONCE // max(1, len(row_vectors))
        ):
            column_vectors, column_sizes = right.select(run)
            sums = np.add.reduceat(
                kernel(row_vectors, column_vectors), _first_vectors(row_sizes), axis=0
            )
            sums = np.add.reduceat(sums, _first_vectors(column_sizes), axis=1)
            target = slice(run.start - columns.start, run.stop - columns.start)
            K[:, target] = sums / row_sizes[:, None] / column_sizes
        return K

    def energies(self, prepared: Bags) -> np.ndarray:  # (n,)
        numbers = range(len(prepared.starts) - 1)
        kernel = self._inner()
        bags = (prepared.select(slice(i, i + 1))[0] for i in numbers)
        return np.array([kernel(bag).mean() for bag in bags])

    def _inner(self) -> Kernel:
        return RBF() if self.kernel is None else self.kernel


def _first_vectors(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]])


def _split_bags(bags: Bags, columns: slice, limit: int) -> list[slice]:
    """Split bags into runs of at most `limit` vectors, or of one bag that has more."""
    runs, start = [], columns.start
    while start < columns.stop:
        beyond = int(np.searchsorted(bags.starts, bags.starts[start] + limit, "right"))
        stop = min(max(beyond - 1, start + 1), columns.stop)
        runs.append(slice(start, stop))
        start = stop
    return runs
