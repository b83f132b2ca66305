"""Base class of classifiers that are also transformers: codes are features."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..backend.estimator import Estimator
from ..backend.missing_rows import all_in_memory
from ..backend.validation import check_rows
from ..core import Array, SparseCoder, SparseCodes
from ..dictionaries import ExplicitDictionary
from ..fields import Declared, History, Indices, Part, Whole
from ..learners.base import codes_of_rows
from ..pursuits import encode
from ..sklearn_base import (
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from .labels import prior_residuals


class CodingClassifier(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, Estimator
):
    """Codes over one dictionary for all classes, `dictionary_` with `coder_`."""

    _declared: ClassVar[Declared] = {
        "dictionary_": Part(ExplicitDictionary, m="m", p="p"),
        "coder_": Part(SparseCoder),
        "atom_classes_": Indices("m", below="C"),
        "class_count_": Indices("C"),
        "history_": History(),
        "n_iter_": Whole(),
    }

    n_atoms_per_class: Any
    random_state: Any

    dictionary_: ExplicitDictionary
    coder_: Any  # a `SparseCoder`
    atom_classes_: np.ndarray
    class_count_: np.ndarray
    history_: dict[str, list[float]]
    n_iter_: int

    @property
    def components_(self) -> Array:  # (m, p)
        """The atoms, one per row, with unit norm."""
        check_is_fitted(self)
        return self.dictionary_.atoms

    def encode(self, X: Any) -> SparseCodes:
        """Sparse codes of the rows of X over all atoms."""
        check_is_fitted(self)
        return encode(self.dictionary_, self.coder_, self._new_rows(X))

    def _new_rows(self, X: Any) -> Array:
        """Check new samples and convert them like the model, for reading by blocks."""
        like = self.dictionary_.atoms
        return check_rows(self, X, by_blocks=True, like=like, allow_nan=True)

    def _known_by_prior(self, residuals: Array, X: Array) -> Array:  # (n, C)
        """The residuals, of rows without an observed value by the sizes of classes."""
        return prior_residuals(residuals, X, self.class_count_)

    def _training_rows(self, X: Any) -> Array:
        """Checked samples to learn from."""
        gaps = all_in_memory(X)
        return check_rows(
            self, X, reset=True, ensure_min_samples=2, whole=True, allow_nan=gaps
        )

    def transform(self, X: Any) -> Array:  # (n, m)
        """Discriminative codes of the rows of X over all atoms, dense.

        The result is `LazyRows` for a memory map whose codes do not fit into the memory
        option.
        """
        check_is_fitted(self)
        return codes_of_rows(self.dictionary_, self.coder_, self._new_rows(X))

    @property
    def _n_features_out(self) -> int:
        return self.dictionary_.n_atoms

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = True
        return tags
