"""Base class of classifiers that are also transformers, with codes as features."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..base.estimator import Estimator
from ..coders import encode
from ..contracts import Array, SparseCoder, SparseCodes
from ..data.check import check_rows
from ..data.missing import all_in_memory
from ..dictionaries import ExplicitDictionary
from ..learners.base import codes_of_rows
from ..schema import Declared, History, Indices, Part, Whole
from ..sklearn_base import (
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from .labels import prior_residuals


class CodingClassifier(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, Estimator
):
    """A classifier that codes samples by `coder_` over one `dictionary_`."""

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
        """Compute sparse codes of the rows of X over all atoms."""
        check_is_fitted(self)
        return encode(self.dictionary_, self.coder_, self._new_rows(X))

    def _new_rows(self, X: Any) -> Array:
        """Check new samples and convert them like the model, for reading by blocks."""
        like = self.dictionary_.atoms
        return check_rows(self, X, by_blocks=True, like=like, allow_nan=True)

    def _prior_residuals(self, residuals: Array, X: Array) -> Array:  # (n, C)
        """Replace residuals of rows whose values are all missing by class priors."""
        return prior_residuals(residuals, X, self.class_count_)

    def _training_rows(self, X: Any) -> Array:
        """Check the samples of a fit."""
        allow_nan = all_in_memory(X)
        return check_rows(
            self, X, reset=True, ensure_min_samples=2, whole=True, allow_nan=allow_nan
        )

    def transform(self, X: Any) -> Array:  # (n, m)
        """Compute dense, discriminative codes of the rows of X over all atoms.

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
