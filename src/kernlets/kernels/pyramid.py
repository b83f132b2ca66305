"""The pyramid match kernel of bags of vectors: matches on finer and coarser grids."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from ..base.constraints import POSITIVE, Interval
from ..numerics.scaling import quiet
from .counting import Counting, digest_numbers, digest_sequences
from .family import positive

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
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_levels": [Interval(Integral, 1, MOST_LEVELS, closed="both")],
        "width": [POSITIVE, None],
    }

    def __init__(self, n_levels: int = 8, width: float | None = None) -> None:
        self.n_levels = n_levels
        self.width = width

    @property
    def unset(self) -> bool:
        return self.width is None

    def defaults(self, samples: np.ndarray) -> dict[str, Any]:
        lows = np.min([bag.min(axis=0) for bag in samples], axis=0)
        highs = np.max([bag.max(axis=0) for bag in samples], axis=0)
        widest = float((highs.astype(np.float64) - lows).max())
        return {"width": (widest or 1.0) / 2 ** (int(self.n_levels) - 1)}

    def parts(self, sample: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A cell has one part for its first vector, one for its second, and so on.

        With these the product of two histograms becomes their intersection:
        min(a, b) = Σₜ [a ≥ t][b ≥ t].
        """
        width = 1.0 if self.width is None else positive(self, "width")
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
    """0, 1, ... within each run of equal, sorted digests."""
    positions = np.arange(len(digests))
    starts = np.concatenate([[True], digests[1:] != digests[:-1]])
    return positions - np.maximum.accumulate(np.where(starts, positions, 0))
