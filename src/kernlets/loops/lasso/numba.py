"""Numba twin of `lasso`: Newton steps on the active atoms, serial and without the lock.

The active atoms A have signs s. On the orthant of these signs the objective is
½ γᵀGγ − γᵀ(c − alpha s), and its minimiser differs from γ by

    d = G_AA⁻¹ (r_A − alpha s),  r = c − Gγ.

A round adds the atoms that violate |r_j| ≤ alpha most and moves γ along d. Where a
coefficient becomes zero on the way, its atom leaves and d is computed again. So the
objective falls in each round and no active set occurs twice. G_AA⁻¹ follows each
change of A by a term of rank one. r is computed anew in each round, which corrects for
rounding errors of the inverse.
"""

from __future__ import annotations

import numpy as np

from ...contracts import UNUSED
from ..compiled import jit, part_jit
from ..omp.numba import SEGMENT, is_in_support, largest_index
from ..updates.reference import densify
from .numba_descent import descend, violation_tolerance

LANES = 16  # rows of the inverse end with zeros, so that loops have whole vectors only
FIRST_WIDTH = 32  # active atoms for which there is room at first
LARGEST_WIDTH = 512  # samples with more are left to coordinate descent
MAX_CORRECTIONS = 4  # rounds without a new atom; more mean that G_AA is singular
SHARE = 0.5  # of the largest violation, from which on other atoms come with the worst


def lasso(gram, corr, alpha, positive, max_iter, tol):
    """Newton steps on active sets, and coordinate descent where they do not converge.

    That is where more than `LARGEST_WIDTH` atoms are active, or where their Gram matrix
    is too close to a singular or an indefinite one.
    """
    (n, m), dtype = corr.shape, corr.dtype
    gram, length = np.ascontiguousarray(gram), -(-m // SEGMENT) * SEGMENT
    alpha, tol = dtype.type(alpha), dtype.type(tol)
    corr_residual = np.zeros(length, dtype)
    bits = corr_residual.view(f"i{dtype.itemsize}")
    indices, values = np.empty((n, 0), np.int32), np.empty((n, 0), dtype)
    explained, converged = np.empty(n, dtype), np.zeros(n, np.bool_)
    sizes, n_rounds = np.zeros(n, np.int64), np.zeros(n, np.int64)
    width, first = FIRST_WIDTH, 0
    while first < n:
        indices, values = _widen(indices, width), _widen(values, width)
        first = active_set_samples(
            gram, corr, first, alpha, positive, max_iter, tol,
            corr_residual, bits, np.zeros((width, width), dtype),
            width < LARGEST_WIDTH, indices, values, sizes, explained, converged,
            n_rounds,
        )  # fmt: skip
        width *= 2
    width = max(1, sizes.max(initial=0))
    indices, values = indices[:, :width].copy(), values[:, :width].copy()
    unsolved = np.flatnonzero(~converged & (n_rounds < max_iter))
    if len(unsolved):
        problem = gram, corr[unsolved], alpha, positive, max_iter, tol
        if dtype == np.float64:
            codes = densify(indices[unsolved], values[unsolved], m)
            solved = descend(*problem, codes)
        else:
            solved = _solve_in_double(*problem)
        width = max(width, solved[0].shape[1])
        indices, values = _widen(indices, width), _widen(values, width)
        indices[unsolved], values[unsolved] = (
            _widen(rows, width) for rows in solved[:2]
        )
        explained[unsolved], converged[unsolved] = solved[2:]
    return indices, values, explained, converged


def _solve_in_double(gram, corr, *parameters):
    """Solve in float64; a diagonal that is raised by rounding errors outweighs them.

    Otherwise the Gram matrix in float32 of atoms that are dependent may be indefinite.
    """
    gram, corr = gram.astype(np.float64), corr.astype(np.float64)
    rounding = 4 * np.sqrt(len(gram)) * np.finfo(np.float32).eps
    np.fill_diagonal(gram, np.diagonal(gram) * (1 + rounding))
    indices, values, explained, converged = lasso(gram, corr, *parameters)
    with np.errstate(over="ignore"):
        values, explained = values.astype(np.float32), explained.astype(np.float32)
    is_infinite = ~(np.isfinite(explained) & np.isfinite(values).all(axis=1))
    indices[is_infinite], values[is_infinite] = UNUSED, 0
    explained[is_infinite] = np.nan
    return indices, values, explained, converged


def _widen(rows, width):
    """Return the rows with further columns for slots that are not used."""
    fill = UNUSED if rows.dtype.kind == "i" else 0
    widened = np.full((len(rows), width), fill, rows.dtype)
    widened[:, : rows.shape[1]] = rows
    return widened


@jit
def active_set_samples(
    gram, corr, first, alpha, positive, max_iter, tol, corr_residual,
    bits, inverse, may_grow, indices, values, sizes, explained, converged, n_rounds,
):  # fmt: skip
    """Code the samples from `first` on; return the first for which `width` is small."""
    m, width, dtype = len(gram), len(inverse), corr.dtype
    support, signs = np.empty(width, np.int64), np.empty(width, dtype)
    coefs, slopes = np.empty(width, dtype), np.empty(width, dtype)
    products, step = np.empty(width, dtype), np.empty(width, dtype)
    peaks = np.empty(len(bits) // SEGMENT, bits.dtype)
    magnitude = bits.dtype.type(np.iinfo(bits.dtype).max)  # all bits but the sign
    # with the sign, negative numbers are the smallest
    mask = bits.dtype.type(-1) if positive else magnitude
    eps = np.finfo(dtype).eps
    least_ratio = np.sqrt(eps)  # ν² relative to G_kk; see `_add_to_inverse`
    most_rounds = min(max_iter, 100 + 2 * m)  # rounding errors may repeat active sets
    for i in range(first, len(corr)):
        t, n_corrections, is_singular = np.int64(0), 0, False
        tolerance, is_finite = alpha * 0, True
        converged[i], n_rounds[i] = False, 0
        while n_rounds[i] < most_rounds and n_corrections <= MAX_CORRECTIONS:
            _subtract_atoms(gram, corr, i, support, coefs, t, corr_residual)
            if n_rounds[i] == 0:
                k = largest_index(bits, magnitude)
                tolerance = violation_tolerance(tol, alpha, abs(corr_residual[k]), eps)
            n_rounds[i] += 1
            _find_peaks(bits, mask, peaks)
            k = _take_largest(bits, mask, peaks)
            is_finite = tolerance + abs(corr_residual[k]) < np.inf
            if not is_finite:
                break
            violation = _violation(corr_residual[k], alpha, positive)
            is_optimal = violation <= tolerance
            if not is_optimal and t == width and may_grow:
                return i
            least = max(tolerance, SHARE * violation)
            t_before, most_atoms = t, min(t + 1 + t // 2, width)
            for _ in range(len(peaks)):
                if not (violation > least and t < most_atoms):
                    break
                if gram[k, k] > 0 and not is_in_support(support, t_before, k):
                    nu2 = _project(gram, inverse, support, products, step, t, k)
                    is_dependent = nu2 <= least_ratio * gram[k, k]
                    if is_dependent and t > t_before:
                        break
                    nu2 = max(nu2, least_ratio * gram[k, k])
                    _add_to_inverse(inverse, products, nu2, t)
                    support[t], coefs[t] = k, 0
                    signs[t] = 1 if corr_residual[k] > 0 else -1
                    t += 1
                    if is_dependent:
                        is_singular = True
                        break
                k = _take_largest(bits, mask, peaks)
                violation = _violation(corr_residual[k], alpha, positive)
            for s in range(t):
                slopes[s] = corr_residual[support[s]] - alpha * signs[s]
                is_optimal &= abs(slopes[s]) <= tolerance
            if is_optimal:
                converged[i] = True
                break
            if t == t_before:
                n_corrections += 1
            t, is_singular = _move(
                gram, inverse, support, coefs, signs, slopes, step, products, t,
                is_singular, least_ratio,
            )  # fmt: skip
        if is_finite and not converged[i]:
            _subtract_atoms(gram, corr, i, support, coefs, t, corr_residual)
        total = alpha * 0
        for s in range(t):
            k = support[s]
            total += coefs[s] * (corr[i, k] + corr_residual[k])
            indices[i, s], values[i, s] = k, coefs[s]
            for a in range(_whole_lanes(t)):
                inverse[s, a] = 0
        is_finite &= abs(total) < np.inf
        sizes[i], explained[i] = t, total
        if not is_finite:
            indices[i], values[i] = UNUSED, 0
            sizes[i], explained[i], converged[i] = 0, np.nan, True
    return len(corr)


@part_jit
def _subtract_atoms(gram, corr, i, support, coefs, t, corr_residual):
    """corr_residual = corr[i] − Gγ, four atoms at a time."""
    m, s = len(gram), 0
    for a in range(m):
        corr_residual[a] = corr[i, a]
    while s + 4 <= t:
        k0, k1, k2, k3 = support[s], support[s + 1], support[s + 2], support[s + 3]
        f0, f1, f2, f3 = coefs[s], coefs[s + 1], coefs[s + 2], coefs[s + 3]
        for a in range(m):
            explained = f0 * gram[k0, a] + f1 * gram[k1, a]
            corr_residual[a] -= explained + f2 * gram[k2, a] + f3 * gram[k3, a]
        s += 4
    while s < t:
        k0, f0 = support[s], coefs[s]
        for a in range(m):
            corr_residual[a] -= f0 * gram[k0, a]
        s += 1


@part_jit
def _find_peaks(bits, mask, peaks):
    """Write the largest number of each segment, by its bits as in `largest_index`."""
    for q in range(len(peaks)):
        begin, peak = q * SEGMENT, bits[q * SEGMENT] & mask
        for a in range(SEGMENT):
            peak = max(peak, bits[begin + a] & mask)
        peaks[q] = peak


@part_jit
def _take_largest(bits, mask, peaks):
    """Return the index of the largest peak, and take this peak out."""
    q = 0
    for other in range(len(peaks)):
        if peaks[other] > peaks[q]:
            q = other
    k, peak = q * SEGMENT, peaks[q]
    while bits[k] & mask != peak and k < len(bits) - 1:
        k += 1
    peaks[q] = np.iinfo(bits.dtype).min
    return k


@part_jit
def _violation(slope, alpha, positive):
    return (slope if positive else abs(slope)) - alpha


@part_jit
def _whole_lanes(t):
    return (t + LANES - 1) // LANES * LANES


@part_jit
def _project(gram, inverse, support, products, gram_k, t, k):
    """Write p = G_AA⁻¹ G_Ak to `products`; return ν² = G_kk − G_kA p."""
    end = _whole_lanes(t)
    for a in range(end):
        products[a] = 0
    for s in range(t):
        gram_ks = gram_k[s] = gram[k, support[s]]
        for a in range(end):
            products[a] += gram_ks * inverse[s, a]
    nu2 = gram[k, k]
    for s in range(t):
        nu2 -= gram_k[s] * products[s]
    return nu2


@part_jit
def _add_to_inverse(inverse, products, nu2, t):
    """Extend the inverse by an atom: it grows by (p, −1)(p, −1)ᵀ/ν²."""
    end, inverse_nu2 = _whole_lanes(t), 1 / nu2
    for s in range(t):
        factor = products[s] * inverse_nu2
        for a in range(end):
            inverse[s, a] += factor * products[a]
        inverse[s, t] = -factor
        inverse[t, s] = -factor
    inverse[t, t] = inverse_nu2


@part_jit
def _remove(inverse, support, coefs, signs, slopes, t, p):
    """Remove slot p of t; the last slot takes its place."""
    last, end = t - 1, _whole_lanes(t)
    for a in range(end):
        inverse[p, a], inverse[last, a] = inverse[last, a], inverse[p, a]
    for s in range(t):
        inverse[s, p], inverse[s, last] = inverse[s, last], inverse[s, p]
    support[p], coefs[p] = support[last], coefs[last]
    signs[p], slopes[p] = signs[last], slopes[last]
    inverse_pp = inverse[last, last]
    for s in range(last):
        factor = inverse[s, last] / inverse_pp
        for a in range(end):
            inverse[s, a] -= factor * inverse[last, a]
        inverse[s, last] = 0
    for a in range(end):
        inverse[last, a] = 0


@jit
def _move(
    gram, inverse, support, coefs, signs, slopes, step, products, t, is_singular,
    least_ratio,
):  # fmt: skip
    """Move the code to the minimum over the active atoms.

    Where a coefficient meets zero, the move stops, its atom leaves, and the move goes
    on with the others, whose slopes have become smaller in proportion. Returns how many
    atoms stay active, and whether their Gram matrix is singular.
    """
    one = coefs.dtype.type(1)
    while t > 0:
        end = _whole_lanes(t)
        for a in range(end):
            step[a] = 0
        for s in range(t):
            slope = slopes[s]
            for a in range(end):
                step[a] += slope * inverse[s, a]
        length, first_zero = one, -1
        for s in range(t):
            if (coefs[s] + step[s]) * signs[s] <= 0:
                # |step| ≥ |coef| here, and both are 0 only if the atom is new
                ratio = coefs[s] / -step[s] if coefs[s] != 0 else one * 0
                if first_zero < 0 or ratio < length:
                    length, first_zero = ratio, s
        for s in range(t):
            coefs[s] += length * step[s]
            slopes[s] *= one - length
        if first_zero < 0:
            break
        _remove(inverse, support, coefs, signs, slopes, t, first_zero)
        t -= 1
        if is_singular:  # differences of its large entries are inexact
            is_singular = _invert(
                gram, inverse, support, products, step, t, least_ratio
            )
    return t, is_singular


@part_jit
def _invert(gram, inverse, support, products, gram_k, t, least_ratio):
    """Compute the inverse anew; return whether the Gram matrix is singular."""
    is_singular = False
    for s in range(t):
        for a in range(_whole_lanes(t)):
            inverse[s, a] = 0
    for s in range(t):
        k = support[s]
        nu2 = _project(gram, inverse, support, products, gram_k, s, k)
        is_singular |= nu2 <= least_ratio * gram[k, k]
        _add_to_inverse(inverse, products, max(nu2, least_ratio * gram[k, k]), s)
    return is_singular
