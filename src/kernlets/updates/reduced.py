"""The update of kernel dictionaries over few anchors.

All vectors are in the span of φ(anchors). In an orthonormal basis of it samples and
atoms are short rows of numbers, so the K-SVD sweep of explicit dictionaries can be
used unchanged. `descent.py` moves the anchors, and `learners/reduced.py` chooses the
first ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ..base.constraints import NOT_NEGATIVE
from ..coders import OMP
from ..contracts import Array, Coded, SparseCoder, SparseCodes, Step
from ..dictionaries import AnchoredDictionary
from ..loops.table import ksvd_sweep, subtract_codes
from ..numerics.arrays import (
    as_like,
    double,
    index_like,
    namespace,
    to_numpy,
)
from .descent import AnchorDescent, KernelTerm, LinearTerm, ObjectiveSum
from .ksvd import KSVDUpdate, unweight_codes, weight_rows, weighted_sum
from .replace import LIMITS


class AnchoredUpdate(KSVDUpdate):
    """A K-SVD sweep in the span of the anchors, RKDL eqs. (4) and (5); then they move.

    Parameters
    ----------
    restrict : bool
        Update the samples that use an atom, as the sparsity constraint of eq. (3)
        demands; otherwise all of them, which makes the codes dense.
    descent : AnchorDescent, optional
        How the anchors move; they stay without it.
    linear_weight, linear_coder : float, SparseCoder
        λ in eq. (8), and the pursuit for the codes X there: by default `OMP` with 5
        non-zeros, but at most a quarter of the features.
    exact, min_uses, max_coherence, redraw
        As in `KSVDUpdate`; the samples that replace atoms are those worst represented
        within the span, and random atoms are combinations of all anchors.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LIMITS,
        "exact": ["boolean"],
        "restrict": ["boolean"],
        "descent": [AnchorDescent, None],
        "linear_weight": [NOT_NEGATIVE],
        "linear_coder": [SparseCoder, None],
        "redraw": ["boolean"],
    }

    def __init__(
        self,
        restrict: bool = True,
        descent: AnchorDescent | None = None,
        *,
        linear_weight: float = 0.0,
        linear_coder: SparseCoder | None = None,
        exact: bool = False,
        min_uses: int = 4,
        max_coherence: float = 0.99,
        redraw: bool = False,
    ) -> None:
        self.restrict = restrict
        self.descent = descent
        self.linear_weight = linear_weight
        self.linear_coder = linear_coder
        self.exact = exact
        self.min_uses = min_uses
        self.max_coherence = max_coherence
        self.redraw = redraw

    def step(self, dictionary: Any, coded: Coded, rng: np.random.Generator) -> Step:
        codes = coded.codes if self.restrict else _with_all_slots(coded.codes)
        recoded = replace(coded, codes=codes)
        dictionary, codes = self._sweep(dictionary, recoded, rng)
        if self.descent is not None:
            recoded = replace(coded, codes=codes)
            dictionary = self._move_anchors(dictionary, recoded, self.descent)
        errors = to_numpy(dictionary.errors_in_span(codes))
        outside = to_numpy(double(dictionary.outside))
        total = sum(
            weighted_sum(squares, coded.weights) for squares in (errors, outside)
        )
        unit_atoms = dictionary.with_unit_atoms()
        refreshed: Any = self._refresh(unit_atoms, coded, errors, rng)
        return Step(refreshed.with_unit_atoms(), total)

    def _draw(
        self, dictionary: AnchoredDictionary, count: int, rng: np.random.Generator
    ) -> Array:
        anchors = dictionary.anchors
        coefs = as_like(rng.standard_normal((count, len(anchors))), anchors)
        return coefs @ (dictionary.kernel(anchors) @ dictionary.basis)

    def _sweep(
        self,
        dictionary: AnchoredDictionary,
        coded: Coded,
        rng: np.random.Generator,
    ) -> tuple[AnchoredDictionary, SparseCodes]:
        """Update each atom together with its coefficients, one atom after the other."""
        xp, codes = namespace(dictionary.atoms), coded.codes
        order = index_like(rng.permutation(dictionary.n_atoms), dictionary.atoms)
        atoms, values = (
            xp.asarray(array, copy=True) for array in (dictionary.atoms, codes.values)
        )
        residual = subtract_codes(dictionary.features, codes.indices, values, atoms)
        residual, values = weight_rows(coded.weights, residual, values)
        ksvd_sweep(residual, atoms, codes.indices, values, order, self.exact)
        values = unweight_codes(coded, values)
        return dictionary.with_weights(atoms), replace(codes, values=values)

    def _move_anchors(
        self,
        dictionary: AnchoredDictionary,
        coded: Coded,
        descent: AnchorDescent,
    ) -> AnchoredDictionary:
        start, samples = dictionary.anchors, dictionary.samples
        W = coded.codes.toarray() @ dictionary.coefs
        kernel_and_samples = dictionary.kernel, samples, dictionary.energies
        kernel = KernelTerm(*kernel_and_samples, W, coded.weights)
        linear = self._linear_term(samples, start, coded.weights, descent)
        objective = kernel if linear is None else ObjectiveSum(kernel, linear)
        moved = dictionary.with_anchors(descent.run(objective, start))
        if linear is None:
            return moved
        linear_errors = (*moved.linear_errors, linear.error(moved.anchors))
        return replace(moved, linear_errors=linear_errors)

    def _linear_term(
        self,
        samples: Array,
        anchors: Array,
        weights: np.ndarray | None,
        descent: AnchorDescent,
    ) -> LinearTerm | None:
        if not self.linear_weight:
            return None
        n_nonzero = max(1, min(5, samples.shape[1] // 4, len(anchors)))
        coder = OMP(n_nonzero) if self.linear_coder is None else self.linear_coder
        weight = self.linear_weight * descent.linear_share
        return LinearTerm(samples, anchors, coder, weight, weights)


def _with_all_slots(codes: SparseCodes) -> SparseCodes:
    """Give the codes a slot for every atom, with zero for atoms that were not used."""
    slots = np.tile(np.arange(codes.n_atoms), (len(codes), 1))
    return SparseCodes(as_like(slots, codes.indices), codes.toarray(), codes.n_atoms)
