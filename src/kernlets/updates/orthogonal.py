"""The update that keeps atoms orthonormal: an orthogonal Procrustes problem."""

from __future__ import annotations

import numpy as np

from ..backend.arrays import as_like, double, eps, namespace
from ..backend.threads import serial_blas
from ..core import Array, AtomUpdate, Dictionary, Statistics, Step
from .least_squares import fit_term


class OrthogonalUpdate(AtomUpdate):
    """The orthonormal atoms that fit the codes best, K-SAD eq. (6) and Appendix B.

    argmin ‖X − ΓZ‖² subject to ZZᵀ = I is Z = UVᵀ, with ΓᵀX = UΣVᵀ: then
    ⟨ΓᵀX, Z⟩ is the sum of the singular values, and no orthonormal Z has more. One
    decomposition of an (m, p) matrix in float64, whatever the number of samples.

    The atoms must be rows of a matrix, and at most as many as there are features.
    """

    needs = "statistics"

    def step(
        self, dictionary: Dictionary, coded: Statistics, rng: np.random.Generator
    ) -> Step:
        atoms = procrustes(coded.cross, dictionary.weights)
        moved = dictionary.with_weights(atoms)
        change = fit_term(coded, moved) - fit_term(coded, dictionary)
        return Step(moved, coded.error + change)


def procrustes(
    cross: Array,  # (m, p)  ΓᵀX
    previous: Array,  # (m, p)
) -> Array:  # (m, p)
    """The orthonormal rows Z with the largest ⟨cross, Z⟩.

    Where the codes leave Z open (atoms that no sample uses), it is the one nearest to
    the previous atoms.
    """
    wide = double(cross)
    scale = float((wide * wide).sum()) ** 0.5 or 1.0
    # too little to be seen in the fit, which still never gets worse (a proximal step)
    settled = wide + scale * eps(wide) ** 0.5 * double(previous)
    return as_like(nearest_orthonormal(settled), previous)


def nearest_orthonormal(rows: Array) -> Array:  # (m, p), m ≤ p
    """The orthonormal rows nearest to some rows, the factor UVᵀ of UΣVᵀ; float64."""
    with serial_blas:  # threads only wait for each other in a small decomposition
        left, _, right = namespace(rows).linalg.svd(double(rows), full_matrices=False)
        return left @ right
