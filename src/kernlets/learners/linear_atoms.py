"""The part that is common to all learners whose atoms are rows of a matrix."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..backend.arrays import is_dask, to_device
from ..backend.codes import decoded
from ..backend.constraints import StrOptions
from ..backend.missing_rows import count_blocks, fill_rows_with_means
from ..backend.random import generator
from ..backend.rows import cache_rows
from ..backend.training_rows import training_rows
from ..backend.validation import check_rows
from ..backend.weights import (
    Weights,
    check_weights,
    drop_zero_weights,
    weights_as_counts,
)
from ..core import Array
from ..dictionaries import ExplicitDictionary
from ..fields import Declared, Part
from .base import DictionaryLearner, over_codes
from .first_atoms import STARTS, Usable, given_atoms, start_atoms
from .race import starting_points

if TYPE_CHECKING:
    from typing_extensions import Self


class LinearAtoms(DictionaryLearner):
    """A learner whose atoms are rows of a matrix in the space of the samples.

    A subclass defines `_learn` and `_needs_all_codes`.
    """

    init: Any

    _learns_gaps = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DictionaryLearner._parameter_constraints,
        "init": [StrOptions(set(STARTS)), "array-like"],
    }

    _declared: ClassVar[Declared] = {
        "dictionary_": Part(ExplicitDictionary, m="m", p="p"),
    }

    @abstractmethod
    def _learn(
        self,
        start: ExplicitDictionary,
        X: Any,
        n_features: int,
        rng: np.random.Generator,
        weights: Weights = None,
        others: Sequence[tuple[ExplicitDictionary, np.random.Generator]] = (),
    ) -> Any:
        """Learn from X, beginning with `start` or others, and set the history."""

    @abstractmethod
    def _needs_all_codes(self) -> bool:
        """Whether the codes of all samples must be in memory together."""

    def _works_from_sums(self) -> bool:
        """Whether sums over samples suffice, so that these may be stored anywhere."""
        return not self._needs_all_codes()

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn a dictionary for the rows of X; y is ignored.

        A row of `sample_weight` w counts as w rows: 0 leaves it out, 2 repeats it.
        Weights whose mean is below 1 are divided by it.

        If the update needs only sums over samples (`MOD`, ``update="ksvd-parallel"``),
        X may be a Dask array or dataframe, a list of row blocks or `Blocks`, whose rows
        are counted in a pass before. An iterator of blocks can be read only once, and
        its first rows give the first atoms.
        """
        self._validate_params()
        once = isinstance(X, Iterator)
        X, first = training_rows(self, X)
        weights = weights_as_counts(check_weights(sample_weight, X))
        if weights is not None:
            X, weights = drop_zero_weights(X, weights)
            first = X
        rng = generator(self.random_state)
        with cache_rows(X) as rows:
            some = rows if first is X else first
            if first is not X and not once and isinstance(self.init, str):
                some = count_blocks(X)
            start, *others = [
                (self._first_dictionary(some, each, weights), each)
                for each in starting_points(rng, self._n_starts())
            ]
            given = start[0], rows, first.shape[1], rng, weights, others
            self.dictionary_ = self._learn(*given)
        return self

    def _whole_rows(self, X: Any) -> Array:
        all_codes = self._needs_all_codes()
        lazy = self._works_from_sums() if is_dask(X) else not all_codes
        gaps = {"allow_nan": self._learns_gaps}
        return check_rows(self, X, reset=True, lazy=lazy, whole=all_codes, **gaps)

    def _first_dictionary(
        self, X: Array, rng: np.random.Generator, weights: Weights = None
    ) -> ExplicitDictionary:
        """The dictionary before the first iteration."""
        X = fill_rows_with_means(X, weights)
        # rows of a memory map are still on the host here
        if self.n_components is None and not isinstance(self.init, str):
            return ExplicitDictionary(to_device(given_atoms(self.init, X)))
        # count the usable rows, which is a pass over X, only if it is needed
        count = self.n_components is None
        n_usable = Usable.find(X).count(weights) if count else X.shape[0]
        n_atoms = self._n_atoms(n_usable, X.shape[1])
        atoms = start_atoms(self.init, X, n_atoms, rng, weights)
        return ExplicitDictionary(to_device(atoms))

    def _so_far(self, current: ExplicitDictionary) -> dict[str, Any]:
        return {"dictionary_": current}

    @property
    def components_(self) -> Array:  # (m, p)
        """The atoms, one per row, with unit norm."""
        check_is_fitted(self)
        return self.dictionary_.atoms

    def inverse_transform(self, codes: Any) -> Array:  # (n, p)
        """Reconstruct samples from codes: codes · atoms."""
        return over_codes(decoded, codes, self.components_)
