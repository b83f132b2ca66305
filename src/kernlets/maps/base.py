"""The base classes of feature maps: input checks, and transform block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from functools import partial
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from ..backend.arrays import namespace
from ..backend.estimator import Estimator
from ..backend.rows import (
    apply_to_rows,
    first_block,
    map_rows,
)
from ..backend.scale import all_finite, quiet
from ..backend.validation import check_source
from ..core import Array, Kernel
from ..fields import (
    Declared,
    Either,
    Floats,
    Indices,
    Nothing,
    Number,
    Part,
    Samples,
    Size,
)
from ..preimage import over_landmarks, preimages
from ..sklearn_base import ClassNamePrefixFeaturesOutMixin, TransformerMixin


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator, ABC):
    """A map ψ with ⟨ψ(x), ψ(y)⟩ ≈ κ(x, y), applied to blocks of rows.

    A subclass defines `fit` and the abstract members below. X may be an array, a torch
    tensor, a memory map, a Dask array or dataframe, or an iterable of blocks of rows.
    """

    _declared: ClassVar[Declared] = {"n_features_in_": Size("p")}

    @abstractmethod
    def _features(self, X: Array) -> Array:  # (n, p) -> (n, k)
        """ψ of one block of checked rows."""

    @property
    @abstractmethod
    def _row_bytes(self) -> int:
        """Working memory of `_features` for one row."""

    @property
    @abstractmethod
    def _model_array(self) -> Array | None:
        """New rows are converted to the library, device and dtype of this array."""

    @property
    @abstractmethod
    def _n_features_out(self) -> int:
        """k."""

    @property
    def _accept_sparse(self) -> bool:
        return False

    def transform(self, X: Any) -> Any:
        """The features ψ of the rows of X.

        For an iterable of blocks the result is an iterable with one array per block,
        computed as it is read; it can be read again if X can. For a Dask array the
        result is a Dask array, and for a memory map whose features do not fit into the
        memory option it is `LazyRows`.
        """
        check_is_fitted(self)
        features = copy(self)._checked_features  # stays valid if the map is refitted
        return map_rows(features, self._rows(X), self._row_bytes)

    def _checked_features(self, X: Array) -> Array:  # (n, p) -> (n, k)
        """`_features`, or an error if they are not finite numbers."""
        with quiet():
            found = self._features(X)
        if not all_finite(found) and not self._is_incomplete(found):
            raise ValueError(
                f"{type(self).__name__}: features are not finite in {found.dtype}, the "
                "samples are too large. Scale them as those of the fit, or pass float64"
            )
        return found

    def _is_incomplete(self, found: Array) -> bool:
        """Whether features are unknown only, where this map keeps what is."""
        return self._keeps_gaps and not bool(namespace(found).isinf(found).any())

    @property
    def _keeps_gaps(self) -> bool:
        """Whether what is unknown of a row is unknown of its features, too."""
        return False

    def _rows(self, X: Any, reset: bool = False) -> Any:
        """Check X: one array, or blocks that are checked as they are read."""
        sparse, like = self._accept_sparse, None if reset else self._model_array
        keys: dict[str, Any] = {"accept_sparse": sparse, "like": like}
        keys["allow_nan"] = self._allow(reset)
        return check_source(self, X, reset=reset, **keys)

    def _allow(self, reset: bool) -> bool:
        """Whether rows may have NaN, those of a fit or new ones."""
        return self._keeps_gaps

    def _first_rows(self, X: Any) -> tuple[Array, Any]:
        """The first block, which sets the number of features, and all checked rows."""
        return first_block(self._rows(X, reset=True))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = self._accept_sparse
        tags.input_tags.allow_nan = self._keeps_gaps
        return tags


class LandmarkMap(FeatureMap):
    """A map ψ(x) = K(x, `landmarks_`) `projection_`, which has an inverse_transform."""

    _declared: ClassVar[Declared] = {
        "kernel_": Part(Kernel),
        "landmarks_": Either(
            Floats("r", "p", csr=True), Indices("r", below="p"), Samples("r")
        ),
        "landmark_indices_": Either(Nothing(), Indices("r")),
        "eigenvalues_": Floats("k"),
        "projection_": Floats("r", "k"),
        "kernel_error_": Number(),
    }

    kernel_: Kernel
    landmarks_: Array | None
    projection_: Array

    def inverse_transform(self, F: Array) -> Array:  # (n, k) -> (n, p)
        """Points whose features are near the rows of F.

        Pre-images are approximate; `kernlets.preimage` reports their distances.
        """
        check_is_fitted(self)
        row_bytes = 16 * sum(self.projection_.shape)
        return apply_to_rows(partial(_points, self), F, row_bytes)


def _points(feature_map: LandmarkMap, F: Array) -> Array:  # (n, k) -> (n, p)
    coefs = over_landmarks(feature_map, F)
    return preimages(feature_map.kernel_, feature_map.landmarks_, coefs).points
