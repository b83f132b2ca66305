"""Coordinate descent for the lasso: where the active set is too large or singular."""

from __future__ import annotations

import numpy as np

from ..compiled import jit, largest_magnitude, part_jit
from ..updates.reference import code_slots
from . import reference

violation_tolerance = part_jit(reference.violation_tolerance)


def descend(gram, corr, alpha, positive, max_iter, tol, codes):
    """The results of `lasso` by coordinate descent; it starts from dense codes."""
    converged = np.zeros(len(corr), np.bool_)
    with np.errstate(all="ignore"):
        slopes = 2 * corr - codes @ gram
        objectives = alpha * np.abs(codes).sum(axis=1) - 0.5 * (codes * slopes).sum(
            axis=1
        )
        codes[~(objectives <= 0)] = 0  # no start better than zero
        lasso_samples(gram, corr, alpha, positive, max_iter, tol, codes, converged)
        explained = np.sum(codes * (2 * corr - codes @ gram), axis=1)
    codes[~np.isfinite(explained)] = 0
    return *code_slots(codes), explained, converged


@jit
def lasso_samples(gram, corr, alpha, positive, max_iter, tol, codes, converged):
    """Coordinate descent that visits only the active atoms between full passes.

    It starts from `codes` and overwrites them.
    """
    m = len(gram)
    all_atoms, active_atoms = np.empty(m, np.int64), np.empty(m, np.int64)
    for j in range(m):
        all_atoms[j] = j
    corr_residual, eps = np.empty(m, corr.dtype), np.finfo(corr.dtype).eps
    for i in range(len(corr)):
        code = codes[i]
        tolerance = violation_tolerance(tol, alpha, largest_magnitude(corr[i]), eps)
        _subtract_code(gram, corr[i], code, corr_residual)
        n_passes, violation = 0, 0.0
        converged[i] = False
        while n_passes < max_iter:
            violation = _lasso_pass(
                gram, corr_residual, code, all_atoms, m, alpha, positive
            )
            n_passes += 1
            if not tolerance < violation < np.inf:
                converged[i] = True
                break
            n_active = np.int64(0)  # the literal would be another type
            for j in range(m):
                if code[j] != 0:
                    active_atoms[n_active] = j
                    n_active += 1
            while tolerance < violation < np.inf and n_passes < max_iter:
                violation = _lasso_pass(
                    gram, corr_residual, code, active_atoms, n_active, alpha, positive
                )
                n_passes += 1
        if not (tolerance < np.inf and violation < np.inf):
            for j in range(m):
                code[j] = np.nan


@part_jit
def _subtract_code(gram, corr, code, corr_residual):
    """corr_residual = corr − Gγ."""
    for a in range(len(corr)):  # for an assignment Numba compiles errors about shapes
        corr_residual[a] = corr[a]
    for j in range(len(code)):
        coef = code[j]
        if coef != 0:
            for a in range(len(corr)):
                corr_residual[a] -= coef * gram[j, a]


@part_jit
def _lasso_pass(gram, corr_residual, code, atoms, n_atoms, alpha, positive):
    """One pass of coordinate descent over atoms[:n_atoms]; the largest violation.

    That of an atom is |change of γ_j| G_jj. The result is infinite where a change is
    not a finite number.
    """
    largest_violation = 0.0
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
            for a in range(len(corr_residual)):
                corr_residual[a] -= delta * gram[j, a]
            largest_violation = max(largest_violation, abs(delta) * gram[j, j])
    return largest_violation
