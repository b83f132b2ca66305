"""`MonotoneCodeAndUpdate` is the step of batch learners whose error never rises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..coders import encode
from ..coders.bookkeeping import pad_slots, squared_residual
from ..coders.coded_sums import statistics
from ..contracts import (
    UNUSED,
    Array,
    Coded,
    Dictionary,
    SparseCoder,
    SparseCodes,
    Statistics,
    Step,
)
from ..data.block_loop import block_slices
from ..io.checkpoint import fitting, learned_fields
from ..loops.codes import summable
from ..numerics.arrays import as_like, index_like, namespace, to_numpy
from ..updates.ksvd import weighted_sum
from .loop import CodeAndUpdate


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
