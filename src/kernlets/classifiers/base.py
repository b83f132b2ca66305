"""What classifiers share: labels by scores or residuals, codes over one dictionary."""

from __future__ import annotations

import operator
import warnings
from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import accuracy_score

from ..base.estimator import Estimator, check_fitted
from ..coders import encode
from ..coders.encoding import encode_block, fill_by_codes
from ..contracts import Array, SparseCoder, SparseCodes
from ..data.check import check_rows
from ..data.missing import all_in_memory, has_missing
from ..data.rows import apply_to_rows, on_dask
from ..dictionaries import ExplicitDictionary
from ..learners.base import codes_of_rows
from ..numerics.arrays import (
    as_like,
    empty,
    index_like,
    is_dask,
    move_like,
    namespace,
    or_wider,
    to_numpy,
)
from ..numerics.scaling import all_finite, quiet
from ..schema import Declared, History, Indices, Labels, Number, Part, Size, Whole
from ..sklearn_base import (
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from .temperature import class_probabilities, class_scores, residuals_of_prior


class ScoreVoting(ClassifierMixin, Estimator, ABC):
    """A classifier that gives a sample the class of the largest of its `_scores`."""

    _declared: ClassVar[Declared] = {
        "n_features_in_": Size("p"),
        "classes_": Labels("C"),
    }

    classes_: np.ndarray

    @abstractmethod
    def _scores(self, X: Any) -> Array:  # (n, n_classes)
        """Return the score of each class for each sample."""

    def predict(self, X: Any) -> Array:  # (n,)
        """Return the label with the best score."""
        scores = self._scores(X)  # first, because it checks that this is fitted
        return labels_like(apply_to_rows(partial(_winners, self.classes_), scores), X)

    def decision_function(self, X: Any) -> Array:  # (n, n_classes), (n,) for two
        """Return the score of each class; of two, the second minus the first."""
        return apply_to_rows(_margins, self._scores(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the rows whose label is predicted correctly."""
        predicted = self.predict(X)
        if is_dask(predicted):
            return on_dask().weighted_accuracy(predicted, y, sample_weight)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's check uses samples in the plane, where a few atoms of any
        # class represent every sample; sparse codes need more dimensions
        tags.classifier_tags.poor_score = True
        return tags


def labels_like(labels: Array, X: Any) -> Array:
    """Return labels that are numbers in the library and on the device of X."""
    is_movable = isinstance(labels, np.ndarray) and labels.dtype.kind in "iufb"
    return move_like(labels, X) if is_movable else labels


def _winners(classes: np.ndarray, scores: Array) -> np.ndarray:  # (n,)
    return classes[to_numpy(_check_finite(scores)).argmax(axis=1)]


def _margins(scores: Array) -> Array:
    scores = _check_finite(scores)
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


def _check_finite(scores: Array) -> Array:
    """Return the scores, or raise an error if they are not finite."""
    if not all_finite(scores):
        raise ValueError(
            f"scores of classes are not finite in {scores.dtype}: the samples are too "
            f"large. Scale them as those of the training{or_wider(scores.dtype)}"
        )
    return scores


class ResidualVoting(ScoreVoting):
    """A classifier that gives a sample the class of the smallest of its `residuals`."""

    @abstractmethod
    def residuals(self, X: Any) -> Array:  # (n, n_classes)
        """Return the squared residual of each sample for each class."""

    def _scores(self, X: Any) -> Array:  # (n, n_classes)
        return apply_to_rows(operator.neg, self.residuals(X))


class ResidualProbabilities(ResidualVoting):
    """A classifier by residuals that has probabilities at a fitted temperature."""

    _declared: ClassVar[Declared] = {"temperature_": Number(least=0)}

    temperature_: float

    def decision_function(self, X: Any) -> Array:  # (n, n_classes), (n,) for two
        """Return scores whose softmax is `predict_proba`; of two, the log-odds."""
        residuals = self.residuals(X)
        return apply_to_rows(partial(_log_odds, self.temperature_), residuals)

    def predict_proba(self, X: Any) -> Array:  # (n, n_classes)
        """Return the probability of each class, from the ratios of its residuals.

        p_c ∝ (r_c / max r + 0.001)^(−1/T) with T = `temperature_`, which is fitted to
        rows that a part of the fit left out.
        """
        residuals = self.residuals(X)  # first, because it checks that this is fitted
        compute = partial(_finite_probabilities, self.temperature_)
        return apply_to_rows(compute, residuals)


def _log_odds(temperature: float, residuals: Array) -> Array:
    return _margins(class_scores(temperature, _check_finite(residuals)))


def _finite_probabilities(temperature: float, residuals: Array) -> Array:
    return class_probabilities(temperature, _check_finite(residuals))


def class_residuals(
    codes: SparseCodes,  # n
    gram: Array,  # (m, m)
    corr: Array,  # (n, m)
    energy: Array,  # (n,)
    atom_classes: np.ndarray,  # (m,) class indices
    n_classes: int,
) -> Array:  # (n, n_classes)
    """‖x − γ_c D_c‖² = ‖x‖² − 2⟨γ_c, corr_c⟩ + γ_c G γ_cᵀ, class by class."""
    xp = namespace(corr)
    dense = codes.toarray()
    residuals = empty((corr.shape[0], n_classes), like=corr)
    for c in range(n_classes):
        atoms = index_like(np.flatnonzero(atom_classes == c), corr)
        class_codes = dense[:, atoms]
        with quiet():  # `_check_finite` refuses scores that overflow
            slopes = 2 * corr[:, atoms] - class_codes @ gram[atoms[:, None], atoms]
            residuals[:, c] = energy - xp.sum(class_codes * slopes, axis=1)
    return xp.clip(residuals, 0, None)


def prior_residuals(
    residuals: Array,  # (n, n_classes)
    X: Any,  # (n, p)
    counts: np.ndarray,  # (n_classes,)
    temperature: float = 1.0,
) -> Array:  # (n, n_classes)
    """Set residuals of rows without observed values to those of the classes' shares.

    The most frequent class then wins, and `class_probabilities` are the shares.
    """
    if not has_missing(X):
        return residuals
    xp = namespace(residuals)
    is_all_missing = xp.all(xp.isnan(X), axis=1)
    n_empty = int(xp.sum(xp.astype(is_all_missing, xp.int64)))
    if n_empty == 0:
        return residuals
    warnings.warn(
        f"{n_empty} rows of X have no observed value: their label is that of the "
        "largest class",
        stacklevel=2,
    )
    prior_levels = as_like(residuals_of_prior(counts, temperature), residuals)
    return xp.where(is_all_missing[:, None], prior_levels, residuals)


class CodingClassifier(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, Estimator
):
    """A classifier that codes samples by `coder_` over one `dictionary_`.

    The codes are also features for other estimators: `transform`.
    """

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
        check_fitted(self)
        return self.dictionary_.atoms

    def encode(self, X: Any) -> SparseCodes:
        """Compute sparse codes of the rows of X over all atoms."""
        check_fitted(self)
        return encode(self.dictionary_, self.coder_, self._new_rows(X))

    def transform(self, X: Any) -> Array:  # (n, m)
        """Compute dense, discriminative codes of the rows of X over all atoms.

        The result is `LazyRows` for a memory map whose codes do not fit into the memory
        option.
        """
        check_fitted(self)
        return codes_of_rows(self.dictionary_, self.coder_, self._new_rows(X))

    def _training_rows(self, X: Any) -> Array:
        """Check the samples of a fit."""
        allow_nan = all_in_memory(X)
        return check_rows(
            self,
            X,
            reset=True,
            ensure_min_samples=2,
            containers="memory",
            allow_nan=allow_nan,
        )

    def _new_rows(self, X: Any) -> Array:
        """Check new samples and convert them like the model, for reading by blocks."""
        like = self.dictionary_.atoms
        return check_rows(self, X, containers="disk", like=like, allow_nan=True)

    def _fill_missing(self, X: Array) -> Array:
        """Replace missing values by those that the codes over all atoms represent."""
        if not has_missing(X):
            return X
        codes = encode_block(self.dictionary_, self.coder_, X)
        return fill_by_codes(self.dictionary_, codes, X)

    @property
    def _n_features_out(self) -> int:
        return self.dictionary_.n_atoms

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = True
        return tags
