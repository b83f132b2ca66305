"""Updates that solve for all atoms at once, from sums over samples."""

from __future__ import annotations

import numpy as np

from ..backend.arrays import double, is_torch, namespace
from ..core import Array, AtomUpdate, Dictionary, Statistics, Step
from .refresh import refresh


class MODUpdate(AtomUpdate):
    """Method of optimal directions: D = (ΓᵀΓ)⁺ ΓᵀX, eq. (4) of LKDL.

    The pseudo-inverse is taken by eigenvalues in float64, so that codes without full
    rank are no trouble. Atoms that no sample uses keep their place, then give way to
    badly represented samples.

    Parameters
    ----------
    min_uses, max_coherence : int, float
        As in `KSVDUpdate`.
    """

    needs = "statistics"

    def __init__(self, min_uses: int = 1, max_coherence: float = 0.99) -> None:
        self.min_uses = min_uses
        self.max_coherence = max_coherence

    def step(
        self, dictionary: Dictionary, coded: Statistics, rng: np.random.Generator
    ) -> Step:
        weights = least_squares(coded.codes_gram, coded.cross, dictionary.weights)
        error = coded.error + _change(coded, dictionary.weights, weights, dictionary)
        dictionary = _normalized(dictionary.with_weights(weights), dictionary)
        dictionary = refresh(
            dictionary,
            coded.uses,
            coded.worst,
            coded.worst_error,
            self.min_uses,
            self.max_coherence,
        )
        return Step(dictionary, error)


def least_squares(
    codes_gram: Array,  # (m, m)
    cross: Array,  # (m, r)
    start: Array,  # (m, r)
) -> Array:  # (m, r)
    """The solution of codes_gram · D = cross nearest to `start`."""
    xp = namespace(start)
    gram = double(codes_gram)
    values, vectors = xp.linalg.eigh(gram)
    cut = xp.max(xp.abs(values)) * gram.shape[0] * xp.finfo(gram.dtype).eps
    inverse = xp.where(values > cut, 1 / xp.where(values > cut, values, 1.0), 0.0)
    gap = double(cross) - gram @ double(start)
    step = (vectors * inverse) @ (vectors.T @ gap)
    return xp.astype(double(start) + step, start.dtype)


def _change(
    coded: Statistics, before: Array, after: Array, dictionary: Dictionary
) -> float:
    """Change of the squared error when the atoms move at fixed codes."""
    return _quadratic(coded, after, dictionary) - _quadratic(coded, before, dictionary)


def _quadratic(coded: Statistics, weights: Array, dictionary: Dictionary) -> float:
    """⟨ΓᵀΓ W − 2 Γᵀ coordinates, W⟩ in the metric: the error less the energy."""
    weights = double(weights)
    metric = dictionary.metric()
    gap = double(coded.codes_gram) @ weights - 2 * double(coded.cross)
    if metric is not None:
        gap = gap @ double(metric)
    return float((gap * weights).sum())


def _normalized(dictionary: Dictionary, previous: Dictionary) -> Dictionary:
    """Unit norms; an atom that came out as zero keeps its previous direction."""
    xp = namespace(dictionary.weights)
    gram = dictionary.gram()
    energy = gram.diagonal() if is_torch(gram) else np.diagonal(gram)
    zero = energy <= 0
    weights = xp.where(zero[:, None], previous.weights, dictionary.weights)
    norms = xp.sqrt(xp.where(zero, 1.0, energy))
    return dictionary.with_weights(weights / norms[:, None])
