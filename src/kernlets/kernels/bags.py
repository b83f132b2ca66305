"""Kernels of bags of vectors: images as descriptors, patients as visits.

A bag is an array (k, p) of any number of vectors; samples are a list of bags.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from ..base.constraints import POSITIVE, Interval
from ..data.weights import Weights, row_numbers_by_weight
from ..numerics.scaling import quiet
from .base import Kernel, positive
from .distance import RBF
from .samples import spread_parts
from .structured import Counting, Structured, digest_numbers, digest_sequences

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
    _parameter_constraints = {"kernel": [Kernel, None]}

    def __init__(self, kernel: Kernel | None = None) -> None:
        self.kernel = kernel

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """Whether the kernel of vectors is positive semi-definite."""
        return self._inner().psd

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


LARGEST_CELL = 2.0**52  # larger numbers of cells are not exact in float64
MOST_LEVELS = 60  # beyond, all vectors are in cells that touch the origin


class PyramidMatch(Counting):
    """κ(A, B) = Σ over levels of 2⁻ˡ times the new matches of vectors of A and B.

    Vectors match on level l if they lie in one cell of a grid whose cells have the side
    width · 2ˡ; each matches one other at most, and counts on the finest level where it
    does. It is a sum of histogram intersections, which is positive definite, and takes
    time in proportion to the vectors, not to their pairs.

    Parameters
    ----------
    n_levels : int, default=8
        Number of grids, at most 60.
    width : float, default=None
        Side of the finest cells. None sets it so that the coarsest cells are as wide as
        the widest feature of the training vectors.

    Notes
    -----
    K. Grauman and T. Darrell, The pyramid match kernel, ICCV 2005. Features should have
    one scale. Use ``Normalized(PyramidMatch())`` for bags of different sizes.

    Examples
    --------
    >>> from kernlets import PyramidMatch
    >>> bags = [[[0.2], [3.5]], [[0.4], [1.0]]]
    >>> PyramidMatch(3, width=1.0)(bags).tolist()
    [[2.0, 1.25], [1.25, 2.0]]
    """

    takes: ClassVar[str] = "bags"
    _parameter_constraints = {
        "n_levels": [Interval(Integral, 1, MOST_LEVELS, closed="both")],
        "width": [POSITIVE, None],
    }
    set_from_data = ("width",)

    def __init__(self, n_levels: int = 8, width: float | None = None) -> None:
        self.n_levels = n_levels
        self.width = width

    def defaults(self, samples: np.ndarray) -> dict[str, Any]:
        lows = np.min([bag.min(axis=0) for bag in samples], axis=0)
        highs = np.max([bag.max(axis=0) for bag in samples], axis=0)
        widest = float((highs.astype(np.float64) - lows).max())
        return {"width": (widest or 1.0) / 2 ** (int(self.n_levels) - 1)}

    def parts(self, sample: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Give a cell one part for its first vector, one for its second, and so on.

        With these the product of two histograms becomes their intersection:
        min(a, b) = Σₜ [a ≥ t][b ≥ t].
        """
        width = positive(self, "width", default=1.0)
        with quiet():  # infinite cells are refused below
            cells = np.floor(sample.astype(np.float64) / width)
        if np.abs(cells).max() > LARGEST_CELL:
            raise ValueError(
                f"PyramidMatch: width={width:g} is too small for vectors as large as "
                f"{np.abs(sample).max():g}: scale them, or widen the cells"
            )
        levels = [self._level(cells, level) for level in range(int(self.n_levels))]
        digests, weights = zip(*levels, strict=True)
        return np.concatenate(digests), np.concatenate(weights)

    def _level(self, cells: np.ndarray, level: int) -> tuple[np.ndarray, np.ndarray]:
        """Return digests and weights of a level.

        New matches have the weight 2⁻ˡ, so that all matches of level l have 2⁻ˡ⁻¹.
        """
        is_coarsest = level == int(self.n_levels) - 1
        coarse_cells = np.floor(cells / 2.0**level).astype(np.int64)
        digests = np.sort(
            digest_sequences([np.full(len(coarse_cells), level), *coarse_cells.T])
        )
        weight = 2.0**-level if is_coarsest else 2.0 ** -(level + 1)
        return digest_numbers(digests ^ digest_numbers(_ranks(digests))), np.full(
            len(cells), weight**0.5
        )


def _ranks(digests: np.ndarray) -> np.ndarray:  # (k,)
    """Number the entries of each run of equal, sorted digests from 0."""
    positions = np.arange(len(digests))
    starts = np.concatenate([[True], digests[1:] != digests[:-1]])
    return positions - np.maximum.accumulate(np.where(starts, positions, 0))
