"""`Standardize`: columns of mean zero and variance one, wherever the rows are."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..backend.arrays import as_like, double, namespace
from ..backend.masks import first_observed, has_missing, split_mask
from ..backend.rows import sum_rows, take_rows
from ..backend.scale import quiet, refuse_large_sums
from ..core import Array
from ..fields import Declared, Floats
from .base import FeatureMap

FIRST = 64  # rows among which one is looked for that has a value, for each column


class Standardize(FeatureMap):
    """(x − mean) / std for each column; constant columns become zero.

    Mean and deviation are those of the observed entries; what is unknown (NaN) stays
    so. A column that was never observed has mean 0 and scale 1.

    What scikit-learn's `StandardScaler` does in memory, for every source of rows that
    the maps take: memory maps, Dask arrays and dataframes, iterables of blocks.

    Attributes
    ----------
    mean_ : array (p,)
    scale_ : array (p,)
        Standard deviations, 1 for constant columns.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import Standardize
    >>> Standardize().fit_transform(np.array([[1.0, 7.0], [3.0, 7.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """

    _declared: ClassVar[Declared] = {
        "mean_": Floats("p"),
        "scale_": Floats("p", like="mean_"),
    }

    def fit(self, X: Any, y: Any = None) -> Standardize:
        """Find mean and deviation of each column in one pass over the rows."""
        head, rows = self._first_rows(X)
        # differences to a row: of a constant column exactly zero, and short of digits
        # only where that row is an outlier
        origin = first_observed(take_rows(head, np.arange(min(FIRST, head.shape[0]))))
        with quiet():
            moments = partial(_moments, origin)
            sums = sum_rows(moments, rows, row_bytes=24 * head.shape[1])
        refuse_large_sums(sums, "the squares of differences")
        count = namespace(sums).clip(sums[0], 1, None)
        shift, square = sums[1] / count, sums[2] / count
        xp = namespace(shift)
        deviation = xp.sqrt(xp.clip(square - shift**2, 0, None))
        self.mean_ = as_like(double(origin) + shift, origin)
        self.scale_ = as_like(xp.where(deviation > 0, deviation, 1.0), origin)
        return self

    def _features(self, X: Array) -> Array:  # (n, p)
        return (X - self.mean_) / self.scale_

    @property
    def _keeps_gaps(self) -> bool:
        return True

    @property
    def _row_bytes(self) -> int:
        return 16 * self.n_features_in_

    @property
    def _model_array(self) -> Array:
        return self.mean_

    @property
    def _n_features_out(self) -> int:
        return self.n_features_in_


def _moments(origin: Array, block: Array) -> Array:  # (p,), (n, p) -> (3, p)
    """Count, sum and sum of squares of x − origin, in float64."""
    xp = namespace(block)
    moved = double(block) - double(origin)
    counts = xp.full_like(moved[0], block.shape[0])
    if has_missing(block):
        moved, known = split_mask(moved)
        counts = xp.sum(xp.astype(known, moved.dtype), axis=0)
    return xp.stack([counts, xp.sum(moved, axis=0), xp.sum(moved * moved, axis=0)])
