"""The alternation whose error never rises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..backend.arrays import as_like, index_like, namespace, to_numpy
from ..backend.block_loop import block_slices
from ..backend.codes import summable
from ..core import (
    UNUSED,
    Array,
    Coded,
    Dictionary,
    SparseCoder,
    SparseCodes,
    Statistics,
    Step,
)
from ..persistence.checkpoint import fitting, learned_fields
from ..pursuits import encode
from ..pursuits.bookkeeping import squared_residual, widened
from ..pursuits.coded_sums import statistics
from ..updates.ksvd import weighted_sum
from .iterate import CodeAndUpdate


class SteadyCodeAndUpdate(CodeAndUpdate):
    """`CodeAndUpdate` that remembers the codes of all samples.

    A pursuit is greedy: its code for better atoms may be worse than the code before,
    which is then kept. If the error is higher with atoms that have been replaced, the
    replacement is taken back.
    """

    codes: SparseCodes | None = None  # of the last update
    before: Dictionary | None = None  # its atoms, if some of them were replaced then
    error: float = np.inf

    def _coded(self, coder: SparseCoder) -> Coded | Statistics:
        codes = self._best_codes(coder)
        if self.update.needs == "codes":
            return Coded(self.X, codes, self.weights)
        self.codes = codes
        return statistics(self.dictionary, self.X, summable(codes), self.weights)

    def _best_codes(self, coder: SparseCoder) -> SparseCodes:
        best = self._better(encode(self.dictionary, coder, self.X))
        if self.before is None or self._total(best) <= self.error:
            return best
        self.dictionary, self.before = self.before, None
        return self._better(encode(self.dictionary, coder, self.X))

    def _better(self, new: SparseCodes) -> SparseCodes:
        """Of each sample the better of the new code and the one before."""
        if self.codes is None:
            return new
        old = replace(
            self.codes, residual=code_errors(self.dictionary, self.X, self.codes)
        )
        return better_codes(new, old)

    def _total(self, codes: SparseCodes) -> float:
        return weighted_sum(to_numpy(codes.residual), self.weights)

    def _note(self, step: Step) -> None:
        replaced = step.before is not None and step.before is not self.dictionary
        self.before = step.before if replaced else None
        self.error = step.error
        if step.codes is not None:
            self.codes = step.codes
        elif step.lengths is not None and self.codes is not None:
            self.codes = _lengthened(self.codes, step.lengths)

    def state(self) -> dict[str, Any]:
        codes, before = self.codes, self.before
        kept = {}
        if codes is not None:
            kept = {"places": codes.indices, "values": codes.values}
        former = {} if before is None else {"before": learned_fields(before)}
        return {**super().state(), "error": self.error, **kept, **former}

    def resume(self, state: dict[str, Any]) -> None:
        start: Any = self.dictionary
        super().resume(state)
        self.error = float(state["error"])
        if "places" in state:
            shape = state["places"].shape
            if state["values"].shape != shape or shape[0] != self.X.shape[0]:
                raise ValueError("it has codes of other samples")
            places = index_like(state["places"], start.weights)
            values = as_like(state["values"], start.weights)
            self.codes = SparseCodes(places, values, start.n_atoms)
        if "before" in state:
            self.before = fitting(replace(start, **state["before"]), start, free="r")


def better_codes(first: SparseCodes, second: SparseCodes) -> SparseCodes:
    """Of each sample the code with the smaller residual, the first of equal ones."""
    xp, width = namespace(first.values), max(first.width, second.width)
    keep: Array = xp.less_equal(first.residual, second.residual)
    parts = [
        (widened(codes.indices, width, UNUSED), widened(codes.values, width, 0))
        for codes in (first, second)
    ]
    indices, values = (
        xp.where(keep[:, None], *pair) for pair in zip(*parts, strict=True)
    )
    residual = xp.where(keep, first.residual, second.residual)
    return SparseCodes(indices, values, first.n_atoms, residual)


def code_errors(dictionary: Dictionary, X: Array, codes: SparseCodes) -> Array:  # (n,)
    """Squared errors of samples with given codes, in blocks of rows."""
    gram, errors = dictionary.gram(), []
    for rows in block_slices(len(codes), 4 * dictionary.row_bytes):
        part = SparseCodes(codes.indices[rows], codes.values[rows], codes.n_atoms)
        corr, energy = dictionary.correlate(X[rows]), dictionary.energy(X[rows])
        errors.append(squared_residual(gram, corr, energy, part.toarray()))
    return namespace(errors[0]).concat(errors)


def _lengthened(codes: SparseCodes, lengths: Array) -> SparseCodes:
    """Codes for atoms of unit norm, from those for atoms of these lengths."""
    xp, used = namespace(codes.values), codes.indices >= 0
    places = xp.where(used, codes.indices, 0)
    values = codes.values * as_like(lengths, codes.values)[places]
    return replace(codes, values=xp.where(used, values, 0.0), residual=None)
