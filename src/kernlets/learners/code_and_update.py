"""`BatchLearner` codes all samples, then updates all atoms, in each iteration.

`CodeAndUpdate` is the iteration, and `MonotoneCodeAndUpdate` that of fits whose error
may never rise. `MultiStart` runs several fits and drops the worse ones on the way.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from ..coders import encode, resolve_coder
from ..coders.encoding import code_and_sum, statistics
from ..contracts import (
    UNUSED,
    Array,
    AtomUpdate,
    Coded,
    Dictionary,
    SparseCoder,
    SparseCodes,
    Statistics,
    Step,
)
from ..data.block_loop import block_slices
from ..data.missing import has_missing
from ..data.weights import Weights
from ..io.checkpoint import Checkpoint, fitting, learned_fields
from ..loops.codes import pad_slots, squared_residual, summable
from ..numerics.arrays import as_like, index_like, namespace, scalers_for, to_numpy
from ..numerics.scaling import all_finite
from ..updates import resolve_update
from ..updates.ksvd import clip_negative, weighted_sum
from ..updates.replace import exchange_atoms
from .base import DictionaryLearner
from .loop import Alternation, Monitor, iterate
from .schedule import Schedule, resolve_schedule, warm_up_coder


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
            check_monotone_fit(self.coder_, update, X)
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
        monitor = Monitor.of(self)
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


def check_monotone_fit(coder: SparseCoder, update: AtomUpdate, X: Array) -> None:
    """Refuse an update, a coder or samples with which no fit is ``steady=True``."""
    if update.may_raise_error:
        raise ValueError(
            f"steady=True needs an update that never raises the error, and {update!r} "
            "may: use update='ksvd', or leave steady out"
        )
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


class CodeAndUpdate(Alternation):
    """Codes all samples, then updates the atoms.

    The objective is the mean squared error per sample after the update, before useless
    atoms are replaced.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        X: Array,
        coder: SparseCoder,
        update: AtomUpdate,
        rng: np.random.Generator,
        weights: Weights = None,
        schedule: Schedule | None = None,
        max_iter: int = 1,
    ) -> None:
        self.dictionary, self.X, self.weights = dictionary, X, weights
        self.coder, self.update, self.rng = coder, update, rng
        self.schedule, self.max_iter = schedule or Schedule(), max_iter
        self.n_steps = 0

    def current(self) -> Dictionary:
        return self.dictionary.snapshot()

    def step(self, keep: Callable[[], None]) -> dict[str, float]:
        coder = warm_up_coder(self.coder, self.n_steps, self.schedule.warm_up)
        coded = self._update_input(coder)
        step = self.update.step(self.dictionary, coded, self.rng)
        self.dictionary = step.dictionary
        if self.schedule.is_exchange_due(self.n_steps, self.max_iter):
            self.dictionary = self._exchange_atoms(coded)
        self._record_step(step)
        self.n_steps += 1
        weights = self.dictionary.weights
        if not all_finite(weights):
            raise ValueError(
                f"atoms are not finite in {weights.dtype}: the samples are too large. "
                f"Scale them, e.g. with {scalers_for(weights.dtype)}"
            )
        return {"objective": max(step.error, 0.0) / coded.n_samples}

    def _update_input(self, coder: SparseCoder) -> Coded | Statistics:
        """Return the input of the update: all codes, or sums over blocks of rows."""
        if self.update.needs == "statistics":
            return code_and_sum(self.dictionary, coder, self.X, self.weights)
        codes = encode(self.dictionary, coder, self.X)
        return Coded(self.X, codes, self.weights)

    def _record_step(self, step: Step) -> None:
        """Record more of a step than its atoms, in subclasses."""

    def _exchange_atoms(self, coded: Coded | Statistics) -> Dictionary:
        """Exchange atoms of least value; non-negative atoms stay non-negative."""
        dictionary = exchange_atoms(self.dictionary, coded, self.schedule.exchange)
        if getattr(self.update, "positive_atoms", False):
            dictionary = dictionary.with_weights(clip_negative(dictionary.weights))
        return dictionary

    def state(self) -> dict[str, Any]:
        return {"dictionary": learned_fields(self.dictionary), "rng": self.rng}

    def resume(self, state: dict[str, Any]) -> None:
        self.rng.bit_generator.state = state["rng"].bit_generator.state
        start: Any = self.dictionary
        self.n_steps = len(state["history"]["objective"])
        resumed = replace(start, **state["dictionary"])
        self.dictionary = fitting(resumed, start, free="r")


class MonotoneCodeAndUpdate(CodeAndUpdate):
    """`CodeAndUpdate` that remembers the codes of all samples.

    A pursuit is greedy: its code for better atoms may be worse than the former code,
    which is used then. If atoms have been replaced and the error rises, the former
    atoms are used again.
    """

    codes: SparseCodes | None = None  # of the last update
    former_dictionary: Dictionary | None = None  # whose atoms the update replaced
    error: float = np.inf

    def _update_input(self, coder: SparseCoder) -> Coded | Statistics:
        codes = self._best_codes(coder)
        if self.update.needs == "codes":
            return Coded(self.X, codes, self.weights)
        self.codes = codes
        return statistics(self.dictionary, self.X, summable(codes), self.weights)

    def _best_codes(self, coder: SparseCoder) -> SparseCodes:
        best = self._keep_better_codes(encode(self.dictionary, coder, self.X))
        if self.former_dictionary is None or self._total_error(best) <= self.error:
            return best
        self.dictionary, self.former_dictionary = self.former_dictionary, None
        return self._keep_better_codes(encode(self.dictionary, coder, self.X))

    def _keep_better_codes(self, new_codes: SparseCodes) -> SparseCodes:
        """Return the better of the new and the former code of each sample."""
        if self.codes is None:
            return new_codes
        old_codes = replace(
            self.codes, residual=code_errors(self.dictionary, self.X, self.codes)
        )
        return better_codes(new_codes, old_codes)

    def _total_error(self, codes: SparseCodes) -> float:
        return weighted_sum(to_numpy(codes.residual), self.weights)

    def _record_step(self, step: Step) -> None:
        has_replaced = step.before is not None and step.before is not self.dictionary
        self.former_dictionary = step.before if has_replaced else None
        self.error = step.error
        if step.codes is not None:
            self.codes = step.codes
        elif step.lengths is not None and self.codes is not None:
            self.codes = _scale_codes(self.codes, step.lengths)

    def state(self) -> dict[str, Any]:
        codes, former = self.codes, self.former_dictionary
        code_arrays = {}
        if codes is not None:
            code_arrays = {"places": codes.indices, "values": codes.values}
        former_fields = {} if former is None else {"before": learned_fields(former)}
        return {**super().state(), "error": self.error, **code_arrays, **former_fields}

    def resume(self, state: dict[str, Any]) -> None:
        start: Any = self.dictionary
        super().resume(state)
        self.error = float(state["error"])
        if "places" in state:
            shape = state["places"].shape
            if state["values"].shape != shape or shape[0] != self.X.shape[0]:
                raise ValueError("it has codes of other samples")
            indices = index_like(state["places"], start.weights)
            values = as_like(state["values"], start.weights)
            self.codes = SparseCodes(indices, values, start.n_atoms)
        if "before" in state:
            self.former_dictionary = fitting(
                replace(start, **state["before"]), start, free="r"
            )


def better_codes(first: SparseCodes, second: SparseCodes) -> SparseCodes:
    """Return the code of each sample with the smaller residual, the first if equal."""
    xp, width = namespace(first.values), max(first.width, second.width)
    is_first_better: Array = xp.less_equal(first.residual, second.residual)
    padded = [
        (pad_slots(codes.indices, width, UNUSED), pad_slots(codes.values, width, 0))
        for codes in (first, second)
    ]
    indices, values = (
        xp.where(is_first_better[:, None], *pair) for pair in zip(*padded, strict=True)
    )
    residual = xp.where(is_first_better, first.residual, second.residual)
    return SparseCodes(indices, values, first.n_atoms, residual)


def code_errors(dictionary: Dictionary, X: Array, codes: SparseCodes) -> Array:  # (n,)
    """Compute the squared errors of samples with these codes, by blocks of rows."""
    gram, errors = dictionary.gram(), []
    for rows in block_slices(len(codes), 4 * dictionary.row_bytes):
        block_codes = SparseCodes(
            codes.indices[rows], codes.values[rows], codes.n_atoms
        )
        corr, energy = dictionary.correlate(X[rows]), dictionary.energy(X[rows])
        errors.append(squared_residual(gram, corr, energy, block_codes.toarray()))
    return namespace(errors[0]).concat(errors)


def _scale_codes(codes: SparseCodes, lengths: Array) -> SparseCodes:
    """Convert codes for atoms of these lengths to codes for atoms of unit norm."""
    xp, is_used = namespace(codes.values), codes.indices >= 0
    indices = xp.where(is_used, codes.indices, 0)
    values = codes.values * as_like(lengths, codes.values)[indices]
    return replace(codes, values=xp.where(is_used, values, 0.0), residual=None)


class MultiStart(Alternation):
    """Runs fits from several starts; after each round the worse half is dropped.

    With n starts there are ⌈log₂ n⌉ + 1 rounds of equal length, and one fit runs in the
    last round. The work is about 2n/(log₂ n + 1) times that of one fit. Fits are
    compared by the objective of the last iteration, in which all have the same coder.
    """

    def __init__(self, fits: list[CodeAndUpdate], max_iter: int) -> None:
        self.fits, self.remaining = fits, list(range(len(fits)))
        self.round_length = -(-max_iter // (int(np.ceil(np.log2(len(fits)))) + 1))
        self.objectives = [np.inf] * len(fits)
        self.n_steps = 0

    @property
    def best(self) -> CodeAndUpdate:
        """The fit with the least error, the first one of equal fits."""
        return self.fits[min(self.remaining, key=self.objectives.__getitem__)]

    @property
    def dictionary(self) -> Any:
        return self.best.dictionary

    def current(self) -> Any:
        return self.best.current()

    def step(self, keep: Callable[[], None]) -> dict[str, float]:
        for index in self.remaining:
            self.objectives[index] = self.fits[index].step(keep)["objective"]
        self.n_steps += 1
        if self.n_steps % self.round_length == 0 and len(self.remaining) > 1:
            ranked = sorted(self.remaining, key=self.objectives.__getitem__)
            self.remaining = sorted(ranked[: -(-len(ranked) // 2)])
        return {"objective": min(self.objectives[index] for index in self.remaining)}

    def state(self) -> dict[str, Any]:
        fits = {str(index): self.fits[index].state() for index in self.remaining}
        objectives = {str(index): self.objectives[index] for index in self.remaining}
        return {"fits": fits, "objectives": objectives}

    def resume(self, state: dict[str, Any]) -> None:
        self.remaining = sorted(int(index) for index in state["fits"])
        if not self.remaining or self.remaining[-1] >= len(self.fits):
            raise ValueError("it has fits of other starts")
        for index in self.remaining:
            fit_state = {**state["fits"][str(index)], "history": state["history"]}
            self.fits[index].resume(fit_state)
            self.objectives[index] = float(state["objectives"][str(index)])
        self.n_steps = len(state["history"]["objective"])


def start_generators(rng: np.random.Generator, n: int) -> list[np.random.Generator]:
    """Return n generators; the first is `rng`, and its start does not depend on n."""
    seeds = deepcopy(rng).integers(2**63, size=n - 1).tolist()
    return [rng, *map(np.random.default_rng, seeds)]
