"""`Standardize` scales columns, `UnitNorm` rows, for every kind of row source."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..contracts import Array
from ..data.missing import first_observed, has_missing, split_mask
from ..data.rows import sum_rows, take_rows
from ..numerics.arrays import as_like, double, namespace
from ..numerics.scaling import refuse_large_sums
from ..schema import Declared, Floats
from .base import FeatureMap

FIRST = 64  # rows that are searched for the first observed entry of each column


class _Scaling(FeatureMap):
    """A map to scaled rows, in which missing entries stay missing."""

    _keeps_missing = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    @property
    def _row_bytes(self) -> int:
        return 16 * self.n_features_in_

    @property
    def _n_features_out(self) -> int:
        return self.n_features_in_


class Standardize(_Scaling):
    """(x − mean) / std for each column; constant columns become zero.

    Mean and deviation are those of the observed entries; missing entries (NaN) stay
    missing. A column that was never observed has mean 0 and scale 1.

    It does what scikit-learn's `StandardScaler` does in memory, for every source of
    rows that the maps accept: memory maps, Dask arrays and dataframes, iterables of
    blocks.

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

    _model_attribute = "mean_"

    _declared: ClassVar[Declared] = {
        "mean_": Floats("p"),
        "scale_": Floats("p", like="mean_"),
    }

    def _fit(self, head: Array, rows: Any) -> None:
        """Find mean and deviation of each column in one pass over the rows."""
        # Sums are of differences to one row: they are exactly zero for a constant
        # column, and lose digits only if that row is an outlier.
        origin = first_observed(take_rows(head, np.arange(min(FIRST, head.shape[0]))))
        sums = sum_rows(partial(_moments, origin), rows, row_bytes=24 * head.shape[1])
        refuse_large_sums(sums, "the squares of differences")
        counts = namespace(sums).clip(sums[0], 1, None)
        shift, mean_square = sums[1] / counts, sums[2] / counts
        xp = namespace(shift)
        deviation = xp.sqrt(xp.clip(mean_square - shift**2, 0, None))
        self.mean_ = as_like(double(origin) + shift, origin)
        self.scale_ = as_like(xp.where(deviation > 0, deviation, 1.0), origin)

    def _features(self, X: Array) -> Array:  # (n, p)
        return (X - self.mean_) / self.scale_


def _moments(origin: Array, block: Array) -> Array:  # (p,), (n, p) -> (3, p)
    """Count, sum and sum of squares of x − origin, in float64."""
    xp = namespace(block)
    differences = double(block) - double(origin)
    counts = xp.full_like(differences[0], block.shape[0])
    if has_missing(block):
        differences, observed = split_mask(differences)
        counts = xp.sum(xp.astype(observed, differences.dtype), axis=0)
    return xp.stack(
        [counts, xp.sum(differences, axis=0), xp.sum(differences * differences, axis=0)]
    )


class UnitNorm(_Scaling):
    """x / ‖x‖₂ for each row; zero rows stay zero.

    Missing entries (NaN) stay missing, and ‖x‖² is estimated from the observed
    features o as (p/|o|)‖x_o‖², so that observed entries have the scale of a complete
    row.

    It does what scikit-learn's `Normalizer` does in memory, for every source of rows
    that the maps accept: memory maps, Dask arrays and dataframes, iterables of blocks.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen by `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import UnitNorm
    >>> UnitNorm().fit_transform(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """

    def _fit(self, head: Array, rows: Any) -> None:
        """Learn nothing; the number of features is set already."""

    def _features(self, X: Array) -> Array:  # (n, p)
        """Divide by the largest entry first, so that no square under- or overflows."""
        xp = namespace(X)
        if has_missing(X):
            return self._observed_features(X)
        X = X / _nonzero(xp.max(xp.abs(X), axis=1, keepdims=True))
        return X / _nonzero(xp.linalg.vector_norm(X, axis=1, keepdims=True))

    def _observed_features(self, X: Array) -> Array:  # (n, p)
        xp, (rows, observed) = namespace(X), split_mask(X)
        largest = _nonzero(xp.max(xp.abs(rows), axis=1, keepdims=True))
        norms = xp.linalg.vector_norm(rows / largest, axis=1, keepdims=True)
        observed_share = xp.mean(xp.astype(observed, rows.dtype), axis=1, keepdims=True)
        return X / largest / _nonzero(norms / xp.sqrt(_nonzero(observed_share)))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")


def _nonzero(scale: Array) -> Array:
    return namespace(scale).where(scale == 0, 1.0, scale)
