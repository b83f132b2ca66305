"""OMP from the samples and the atoms, where a Gram matrix would be too large.

Correlations come from the residuals, r Dᵀ, and not from the Gram matrix of m² numbers.
A step takes the atom dₖ of the largest one, and qₜ, its part orthogonal to the atoms
before, scaled to unit norm. With q_s = Σᵤ M_su dᵤ over the atoms of the support,

    v = M ⟨dᵤ, dₖ⟩,   ν² = ⟨dₖ, dₖ⟩ − ‖v‖²,   M_t = (eₜ − vᵀM) / ν,
    c_t = ⟨r, dₖ⟩ / ν,   r ← r − c_t · Σᵤ M_tu dᵤ.

M is the inverse of the Cholesky factor of the support's Gram matrix (`inverse` in the
loops, where `projections` are v), so the coefficients are Mᵀc. Results are those of
`reference.omp` up to rounding.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .positive import TRIES, _solve_feasible, sample_by_sample
from .reference import UNUSED, _is_dependent, least_independent


def rows_omp(
    atoms: np.ndarray,  # (m, p)
    X: np.ndarray,  # (n, p)
    energy: np.ndarray,  # (n,)
    width: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All samples take their steps together; a sample that has stopped leaves."""
    n, eps = len(X), np.finfo(X.dtype).eps
    indices = np.full((n, width), UNUSED)
    inverse = np.zeros((n, width, width), X.dtype)
    c = np.zeros((n, width), X.dtype)
    residual, error = X.copy(), energy.copy()
    stop = np.maximum(tol, 4 * eps * energy)
    rows = np.flatnonzero((error > stop) & np.isfinite(error))
    for t in range(width):
        if len(rows) == 0:
            break
        support = indices[rows, :t]
        corr_residual = residual[rows] @ atoms.T
        np.put_along_axis(corr_residual, support, 0, axis=1)
        k = np.abs(corr_residual).argmax(axis=1)
        value = corr_residual[np.arange(len(rows)), k]
        gram_k = np.einsum("ntp,np->nt", atoms[support], atoms[k])
        projections = np.einsum("nst,nt->ns", inverse[rows, :t, :t], gram_k)
        energy_k = np.square(atoms[k]).sum(axis=1)
        nu2 = energy_k - np.square(projections).sum(axis=1)
        is_taken = ~(nu2 <= least_independent(eps) * energy_k) & (value != 0)
        rows, k, projections, support = (
            rows[is_taken],
            k[is_taken],
            projections[is_taken],
            support[is_taken],
        )
        scale = 1 / np.sqrt(nu2[is_taken])
        combined_rows = np.einsum("ns,nst->nt", projections, inverse[rows, :t, :t])
        inverse[rows, t, :t] = -scale[:, None] * combined_rows
        inverse[rows, t, t] = scale
        indices[rows, t], c[rows, t] = k, value[is_taken] * scale
        step_coefs = c[rows, t, None] * inverse[rows, t, : t + 1]
        residual[rows] -= np.einsum(
            "nt,ntp->np", step_coefs, atoms[indices[rows, : t + 1]]
        )
        error[rows] = np.maximum(error[rows] - c[rows, t] ** 2, 0)
        rows = rows[error[rows] > stop[rows]]
    values = np.einsum("ns,nst->nt", c, inverse)
    is_bad = ~(np.isfinite(error) & np.isfinite(values).all(axis=1))
    indices[is_bad], values[is_bad], error[is_bad] = UNUSED, 0, np.nan
    return indices, values, error


@np.errstate(all="ignore")
def positive_rows_omp(
    atoms: np.ndarray,  # (m, p)
    X: np.ndarray,  # (n, p)
    energy: np.ndarray,  # (n,)
    width: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`positive.positive_omp` with correlations from the residuals."""
    return sample_by_sample(partial(_pursue_sample, atoms), X, energy, width, tol)


def _pursue_sample(
    atoms: np.ndarray, x: np.ndarray, energy: float, width: int, stop: float
) -> tuple[list[int], np.ndarray, float]:
    """Support, coefficients and squared error of one sample."""
    support: list[int] = []
    coefs, error, eps = x[:0], energy, np.finfo(x.dtype).eps
    for _ in range(TRIES * width):
        if len(support) == width or not error > stop:
            break
        corr_residual = atoms @ (x - coefs @ atoms[support])
        corr_residual[support] = 0
        k = int(np.argmax(corr_residual))
        candidates = [*support, k]
        gram, corr = atoms[candidates] @ atoms[candidates].T, atoms[candidates] @ x
        slots = list(range(len(candidates)))
        if corr_residual[k] <= 0 or _is_dependent(gram, slots[:-1], slots[-1], eps):
            break
        positive_slots, coefs = _solve_feasible(gram, corr, slots, np.append(coefs, 0))
        support = [candidates[slot] for slot in positive_slots]
        explained = coefs @ corr[positive_slots]
        error = max(energy - explained, 0) if np.isfinite(explained) else np.nan
    return support, coefs, error
