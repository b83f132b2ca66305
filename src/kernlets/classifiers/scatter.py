"""How classes lie to each other: scatter within and between them, Fisher's directions.

Class means, the ratio that K-SAD adds to its objective with its gradient, and the
directions in which that ratio is best. Labels are whole numbers from 0 here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..backend.arrays import (
    as_like,
    double,
    index_like,
    is_torch,
    namespace,
    row_norms,
)
from ..backend.rows import sum_rows
from ..core import Array


@dataclass(frozen=True)
class Classes:
    """Samples by class: who belongs where, and the means."""

    labels: Array  # (n,)
    counts: Array  # (C,)
    means: Array  # (C, k)
    mean: Array  # (k,)

    @classmethod
    def of(cls, Q: Array, labels: np.ndarray) -> Classes:  # (n, k), (n,)
        """The classes of the rows of Q; every label from 0 to the largest occurs."""
        xp = namespace(Q)
        counts = as_like(np.bincount(labels), Q)
        means = class_sums(Q, labels) / counts[:, None]
        return cls(index_like(labels, Q), counts, means, xp.mean(Q, axis=0))

    @property
    def offsets(self) -> Array:  # (C, k)
        """The class means seen from the mean of all samples."""
        return self.means - self.mean


def class_sums(Q: Array, labels: np.ndarray) -> Array:  # (C, k)
    """Sums over the rows of each class."""
    n, n_classes = len(labels), int(labels.max()) + 1
    if is_torch(Q):
        sums = Q.new_zeros((n_classes, Q.shape[1]))
        return sums.index_add_(0, index_like(labels, Q), Q)
    ones = np.ones(n, dtype=Q.dtype)
    return sparse.csr_array((ones, (labels, np.arange(n)))) @ Q


def traces(Q: Array, classes: Classes) -> tuple[float, float]:
    """tr S_w = Σ_c v_c² and tr S_b = Σ_c K_c‖μ_c − μ‖², K-SAD section III-B.

    v_c² is the mean squared distance of class c from its mean μ_c, K_c its size.
    """
    own = row_norms(Q - classes.means[classes.labels])
    within = double(own / classes.counts[classes.labels]).sum()
    between = double(classes.counts * row_norms(classes.offsets)).sum()
    return float(within), float(between)


def fisher_ratio(Q: Array, labels: np.ndarray) -> float:
    """G(Q) = tr S_w / tr S_b, and 0 where all class means agree."""
    within, between = traces(Q, Classes.of(Q, labels))
    return within / between if between > 0 else 0.0


def fisher_gradient(Q: Array, labels: np.ndarray) -> Array:  # (n, k)
    """∂G/∂q = 2(q − μ_c)/(K_c tr S_b) − 2 (tr S_w/tr S_b²) (μ_c − μ)."""
    classes = Classes.of(Q, labels)
    within, between = traces(Q, classes)
    if between <= 0:
        return namespace(Q).zeros_like(Q)
    own = (Q - classes.means[classes.labels]) / classes.counts[classes.labels][:, None]
    away = classes.offsets * (within / between)
    return (own - away[classes.labels]) * (2 / between)


def fisher_directions(
    F: Array,  # (n, k)
    labels: np.ndarray,  # (n,)
    shrinkage: float,
) -> tuple[Array, float]:  # (d, k)
    """The atoms w with the largest tr(S_w⁻¹S_b), orthonormal in S_w; and that trace.

    With S_w the mean scatter within classes plus `shrinkage` times its mean eigenvalue
    on the diagonal, and B the weighted offsets of the class means: the rows of
    Λ^(-1/2) Vᵀ B S_w⁻¹, where B S_w⁻¹ Bᵀ = V Λ Vᵀ. At most one less than classes.
    """
    xp, classes = namespace(F), Classes.of(F, labels)
    n, k = F.shape
    scatter = sum_rows(lambda block: double(block.T @ block), F, 4 * k)
    means, counts = double(classes.means), double(classes.counts)
    scatter = (scatter - (means.T * counts) @ means) / n
    level = float(xp.linalg.trace(scatter)) / k
    scatter = scatter + as_like(np.eye(k) * (shrinkage * level or 1.0), scatter)
    B = double(classes.offsets) * xp.sqrt(counts / n)[:, None]
    solved = xp.linalg.solve(scatter, B.T)  # (k, C)
    values, vectors = xp.linalg.eigh(B @ solved)
    kept = values > max(1e-9 * float(values[-1]), 0.0)
    kept[0] = False  # the offsets add up to nothing
    directions = (solved @ vectors[:, kept]) / xp.sqrt(values[kept])
    return as_like(xp.flip(directions, axis=1).T, F), float(values.sum())
