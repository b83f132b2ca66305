"""The family of candidates whose atoms are all samples of each class.

It is robust to noise: in a narrow kernel the code of a sample spreads over many atoms
of its class, so that noise averages out, as it does not over few learned atoms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...coders import OMP
from ...config import options
from ...contracts import Array
from ...kernels import Kernel
from ...learners import KernelKSVD
from ...numerics.arrays import to_numpy
from ..residual import ResidualClassifier
from .candidates import Design, Family, Features, Hits, Setting, normal_equations
from .spaces import Space

TINY = np.finfo(np.float32).tiny
NONZEROS = (1, 2, 3, 5, 8, 12, 20, 30)  # numbers of non-zeros


class ClassSamples(Family):
    """The samples of each class are its dictionary."""

    name = "class samples"
    value_name = "n_nonzero_coefs"
    is_for_corruption = True

    def is_suitable(self, space: Space, n_rows: int) -> bool:
        fits_into_memory = 3 * 8 * n_rows**2 < options.memory / 4
        return fits_into_memory and space.kernel != "linear"

    def cost(self, space: Space, n_rows: int) -> float:
        return float(n_rows) ** 2

    def score(self, features: Features, setting: Setting) -> Hits:
        classes = range(int(features.y.max()) + 1)
        rows_by_class = [features.X[features.y == c] for c in classes]
        residuals_by_array = [
            [residuals_by_nonzeros(features.kernel, X_c, X) for X_c in rows_by_class]
            for X in features.held_out
        ]
        return {
            width: features.hits(
                [
                    _labels(class_residuals, width)
                    for class_residuals in residuals_by_array
                ]
            )
            for width in NONZEROS
        }

    def steps(self, design: Design, setting: Setting, value: int) -> list[Any]:
        learner = KernelKSVD(
            design.kernel,
            n_components=int(design.class_counts.max()),
            n_nonzero_coefs=value,
            max_iter=1,  # every sample is an atom, so there is nothing to learn
            random_state=design.seed,
        )
        return [ResidualClassifier(learner)]


def _labels(
    residuals_by_class: list[dict[int, np.ndarray]], n_nonzero_coefs: int
) -> np.ndarray:  # (n,)
    return np.stack(
        [residuals[n_nonzero_coefs] for residuals in residuals_by_class], axis=1
    ).argmin(axis=1)


def residuals_by_nonzeros(
    kernel: Kernel,
    atoms: Array,  # (m, p) not of unit norm
    X: Array,  # (n, p)
) -> dict[int, np.ndarray]:  # (n,) each
    """Compute squared residuals over samples as atoms for all numbers of non-zeros.

    With G_w = L Lᵀ for the first w atoms that a pursuit chooses and L z = their
    correlations, the residual is κ(x, x) − ‖z‖². A larger w appends entries to z.
    """
    scale = 1 / np.sqrt(np.maximum(to_numpy(kernel.diag(atoms)), TINY))
    gram = to_numpy(kernel(atoms, atoms)) * scale * scale[:, None]
    corr = np.ascontiguousarray(to_numpy(kernel(X, atoms)) * scale)
    energy = to_numpy(kernel.diag(X))
    max_nonzeros = min(max(NONZEROS), len(gram))
    atom_indices = to_numpy(OMP(max_nonzeros).solve(gram, corr, energy).indices)
    systems, right_sides = normal_equations(gram, corr, atom_indices)
    # The rounding error of Gram matrices of nearly equal samples grows with their size.
    ridge = 10 * max_nonzeros * np.finfo(gram.dtype).eps * np.eye(max_nonzeros)
    L = np.linalg.cholesky(systems.astype(np.float64) + ridge)
    z = np.linalg.solve(L, right_sides[:, :, None])[:, :, 0]
    squared_norms = np.cumsum(z**2, axis=1)
    return {w: energy - squared_norms[:, min(w, max_nonzeros) - 1] for w in NONZEROS}
