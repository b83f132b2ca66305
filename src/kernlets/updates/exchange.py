"""Exchange of the atoms that explain least, against ends that are not the best."""

from __future__ import annotations

import numpy as np

from ..backend.arrays import diagonal, double, eps, index_like, namespace, to_numpy
from ..backend.scale import least_energy
from ..core import Array, Coded, Dictionary, Statistics
from ..pursuits.coded_sums import summarize_codes
from .refresh import sample_atoms

NEAR = 0.99  # cosine with an atom beyond which a sample is no new one


def exchanged(
    dictionary: Dictionary, coded: Coded | Statistics, count: int
) -> Dictionary:
    """The worst represented samples in place of the `count` atoms of least value.

    The value of an atom is Σᵢ γᵢⱼ² (1 − maxₖ cos²(dⱼ, dₖ)): what its codes explain that
    the atom most like it cannot. Two true atoms in one place leave another atom with
    little to do; a sample in its stead gives both another chance.
    """
    power, worst, errors = _seen(coded)
    new = _new_samples(dictionary, worst, errors)[:count]
    cosines = np.abs(to_numpy(double(dictionary.gram())))
    np.fill_diagonal(cosines, 0)
    value = power * (1 - np.minimum(cosines.max(axis=1), 1) ** 2)
    places = np.argsort(value, kind="stable")[: len(new)]
    if len(places) == 0:
        return dictionary
    weights = namespace(dictionary.weights).asarray(dictionary.weights, copy=True)
    atoms = sample_atoms(dictionary, worst[index_like(new, worst)])
    weights[index_like(places, weights)] = atoms
    return dictionary.with_weights(weights)


def _seen(coded: Coded | Statistics) -> tuple[np.ndarray, Array, np.ndarray]:
    """Σᵢ γᵢⱼ² of each atom, the worst represented samples, and their errors."""
    if isinstance(coded, Statistics):
        power = to_numpy(double(diagonal(coded.codes_gram)))
        return power, coded.worst, coded.worst_error
    codes, weights = coded.codes, coded.weights
    found = summarize_codes(coded.X, codes, weights)
    indices, values = to_numpy(codes.indices), to_numpy(codes.values)
    live = indices >= 0
    squares = values[live].astype(np.float64) ** 2
    if weights is not None:
        squares *= np.broadcast_to(weights[:, None], live.shape)[live]
    power = np.bincount(indices[live], squares, minlength=codes.n_atoms)
    return power, found.worst, found.worst_error


def _new_samples(
    dictionary: Dictionary, worst: Array, errors: np.ndarray
) -> np.ndarray:
    """Places in `worst` of samples that are neither explained nor atoms already."""
    if len(errors) == 0:
        return np.zeros(0, dtype=int)
    energy, like = to_numpy(double(dictionary.energy(worst))), dictionary.weights
    rounding = np.maximum(10 * eps(like) * energy, least_energy(like))
    peaks = np.abs(to_numpy(double(dictionary.correlate(worst)))).max(axis=1)
    far = peaks <= NEAR * np.sqrt(energy)
    return np.flatnonzero(far & (errors > rounding))
