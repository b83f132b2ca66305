"""The base classes of learners that use all samples in every iteration."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..coders import resolve_coder
from ..contracts import Array, AtomUpdate, Dictionary, SparseCoder
from ..data.missing import has_missing
from ..data.weights import Weights, weights_for_digest
from ..io.checkpoint import Checkpoint
from ..updates import resolve_update
from .base import DictionaryLearner
from .linear_atoms import LinearAtoms
from .loop import CodeAndUpdate, Monitor, iterate
from .monotone import MonotoneCodeAndUpdate
from .multistart import MultiStart
from .schedule import Schedule


class BatchLearner(DictionaryLearner):
    """A learner that codes all samples and then updates all atoms, in each iteration.

    A subclass defines `_atom_update`, and a `fit` that calls `_learn` with the first
    dictionary.
    """

    @abstractmethod
    def _atom_update(self) -> AtomUpdate:
        """Return the rule that updates the atoms."""

    def _named_part(self, name: str, text: str) -> Any:
        if name == "update":
            positive_atoms = getattr(self, "positive_atoms", False)
            return ksvd_update(text, self.coder, positive_atoms)
        return super()._named_part(name, text)

    def _needs_all_codes(self) -> bool:
        return self._is_steady() or self._atom_update().needs == "codes"

    def _is_steady(self) -> bool:
        """Whether the error may never rise."""
        return bool(getattr(self, "steady", False))

    def _learn(
        self,
        start: Dictionary,
        X: Array,
        n_features: int,
        rng: np.random.Generator,
        weights: Weights = None,
        other_starts: Sequence[tuple[Dictionary, np.random.Generator]] = (),
    ) -> Any:
        """Run the alternation, set its history, and return the last dictionary.

        With other starts the best of all is returned (`MultiStart`).
        """
        self.coder_ = self._coder(start.n_atoms, n_features)
        inputs = {"samples": X, "start": start, **weights_for_digest(weights)}
        checkpoint = Checkpoint.of(self, **inputs)
        update, schedule = self._atom_update(), Schedule.of(self)
        alternation_class = CodeAndUpdate
        if self._is_steady():
            alternation_class = MonotoneCodeAndUpdate
            check_monotone_fit(self.coder_, X)

        def new_alternation(
            first: Dictionary, rng: np.random.Generator
        ) -> CodeAndUpdate:
            return alternation_class(
                first, X, self.coder_, update, rng, schedule, weights
            )

        fits = [
            new_alternation(*start_and_rng)
            for start_and_rng in ((start, rng), *other_starts)
        ]
        alternation = fits[0] if len(fits) == 1 else MultiStart(fits, self.max_iter)
        self.history_, self.n_iter_ = iterate(
            alternation, Monitor.of(self), checkpoint, X
        )
        return alternation.dictionary


def ksvd_update(
    update: str | AtomUpdate,
    coder: str | SparseCoder | None,
    positive_atoms: bool = False,
) -> AtomUpdate:
    """Return the update of a name; codes stay non-negative if those of the coder are.

    An `AtomUpdate` is returned unchanged.
    """
    rule = resolve_update(update)
    if isinstance(update, AtomUpdate):
        return rule
    parameters = rule.get_params()
    if positive_atoms and "positive_atoms" not in parameters:
        raise ValueError(
            f"update={update!r} does not keep atoms non-negative: use 'ksvd' or "
            "'ksvd-parallel', or leave positive_atoms out"
        )
    coder = resolve_coder(coder) if isinstance(coder, str) else coder
    positive = bool(getattr(coder, "positive", False))
    signs = {"positive": positive, "positive_atoms": positive_atoms}
    return rule.set_params(**{k: v for k, v in signs.items() if k in parameters})


def check_monotone_fit(coder: SparseCoder, X: Array) -> None:
    """Refuse a coder and samples for which ``steady=True`` cannot compare codes."""
    if has_missing(X):
        raise ValueError(
            "steady=True needs rows without missing values: fill them in, e.g. with "
            "kernlets.DictionaryImputer, or leave steady out"
        )
    if getattr(coder, "n_nonzero_coefs", None) is None:
        raise ValueError(
            f"steady=True compares errors of codes with a number of non-zeros, such as "
            f"those of OMP(5), and {coder!r} has none: leave steady out"
        )


class LinearLearner(BatchLearner, LinearAtoms):
    """A batch learner whose atoms are rows of a matrix; a subclass adds the update."""

    def _check_blocks(self) -> None:
        if self._needs_all_codes():
            update = getattr(self, "update", None)
            raise ValueError(
                f"{type(self).__name__} with update={update!r} and steady="
                f"{self._is_steady()} needs all codes at once and cannot learn from "
                "blocks: set update='ksvd-parallel' or use MOD, without steady"
            )
