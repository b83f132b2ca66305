"""The K-SVD update: atom by atom, together with the coefficients that use it."""

from __future__ import annotations

import numpy as np

from ..backend import ops
from ..backend.arrays import index_like, namespace, row_norms, to_numpy
from ..core import Array, AtomUpdate, Coded, Dictionary, Step
from .refresh import refresh


class KSVDUpdate(AtomUpdate):
    """Each atom and its coefficients become the best rank-one fit of what is left.

    With E the residual of the samples that use atom d, without d: the exact update is
    E's leading singular pair; the approximate one is d ∝ Eᵀg, then g = E d, one step
    of alternation that never raises the error either.

    Parameters
    ----------
    exact : bool
        Singular value decomposition instead of one step of alternation.
    min_uses, max_coherence : int, float
        After the sweep, atoms used less often, or more coherent with another atom,
        give way to the worst represented samples.
    """

    needs = "codes"

    def __init__(
        self, exact: bool = False, min_uses: int = 4, max_coherence: float = 0.99
    ) -> None:
        self.exact = exact
        self.min_uses = min_uses
        self.max_coherence = max_coherence

    def step(
        self, dictionary: Dictionary, coded: Coded, rng: np.random.Generator
    ) -> Step:
        X, codes = coded.X, coded.codes
        xp = namespace(X)
        atoms = xp.asarray(dictionary.weights, copy=True)
        values = xp.asarray(codes.values, copy=True)
        residual = ops.subtract_codes(X, codes.indices, values, atoms)
        order = index_like(rng.permutation(codes.n_atoms), X)
        ops.ksvd_sweep(residual, atoms, codes.indices, values, order, self.exact)
        errors = to_numpy(row_norms(residual))
        dictionary = dictionary.with_weights(atoms)
        dictionary = self._refreshed(dictionary, X, codes.uses(), errors)
        return Step(dictionary, float(errors.sum(dtype=np.float64)))

    def _refreshed(
        self, dictionary: Dictionary, X: Array, uses: np.ndarray, errors: np.ndarray
    ) -> Dictionary:
        worst = np.argsort(-errors, kind="stable")[: dictionary.n_atoms]
        return refresh(
            dictionary,
            uses,
            X[index_like(worst, X)],
            errors[worst],
            self.min_uses,
            self.max_coherence,
        )
