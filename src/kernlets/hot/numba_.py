"""Numba twins of the hot operations, for NumPy arrays.

Each function is serial and releases the interpreter lock: threads over row blocks
are in `kernlets.backend.threads`.
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
    return pursued(_omp_samples, gram, corr, energy, width, tol, kind.max)


def pursued(
    samples: Callable[..., None],
    gram: np.ndarray,
    corr: np.ndarray,
    energy: np.ndarray,
    width: int,
    tol: float,
    mask: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The codes that a compiled pursuit of all samples writes.

    `mask` has the bits of a correlation by which `_largest` compares it.
    """
    n, m = corr.shape
    indices = np.empty((n, width), dtype=np.int32)
    values = np.empty((n, width), dtype=corr.dtype)
    residual = np.empty(n, dtype=corr.dtype)
    left, bits, rows = work_space(m, width, corr.dtype)
    eps = corr.dtype.type(np.finfo(corr.dtype).eps)
    samples(
        np.ascontiguousarray(gram),
        corr,
        energy,
        corr.dtype.type(tol),
        eps,
        left,
        bits,
        bits.dtype.type(mask),
        rows,
        indices,
        values,
        residual,
    )
    return indices, values, residual


def work_space(
    m: int, width: int, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Correlations, their bits, and orthogonal rows, for a pursuit over m atoms.

    They end with zeros, so that loops over them have whole segments only.
    """
    room = -(-m // _SEGMENT) * _SEGMENT
    left = np.zeros(room, dtype)
    return left, left.view(f"i{dtype.itemsize}"), np.zeros((width, room), dtype)


@jit
def _omp_samples(
    gram, corr, energy, tol, eps, left, bits, mask, rows, indices, values, residual
):
    # plain indices throughout: a view costs more here than the loop it serves
    m, width = len(gram), indices.shape[1]
    parts, support = np.empty(width, corr.dtype), np.empty(width, np.int64)
    least = np.sqrt(eps)  # of ν²; see `reference.least_independent`
    one = corr.dtype.type(1)  # an integer over a float32 is a float64 here
    for i in range(len(corr)):
        for a in range(m):
            left[a] = corr[i, a]
        error = energy[i]
        stop = max(tol, 4 * eps * error)
        t, finite = 0, error < np.inf
        while t < width and error > stop:
            k = _largest(bits, mask)
            if _chosen(support, t, k):  # rounding left something at a used atom
                for s in range(t):
                    left[support[s]] = 0
                k = _largest(bits, mask)
            norm = gram[k, k]
            for s in range(t):
                norm -= rows[s, k] * rows[s, k]
            if left[k] == 0 or norm <= least * gram[k, k]:
                break
            inverse = one / np.sqrt(norm)
            part = left[k] * inverse
            support[t], parts[t] = k, part
            finite = part * part < np.inf
            if not finite:
                break
            _orthogonal_row(gram, rows, t, k, inverse)
            for a in range(_in_segments(left)):
                left[a] -= part * rows[t, a]
            error = max(error - part * part, 0.0)
            t += 1
        if finite and _back_substitute(rows, parts, support, t, i, indices, values):
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
    whole = m - m % _SEGMENT
    best, start = mask * 0 - 1, 0
    for begin in range(0, whole, _SEGMENT):
        top = mask * 0
        for a in range(_SEGMENT):
            top = max(top, bits[begin + a] & mask)
        if top > best:
            best, start = top, begin
    top = mask * 0
    for a in range(whole, m):
        top = max(top, bits[a] & mask)
    if top > best:
        best, start = top, whole
    for a in range(start, m):
        if bits[a] & mask == best:
            return a
    return start


@jit
def _in_segments(x):
    """The length of a work space; the compiler sees that it needs no remainder."""
    return len(x) // _SEGMENT * _SEGMENT


@jit
def _chosen(support, t, k):
    for s in range(t):
        if support[s] == k:
            return True
    return False


@jit
def _orthogonal_row(gram, rows, t, k, inverse):
    """rows[t] = (gram[k] − Σ_{s<t} rows[s, k] rows[s]) · inverse, four at a time."""
    m, room, s = len(gram), _in_segments(rows[t]), t % 4
    if s == 0:
        for a in range(m):
            rows[t, a] = gram[k, a] * inverse
    elif s == 1:
        f0 = rows[0, k] * inverse
        for a in range(m):
            rows[t, a] = gram[k, a] * inverse - f0 * rows[0, a]
    elif s == 2:
        f0, f1 = rows[0, k] * inverse, rows[1, k] * inverse
        for a in range(m):
            rows[t, a] = gram[k, a] * inverse - f0 * rows[0, a] - f1 * rows[1, a]
    else:
        f0, f1, f2 = rows[0, k] * inverse, rows[1, k] * inverse, rows[2, k] * inverse
        for a in range(m):
            taken = f0 * rows[0, a] + f1 * rows[1, a] + f2 * rows[2, a]
            rows[t, a] = gram[k, a] * inverse - taken
    while s < t:
        f0, f1 = rows[s, k] * inverse, rows[s + 1, k] * inverse
        f2, f3 = rows[s + 2, k] * inverse, rows[s + 3, k] * inverse
        for a in range(room):
            taken = f0 * rows[s, a] + f1 * rows[s + 1, a]
            rows[t, a] -= taken + f2 * rows[s + 2, a] + f3 * rows[s + 3, a]
        s += 4


@jit
def _back_substitute(rows, parts, support, t, i, indices, values):
    """Solve Lᵀγ = parts, L[s, u] = rows[u, support[s]], into row i; True if finite."""
    finite = True
    for s in range(t - 1, -1, -1):
        total = parts[s]
        for u in range(s + 1, t):
            total -= rows[s, support[u]] * values[i, u]
        values[i, s] = total / rows[s, support[s]]
        indices[i, s] = support[s]
        finite &= abs(values[i, s]) < np.inf
    return finite


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
    kind = corr.dtype.type
    weight, tol = kind(alpha), kind(tol)
    gram, left = np.ascontiguousarray(gram), corr.copy()
    _lasso_samples(gram, left, weight, positive, max_iter, tol, codes, converged)
    return codes, converged


@jit
def _lasso_samples(gram, left, alpha, positive, max_iter, tol, codes, converged):
    m = len(gram)
    everything = np.arange(m)
    active = np.empty(m, np.int64)
    for i in range(len(left)):
        stop, done, moved = tol * _peak(left[i]), 0, 0.0
        converged[i] = False
        while done < max_iter:
            moved = _lasso_pass(gram, left[i], codes[i], everything, m, alpha, positive)
            done += 1
            if not stop < moved < np.inf:
                converged[i] = True
                break
            n_active = 0
            for j in range(m):
                if codes[i, j] != 0:
                    active[n_active] = j
                    n_active += 1
            while stop < moved < np.inf and done < max_iter:
                moved = _lasso_pass(
                    gram, left[i], codes[i], active, n_active, alpha, positive
                )
                done += 1
        if not (stop < np.inf and moved < np.inf):
            codes[i] = np.nan


@jit
def _lasso_pass(gram, left, code, visit, n_visit, alpha, positive):
    """One pass of coordinate descent over visit[:n_visit]; the largest move.

    It is infinite where a move is not a finite number.
    """
    moved = 0.0
    for v in range(n_visit):
        j = visit[v]
        if not gram[j, j] > 0:  # an atom that is 0
            continue
        value = left[j] + gram[j, j] * code[j]
        size = value if positive else abs(value)
        new = max(size - alpha, 0.0) / gram[j, j]
        if value < 0:
            new = -new
        delta = new - code[j]
        if not abs(delta) < np.inf:
            return alpha + np.inf
        if delta != 0:
            code[j] = new
            row = gram[j]
            for a in range(len(left)):
                left[a] -= delta * row[a]
            moved = max(moved, abs(delta))
    return moved


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
def _unit(x):
    """The power of two to divide x by, so that its squares can be summed; see
    `reference.scaled`."""
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
    """(a, b) -> (a + b, a − b) on neighbouring parts of length h."""
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
        starts, places = _users(indices, len(atoms))
        _approximate_sweep(residual, atoms, values, order, starts, places, *signs)


@jit
def _users(indices, m):
    """Slots (flat positions in `indices`) grouped by atom: starts (m + 1), places."""
    n, width = indices.shape
    starts = np.zeros(m + 1, np.int64)
    for i in range(n):
        for w in range(width):
            if 0 <= indices[i, w] < m:
                starts[indices[i, w] + 1] += 1
    for j in range(m):
        starts[j + 1] += starts[j]
    ends = starts[:-1].copy()
    places = np.empty(starts[m], np.int64)
    for i in range(n):
        for w in range(width):
            j = indices[i, w]
            if 0 <= j < m:
                places[ends[j]] = i * width + w
                ends[j] += 1
    return starts, places


@jit
def _gathered(values, places):
    """The values at these flat positions."""
    width = values.shape[1]
    found = np.empty(len(places), values.dtype)
    for u in range(len(places)):
        found[u] = values[places[u] // width, places[u] % width]
    return found


@jit
def _approximate_sweep(
    residual, atoms, values, order, starts, places, positive, positive_atoms
):
    """Reads each user's residual row twice and writes it once."""
    p, width = atoms.shape[1], values.shape[1]
    new, zero = np.empty(p, atoms.dtype), atoms.dtype.type(0)
    for j in order:
        old, users = atoms[j], places[starts[j] : starts[j + 1]]
        unit = _unit(_gathered(values, users))
        power = zero
        for a in range(p):
            new[a] = 0
        for place in users:
            i, w = place // width, place % width
            coef, row = values[i, w] / unit, residual[i]
            power += coef * coef
            for a in range(p):
                new[a] += coef * row[a]
        norm, along, power = zero, zero, power * unit
        for a in range(p):
            new[a] += power * old[a]
        if positive_atoms:
            for a in range(p):
                new[a] = max(new[a], 0)
        unit = _unit(new)
        for a in range(p):
            new[a] /= unit
            norm += new[a] * new[a]
        if norm == 0:
            continue
        norm = np.sqrt(norm)
        for a in range(p):
            new[a] /= norm
            along += new[a] * old[a]
        for place in users:
            i, w = place // width, place % width
            coef, row = values[i, w], residual[i]
            fresh = coef * along
            for a in range(p):
                fresh += row[a] * new[a]
            if positive:
                fresh = max(fresh, zero)
            for a in range(p):
                row[a] += coef * old[a] - fresh * new[a]
            values[i, w] = fresh
        for a in range(p):
            old[a] = new[a]


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

    The sweep itself needs `products` and `gram` only. What it mixed is noted, and
    the coefficients follow at the end by one triangular solve.
    """
    if exact and not positive:
        state = coefs, products, gram, indices, values, order
        reference.gram_sweep(matrix, *state, exact, weights=weights)
        return
    own = np.ones(len(values), values.dtype) if weights is None else weights
    mixing = np.zeros_like(gram)
    use = np.zeros_like(values)
    moved = np.zeros(len(gram), dtype=np.bool_)
    users = _users(indices, len(gram))
    state = indices, values, order, users, mixing, use, moved
    _gram_sweep(matrix, products, gram, *state, bool(positive), own)
    _mix_coefs(coefs, indices, use, order, mixing, moved)


@jit
def _gram_sweep(
    matrix,
    products,
    gram,
    indices,
    values,
    order,
    users_of,
    mixing,
    use,
    moved,
    positive,
    weights,
):
    starts, places = users_of
    (m, n), width = products.shape, values.shape[1]
    eps = np.finfo(matrix.dtype).eps
    new, inner = np.empty(n, matrix.dtype), np.empty(m, matrix.dtype)
    for j in order:
        users = places[starts[j] : starts[j + 1]]
        mixed, unit = mixing[j], _unit(_gathered(values, users))
        for place in users:
            i, w = place // width, place % width
            use[i, w] = weights[i] * values[i, w] / unit
            for v in range(width):
                if v != w and 0 <= indices[i, v] < m:
                    mixed[indices[i, v]] += use[i, w] * values[i, v]
        _atom_products(new, matrix, products, use, users, width, mixed)
        energy = _inner_products(inner, new, products, gram, use, users, width, mixed)
        own, together = 0.0, 0.0
        for place in users:
            i, w = place // width, place % width
            own += use[i, w] * use[i, w] * matrix[i, i]
            together += abs(use[i, w]) * np.sqrt(max(matrix[i, i], 0))
        together *= together * np.sqrt(len(users))
        noise = reference.NOISE * own + reference.ALIKE * together
        if not energy > eps * noise:  # the atom stays
            for k in range(m):
                mixed[k] = 0
            for place in users:
                use[place // width, place % width] = 0
            continue
        moved[j] = True
        scale = 1 / np.sqrt(energy)
        for k in range(m):
            mixed[k] *= scale
            gram[j, k] = gram[k, j] = scale * inner[k]
        gram[j, j] = 1
        for a in range(n):
            products[j, a] = scale * new[a]
        for place in users:
            i, w = place // width, place % width
            use[i, w] *= scale
            fresh = products[j, i]
            for v in range(width):
                if v != w and 0 <= indices[i, v] < m:
                    fresh -= values[i, v] * gram[j, indices[i, v]]
            if positive:
                fresh = max(fresh, 0)
            values[i, w] = fresh


@jit
def _atom_products(new, matrix, products, use, users, width, mixed):
    """new = Σ_users g K[i] − Σ_k mixed[k] products[k], four atoms at a time."""
    n = len(new)
    for a in range(n):
        new[a] = 0
    for place in users:
        g, row = use[place // width, place % width], matrix[place // width]
        for a in range(n):
            new[a] += g * row[a]
    used = np.flatnonzero(mixed)
    t = 0
    while t + 4 <= len(used):
        f0, f1 = mixed[used[t]], mixed[used[t + 1]]
        f2, f3 = mixed[used[t + 2]], mixed[used[t + 3]]
        r0, r1 = products[used[t]], products[used[t + 1]]
        r2, r3 = products[used[t + 2]], products[used[t + 3]]
        for a in range(n):
            new[a] -= f0 * r0[a] + f1 * r1[a] + f2 * r2[a] + f3 * r3[a]
        t += 4
    while t < len(used):
        f0, r0 = mixed[used[t]], products[used[t]]
        for a in range(n):
            new[a] -= f0 * r0[a]
        t += 1


@jit
def _inner_products(inner, new, products, gram, use, users, width, mixed):
    """inner = ⟨d_k, new⟩ for all atoms; returns ⟨new, new⟩."""
    m = len(gram)
    energy = 0.0
    for k in range(m):
        total, row = 0.0, gram[k]
        for a in range(m):
            total -= row[a] * mixed[a]
        row = products[k]
        for place in users:
            total += use[place // width, place % width] * row[place // width]
        inner[k] = total
        energy -= mixed[k] * total
    for place in users:
        energy += use[place // width, place % width] * new[place // width]
    return energy


def _mix_coefs(
    coefs: np.ndarray,  # (m, N) changed in place
    indices: np.ndarray,
    use: np.ndarray,
    order: np.ndarray,
    mixing: np.ndarray,  # (m, m)
    moved: np.ndarray,  # (m,)
) -> None:
    """A = use − L A − U A_old, with L the atoms updated earlier and U those later."""
    earlier = np.tril(mixing[np.ix_(order, order)], -1)
    later = np.triu(mixing[np.ix_(order, order)], 1)
    np.fill_diagonal(earlier, 1)
    np.fill_diagonal(later, np.where(moved[order], 0, -1))  # an unmoved atom stays
    for start in range(0, coefs.shape[1], 512):
        rows = slice(start, start + 512)
        fresh = reference.spread(indices[rows], use[rows], len(coefs)).T
        right = fresh[order] - later @ coefs[order, rows]
        coefs[order, rows] = solve_triangular(
            earlier, right, lower=True, unit_diagonal=True, check_finite=False
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
