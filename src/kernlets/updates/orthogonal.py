"""The update that keeps atoms orthonormal: an orthogonal Procrustes problem."""

from __future__ import annotations

import numpy as np

from ..contracts import Array, AtomUpdate, Dictionary, Statistics, Step
from ..data.limits import gpu_of
from ..numerics.arrays import as_like, double, eps, namespace
from ..numerics.scaling import all_finite, power_of_two
from ..numerics.threads import serial_blas
from .mod import fit_term


class OrthogonalUpdate(AtomUpdate):
    """The orthonormal atoms that fit the codes best, K-SAD eq. (6) and Appendix B.

    argmin ‖X − ΓZ‖² subject to ZZᵀ = I is Z = UVᵀ, with ΓᵀX = UΣVᵀ: then
    ⟨ΓᵀX, Z⟩ is the sum of the singular values, its largest possible value. It takes one
    decomposition of an (m, p) matrix in float64, whatever the number of samples.

    The atoms must be rows of a matrix, and there can be at most as many as features.
    """

    needs = "statistics"

    def step(
        self, dictionary: Dictionary, coded: Statistics, rng: np.random.Generator
    ) -> Step:
        atoms = procrustes(coded.cross, dictionary.weights)
        moved = dictionary.with_weights(atoms)
        change = fit_term(coded, moved) - fit_term(coded, dictionary)
        return Step(moved, coded.error + change, moved)


def procrustes(
    cross: Array,  # (m, p)  ΓᵀX
    previous: Array,  # (m, p)
) -> Array:  # (m, p)
    """Return the orthonormal rows Z with the largest ⟨cross, Z⟩.

    Where the codes do not determine Z (atoms that no sample uses), it is the solution
    nearest to the previous atoms.
    """
    cross64 = double(cross)
    cross64 = cross64 / float(
        power_of_two(namespace(cross64).max(namespace(cross64).abs(cross64)))
    )
    scale = float((cross64 * cross64).sum()) ** 0.5 or 1.0
    # a proximal step, too small to worsen the fit
    target = cross64 + scale * eps(cross64) ** 0.5 * double(previous)
    return as_like(nearest_orthonormal(target), previous)


def nearest_orthonormal(rows: Array) -> Array:  # (m, p), m ≤ p
    """Return the orthonormal rows nearest to rows UΣVᵀ: UVᵀ, in float64."""
    rows = double(rows)
    if not all_finite(rows):
        raise ValueError(
            "sums over the samples are not finite: scale the samples, e.g. with "
            "UnitNorm, or lower the weights of the penalties"
        )
    if gpu_of(rows) is not None:
        products = by_products(rows)
        if is_orthonormal(products):
            return products
    with serial_blas:  # more threads slow down a small decomposition
        U, _, Vt = namespace(rows).linalg.svd(rows, full_matrices=False)
        return U @ Vt


def by_products(rows: Array, least: float = 1e-10) -> Array:  # (m, p), m ≤ p
    """Return the factor UVᵀ by matrix products alone, which are fast on a GPU.

    Newton-Schulz steps X ← αX(3I − α²XᵀX)/2 lift all singular values to 1; α is
    optimal for singular values above a bound, which starts at `least` times the norm.
    From 1e-10 it takes 29 steps; smaller singular values would need more.
    """
    X = rows / namespace(rows).sqrt((rows * rows).sum())
    bound = least
    while bound < 1 - 1e-15:
        alpha = (3 / (1 + bound + bound**2)) ** 0.5
        X = 1.5 * alpha * X - (0.5 * alpha**3) * ((X @ X.T) @ X)
        bound *= 0.5 * alpha * (3 - (alpha * bound) ** 2)
    return 1.5 * X - 0.5 * ((X @ X.T) @ X)


def is_orthonormal(rows: Array, within: float = 1e-12) -> bool:
    """Whether the rows are orthonormal; False if there are NaN."""
    xp = namespace(rows)
    deviation = rows @ rows.T - as_like(np.eye(rows.shape[0]), rows)
    return bool(xp.max(xp.abs(deviation)) < within)
