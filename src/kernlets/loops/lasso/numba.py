"""Numba twin of `lasso`, serial and without the interpreter lock."""

from __future__ import annotations

import numpy as np

from ..compiled import jit, largest_magnitude


def lasso(gram, corr, alpha, positive, max_iter, tol):
    """Coordinate descent that visits only the active atoms between full passes."""
    codes, converged = np.zeros_like(corr), np.zeros(len(corr), np.bool_)
    alpha, tol = corr.dtype.type(alpha), corr.dtype.type(tol)
    gram, corr_residual = np.ascontiguousarray(gram), corr.copy()
    lasso_samples(gram, corr_residual, alpha, positive, max_iter, tol, codes, converged)
    return codes, converged


@jit
def lasso_samples(
    gram, corr_residual, alpha, positive, max_iter, tol, codes, converged
):
    m = len(gram)
    all_atoms = np.arange(m)
    active_atoms = np.empty(m, np.int64)
    for i in range(len(corr_residual)):
        row, code = corr_residual[i], codes[i]
        tolerance = tol * largest_magnitude(row)
        n_passes, largest_move = 0, 0.0
        converged[i] = False
        while n_passes < max_iter:
            largest_move = _lasso_pass(gram, row, code, all_atoms, m, alpha, positive)
            n_passes += 1
            if not tolerance < largest_move < np.inf:
                converged[i] = True
                break
            n_active = np.int64(0)  # the literal would be another type
            for j in range(m):
                if code[j] != 0:
                    active_atoms[n_active] = j
                    n_active += 1
            while tolerance < largest_move < np.inf and n_passes < max_iter:
                largest_move = _lasso_pass(
                    gram, row, code, active_atoms, n_active, alpha, positive
                )
                n_passes += 1
        if not (tolerance < np.inf and largest_move < np.inf):
            codes[i] = np.nan


@jit
def _lasso_pass(gram, corr_residual, code, atoms, n_atoms, alpha, positive):
    """One pass of coordinate descent over atoms[:n_atoms]; the largest move.

    The result is infinite where a move is not a finite number.
    """
    largest_move = 0.0
    for v in range(n_atoms):
        j = atoms[v]
        if not gram[j, j] > 0:  # an atom that is 0
            continue
        corr_j = corr_residual[j] + gram[j, j] * code[j]
        magnitude = corr_j if positive else abs(corr_j)
        coef = max(magnitude - alpha, 0.0) / gram[j, j]
        if corr_j < 0:
            coef = -coef
        delta = coef - code[j]
        if not abs(delta) < np.inf:
            return alpha + np.inf
        if delta != 0:
            code[j] = coef
            gram_j = gram[j]
            for a in range(len(corr_residual)):
                corr_residual[a] -= delta * gram_j[a]
            largest_move = max(largest_move, abs(delta))
    return largest_move
