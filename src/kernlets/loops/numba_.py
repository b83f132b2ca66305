"""Numba twins of the hot operations, for NumPy arrays.

Each function is serial and releases the interpreter lock: threads over row blocks
are in `kernlets.numerics.threads`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from scipy.linalg import solve_triangular

from . import reference
from .compiled import jit
from .reference import UNUSED

_SEGMENT = 64  # atoms searched together for the largest correlation


def omp(
    gram: np.ndarray, corr: np.ndarray, energy: np.ndarray, width: int, tol: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """OMP by partial Cholesky of the Gram matrix: no solve until the end.

    Step t adds one row v_t = (G[k] − Σ_s v_s[k] v_s) / ν with ν² = G_kk − Σ_s v_s[k]²,
    after which the correlations lose c_t v_t and the energy c_t², c_t = α_k / ν.
    A NaN among the correlations counts as the largest, so that it is always met.
    """
    kind = np.iinfo(f"i{corr.dtype.itemsize}")
    return run_pursuit(_omp_samples, gram, corr, energy, width, tol, kind.max)


def run_pursuit(
    samples: Callable[..., None],
    gram: np.ndarray,
    corr: np.ndarray,
    energy: np.ndarray,
    width: int,
    tol: float,
    mask: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The codes that a compiled pursuit of all samples writes.

    `mask` has the bits of a correlation that `_largest` compares.
    """
    n, m = corr.shape
    indices = np.empty((n, width), dtype=np.int32)
    values = np.empty((n, width), dtype=corr.dtype)
    residual = np.empty(n, dtype=corr.dtype)
    corr_residual, bits, V = work_space(m, width, corr.dtype)
    eps = corr.dtype.type(np.finfo(corr.dtype).eps)
    samples(
        np.ascontiguousarray(gram),
        corr,
        energy,
        corr.dtype.type(tol),
        eps,
        corr_residual,
        bits,
        bits.dtype.type(mask),
        V,
        indices,
        values,
        residual,
    )
    return indices, values, residual


def work_space(
    m: int, width: int, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Correlations, their bits, and the rows of V, for a pursuit over m atoms.

    They end with zeros, so that loops over them have whole segments only.
    """
    length = -(-m // _SEGMENT) * _SEGMENT
    corr_residual = np.zeros(length, dtype)
    return (
        corr_residual,
        corr_residual.view(f"i{dtype.itemsize}"),
        np.zeros((width, length), dtype),
    )


@jit
def _omp_samples(
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
    # plain indices throughout: a view costs more here than the loop it serves
    m, width = len(gram), indices.shape[1]
    c, support = np.empty(width, corr.dtype), np.empty(width, np.int64)
    least_ratio = np.sqrt(eps)  # ν² relative to G_kk; see `reference.least_independent`
    one = corr.dtype.type(1)  # an integer over a float32 is a float64 here
    for i in range(len(corr)):
        for a in range(m):
            corr_residual[a] = corr[i, a]
        error = energy[i]
        stop = max(tol, 4 * eps * error)
        t, is_finite = 0, error < np.inf
        while t < width and error > stop:
            k = _largest(bits, mask)
            if _is_in_support(support, t, k):  # rounding left something at a used atom
                for s in range(t):
                    corr_residual[support[s]] = 0
                k = _largest(bits, mask)
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


@jit
def _largest(bits, mask):
    """Index of the largest |value|.

    Magnitudes of floats are ordered like their bits without the sign, and unlike a
    floating-point maximum an integer one is turned into vector instructions.
    """
    m = len(bits)
    segments_end = m - m % _SEGMENT
    best_bits, start = mask * 0 - 1, 0
    for begin in range(0, segments_end, _SEGMENT):
        segment_bits = mask * 0
        for a in range(_SEGMENT):
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


@jit
def _whole_segments(x):
    """The length of a work space; the compiler sees that it needs no remainder."""
    return len(x) // _SEGMENT * _SEGMENT


@jit
def _is_in_support(support, t, k):
    for s in range(t):
        if support[s] == k:
            return True
    return False


@jit
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


@jit
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


def lasso(
    gram: np.ndarray,
    corr: np.ndarray,
    alpha: float,
    positive: bool,
    max_iter: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Coordinate descent that visits only the active atoms between full passes."""
    codes, converged = np.zeros_like(corr), np.zeros(len(corr), np.bool_)
    to_dtype = corr.dtype.type
    weight, tol = to_dtype(alpha), to_dtype(tol)
    gram, corr_residual = np.ascontiguousarray(gram), corr.copy()
    _lasso_samples(
        gram, corr_residual, weight, positive, max_iter, tol, codes, converged
    )
    return codes, converged


@jit
def _lasso_samples(
    gram, corr_residual, alpha, positive, max_iter, tol, codes, converged
):
    m = len(gram)
    all_atoms = np.arange(m)
    active_atoms = np.empty(m, np.int64)
    for i in range(len(corr_residual)):
        tolerance, n_passes, largest_move = tol * _peak(corr_residual[i]), 0, 0.0
        converged[i] = False
        while n_passes < max_iter:
            largest_move = _lasso_pass(
                gram, corr_residual[i], codes[i], all_atoms, m, alpha, positive
            )
            n_passes += 1
            if not tolerance < largest_move < np.inf:
                converged[i] = True
                break
            n_active = 0
            for j in range(m):
                if codes[i, j] != 0:
                    active_atoms[n_active] = j
                    n_active += 1
            while tolerance < largest_move < np.inf and n_passes < max_iter:
                largest_move = _lasso_pass(
                    gram,
                    corr_residual[i],
                    codes[i],
                    active_atoms,
                    n_active,
                    alpha,
                    positive,
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


@jit
def _peak(x):
    """The largest |value|; NaN or infinite if one of the values is."""
    peak = x.dtype.type(0)
    for a in range(len(x)):
        if not abs(x[a]) <= peak:
            peak = abs(x[a])
            if not peak < np.inf:
                break
    return peak


@jit
def _power_of_two(x):
    """The power of two to divide x by, so that its squares can be summed; see
    `reference.rescale`."""
    peak, one = _peak(x), x.dtype.type(1)
    if not 0 < peak < np.inf:
        return one
    exponent = math.frexp(max(peak, np.finfo(x.dtype).tiny))[1]
    return x.dtype.type(math.ldexp(one, exponent - 1))


def l1_distances(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Σ |xᵢ − yⱼ|."""
    return _l1_distances(np.ascontiguousarray(X), np.ascontiguousarray(Y))


@jit
def _l1_distances(X, Y):
    out = np.empty((len(X), len(Y)), X.dtype)
    for i in range(len(X)):
        x = X[i]
        for j in range(len(Y)):
            y, total = Y[j], 0.0
            for a in range(len(x)):
                total += abs(x[a] - y[a])
            out[i, j] = total
    return out


@jit
def fwht(X):
    """Walsh-Hadamard transform of each row in place, d log d additions."""
    d = X.shape[1]
    for i in range(len(X)):
        row, h = X[i], 1
        if d >= 8:
            _first_butterflies(row)
            h = 8
        while 4 * h <= d:
            _double_butterflies(row, h)
            h *= 4
        if h < d:
            _butterflies(row, h)


@jit
def _butterflies(x, h):
    """(a, b) -> (a + b, a − b) on neighbouring segments of length h."""
    for start in range(0, len(x), 2 * h):
        a, b = x[start : start + h], x[start + h : start + 2 * h]
        for i in range(h):
            a[i], b[i] = a[i] + b[i], a[i] - b[i]


@jit
def _double_butterflies(x, h):
    """The steps h and 2h in one pass over memory."""
    for start in range(0, len(x), 4 * h):
        a, b = x[start : start + h], x[start + h : start + 2 * h]
        c, d = x[start + 2 * h : start + 3 * h], x[start + 3 * h : start + 4 * h]
        for i in range(h):
            p, q, r, s = a[i] + b[i], a[i] - b[i], c[i] + d[i], c[i] - d[i]
            a[i], b[i], c[i], d[i] = p + r, q + s, p - r, q - s


@jit
def _first_butterflies(x):
    """The steps 1, 2 and 4 on eight numbers in registers: twice as fast as loops."""
    for i in range(0, len(x), 8):
        a, b = x[i] + x[i + 1], x[i] - x[i + 1]
        c, d = x[i + 2] + x[i + 3], x[i + 2] - x[i + 3]
        e, f = x[i + 4] + x[i + 5], x[i + 4] - x[i + 5]
        g, h = x[i + 6] + x[i + 7], x[i + 6] - x[i + 7]
        a, b, c, d = a + c, b + d, a - c, b - d
        e, f, g, h = e + g, f + h, e - g, f - h
        x[i], x[i + 1], x[i + 2], x[i + 3] = a + e, b + f, c + g, d + h
        x[i + 4], x[i + 5], x[i + 6], x[i + 7] = a - e, b - f, c - g, d - h


@jit
def subtract_codes(X, indices, values, atoms):
    """The residuals X − Γ·atoms."""
    out = X.copy()
    for i in range(len(X)):
        row = out[i]
        for w in range(indices.shape[1]):
            if 0 <= indices[i, w] < len(atoms):
                value, atom = values[i, w], atoms[indices[i, w]]
                for a in range(len(row)):
                    row[a] -= value * atom[a]
    return out


def ksvd_sweep(
    residual: np.ndarray,
    atoms: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    order: np.ndarray,
    exact: bool,
    positive: bool = False,
    positive_atoms: bool = False,
) -> None:
    """Approximate K-SVD sweep; the exact one is bound by LAPACK and stays in NumPy."""
    signs = bool(positive), bool(positive_atoms)
    if exact:
        reference.ksvd_sweep(residual, atoms, indices, values, order, exact, *signs)
    else:
        starts, slots = _users(indices, len(atoms))
        _approximate_sweep(residual, atoms, values, order, starts, slots, *signs)


@jit
def _users(indices, m):
    """Flat positions in `indices` by atom: starts (m + 1) and slots."""
    n, width = indices.shape
    starts = np.zeros(m + 1, np.int64)
    for i in range(n):
        for w in range(width):
            if 0 <= indices[i, w] < m:
                starts[indices[i, w] + 1] += 1
    for j in range(m):
        starts[j + 1] += starts[j]
    ends = starts[:-1].copy()
    slots = np.empty(starts[m], np.int64)
    for i in range(n):
        for w in range(width):
            j = indices[i, w]
            if 0 <= j < m:
                slots[ends[j]] = i * width + w
                ends[j] += 1
    return starts, slots


@jit
def _gather(values, slots):
    """The values at these flat positions."""
    width = values.shape[1]
    user_values = np.empty(len(slots), values.dtype)
    for u in range(len(slots)):
        user_values[u] = values[slots[u] // width, slots[u] % width]
    return user_values


@jit
def _approximate_sweep(
    residual, atoms, values, order, starts, slots, positive, positive_atoms
):
    """Update the atoms; each user's residual row is read twice and written once."""
    p, width = atoms.shape[1], values.shape[1]
    atom, zero = np.empty(p, atoms.dtype), atoms.dtype.type(0)
    for j in order:
        old_atom, users = atoms[j], slots[starts[j] : starts[j + 1]]
        scale = _power_of_two(_gather(values, users))
        squares = zero
        for a in range(p):
            atom[a] = 0
        for slot in users:
            i, w = slot // width, slot % width
            coef, row = values[i, w] / scale, residual[i]
            squares += coef * coef
            for a in range(p):
                atom[a] += coef * row[a]
        norm, overlap, squares = zero, zero, squares * scale
        for a in range(p):
            atom[a] += squares * old_atom[a]
        if positive_atoms:
            for a in range(p):
                atom[a] = max(atom[a], 0)
        scale = _power_of_two(atom)
        for a in range(p):
            atom[a] /= scale
            norm += atom[a] * atom[a]
        if norm == 0:
            continue
        norm = np.sqrt(norm)
        for a in range(p):
            atom[a] /= norm
            overlap += atom[a] * old_atom[a]
        for slot in users:
            i, w = slot // width, slot % width
            coef, row = values[i, w], residual[i]
            new_coef = coef * overlap
            for a in range(p):
                new_coef += row[a] * atom[a]
            if positive:
                new_coef = max(new_coef, zero)
            for a in range(p):
                row[a] += coef * old_atom[a] - new_coef * atom[a]
            values[i, w] = new_coef
        for a in range(p):
            old_atom[a] = atom[a]


def gram_sweep(
    matrix: np.ndarray,
    coefs: np.ndarray,
    products: np.ndarray,
    gram: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    order: np.ndarray,
    exact: bool,
    positive: bool = False,
    weights: np.ndarray | None = None,
) -> None:
    """Approximate sweep in feature space; the exact one stays in NumPy.

    The sweep itself needs `products` and `gram` only. It notes how each atom mixes the
    others, and one triangular solve at the end gives the coefficients.
    """
    if exact and not positive:
        state = coefs, products, gram, indices, values, order
        reference.gram_sweep(matrix, *state, exact, weights=weights)
        return
    sample_weights = np.ones(len(values), values.dtype) if weights is None else weights
    mixing = np.zeros_like(gram)
    g = np.zeros_like(values)
    is_updated = np.zeros(len(gram), dtype=np.bool_)
    users = _users(indices, len(gram))
    state = indices, values, order, users, mixing, g, is_updated
    _gram_sweep(matrix, products, gram, *state, bool(positive), sample_weights)
    _mix_coefs(coefs, indices, g, order, mixing, is_updated)


@jit
def _gram_sweep(
    matrix,
    products,
    gram,
    indices,
    values,
    order,
    slots_by_atom,
    mixing,
    g,
    is_updated,
    positive,
    weights,
):
    starts, slots = slots_by_atom
    (m, n), width = products.shape, values.shape[1]
    eps = np.finfo(matrix.dtype).eps
    atom_products, inner = np.empty(n, matrix.dtype), np.empty(m, matrix.dtype)
    for j in order:
        users = slots[starts[j] : starts[j + 1]]
        mixing_j, scale = mixing[j], _power_of_two(_gather(values, users))
        for slot in users:
            i, w = slot // width, slot % width
            g[i, w] = weights[i] * values[i, w] / scale
            for v in range(width):
                if v != w and 0 <= indices[i, v] < m:
                    mixing_j[indices[i, v]] += g[i, w] * values[i, v]
        _atom_products(atom_products, matrix, products, g, users, width, mixing_j)
        energy = _inner_products(
            inner, atom_products, products, gram, g, users, width, mixing_j
        )
        energy_sum, length_sum = 0.0, 0.0
        for slot in users:
            i, w = slot // width, slot % width
            energy_sum += g[i, w] * g[i, w] * matrix[i, i]
            length_sum += abs(g[i, w]) * np.sqrt(max(matrix[i, i], 0))
        length_sum *= length_sum * np.sqrt(len(users))
        noise = reference.NOISE * energy_sum + reference.ALIKE * length_sum
        if not energy > eps * noise:  # the atom is not changed
            for k in range(m):
                mixing_j[k] = 0
            for slot in users:
                g[slot // width, slot % width] = 0
            continue
        is_updated[j] = True
        inverse_norm = 1 / np.sqrt(energy)
        for k in range(m):
            mixing_j[k] *= inverse_norm
            gram[j, k] = gram[k, j] = inverse_norm * inner[k]
        gram[j, j] = 1
        for a in range(n):
            products[j, a] = inverse_norm * atom_products[a]
        for slot in users:
            i, w = slot // width, slot % width
            g[i, w] *= inverse_norm
            new_coef = products[j, i]
            for v in range(width):
                if v != w and 0 <= indices[i, v] < m:
                    new_coef -= values[i, v] * gram[j, indices[i, v]]
            if positive:
                new_coef = max(new_coef, 0)
            values[i, w] = new_coef


@jit
def _atom_products(atom_products, matrix, products, g, users, width, mixing_j):
    """atom_products = Σ_users g K[i] − Σ_k mixing_j[k] products[k], four at a time."""
    n = len(atom_products)
    for a in range(n):
        atom_products[a] = 0
    for slot in users:
        g_i, row = g[slot // width, slot % width], matrix[slot // width]
        for a in range(n):
            atom_products[a] += g_i * row[a]
    mixed_atoms = np.flatnonzero(mixing_j)
    t = 0
    while t + 4 <= len(mixed_atoms):
        f0, f1 = mixing_j[mixed_atoms[t]], mixing_j[mixed_atoms[t + 1]]
        f2, f3 = mixing_j[mixed_atoms[t + 2]], mixing_j[mixed_atoms[t + 3]]
        r0, r1 = products[mixed_atoms[t]], products[mixed_atoms[t + 1]]
        r2, r3 = products[mixed_atoms[t + 2]], products[mixed_atoms[t + 3]]
        for a in range(n):
            atom_products[a] -= f0 * r0[a] + f1 * r1[a] + f2 * r2[a] + f3 * r3[a]
        t += 4
    while t < len(mixed_atoms):
        f0, r0 = mixing_j[mixed_atoms[t]], products[mixed_atoms[t]]
        for a in range(n):
            atom_products[a] -= f0 * r0[a]
        t += 1


@jit
def _inner_products(inner, atom_products, products, gram, g, users, width, mixing_j):
    """inner = ⟨d_k, d⟩ of the new atom d with all atoms; returns ⟨d, d⟩."""
    m = len(gram)
    energy = 0.0
    for k in range(m):
        total, row = 0.0, gram[k]
        for a in range(m):
            total -= row[a] * mixing_j[a]
        row = products[k]
        for slot in users:
            total += g[slot // width, slot % width] * row[slot // width]
        inner[k] = total
        energy -= mixing_j[k] * total
    for slot in users:
        energy += g[slot // width, slot % width] * atom_products[slot // width]
    return energy


def _mix_coefs(
    coefs: np.ndarray,  # (m, N) changed in place
    indices: np.ndarray,
    g: np.ndarray,
    order: np.ndarray,
    mixing: np.ndarray,  # (m, m)
    is_updated: np.ndarray,  # (m,)
) -> None:
    """A = g − L A − U A_old, where L mixes atoms updated earlier, U later ones."""
    earlier = np.tril(mixing[np.ix_(order, order)], -1)
    later = np.triu(mixing[np.ix_(order, order)], 1)
    np.fill_diagonal(earlier, 1)
    np.fill_diagonal(later, np.where(is_updated[order], 0, -1))  # an unmoved atom stays
    for start in range(0, coefs.shape[1], 512):
        rows = slice(start, start + 512)
        g_rows = reference.densify(indices[rows], g[rows], len(coefs)).T
        rhs = g_rows[order] - later @ coefs[order, rows]
        coefs[order, rows] = solve_triangular(
            earlier, rhs, lower=True, unit_diagonal=True, check_finite=False
        )


@intrinsic
def _as_bits(context: Any, number: Any) -> Any:
    """The bits of a float."""
    return types.int64(types.float64), _same_bits


@intrinsic
def _as_float(context: Any, bits: Any) -> Any:
    """The float of some bits."""
    return types.float64(types.int64), _same_bits


def _same_bits(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.bitcast(args[0], context.get_value_type(signature.return_type))
