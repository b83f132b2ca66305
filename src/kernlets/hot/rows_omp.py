"""OMP from the samples and the atoms, where a Gram matrix would be too large.

Correlations come from the residuals, r Dᵀ, and not from the Gram matrix of m² numbers.
A step takes the atom dₖ of the largest one, and qₜ, its part orthogonal to the atoms
before, scaled to unit norm. With q_s = Σᵤ M_su dᵤ over the atoms that were taken,

    seen = M ⟨dᵤ, dₖ⟩,   norm² = ⟨dₖ, dₖ⟩ − ‖seen‖²,   M_t = (eₜ − seenᵀM) / norm,
    part = ⟨r, dₖ⟩ / norm,   r ← r − part · Σᵤ M_tu dᵤ.

M is the inverse of the Cholesky factor of the support's Gram matrix, so the
coefficients are Mᵀ·parts. Results are those of `reference.omp` up to rounding.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .positive import TRIES, _feasible, sample_by_sample
from .reference import UNUSED, _dependent, least_independent


def rows_omp(
    atoms: np.ndarray,  # (m, p)
    X: np.ndarray,  # (n, p)
    energy: np.ndarray,  # (n,)
    width: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All samples in step; one that has stopped leaves."""
    n, eps = len(X), np.finfo(X.dtype).eps
    indices = np.full((n, width), UNUSED)
    inverse = np.zeros((n, width, width), X.dtype)
    parts = np.zeros((n, width), X.dtype)
    residual, error = X.copy(), energy.copy()
    stop = np.maximum(tol, 4 * eps * energy)
    rows = np.flatnonzero((error > stop) & np.isfinite(error))
    for t in range(width):
        if len(rows) == 0:
            break
        support = indices[rows, :t]
        left = residual[rows] @ atoms.T
        np.put_along_axis(left, support, 0, axis=1)
        k = np.abs(left).argmax(axis=1)
        value = left[np.arange(len(rows)), k]
        inner = np.einsum("ntp,np->nt", atoms[support], atoms[k])
        seen = np.einsum("nst,nt->ns", inverse[rows, :t, :t], inner)
        own = np.square(atoms[k]).sum(axis=1)
        norm = own - np.square(seen).sum(axis=1)
        going = ~(norm <= least_independent(eps) * own) & (value != 0)
        rows, k, seen, support = rows[going], k[going], seen[going], support[going]
        scale = 1 / np.sqrt(norm[going])
        before = np.einsum("ns,nst->nt", seen, inverse[rows, :t, :t])
        inverse[rows, t, :t] = -scale[:, None] * before
        inverse[rows, t, t] = scale
        indices[rows, t], parts[rows, t] = k, value[going] * scale
        shift = parts[rows, t, None] * inverse[rows, t, : t + 1]
        residual[rows] -= np.einsum("nt,ntp->np", shift, atoms[indices[rows, : t + 1]])
        error[rows] = np.maximum(error[rows] - parts[rows, t] ** 2, 0)
        rows = rows[error[rows] > stop[rows]]
    values = np.einsum("ns,nst->nt", parts, inverse)
    bad = ~(np.isfinite(error) & np.isfinite(values).all(axis=1))
    indices[bad], values[bad], error[bad] = UNUSED, 0, np.nan
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
    return sample_by_sample(partial(_pursued, atoms), X, energy, width, tol)


def _pursued(
    atoms: np.ndarray, x: np.ndarray, energy: float, width: int, stop: float
) -> tuple[list[int], np.ndarray, float]:
    """Support, coefficients and squared error of one sample."""
    support: list[int] = []
    coefs, error, eps = x[:0], energy, np.finfo(x.dtype).eps
    for _ in range(TRIES * width):
        if len(support) == width or not error > stop:
            break
        left = atoms @ (x - coefs @ atoms[support])
        left[support] = 0
        best = int(np.argmax(left))
        wider = [*support, best]
        gram, corr = atoms[wider] @ atoms[wider].T, atoms[wider] @ x
        slots = list(range(len(wider)))
        if left[best] <= 0 or _dependent(gram, slots[:-1], slots[-1], eps):
            break
        kept, coefs = _feasible(gram, corr, slots, np.append(coefs, 0))
        support = [wider[slot] for slot in kept]
        fit = coefs @ corr[kept]
        error = max(energy - fit, 0) if np.isfinite(fit) else np.nan
    return support, coefs, error
