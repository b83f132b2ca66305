"""Numba twin of `positive.positive_omp`; see there for what is computed and why."""

from __future__ import annotations

import numpy as np

from .compiled import jit
from .numba_ import (
    _back_substitute,
    _chosen,
    _in_segments,
    _largest,
    _orthogonal_row,
    pursued,
)
from .positive import TRIES
from .reference import UNUSED


def positive_omp(
    gram: np.ndarray, corr: np.ndarray, energy: np.ndarray, width: int, tol: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """OMP by partial Cholesky as in `numba_.omp`, undone from an atom that leaves."""
    # no bit is masked: negative numbers are the smallest
    return pursued(_positive_samples, gram, corr, energy, width, tol, mask=-1)


@jit
def _positive_samples(
    gram, corr, energy, tol, eps, left, bits, mask, rows, indices, values, residual
):
    m, width = len(gram), indices.shape[1]
    parts, support = np.empty(width, corr.dtype), np.empty(width, np.int64)
    coefs = np.empty(width, corr.dtype)  # the last feasible code
    for i in range(len(corr)):
        finite = energy[i] < np.inf
        for a in range(m):
            left[a] = corr[i, a]
            finite &= abs(left[a]) < np.inf
        error = energy[i]
        stop = max(tol, 4 * eps * error)
        t, tries = 0, 0
        while finite and t < width and error > stop and tries < TRIES * width:
            k = _largest(bits, mask)
            if _chosen(support, t, k):  # rounding left something at a used atom
                for s in range(t):
                    left[support[s]] = 0
                k = _largest(bits, mask)
            if not left[k] > 0 or not _extended(gram, rows, support, t, k, eps):
                break
            coefs[t] = 0
            parts[t] = left[k] / rows[t, k]
            finite = parts[t] * parts[t] < np.inf
            t += 1
            finite &= _back_substitute(rows, parts, support, t, i, indices, values)
            known = t - 1  # rows that `left` has lost already
            while finite and _towards(coefs, values, i, t):
                known = 0
                kept = _without_zeros(support, coefs, t)
                t = _rebuilt(gram, corr, rows, parts, support, coefs, kept, i, eps)
                finite = _back_substitute(rows, parts, support, t, i, indices, values)
            error, tries = energy[i], tries + 1
            for s in range(t):
                coefs[s] = values[i, s]
            for s in range(t):  # apart: a sum beside a write rounds by the addresses
                error -= parts[s] * parts[s]
            error = max(error, 0.0)
            finite &= error < np.inf
            if t < width:
                _rest(corr, rows, parts, known, t, i, left)
        residual[i] = error
        if not finite:
            t, residual[i] = 0, np.nan
        for s in range(t, width):
            indices[i, s], values[i, s] = UNUSED, 0


@jit
def _extended(gram, rows, support, t, k, eps):
    """Write row t for atom k; False if it lies in the span of those before.

    See `reference.least_independent`.
    """
    norm = gram[k, k]
    for s in range(t):
        norm -= rows[s, k] * rows[s, k]
    if norm <= np.sqrt(eps) * gram[k, k]:
        return False
    _orthogonal_row(gram, rows, t, k, gram.dtype.type(1) / np.sqrt(norm))
    support[t] = k
    return True


@jit
def _towards(coefs, values, i, t):
    """Go from `coefs` to row i of `values`, or until one of them is zero: then True."""
    out, share = -1, coefs[0] * 0
    for s in range(t):
        if values[i, s] <= 0:
            part = coefs[s] / (coefs[s] - values[i, s])
            if out < 0 or part < share:
                out, share = s, part
    if out < 0:
        return False
    for s in range(t):
        coefs[s] += share * (values[i, s] - coefs[s])
    coefs[out] = 0
    return True


@jit
def _without_zeros(support, coefs, t):
    """Drop the atoms at zero; the number before the first of them, and that of all."""
    same, keep = t, 0
    for s in range(t):
        if coefs[s] > 0:
            support[keep], coefs[keep] = support[s], coefs[s]
            keep += 1
        else:
            same = min(same, s)
    return same, keep


@jit
def _rebuilt(gram, corr, rows, parts, support, coefs, kept, i, eps):
    """Rows and parts of the atoms that have moved up; their number with the others."""
    t = kept[0]
    for s in range(kept[0], kept[1]):
        k = support[s]
        if _extended(gram, rows, support, t, k, eps):
            total = corr[i, k]
            for u in range(t):
                total -= rows[u, k] * parts[u]
            parts[t], coefs[t] = total / rows[t, k], coefs[s]
            t += 1
    return t


@jit
def _rest(corr, rows, parts, known, t, i, left):
    """left = corr − Σ_s parts_s rows_s, of which `known` terms are there already."""
    if known == 0:
        for a in range(corr.shape[1]):
            left[a] = corr[i, a]
    for s in range(known, t):
        part = parts[s]
        for a in range(_in_segments(left)):
            left[a] -= part * rows[s, a]
