"""The base classes of feature maps: input checks, and transform block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

from ..base.estimator import Estimator, check_fitted
from ..contracts import Array
from ..data.check import check_rows
from ..data.rows import apply_to_rows, map_rows
from ..data.stream import first_block
from ..kernels import Kernel
from ..numerics.arrays import namespace
from ..numerics.scaling import all_finite
from ..preimage import over_landmarks, preimages
from ..schema import (
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
from ..sklearn_base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

if TYPE_CHECKING:
    from typing_extensions import Self


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator, ABC):
    """A map ψ with ⟨ψ(x), ψ(y)⟩ ≈ κ(x, y), applied to blocks of rows.

    A subclass defines the abstract members below. X may be an array, a torch
    tensor, a memory map, a Dask array or dataframe, or an iterable of blocks of rows.
    """

    _declared: ClassVar[Declared] = {"n_features_in_": Size("p")}

    _accept_sparse: ClassVar[bool] = False
    _keeps_missing: ClassVar[bool] = False
    """Whether missing entries (NaN) of a row are missing in its features, too."""
    _model_attribute: ClassVar[str | None] = None
    """The fitted array that new rows are made alike: its library, device and dtype."""

    n_components: Any

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the map from the rows of X; y is ignored."""
        self._validate_params()
        self._fit(*self._head_and_rows(X))
        return self

    @abstractmethod
    def _fit(self, head: Array, rows: Any) -> Any:
        """Set the fitted attributes from checked rows, whose first block is `head`."""

    @abstractmethod
    def _features(self, X: Array) -> Array:  # (n, p) -> (n, k)
        """Compute ψ of one block of checked rows."""

    @property
    @abstractmethod
    def _row_bytes(self) -> int:
        """Working memory of `_features` for one row."""

    @property
    def _model_array(self) -> Array | None:
        return self._model_attribute and getattr(self, self._model_attribute)

    @property
    def _n_features_out(self) -> int:
        """k."""
        return self.n_components

    def transform(self, X: Any) -> Any:
        """Return the features ψ of the rows of X.

        For an iterable of blocks the result is an iterable with one array per block,
        computed as it is read; it can be read again if X can. For a Dask array the
        result is a Dask array, and for a memory map whose features do not fit into the
        memory option it is `LazyRows`.
        """
        check_fitted(self)
        features = copy(self)._finite_features  # stays valid if the map is refitted
        return map_rows(features, self._check_rows(X), self._row_bytes)

    def _finite_features(self, X: Array) -> Array:  # (n, p) -> (n, k)
        """Compute `_features`; raise if they are not finite numbers."""
        features = self._features(X)
        is_refused = not all_finite(features)
        if is_refused and self._keeps_missing:  # NaN marks what is missing
            is_refused = bool(namespace(features).isinf(features).any())
        if is_refused:
            raise ValueError(
                f"{type(self).__name__}: features are not finite in {features.dtype}, "
                "the samples are too large. Scale them as those of the fit, or pass "
                "float64"
            )
        return features

    def _check_rows(self, X: Any, reset: bool = False) -> Any:
        """Check X: one array, or blocks that are checked as they are read."""
        return check_rows(
            self,
            X,
            reset=reset,
            containers="stream",
            like=None if reset else self._model_array,
            allow_nan=self._keeps_missing,
        )

    def _head_and_rows(self, X: Any) -> tuple[Array, Any]:
        """Return the first block, which sets the number of features, and all rows."""
        return first_block(self._check_rows(X, reset=True))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = self._accept_sparse
        tags.input_tags.allow_nan = self._keeps_missing
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

    kernel: Any
    kernel_: Kernel
    landmarks_: Array | None
    projection_: Array

    _model_attribute = "projection_"

    def inverse_transform(self, F: Array) -> Array:  # (n, k) -> (n, p)
        """Return points whose features are near the rows of F.

        Pre-images are approximate; `kernlets.preimage` reports their distances.
        """
        check_fitted(self)
        row_bytes = 16 * sum(self.projection_.shape)
        return apply_to_rows(copy(self)._preimages, F, row_bytes)

    def _preimages(self, F: Array) -> Array:  # (n, k) -> (n, p)
        coefs = over_landmarks(self, F)
        return preimages(self.kernel_, self.landmarks_, coefs).points

    @property
    def _row_bytes(self) -> int:
        c, k = self.projection_.shape
        return (2 * c + k) * self.projection_.dtype.itemsize

    @property
    def _n_features_out(self) -> int:
        return self.projection_.shape[1]
