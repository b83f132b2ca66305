"""The lasso by coordinate descent in plain NumPy: the specification of its twins."""

from __future__ import annotations

import numpy as np

from ...contracts import Array
from ...numerics.arrays import eps


@np.errstate(all="ignore")
def lasso(
    gram: np.ndarray,  # (m, m)
    corr: np.ndarray,  # (n, m)
    alpha: float,
    positive: bool,
    max_iter: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray]:  # (n, m), (n,)
    """argmin over γ of ½ γᵀGγ − γᵀc + alpha‖γ‖₁ by cyclic coordinate descent.

    Stops when no coefficient of a sample moved by more than tol · max|c|. The codes of
    a sample are NaN where they grow without bound, as they may if G is indefinite.
    Returns the codes, and whether the search for each of them stopped so.
    """
    codes, converged = np.zeros_like(corr), np.zeros(len(corr), dtype=bool)
    for i, corr_residual in enumerate(corr.copy()):  # c − Gγ
        largest_corr, largest_move = np.abs(corr_residual).max(initial=0), 0.0
        for _ in range(max_iter):
            largest_move = _lasso_pass(gram, corr_residual, codes[i], alpha, positive)
            if not tol * largest_corr < largest_move < np.inf:
                converged[i] = True
                break
        if not (np.isfinite(largest_corr) and np.isfinite(largest_move)):
            codes[i] = np.nan
    return codes, converged


def _lasso_pass(
    gram: np.ndarray,
    corr_residual: np.ndarray,
    code: np.ndarray,
    alpha: float,
    positive: bool,
) -> float:
    """One pass over the atoms; the largest move, infinite if it is not a number."""
    largest_move = 0.0
    for j in np.flatnonzero(np.diagonal(gram) > 0):  # no atom that is 0
        delta = shrink(corr_residual[j] + gram[j, j] * code[j], alpha, positive)
        delta = delta / gram[j, j] - code[j]
        if delta != 0:
            code[j] += delta
            corr_residual -= delta * gram[j]
            largest_move = (
                max(largest_move, abs(delta)) if np.isfinite(delta) else np.inf
            )
    return largest_move


def shrink(value: float, alpha: float, positive: bool) -> float:
    """Soft threshold: the proximal map of alpha|·|, one-sided if positive."""
    if positive:
        return max(value - alpha, 0)
    return np.sign(value) * max(abs(value) - alpha, 0)


def lasso_tol(tol: float, like: Array) -> float:
    """The tolerance, or what coordinate descent reaches with the rounding of a dtype.

    Below it steps never rest, and errors pile up.
    """
    return max(tol, 64 * eps(like))
