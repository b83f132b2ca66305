"""The update by block coordinate descent, from sums over samples."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..contracts import Array, AtomUpdate, Dictionary, Statistics, Step
from ..dictionaries import ExplicitDictionary
from ..loops.table import block_sweep
from ..numerics.arrays import index_like, namespace
from ..numerics.scaling import least_energy, peaks, power_of_two
from .replace import LIMITS, refresh_from

BLOCK = 64  # atoms of a sweep whose residuals come from one matrix product


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
    visited: np.ndarray | None = None,  # numbers of the atoms to update; None means all
) -> tuple[Array, float]:
    """Return the atoms after one sweep, and the decrease of the squared error.

    Residuals cross − ΓᵀΓ·atoms are computed for a block of atoms at once, and inside
    the block are updated after each atom. An atom whose sums are rounding errors stays.
    """
    xp = namespace(atoms)
    atoms = xp.asarray(atoms, copy=True)
    visited = np.arange(atoms.shape[0]) if visited is None else visited
    decrease = 0.0
    for begin in range(0, len(visited), BLOCK):
        block = index_like(visited[begin : begin + BLOCK], atoms)
        gram, residuals, block_atoms = codes_gram[block], cross[block], atoms[block]
        largest = peaks(gram, 1)
        scale = power_of_two(xp.maximum(largest, peaks(residuals, 1)))
        # smaller sums have lost digits and are set to 0
        inverse_scale = xp.where(largest > least_energy(atoms), 1 / scale, 0.0)
        gram = gram * inverse_scale
        residuals = residuals * inverse_scale - gram @ atoms
        gains = block_sweep(residuals, gram[:, block], block_atoms)
        atoms[block] = block_atoms
        decrease += 2 * float(xp.sum(gains * scale[:, 0]))
    return atoms, decrease
