"""Badly represented samples replace atoms that are not used, copies or of little use.

`refresh` replaces atoms without uses, and copies of others, after each update.
`exchange_atoms` replaces the atoms that explain least, to leave local minima.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.constraints import AT_LEAST_0, NOT_NEGATIVE
from ..coders.encoding import summarize_codes
from ..contracts import Array, Coded, Dictionary, Statistics
from ..numerics.arrays import (
    as_like,
    diagonal,
    double,
    eps,
    index_like,
    namespace,
    to_numpy,
)
from ..numerics.scaling import least_energy

NEAR = 0.99  # a sample with a larger cosine to an atom is not new

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
    """Return the indices of atoms with fewer uses, and of copies of others."""
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
    indices, atoms = replacements(
        dictionary, uses, worst, worst_error, min_uses, max_coherence
    )
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
    """Return indices of useless atoms, and samples as atoms that replace them.

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
    return refresh(
        dictionary,
        coded.uses,
        coded.worst,
        coded.worst_error,
        min_uses,
        max_coherence,
    )


def put_atoms(
    dictionary: Dictionary,
    atom_indices: np.ndarray,  # (r,)
    new_weights: Array,  # (r, width) of any norm but 0
) -> Dictionary:
    """Put other atoms, scaled to unit norm, in place of some."""
    xp = namespace(dictionary.weights)
    weights = xp.asarray(dictionary.weights, copy=True)
    weights[index_like(atom_indices, weights)] = as_like(new_weights, weights)
    moved = dictionary.with_weights(weights)
    is_new = np.isin(np.arange(dictionary.n_atoms), atom_indices)
    norms = xp.sqrt(diagonal(moved.gram()))
    return moved.rescaled(1 / xp.where(as_like(is_new, norms) > 0, norms, 1.0))


def sample_atoms(dictionary: Dictionary, X: Array) -> Array:  # (n, r)
    """Convert samples to atoms of unit norm, in the dictionary's coordinates."""
    energy = dictionary.energy(X)
    return dictionary.coordinates(X) / namespace(energy).sqrt(energy)[:, None]


def exchange_atoms(
    dictionary: Dictionary, coded: Coded | Statistics, count: int
) -> Dictionary:
    """Replace the `count` atoms of least value by the worst represented samples.

    The value of an atom is Σᵢ γᵢⱼ² (1 − maxₖ cos²(dⱼ, dₖ)): what its codes explain that
    the atom most like it cannot. If one atom stands for two true atoms, another atom
    explains little; a sample in its place lets training find both.
    """
    power, worst, errors = _power_and_worst(coded)
    sample_indices = _new_samples(dictionary, worst, errors)[:count]
    cosines = np.abs(to_numpy(double(dictionary.gram())))
    np.fill_diagonal(cosines, 0)
    value = power * (1 - np.minimum(cosines.max(axis=1), 1) ** 2)
    atom_indices = np.argsort(value, kind="stable")[: len(sample_indices)]
    if len(atom_indices) == 0:
        return dictionary
    weights = namespace(dictionary.weights).asarray(dictionary.weights, copy=True)
    atoms = sample_atoms(dictionary, worst[index_like(sample_indices, worst)])
    weights[index_like(atom_indices, weights)] = atoms
    return dictionary.with_weights(weights)


def _power_and_worst(coded: Coded | Statistics) -> tuple[np.ndarray, Array, np.ndarray]:
    """Return Σᵢ γᵢⱼ² of each atom, the worst represented samples, and their errors."""
    if isinstance(coded, Statistics):
        power = to_numpy(double(diagonal(coded.codes_gram)))
        return power, coded.worst, coded.worst_error
    codes, weights = coded.codes, coded.weights
    sums = summarize_codes(coded.X, codes, weights)
    indices, values = to_numpy(codes.indices), to_numpy(codes.values)
    is_used = indices >= 0
    squares = values[is_used].astype(np.float64) ** 2
    if weights is not None:
        squares *= np.broadcast_to(weights[:, None], is_used.shape)[is_used]
    power = np.bincount(indices[is_used], squares, minlength=codes.n_atoms)
    return power, sums.worst, sums.worst_error


def _new_samples(
    dictionary: Dictionary, worst: Array, errors: np.ndarray
) -> np.ndarray:
    """Return the indices of samples that are neither explained nor atoms already."""
    if len(errors) == 0:
        return np.zeros(0, dtype=int)
    energy = to_numpy(double(dictionary.energy(worst)))
    rounding = rounding_errors(energy, dictionary.weights)
    peaks = np.abs(to_numpy(double(dictionary.correlate(worst)))).max(axis=1)
    is_far = peaks <= NEAR * np.sqrt(energy)
    return np.flatnonzero(is_far & (errors > rounding))


def rounding_errors(energies: np.ndarray, like: Array) -> np.ndarray:  # (n,)
    """Return the squared errors up to which samples are represented exactly."""
    return np.maximum(10 * eps(like) * energies, least_energy(like))
