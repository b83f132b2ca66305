"""Numba twins of `omp` and `positive_omp`; their arguments are those of the reference.

Each function is serial and releases the interpreter lock: threads over row blocks
are in `kernlets.numerics.threads`.
"""

from __future__ import annotations

import numpy as np

from ..compiled import jit, part_jit
from .reference import TRIES, UNUSED

SEGMENT = 64  # atoms searched together for the largest correlation


def omp(gram, corr, energy, width, tol):
    """OMP by partial Cholesky of the Gram matrix: no solve until the end.

    Step t adds one row v_t = (G[k] − Σ_s v_s[k] v_s) / ν with ν² = G_kk − Σ_s v_s[k]²,
    after which the correlations lose c_t v_t and the energy c_t², c_t = α_k / ν.
    A NaN among the correlations counts as the largest, so that it is always met.
    """
    return _run_pursuit(omp_samples, gram, corr, energy, width, tol)


def _run_pursuit(samples, gram, corr, energy, width, tol):
    """The codes that a compiled pursuit of all samples writes."""
    n, m = corr.shape
    indices = np.empty((n, width), dtype=np.int32)
    values = np.empty((n, width), dtype=corr.dtype)
    residual = np.empty(n, dtype=corr.dtype)
    gram, tol = np.ascontiguousarray(gram), corr.dtype.type(tol)
    samples(
        gram, corr, energy, tol, *precision(corr.dtype),
        *work_space(m, width, corr.dtype),
        indices, values, residual,
    )  # fmt: skip
    return indices, values, residual


def precision(dtype: np.dtype) -> tuple[np.floating, np.integer]:
    """The rounding error of numbers, and the bits of one without the sign."""
    bits = np.dtype(f"i{dtype.itemsize}")
    return np.finfo(dtype).eps, bits.type(np.iinfo(bits).max)


def work_space(
    m: int, width: int, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Correlations with m atoms, the same memory as integers, and the rows of V; the
    coefficients c and the support.

    The first three end with zeros, so that loops over them have whole segments only.
    """
    length = -(-m // SEGMENT) * SEGMENT
    corr_residual = np.zeros(length, dtype)
    bits, V = corr_residual.view(f"i{dtype.itemsize}"), np.zeros((width, length), dtype)
    return corr_residual, bits, V, np.empty(width, dtype), np.empty(width, np.int64)


@jit
def omp_samples(
    gram, corr, energy, tol, eps, magnitude, corr_residual, bits, V, c, support,
    indices, values, residual,
):  # fmt: skip
    # plain indices throughout: a view costs more here than the loop it serves
    m, width = len(gram), indices.shape[1]
    least_ratio = np.sqrt(eps)  # ν² relative to G_kk; see `least_independent`
    one = corr.dtype.type(1)  # an integer over a float32 is a float64 here
    for i in range(len(corr)):
        for a in range(m):
            corr_residual[a] = corr[i, a]
        error = energy[i]
        stop = max(tol, 4 * eps * error)
        # not the literal 0, for which Numba would compile everything once more
        t, is_finite = np.int64(0), error < np.inf
        while t < width and error > stop:
            k = largest_index(bits, magnitude)
            # rounding may leave a correlation at an atom of the support
            if is_in_support(support, t, k):
                for s in range(t):
                    corr_residual[support[s]] = 0
                k = largest_index(bits, magnitude)
            nu2 = gram[k, k]
            for s in range(t):
                nu2 -= V[s, k] * V[s, k]
            if corr_residual[k] == 0 or nu2 <= least_ratio * gram[k, k]:
                break
            inverse_nu = one / np.sqrt(nu2)
            c_t = corr_residual[k] * inverse_nu
            support[t], c[t] = k, c_t
            is_finite = c_t * c_t < np.inf
            if not is_finite:
                break
            _orthogonal_row(gram, V, t, k, inverse_nu)
            for a in range(_whole_segments(corr_residual)):
                corr_residual[a] -= c_t * V[t, a]
            error = max(error - c_t * c_t, 0.0)
            t += 1
        if is_finite and _back_substitute(V, c, support, t, i, indices, values):
            residual[i] = error
        else:
            t, residual[i] = 0, np.nan
        for s in range(t, width):
            indices[i, s], values[i, s] = UNUSED, 0


@part_jit
def largest_index(bits, mask):
    """The index of the largest number, given by its bits; `mask` chooses the bits.

    Magnitudes of floats are ordered like their bits without the sign, and unlike a
    floating-point maximum an integer one is turned into vector instructions.
    """
    m = len(bits)
    segments_end = m - m % SEGMENT
    best_bits, start = mask * 0 - 1, 0
    for begin in range(0, segments_end, SEGMENT):
        segment_bits = mask * 0
        for a in range(SEGMENT):
            segment_bits = max(segment_bits, bits[begin + a] & mask)
        if segment_bits > best_bits:
            best_bits, start = segment_bits, begin
    segment_bits = mask * 0
    for a in range(segments_end, m):
        segment_bits = max(segment_bits, bits[a] & mask)
    if segment_bits > best_bits:
        best_bits, start = segment_bits, segments_end
    for a in range(start, m):
        if bits[a] & mask == best_bits:
            return a
    return start


@part_jit
def _whole_segments(x):
    """The length of a work space; the compiler sees that it needs no remainder."""
    return len(x) // SEGMENT * SEGMENT


@part_jit
def is_in_support(support, t, k):
    for s in range(t):
        if support[s] == k:
            return True
    return False


@part_jit
def _orthogonal_row(gram, V, t, k, inverse_nu):
    """V[t] = (gram[k] − Σ_{s<t} V[s, k] V[s]) / ν, four rows at a time."""
    m, length, s = len(gram), _whole_segments(V[t]), t % 4
    if s == 0:
        for a in range(m):
            V[t, a] = gram[k, a] * inverse_nu
    elif s == 1:
        f0 = V[0, k] * inverse_nu
        for a in range(m):
            V[t, a] = gram[k, a] * inverse_nu - f0 * V[0, a]
    elif s == 2:
        f0, f1 = V[0, k] * inverse_nu, V[1, k] * inverse_nu
        for a in range(m):
            V[t, a] = gram[k, a] * inverse_nu - f0 * V[0, a] - f1 * V[1, a]
    else:
        f0, f1, f2 = V[0, k] * inverse_nu, V[1, k] * inverse_nu, V[2, k] * inverse_nu
        for a in range(m):
            explained = f0 * V[0, a] + f1 * V[1, a] + f2 * V[2, a]
            V[t, a] = gram[k, a] * inverse_nu - explained
    while s < t:
        f0, f1 = V[s, k] * inverse_nu, V[s + 1, k] * inverse_nu
        f2, f3 = V[s + 2, k] * inverse_nu, V[s + 3, k] * inverse_nu
        for a in range(length):
            explained = f0 * V[s, a] + f1 * V[s + 1, a]
            V[t, a] -= explained + f2 * V[s + 2, a] + f3 * V[s + 3, a]
        s += 4


@part_jit
def _back_substitute(V, c, support, t, i, indices, values):
    """Solve Lᵀγ = c, L[s, u] = V[u, support[s]], into row i; True if it is finite."""
    is_finite = True
    for s in range(t - 1, -1, -1):
        total = c[s]
        for u in range(s + 1, t):
            total -= V[s, support[u]] * values[i, u]
        values[i, s] = total / V[s, support[s]]
        indices[i, s] = support[s]
        is_finite &= abs(values[i, s]) < np.inf
    return is_finite


def positive_omp(gram, corr, energy, width, tol):
    """OMP by partial Cholesky as in `omp`; where an atom leaves, the rows of V after it
    are computed again."""
    return _run_pursuit(_positive_samples, gram, corr, energy, width, tol)


@jit
def _positive_samples(
    gram, corr, energy, tol, eps, magnitude, corr_residual, bits, V, c, support,
    indices, values, residual,
):  # fmt: skip
    m, width = len(gram), indices.shape[1]
    coefs = np.empty(width, corr.dtype)  # the last feasible code
    all_bits = magnitude * 0 - 1  # with the sign: negative numbers are the smallest
    for i in range(len(corr)):
        is_finite = energy[i] < np.inf
        for a in range(m):
            corr_residual[a] = corr[i, a]
            is_finite &= abs(corr_residual[a]) < np.inf
        error = energy[i]
        stop = max(tol, 4 * eps * error)
        t, tries = np.int64(0), 0
        while is_finite and t < width and error > stop and tries < TRIES * width:
            k = largest_index(bits, all_bits)
            # rounding may leave a correlation at an atom of the support
            if is_in_support(support, t, k):
                for s in range(t):
                    corr_residual[support[s]] = 0
                k = largest_index(bits, all_bits)
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


@part_jit
def _add_row(gram, V, support, t, k, eps):
    """Write row t of V for atom k; False if it lies in the span of the support.

    See `least_independent`.
    """
    nu2 = gram[k, k]
    for s in range(t):
        nu2 -= V[s, k] * V[s, k]
    if nu2 <= np.sqrt(eps) * gram[k, k]:
        return False
    _orthogonal_row(gram, V, t, k, gram.dtype.type(1) / np.sqrt(nu2))
    support[t] = k
    return True


@part_jit
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


@part_jit
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


@part_jit
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


@part_jit
def _subtract_rows(corr, V, c, n_subtracted, t, i, corr_residual):
    """corr_residual = corr − Σ_s c_s V_s; `n_subtracted` terms are there already."""
    if n_subtracted == 0:
        for a in range(corr.shape[1]):
            corr_residual[a] = corr[i, a]
    for s in range(n_subtracted, t):
        c_s = c[s]
        for a in range(_whole_segments(corr_residual)):
            corr_residual[a] -= c_s * V[s, a]
