"""Replacement of unused or duplicate atoms by badly represented samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.constraints import AT_LEAST_0, NOT_NEGATIVE
from ..contracts import Array, Dictionary, Statistics
from ..numerics.arrays import eps, index_like, namespace, to_numpy
from ..numerics.scaling import least_energy

#: Constraints on the parameters of updates that replace useless atoms.
LIMITS: dict[str, list[Any]] = {
    "min_uses": [AT_LEAST_0],
    "max_coherence": [NOT_NEGATIVE],
}


def useless_atoms(
    gram: Array,  # (m, m)
    uses: np.ndarray,  # (m,)
    min_uses: int,
    max_coherence: float,
) -> np.ndarray:
    """Indices of atoms used fewer than `min_uses` times, and of copies of others."""
    xp = namespace(gram)
    close = xp.tril(xp.abs(gram), k=-1) > max_coherence
    useless = uses < min_uses
    for j in np.flatnonzero(to_numpy(xp.any(close, axis=1))):
        useless[j] |= bool((to_numpy(close[j, :j]) & ~useless[:j]).any())
    return np.flatnonzero(useless)


def refresh(
    dictionary: Dictionary,
    uses: np.ndarray,  # (m,)
    worst: Array,  # (w, p) samples, worst represented first
    worst_error: np.ndarray,  # (w,)
    min_uses: int = 4,
    max_coherence: float = 0.99,
) -> Dictionary:
    """Put the worst represented samples, normalised, in place of useless atoms."""
    if len(worst_error) == 0:
        return dictionary
    usage = uses, worst, worst_error
    indices, atoms = replacements(dictionary, *usage, min_uses, max_coherence)
    if len(indices) == 0:
        return dictionary
    weights = namespace(dictionary.weights).asarray(dictionary.weights, copy=True)
    weights[indices] = atoms
    return dictionary.with_weights(weights)


def replacements(
    dictionary: Dictionary,
    uses: np.ndarray,  # (m,)
    worst: Array,  # (w, p)
    worst_error: np.ndarray,  # (w,)
    min_uses: int,
    max_coherence: float,
) -> tuple[Array, Array]:
    """Indices of useless atoms, and the samples that `refresh` puts there as atoms.

    The practice of K-SVD as published by its authors; a sample that is already
    represented to rounding never becomes an atom.
    """
    indices = useless_atoms(dictionary.gram(), uses, min_uses, max_coherence)
    energy = to_numpy(dictionary.energy(worst))
    like = dictionary.weights
    # a sample whose squares underflow is not usable either
    rounding = np.maximum(10 * eps(like) * energy, least_energy(like))
    usable = np.flatnonzero(worst_error > rounding)[: len(indices)]
    indices = index_like(indices[: len(usable)], dictionary.weights)
    return indices, sample_atoms(dictionary, worst[index_like(usable, worst)])


def refresh_from(
    coded: Statistics, dictionary: Dictionary, min_uses: int, max_coherence: float
) -> Dictionary:
    """Call `refresh` with sums over samples."""
    usage = coded.uses, coded.worst, coded.worst_error
    return refresh(dictionary, *usage, min_uses, max_coherence)


def sample_atoms(dictionary: Dictionary, X: Array) -> Array:  # (n, r)
    """Convert samples to atoms of unit norm, in the dictionary's coordinates."""
    energy = dictionary.energy(X)
    return dictionary.coordinates(X) / namespace(energy).sqrt(energy)[:, None]
