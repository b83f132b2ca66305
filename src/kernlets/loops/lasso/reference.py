"""The lasso by coordinate descent in plain NumPy: the specification of its twins."""

from __future__ import annotations

import numpy as np

from ..updates.reference import code_slots

FAINT = (
    1e-3  # of the largest correlation: an alpha below it counts as this in tolerances
)
ROUNDING = 64  # rounding errors of a correlation that are left in sums over atoms


@np.errstate(all="ignore")
def lasso(
    gram: np.ndarray,  # (m, m)
    corr: np.ndarray,  # (n, m)
    alpha: float,
    positive: bool,
    max_iter: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """argmin over γ of ½ γᵀGγ − γᵀc + alpha‖γ‖₁.

    Stops where the optimality conditions, |c − Gγ|_j ≤ alpha for atoms at zero and
    c − Gγ = alpha · sign(γ) for the others, hold up to `violation_tolerance`, or after
    max_iter passes over the atoms.
    Returns the atoms of the codes (n, width), their coefficients, what they explain of
    the energies, 2γᵀc − γᵀGγ, and whether the search for each code stopped so. A code
    is empty and explains NaN where c is not finite or γ grows without bound, as it may
    if G is indefinite.
    """
    codes, converged = descend(gram, corr, alpha, positive, max_iter, tol)
    explained = np.sum(codes * (2 * corr - codes @ gram), axis=1)
    codes[~np.isfinite(explained)] = 0
    return *code_slots(codes), explained, converged


def descend(
    gram: np.ndarray,
    corr: np.ndarray,
    alpha: float,
    positive: bool,
    max_iter: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray]:  # (n, m), (n,)
    """Codes by cyclic coordinate descent, and whether each of them has converged.

    The violation that ends it is that of each atom when it is visited.
    """
    codes, converged = np.zeros_like(corr), np.zeros(len(corr), dtype=bool)
    eps = float(np.finfo(corr.dtype).eps)
    for i, corr_residual in enumerate(corr.copy()):  # c − Gγ
        largest_corr, violation = np.abs(corr_residual).max(initial=0), 0.0
        tolerance = violation_tolerance(tol, alpha, largest_corr, eps)
        for _ in range(max_iter):
            violation = _lasso_pass(gram, corr_residual, codes[i], alpha, positive)
            if not tolerance < violation < np.inf:
                converged[i] = True
                break
        if not (np.isfinite(largest_corr) and np.isfinite(violation)):
            codes[i] = np.nan
    return codes, converged


def _lasso_pass(
    gram: np.ndarray,
    corr_residual: np.ndarray,
    code: np.ndarray,
    alpha: float,
    positive: bool,
) -> float:
    """One pass over the atoms; the largest violation, infinite if it is no number.

    That of an atom is |change of γ_j| G_jj.
    """
    largest_violation = 0.0
    for j in np.flatnonzero(np.diagonal(gram) > 0):  # no atom that is 0
        delta = shrink(corr_residual[j] + gram[j, j] * code[j], alpha, positive)
        delta = delta / gram[j, j] - code[j]
        if delta != 0:
            code[j] += delta
            corr_residual -= delta * gram[j]
            violation = abs(delta) * gram[j, j] if np.isfinite(delta) else np.inf
            largest_violation = max(largest_violation, violation)
    return largest_violation


def shrink(value: float, alpha: float, positive: bool) -> float:
    """Soft threshold: the proximal map of alpha|·|, one-sided if positive."""
    if positive:
        return max(value - alpha, 0)
    return np.sign(value) * max(abs(value) - alpha, 0)


def violation_tolerance(
    tol: float, alpha: float, largest_corr: float, eps: float
) -> float:
    """The violation of the optimality conditions up to which a code counts as optimal.

    With tol · alpha the objective is within 2 tol of the least one, relatively. A tiny
    alpha would ask for many digits, and rounding errors leave some violation, too.
    """
    asked = tol * max(alpha, FAINT * largest_corr)
    return max(asked, ROUNDING * eps * largest_corr)
