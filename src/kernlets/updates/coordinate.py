"""The update by block coordinate descent, from sums over samples."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..contracts import Array, AtomUpdate, Dictionary, Statistics, Step
from ..dictionaries import ExplicitDictionary
from ..numerics.arrays import as_like, namespace
from ..numerics.scaling import least_energy, peaks, power_of_two
from .replace import LIMITS, refresh_from

BLOCK = 32  # atoms of a sweep whose residuals come from one matrix product


class CoordinateUpdate(AtomUpdate):
    """One sweep of block coordinate descent over the atoms, from sums over samples.

    dⱼ ← (ΓᵀX)ⱼ − Σ_{k≠j} (ΓᵀΓ)ⱼₖ dₖ, then unit norm: the best atom of unit norm while
    the others are fixed. This is Algorithm 2 of Mairal et al. (2009); at fixed codes it
    never raises the error. It is for explicit dictionaries only.

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
        if not isinstance(dictionary, ExplicitDictionary):
            raise TypeError(
                "CoordinateUpdate needs atoms that are rows of a matrix: use MODUpdate "
                "or KSVDUpdate for kernel dictionaries"
            )
        atoms, gain = coordinate_sweep(coded.codes_gram, coded.cross, dictionary.atoms)
        improved = dictionary.with_weights(atoms)
        dictionary = refresh_from(coded, improved, self.min_uses, self.max_coherence)
        return Step(dictionary, coded.error - gain, improved)


def coordinate_sweep(
    codes_gram: Array,  # (m, m)  ΓᵀΓ
    cross: Array,  # (m, p)  ΓᵀX
    atoms: Array,  # (m, p), unit norm
) -> tuple[Array, float]:
    """Return the atoms after one sweep, and the decrease of the squared error.

    Residuals cross − ΓᵀΓ·atoms are computed for a block of atoms at once, and inside
    the block are updated after each atom. An atom whose sums are rounding errors stays.
    """
    xp = namespace(atoms)
    atoms = xp.asarray(atoms, copy=True)
    gain = as_like(0.0, atoms)
    scale = power_of_two(xp.maximum(peaks(codes_gram, 1), peaks(cross, 1)))
    # smaller sums have lost digits and are set to 0
    has_digits = peaks(codes_gram, 1) > least_energy(atoms)
    codes_gram = xp.where(has_digits, codes_gram / scale, 0.0)
    cross = xp.where(has_digits, cross / scale, 0.0)
    for begin in range(0, atoms.shape[0], BLOCK):
        block = slice(begin, begin + BLOCK)
        block_gram = codes_gram[block, block]
        residuals = cross[block] - codes_gram[block] @ atoms
        for i, residual in enumerate(residuals):
            old = atoms[begin + i]
            target = residual + block_gram[i, i] * old
            norm = xp.sqrt(target @ target)
            new = xp.where(norm > 0, target / xp.where(norm > 0, norm, 1.0), old)
            gain += (norm - target @ old) * scale[begin + i, 0]
            residuals[i + 1 :] -= block_gram[i + 1 :, i, None] * (new - old)
            atoms[begin + i] = new
    return atoms, 2 * float(gain)
