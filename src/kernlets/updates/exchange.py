"""Exchange of the atoms that explain least, which helps to leave local minima."""

from __future__ import annotations

import numpy as np

from ..coders.coded_sums import summarize_codes
from ..contracts import Array, Coded, Dictionary, Statistics
from ..numerics.arrays import diagonal, double, eps, index_like, namespace, to_numpy
from ..numerics.scaling import least_energy
from .refresh import sample_atoms

NEAR = 0.99  # a sample with a larger cosine to an atom is not new


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
    """Σᵢ γᵢⱼ² of each atom, the worst represented samples, and their errors."""
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
    """Indices in `worst` of samples that are neither explained nor atoms already."""
    if len(errors) == 0:
        return np.zeros(0, dtype=int)
    energy, like = to_numpy(double(dictionary.energy(worst))), dictionary.weights
    rounding = np.maximum(10 * eps(like) * energy, least_energy(like))
    peaks = np.abs(to_numpy(double(dictionary.correlate(worst)))).max(axis=1)
    is_far = peaks <= NEAR * np.sqrt(energy)
    return np.flatnonzero(is_far & (errors > rounding))
