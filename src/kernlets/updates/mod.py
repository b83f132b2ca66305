"""The MOD update, which solves for all atoms at once from sums over samples."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..contracts import Array, AtomUpdate, Dictionary, Statistics, Step
from ..numerics.arrays import diagonal, double, inner, namespace
from ..numerics.products import matmul
from ..numerics.threads import threads_if_large
from .replace import LIMITS, refresh_from

COLUMNS = 1024  # right-hand sides solved at once, so that float64 copies stay small


class MODUpdate(AtomUpdate):
    """Method of optimal directions: D = (ΓᵀΓ)⁺ ΓᵀX, eq. (4) of LKDL.

    The pseudo-inverse is computed by eigenvalues in float64, so codes need not have
    full rank. Atoms that no sample uses are replaced by badly represented samples.

    Parameters
    ----------
    min_uses, max_coherence : int, float
        As in `KSVDUpdate`.
    """

    needs = "statistics"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = LIMITS

    def __init__(self, min_uses: int = 1, max_coherence: float = 0.99) -> None:
        self.min_uses = min_uses
        self.max_coherence = max_coherence

    def step(
        self, dictionary: Dictionary, coded: Statistics, rng: np.random.Generator
    ) -> Step:
        weights = least_squares(coded.codes_gram, coded.cross, dictionary.weights)
        moved = dictionary.with_weights(weights)
        error = coded.error + fit_term(coded, moved) - fit_term(coded, dictionary)
        improved = normalize(moved, dictionary)
        dictionary = refresh_from(coded, improved, self.min_uses, self.max_coherence)
        return Step(dictionary, error, improved, lengths=atom_lengths(moved))


def least_squares(
    codes_gram: Array,  # (m, m)
    cross: Array,  # (m, r)
    start: Array,  # (m, r)
) -> Array:  # (m, r)
    """Return the solution of codes_gram · D = cross nearest to `start`."""
    xp = namespace(start)
    gram = double(codes_gram)
    with threads_if_large(gram.shape[0]):
        values, vectors = xp.linalg.eigh(gram)
    floor = xp.max(xp.abs(values)) * gram.shape[0] * xp.finfo(gram.dtype).eps
    inverse = xp.where(values > floor, 1 / xp.where(values > floor, values, 1.0), 0.0)
    inverse = matmul(vectors * inverse, vectors.T)
    solution = xp.asarray(start, copy=True)
    for begin in range(0, start.shape[1], COLUMNS):
        columns = slice(begin, begin + COLUMNS)
        residual = double(cross[:, columns]) - matmul(gram, double(start[:, columns]))
        solution[:, columns] += xp.astype(matmul(inverse, residual), start.dtype)
    return solution


def fit_term(coded: Statistics, dictionary: Dictionary) -> float:
    """Return ⟨ΓᵀΓ, gram⟩ − 2⟨Γᵀ coordinates, dual⟩, the error less the energy."""
    quadratic = (double(coded.codes_gram) * double(dictionary.gram())).sum()
    return float(quadratic) - 2 * inner(coded.cross, dictionary.dual())


def atom_lengths(dictionary: Dictionary) -> Array:  # (m,)
    """Return the norms of the atoms, which are factors of codes for unit norms."""
    xp, energy = namespace(dictionary.weights), diagonal(dictionary.gram())
    return xp.sqrt(xp.clip(energy, 0, None))


def normalize(dictionary: Dictionary, previous: Dictionary) -> Dictionary:
    """Scale atoms to unit norm; an atom that is zero keeps its previous direction."""
    xp = namespace(dictionary.weights)
    energy = diagonal(dictionary.gram())
    zero = energy <= 0
    if bool(xp.any(zero)):
        weights = xp.where(zero[:, None], previous.weights, dictionary.weights)
        dictionary = dictionary.with_weights(weights)
    return dictionary.rescaled(1 / xp.sqrt(xp.where(zero, 1.0, energy)))
