"""`BatchLearner` is the base class of learners that code all samples at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..coders import resolve_coder
from ..contracts import Array, AtomUpdate, Dictionary, SparseCoder
from ..data.missing import has_missing
from ..data.weights import Weights
from ..io.checkpoint import Checkpoint
from ..updates import resolve_update
from .base import DictionaryLearner
from .code_and_update import CodeAndUpdate, MonotoneCodeAndUpdate, MultiStart
from .loop import Monitor, iterate
from .schedule import resolve_schedule


class BatchLearner(DictionaryLearner):
    """A learner that codes all samples and then updates all atoms, in each iteration.

    A subclass defines `_atom_update`, and a `fit` that sets `coder_` and calls `_learn`
    with the first dictionary.
    """

    @abstractmethod
    def _atom_update(self) -> AtomUpdate:
        """Return the rule that updates the atoms."""

    def _named_part(self, name: str, value: Any) -> Any:
        if name == "update" and isinstance(value, str):
            return ksvd_update(value, self.coder)
        return super()._named_part(name, value)

    def _needs_all_codes(self) -> bool:
        """Whether the codes of all samples must be in memory together."""
        is_steady = resolve_schedule(self.schedule).steady
        return is_steady or self._atom_update().needs == "codes"

    def _learn(
        self,
        starts: Sequence[tuple[Dictionary, np.random.Generator]],
        X: Array,
        weights: Weights = None,
    ) -> Any:
        """Code and update from each start; return the dictionary with the least error.

        The history is that of the best fit.
        """
        schedule, update = resolve_schedule(self.schedule), self._atom_update()
        if schedule.steady:
            check_monotone_fit(self.coder_, X)
        first_start, _ = starts[0]
        checkpoint = Checkpoint.of(self, samples=X, start=first_start, weights=weights)
        alternation_class = MonotoneCodeAndUpdate if schedule.steady else CodeAndUpdate
        fits = [
            alternation_class(
                start, X, self.coder_, update, rng, weights, schedule, self.max_iter
            )
            for start, rng in starts
        ]
        alternation = fits[0] if len(fits) == 1 else MultiStart(fits, self.max_iter)
        monitor = Monitor.of(self, schedule=schedule)
        self.history_, self.n_iter_ = iterate(alternation, monitor, checkpoint, X)
        return alternation.dictionary


def ksvd_update(
    update: str | AtomUpdate, coder: str | SparseCoder | None
) -> AtomUpdate:
    """Return the update of a name; codes stay non-negative if those of the coder are.

    An `AtomUpdate` is returned unchanged.
    """
    rule = resolve_update(update)
    if isinstance(update, AtomUpdate) or "positive" not in rule.get_params():
        return rule
    coder = resolve_coder(coder) if isinstance(coder, str) else coder
    return rule.set_params(positive=bool(getattr(coder, "positive", False)))


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
