"""Numba twin of `positive.positive_omp`; see there for what is computed and why."""

from __future__ import annotations

import numpy as np

from .compiled import jit
from .numba_ import (
    _back_substitute,
    _is_in_support,
    _largest,
    _orthogonal_row,
    _whole_segments,
    run_pursuit,
)
from .positive import TRIES
from .reference import UNUSED


def positive_omp(
    gram: np.ndarray, corr: np.ndarray, energy: np.ndarray, width: int, tol: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """OMP by partial Cholesky as in `numba_.omp`; where an atom leaves, rows after it
    are computed again."""
    # no bit is masked: negative numbers are the smallest
    return run_pursuit(_positive_samples, gram, corr, energy, width, tol, mask=-1)


@jit
def _positive_samples(
    gram,
    corr,
    energy,
    tol,
    eps,
    corr_residual,
    bits,
    mask,
    V,
    indices,
    values,
    residual,
):
    m, width = len(gram), indices.shape[1]
    c, support = np.empty(width, corr.dtype), np.empty(width, np.int64)
    coefs = np.empty(width, corr.dtype)  # the last feasible code
    for i in range(len(corr)):
        is_finite = energy[i] < np.inf
        for a in range(m):
            corr_residual[a] = corr[i, a]
            is_finite &= abs(corr_residual[a]) < np.inf
        error = energy[i]
        stop = max(tol, 4 * eps * error)
        t, tries = 0, 0
        while is_finite and t < width and error > stop and tries < TRIES * width:
            k = _largest(bits, mask)
            if _is_in_support(support, t, k):  # rounding left something at a used atom
                for s in range(t):
                    corr_residual[support[s]] = 0
                k = _largest(bits, mask)
            if not corr_residual[k] > 0 or not _add_row(gram, V, support, t, k, eps):
                break
            coefs[t] = 0
            c[t] = corr_residual[k] / V[t, k]
            is_finite = c[t] * c[t] < np.inf
            t += 1
            is_finite &= _back_substitute(V, c, support, t, i, indices, values)
            n_subtracted = t - 1  # rows that were subtracted from `corr_residual`
            while is_finite and _move_until_zero(coefs, values, i, t):
                n_subtracted = 0
                counts = _drop_zeros(support, coefs, t)
                t = _rebuild_rows(gram, corr, V, c, support, coefs, counts, i, eps)
                is_finite = _back_substitute(V, c, support, t, i, indices, values)
            error, tries = energy[i], tries + 1
            for s in range(t):
                coefs[s] = values[i, s]
            # its own loop: beside a write, rounding depends on addresses
            for s in range(t):
                error -= c[s] * c[s]
            error = max(error, 0.0)
            is_finite &= error < np.inf
            if t < width:
                _subtract_rows(corr, V, c, n_subtracted, t, i, corr_residual)
        residual[i] = error
        if not is_finite:
            t, residual[i] = 0, np.nan
        for s in range(t, width):
            indices[i, s], values[i, s] = UNUSED, 0


@jit
def _add_row(gram, V, support, t, k, eps):
    """Write row t of V for atom k; False if it lies in the span of the support.

    See `reference.least_independent`.
    """
    nu2 = gram[k, k]
    for s in range(t):
        nu2 -= V[s, k] * V[s, k]
    if nu2 <= np.sqrt(eps) * gram[k, k]:
        return False
    _orthogonal_row(gram, V, t, k, gram.dtype.type(1) / np.sqrt(nu2))
    support[t] = k
    return True


@jit
def _move_until_zero(coefs, values, i, t):
    """Move `coefs` towards row i of `values` until one is zero; True if one is."""
    first_zero, shortest_step = -1, coefs[0] * 0
    for s in range(t):
        if values[i, s] <= 0:
            step = coefs[s] / (coefs[s] - values[i, s])
            if first_zero < 0 or step < shortest_step:
                first_zero, shortest_step = s, step
    if first_zero < 0:
        return False
    for s in range(t):
        coefs[s] += shortest_step * (values[i, s] - coefs[s])
    coefs[first_zero] = 0
    return True


@jit
def _drop_zeros(support, coefs, t):
    """Drop the atoms at zero; the counts of atoms that did not move and that stay."""
    n_unchanged, n_remaining = t, 0
    for s in range(t):
        if coefs[s] > 0:
            support[n_remaining], coefs[n_remaining] = support[s], coefs[s]
            n_remaining += 1
        else:
            n_unchanged = min(n_unchanged, s)
    return n_unchanged, n_remaining


@jit
def _rebuild_rows(gram, corr, V, c, support, coefs, counts, i, eps):
    """Write the rows of V and c of the atoms that moved up; the size of the support."""
    t = counts[0]
    for s in range(counts[0], counts[1]):
        k = support[s]
        if _add_row(gram, V, support, t, k, eps):
            total = corr[i, k]
            for u in range(t):
                total -= V[u, k] * c[u]
            c[t], coefs[t] = total / V[t, k], coefs[s]
            t += 1
    return t


@jit
def _subtract_rows(corr, V, c, n_subtracted, t, i, corr_residual):
    """corr_residual = corr − Σ_s c_s V_s; `n_subtracted` terms are there already."""
    if n_subtracted == 0:
        for a in range(corr.shape[1]):
            corr_residual[a] = corr[i, a]
    for s in range(n_subtracted, t):
        c_s = c[s]
        for a in range(_whole_segments(corr_residual)):
            corr_residual[a] -= c_s * V[s, a]
