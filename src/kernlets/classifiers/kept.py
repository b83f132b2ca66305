"""The kind of classifiers whose atoms are the samples of each class, by itself.

Under noise a residual over few learned atoms loses more than one over all samples of a
class in a narrow kernel, where many atoms have a small part each and noise averages.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backend.arrays import to_numpy
from ..config import options
from ..core import Array, Kernel
from ..learners import KernelKSVD
from ..pursuits import OMP
from .families import Design, Family, Features, Hits, Setting, chosen_systems
from .residual import ResidualClassifier
from .spaces import Space

TINY = np.finfo(np.float32).tiny
WIDTHS = (1, 2, 3, 5, 8, 12, 20, 30)  # non-zeros that one pursuit is read at


class ClassSamples(Family):
    """The samples of each class as its dictionary; all numbers of non-zeros."""

    name = "class samples"
    read_name = "n_nonzero_coefs"
    for_damage = True

    def suits(self, space: Space, n_rows: int) -> bool:
        enough = 3 * 8 * n_rows**2 < options.memory / 4
        return enough and space.kernel != "linear"

    def work(self, space: Space, n_rows: int) -> float:
        return float(n_rows) ** 2

    def score(self, features: Features, setting: Setting) -> Hits:
        places = range(int(features.y.max()) + 1)
        members = [features.X[features.y == place] for place in places]
        found = [
            [residuals_by_width(features.kernel, own, X) for own in members]
            for X in features.held_out
        ]
        return {
            width: features.hits([_labels(each, width) for each in found])
            for width in WIDTHS
        }

    def steps(self, design: Design, setting: Setting, read: int) -> list[Any]:
        learner = KernelKSVD(
            design.kernel,
            n_components=int(design.class_counts.max()),
            n_nonzero_coefs=read,
            max_iter=1,  # a sample is represented by itself: nothing is learned
            random_state=design.seed,
        )
        return [ResidualClassifier(learner)]


def _labels(residuals: list[dict[int, np.ndarray]], width: int) -> np.ndarray:  # (n,)
    return np.stack([each[width] for each in residuals], axis=1).argmin(axis=1)


def residuals_by_width(
    kernel: Kernel,
    atoms: Array,  # (m, p) not of unit norm
    X: Array,  # (n, p)
) -> dict[int, np.ndarray]:  # (n,) each
    """Squared residuals over samples as atoms, for all numbers of non-zeros.

    With G_w = L Lᵀ of the first w atoms that a pursuit takes and L z = their
    correlations, the residual is κ(x, x) − |z|²; z only grows with w.
    """
    scale = 1 / np.sqrt(np.maximum(to_numpy(kernel.diag(atoms)), TINY))
    gram = to_numpy(kernel(atoms, atoms)) * scale * scale[:, None]
    corr = np.ascontiguousarray(to_numpy(kernel(X, atoms)) * scale)
    energy = to_numpy(kernel.diag(X))
    count = min(max(WIDTHS), len(gram))
    chosen = to_numpy(OMP(count).solve(gram, corr, energy).indices)
    systems, right = chosen_systems(gram, corr, chosen)
    # rounding of Gram matrices of nearly equal samples grows with their size
    slack = 10 * count * np.finfo(gram.dtype).eps * np.eye(count)
    factor = np.linalg.cholesky(systems.astype(np.float64) + slack)
    whitened = np.linalg.solve(factor, right[:, :, None])[:, :, 0]
    squares = np.cumsum(whitened**2, axis=1)
    return {w: energy - squares[:, min(w, count) - 1] for w in WIDTHS}
