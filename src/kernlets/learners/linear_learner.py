"""`LinearLearner` is the base class of learners whose atoms are rows of a matrix."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..base.constraints import StrOptions
from ..contracts import Array, SparseCoder
from ..data.check import Containers, check_rows
from ..data.missing import count_blocks, fill_rows_with_means
from ..data.rows import cache_rows
from ..data.stream import is_blocks
from ..data.weights import (
    Weights,
    check_weights,
    drop_zero_weights,
    weights_as_counts,
)
from ..dictionaries import ExplicitDictionary
from ..loops.codes import decode
from ..numerics.arrays import to_device
from ..numerics.random import generator
from ..schema import Declared, Part
from .base import DictionaryLearner, map_codes
from .code_and_update import BatchLearner, start_generators
from .initial_atoms import STARTS, NonzeroRows, atoms_from_array, start_atoms
from .schedule import Schedule, resolve_schedule

if TYPE_CHECKING:
    from typing_extensions import Self


class LinearAtoms(DictionaryLearner):
    """A learner whose atoms are rows of a matrix in the space of the samples.

    A subclass defines `_learn` and `_containers`.
    """

    _learns_missing = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DictionaryLearner._parameter_constraints,
        "init": [StrOptions(set(STARTS)), "array-like"],
    }

    _declared: ClassVar[Declared] = {
        "dictionary_": Part(ExplicitDictionary, m="m", p="p"),
    }

    def __init__(
        self,
        n_components: int | None = None,
        n_nonzero_coefs: int | None = None,
        *,
        coder: str | SparseCoder | None = None,
        max_iter: int = 10,
        init: Any = "samples",
        schedule: str | Schedule | None = None,
        random_state: Any = None,
        sparse_output: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_nonzero_coefs = n_nonzero_coefs
        self.coder = coder
        self.max_iter = max_iter
        self.init = init
        self.schedule = schedule
        self.random_state = random_state
        self.sparse_output = sparse_output

    @abstractmethod
    def _learn(
        self,
        starts: Sequence[tuple[Any, np.random.Generator]],
        X: Any,
        weights: Weights = None,
    ) -> Any:
        """Learn from X, from each start, set the history and return the dictionary."""

    @property
    @abstractmethod
    def _containers(self) -> Containers:
        """Where rows may be: only what learns from sums reads rows of a cluster."""

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
        is_single_use = isinstance(X, Iterator)
        if is_blocks(X):
            self._refuse_blocks_for_codes()
            X, first_rows = self._check_blocks(X)
        else:
            where = self._containers
            X = check_rows(self, X, reset=True, containers=where, allow_nan=True)
            first_rows = X
        weights = weights_as_counts(check_weights(sample_weight, X))
        if weights is not None:
            X, weights = drop_zero_weights(X, weights)
            first_rows = X
        with cache_rows(X) as rows:
            start_rows = rows if first_rows is X else first_rows
            if first_rows is not X and not is_single_use and isinstance(self.init, str):
                start_rows = count_blocks(X)
            rng = generator(self.random_state)
            starts = [
                (self._first_dictionary(start_rows, start_rng, weights), start_rng)
                for start_rng in start_generators(rng, self._n_starts())
            ]
            self.coder_ = self._coder(*starts[0][0].atoms.shape)
            self.dictionary_ = self._learn(starts, rows, weights)
        return self

    def _refuse_blocks_for_codes(self) -> None:
        """Refuse blocks of rows if all codes must be in memory together."""
        if self._containers != "memory":
            return
        update = getattr(self, "update", None)
        is_steady = resolve_schedule(self.schedule).steady
        raise ValueError(
            f"{type(self).__name__} with update={update!r} and steady={is_steady} "
            "needs all codes at once and cannot learn from blocks: set "
            "update='ksvd-parallel' or use MOD, without steady"
        )

    def _first_dictionary(
        self, X: Array, rng: np.random.Generator, weights: Weights = None
    ) -> ExplicitDictionary:
        """Return the dictionary before the first iteration."""
        X = fill_rows_with_means(X, weights)
        # rows of a memory map are on the host here
        if self.n_components is None and not isinstance(self.init, str):
            return ExplicitDictionary(to_device(atoms_from_array(self.init, X)))
        # counting the usable rows is a pass over X
        needs_count = self.n_components is None
        n_usable = NonzeroRows.find(X).count(weights) if needs_count else X.shape[0]
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
        return map_codes(decode, codes, self.components_)


class LinearLearner(BatchLearner, LinearAtoms):
    """A batch learner whose atoms are rows of a matrix; a subclass adds the update."""

    @property
    def _containers(self) -> Containers:
        is_steady = resolve_schedule(self.schedule).steady
        needs_codes = is_steady or self._atom_update().needs == "codes"
        return "memory" if needs_codes else "dask"
