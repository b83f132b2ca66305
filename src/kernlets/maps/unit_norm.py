"""`UnitNorm`: rows scaled to length one, for every kind of row source."""

from __future__ import annotations

from typing import Any

from ..contracts import Array
from ..data.masks import has_missing, split_mask
from ..numerics.arrays import namespace
from .base import FeatureMap


class UnitNorm(FeatureMap):
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

    def fit(self, X: Any, y: Any = None) -> UnitNorm:
        """Store the number of features."""
        self._head_and_rows(X)
        return self

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

    @property
    def _keeps_missing(self) -> bool:
        return True

    @property
    def _row_bytes(self) -> int:
        return 16 * self.n_features_in_

    @property
    def _model_array(self) -> None:
        return None  # there is no model

    @property
    def _n_features_out(self) -> int:
        return self.n_features_in_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")


def _nonzero(scale: Array) -> Array:
    return namespace(scale).where(scale == 0, 1.0, scale)
