"""Orthogonal matching pursuit in plain NumPy: the specification of all its twins.

No pursuit fails or runs on for ever, whatever numbers it is given. A sample that cannot
be coded in finite numbers has an empty code and the squared residual NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...contracts import Array

UNUSED = -1  # the index in slots of a code without an atom
TRIES = 3  # atoms that a non-negative pursuit may take for each non-zero: some leave
FAINT = 0.01  # atoms with less than this share of the largest ‖d_o‖² are not used


def stop_level(energy: float, tol: float, eps: float) -> float:
    """Squared residual at which a pursuit stops: `tol`, or rounding of the energy."""
    return max(tol, 4 * eps * energy)


def least_independent(eps: float) -> float:
    """The least ‖q‖²/‖d‖² of an atom d that a pursuit takes.

    Here q is the component of d that is orthogonal to the atoms of the support.

    Inner products are known to eps‖d‖², and so is ‖q‖². Coefficients grow like 1/‖q‖,
    and the squared residual that follows from them is wrong by eps‖d‖²/‖q‖² of the
    energy: by no more than √eps, which is 1.5e-8 in float64.
    """
    return eps**0.5


@np.errstate(all="ignore")
def omp(
    gram: np.ndarray,  # (m, m) unit diagonal
    corr: np.ndarray,  # (n, m)
    energy: np.ndarray,  # (n,)
    width: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Orthogonal matching pursuit, sample by sample, as in the textbook.

    Returns indices (n, width), values (n, width) and squared residuals (n,). A sample
    that cannot be coded in finite numbers has an empty code and the residual NaN.
    """
    n, eps = len(corr), np.finfo(corr.dtype).eps
    indices = np.full((n, width), UNUSED, dtype=np.int32)
    values = np.zeros((n, width), dtype=corr.dtype)
    residual = energy.copy()
    for i in range(n):
        support: list[int] = []
        coefs = values[i, :0]
        while len(support) < width and residual[i] > stop_level(energy[i], tol, eps):
            corr_residual = corr[i] - coefs @ gram[support]
            corr_residual[support] = 0
            k = int(np.argmax(np.abs(corr_residual)))  # a NaN is the largest of all
            if corr_residual[k] == 0 or _is_dependent(gram, support, k, eps):
                break
            support.append(k)
            coefs = _solve(gram[np.ix_(support, support)], corr[i, support])
            explained = coefs @ corr[i, support]
            residual[i] = (
                max(energy[i] - explained, 0) if np.isfinite(explained) else np.nan
            )
        if np.isfinite(residual[i]) and np.isfinite(coefs).all():
            indices[i, : len(support)] = support
            values[i, : len(support)] = coefs
        else:
            residual[i] = np.nan
    return indices, values, residual


def _solve(matrix: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The solution of a linear system, NaN where there is none."""
    try:
        return np.linalg.solve(matrix, rhs)
    except np.linalg.LinAlgError:
        return np.full_like(rhs, np.nan)


def _is_dependent(gram: np.ndarray, support: list[int], k: int, eps: float) -> bool:
    """Whether the new atom lies in the span of the support, or next to it."""
    gram_k = gram[support, k]
    explained = gram_k @ _solve(gram[np.ix_(support, support)], gram_k)
    return bool(gram[k, k] - explained <= least_independent(eps) * gram[k, k])


@np.errstate(all="ignore")
def positive_omp(
    gram: np.ndarray,  # (m, m) unit diagonal
    corr: np.ndarray,  # (n, m)
    energy: np.ndarray,  # (n,)
    width: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes γ ≥ 0 that are least squares on their supports, sample by sample.

    Each step takes the atom with the largest positive correlation. Least squares on the
    support then starts at the current code and goes towards the unconstrained solution
    until a coefficient is zero; atoms at zero leave the support (the active
    set of Lawson and Hanson, 1974). The error falls with each step. The search ends
    with `width` atoms, at the error asked for, or where no correlation is positive: the
    code is then the best of all non-negative ones.

    Returns indices, values and squared residuals as `omp` does.
    """
    pursue = partial(_pursue_sample, gram)
    return sample_by_sample(pursue, corr, energy, width, tol)


def sample_by_sample(
    pursue: Callable[..., tuple[list[int], np.ndarray, float]],
    samples: np.ndarray,  # (n, ·)
    energy: np.ndarray,  # (n,)
    width: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pursue each sample: indices, values and squared residuals, NaN if not finite."""
    n, eps = len(samples), np.finfo(samples.dtype).eps
    indices = np.full((n, width), UNUSED, dtype=np.int32)
    values = np.zeros((n, width), dtype=samples.dtype)
    residual = np.full(n, np.nan, dtype=samples.dtype)
    for i in range(n):
        if not (np.isfinite(samples[i]).all() and np.isfinite(energy[i])):
            continue
        stop = stop_level(energy[i], tol, eps)
        support, coefs, error = pursue(samples[i], energy[i], width, stop)
        if np.isfinite(error) and np.isfinite(coefs).all():
            indices[i, : len(support)] = support
            values[i, : len(support)] = coefs
            residual[i] = error
    return indices, values, residual


def _pursue_sample(
    gram: np.ndarray, corr: np.ndarray, energy: float, width: int, stop: float
) -> tuple[list[int], np.ndarray, float]:
    """Support, coefficients and squared error of one sample."""
    support: list[int] = []
    coefs, error, eps = corr[:0], energy, np.finfo(corr.dtype).eps
    for _ in range(TRIES * width):
        if len(support) == width or not error > stop:
            break
        corr_residual = corr - coefs @ gram[support]
        corr_residual[support] = 0
        k = int(np.argmax(corr_residual))
        if corr_residual[k] <= 0 or _is_dependent(gram, support, k, eps):
            break
        support, coefs = _solve_feasible(gram, corr, [*support, k], np.append(coefs, 0))
        explained = coefs @ corr[support]
        error = max(energy - explained, 0) if np.isfinite(explained) else np.nan
    return support, coefs, error


def _solve_feasible(
    gram: np.ndarray, corr: np.ndarray, support: list[int], coefs: np.ndarray
) -> tuple[list[int], np.ndarray]:
    """Least squares on the atoms of the support that keep a positive coefficient."""
    while support:
        solution = _solve(gram[np.ix_(support, support)], corr[support])
        is_low = solution <= 0
        if not is_low.any():
            return support, solution
        steps = np.full(len(support), np.inf, corr.dtype)
        steps[is_low] = coefs[is_low] / (coefs[is_low] - solution[is_low])
        first_zero = int(np.argmin(steps))
        coefs = coefs + steps[first_zero] * (solution - coefs)
        is_positive = coefs > 0
        is_positive[first_zero] = False
        support = [
            atom for atom, stays in zip(support, is_positive, strict=True) if stays
        ]
        coefs = coefs[is_positive]
    return support, coefs


def rows_omp(
    atoms: np.ndarray,  # (m, p)
    X: np.ndarray,  # (n, p)
    energy: np.ndarray,  # (n,)
    width: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The results of `omp` up to rounding, without a Gram matrix.

    Correlations come from the residuals, r Dᵀ. All samples take their steps together,
    and a sample that has stopped leaves. A step takes the atom dₖ of the largest
    correlation, and qₜ, its part orthogonal to the atoms before, scaled to unit norm.
    With q_s = Σᵤ M_su dᵤ over the atoms of the support,

        v = M ⟨dᵤ, dₖ⟩,   ν² = ⟨dₖ, dₖ⟩ − ‖v‖²,   M_t = (eₜ − vᵀM) / ν,
        c_t = ⟨r, dₖ⟩ / ν,   r ← r − c_t · Σᵤ M_tu dᵤ.

    M is the inverse of the Cholesky factor of the support's Gram matrix (`inverse`,
    where `projections` are v), so the coefficients are Mᵀc.
    """
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
        rows, k, projections = rows[is_taken], k[is_taken], projections[is_taken]
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
    """The results of `positive_omp`, with correlations from the residuals."""
    return sample_by_sample(partial(_pursue_row, atoms), X, energy, width, tol)


def _pursue_row(
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


@np.errstate(all="ignore")
def masked_omp(
    atoms: Array,  # (m, p)
    X: Array,  # (n, p) zero where it is missing
    observed: Array,  # (n, p) booleans
    width: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`omp` of each sample over its observed features o.

    The atoms are cut to the observed features and scaled to unit norm, and coefficients
    scaled back. So the atom with the largest |⟨d_o, r_o⟩|/‖d_o‖ is chosen, and the
    coefficients are least squares over the observed entries. The tolerance is for all
    p features, and |o|/p of it for the |o| that were observed.
    """
    all_codes: tuple[list[np.ndarray], ...] = [], [], []
    for x, o in zip(X, observed, strict=True):
        inverse = inverse_norms((atoms[:, o] ** 2).sum(axis=1))
        D_o = atoms[:, o] * inverse[:, None]
        corr, energy = D_o @ x[o], x[o] @ x[o]
        level = tol * o.mean()
        code = omp(D_o @ D_o.T, corr[None], np.array([energy]), width, level)
        code[1][...] *= inverse[code[0]]  # values of unused slots are 0
        for blocks, block in zip(all_codes, code, strict=True):
            blocks.append(block)
    indices, values, residual = map(np.concatenate, all_codes)
    return indices, values, residual


def inverse_norms(energy: np.ndarray) -> np.ndarray:  # (m,)
    """1/‖d_o‖, and 0 for atoms that are nearly 0 in the observed features."""
    usable = energy > FAINT * energy.max(initial=0)
    return np.where(usable, 1 / np.sqrt(np.where(usable, energy, 1)), 0)
