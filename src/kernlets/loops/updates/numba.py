"""Numba twins of the sweeps of K-SVD and of `subtract_codes`.

Their arguments are those of the reference. LAPACK takes most of the time of an exact
sweep, so the reference runs it.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import solve_triangular

from ..compiled import jit, largest_magnitude, part_jit
from . import reference


def subtract_codes(X, indices, values, atoms):
    """The residuals X − Γ·atoms."""
    residual = np.array(X, order="C")
    _subtract_codes(residual, indices, values, atoms)
    return residual


@jit
def _subtract_codes(residual, indices, values, atoms):
    for i in range(len(residual)):
        for w in range(indices.shape[1]):
            j = indices[i, w]
            if 0 <= j < len(atoms):
                value = values[i, w]
                for a in range(atoms.shape[1]):
                    residual[i, a] -= value * atoms[j, a]


def code_gram(indices, values, m):
    """ΓᵀΓ, in the order of the samples."""
    gram = np.zeros((m, m), values.dtype)
    _add_code_gram(gram, *_contiguous(indices, values))
    return gram


@jit
def _add_code_gram(gram, indices, values):
    width, m = indices.shape[1], len(gram)
    for i in range(len(indices)):
        for w in range(width):
            j = indices[i, w]
            if 0 <= j < m:
                for v in range(width):
                    if 0 <= indices[i, v] < m:
                        gram[j, indices[i, v]] += values[i, w] * values[i, v]


def code_cross(indices, values, X, m):
    """ΓᵀX, in the order of the samples."""
    cross = np.zeros((m, X.shape[1]), np.result_type(values, X))
    _add_code_cross(cross, *_contiguous(indices, values, X))
    return cross


def _contiguous(indices, *arrays):
    """The arguments in one layout, for which alone the loops are compiled."""
    indices = np.ascontiguousarray(indices, np.int64)
    return indices, *(np.ascontiguousarray(array) for array in arrays)


@jit
def _add_code_cross(cross, indices, values, X):
    for i in range(len(indices)):
        row = X[i]
        for w in range(indices.shape[1]):
            if 0 <= indices[i, w] < len(cross) and values[i, w] != 0:
                value, sums = values[i, w], cross[indices[i, w]]
                for a in range(len(row)):
                    sums[a] += value * row[a]


def ksvd_sweep(
    residual, atoms, indices, values, order, exact, positive=False, positive_atoms=False
):
    """One pass of approximate K-SVD."""
    if exact:
        reference.ksvd_sweep(
            residual, atoms, indices, values, order, exact, positive, positive_atoms
        )
        return
    slots, starts = _users(indices, len(atoms))
    _approximate_sweep(
        residual,
        atoms,
        values,
        order,
        slots,
        starts,
        bool(positive),
        bool(positive_atoms),
        np.empty(atoms.shape[1], atoms.dtype),
        np.finfo(atoms.dtype).tiny,
    )


def _users(indices, m):
    """Slots ordered by their atoms, and the first slot of each atom, (m + 1,)."""
    # NumPy sorts 16 bits in linear time
    indices = indices.astype(np.int16) if m < 2**15 else indices
    return reference.users_by_atom(indices, m)


@jit
def _approximate_sweep(
    residual, atoms, values, order, slots, starts, positive, positive_atoms, atom, tiny
):
    """Update the atoms; the residual of each user is read twice and written once.

    `atom` is working memory of the length of an atom.
    """
    p, width, zero = atoms.shape[1], values.shape[1], tiny * 0
    for j in order:
        old_atom, users = atoms[j], slots[starts[j] : starts[j + 1]]
        scale = _power_of_two(_peak(values, users), tiny)
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
        scale = _power_of_two(largest_magnitude(atom), tiny)
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


@part_jit
def _peak(values, slots):
    """The largest |value| in these slots; NaN or infinite if one is."""
    width, peak = values.shape[1], values[0, 0] * 0
    for slot in slots:
        size = abs(values[slot // width, slot % width])
        if not size <= peak:
            peak = size
            if not peak < np.inf:
                break
    return peak


@part_jit
def _power_of_two(peak, tiny):
    """The power of two to divide numbers up to `peak` by, to sum their squares."""
    one = tiny / tiny
    if not 0 < peak < np.inf:
        return one
    exponent = math.frexp(peak if peak > tiny else tiny)[1]
    return one * math.ldexp(one, exponent - 1)


def gram_sweep(
    matrix, coefs, products, gram, indices, values, order, exact,
    positive=False, weights=None,
):  # fmt: skip
    """One pass of approximate K-SVD in feature space.

    The compiled loop needs `products` and `gram` only. It stores how each atom mixes
    the others, and one triangular solve at the end gives the coefficients.
    """
    if exact and not positive:
        reference.gram_sweep(
            matrix,
            coefs,
            products,
            gram,
            indices,
            values,
            order,
            exact,
            weights=weights,
        )
        return
    weights = np.ones(len(values), values.dtype) if weights is None else weights
    mixing, g = np.zeros_like(gram), np.zeros_like(values)
    is_updated = np.zeros(len(gram), dtype=np.bool_)
    users, starts = _users(indices, len(gram))
    _gram_sweep(
        matrix, products, gram, indices, values, order, users, starts,
        mixing, g, is_updated, bool(positive), weights,
        np.empty(products.shape[1], matrix.dtype), np.empty(len(gram), matrix.dtype),
        np.finfo(matrix.dtype).eps, np.finfo(values.dtype).tiny,
    )  # fmt: skip
    _mix_coefs(coefs, indices, g, order, mixing, is_updated)


@jit
def _gram_sweep(
    matrix, products, gram, indices, values, order, slots, starts,
    mixing, g, is_updated, positive, weights, atom_products, inner, eps, tiny,
):  # fmt: skip
    (m, n), width = products.shape, values.shape[1]
    for j in order:
        users = slots[starts[j] : starts[j + 1]]
        mixing_j, scale = mixing[j], _power_of_two(_peak(values, users), tiny)
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


@part_jit
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


@part_jit
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


def _mix_coefs(coefs, indices, g, order, mixing, is_updated):
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


def block_sweep(residuals, gram, atoms):
    """One sweep of block coordinate descent over a few atoms."""
    gains = np.empty(len(atoms), atoms.dtype)
    _block_sweep(residuals, np.ascontiguousarray(gram), atoms, gains)
    return gains


@jit
def _block_sweep(residuals, gram, atoms, gains):
    b, p = atoms.shape
    change = np.empty(p, atoms.dtype)
    zero = np.zeros(1, atoms.dtype)[0]
    for i in range(b):
        atom, residual, weight = atoms[i], residuals[i], gram[i, i]
        squares, overlap = zero, zero
        for a in range(p):
            change[a] = residual[a] + weight * atom[a]
        for a in range(p):
            squares += change[a] * change[a]
            overlap += change[a] * atom[a]
        norm = np.sqrt(squares)
        gains[i] = norm - overlap
        if norm == 0:
            continue
        for a in range(p):
            new = change[a] / norm
            change[a] = new - atom[a]
            atom[a] = new
        for k in range(i + 1, b):
            factor, row = gram[k, i], residuals[k]
            if factor != 0:
                for a in range(p):
                    row[a] -= factor * change[a]


def masked_ksvd_sweep(residual, observed, atoms, indices, values, order):
    """One K-SVD pass over the observed entries, atom by atom."""
    users, starts = _users(indices, len(atoms))
    _masked_sweep(residual, observed, atoms, values, order, users, starts)


@jit
def _masked_sweep(residual, observed, atoms, values, order, users, starts):
    p, width = atoms.shape[1], values.shape[1]
    atom, power = np.empty(p, atoms.dtype), np.empty(p, atoms.dtype)
    # a number of an unset array may be NaN, and NaN · 0 too
    zero = np.zeros(1, atoms.dtype)[0]
    for j in order:
        if starts[j] == starts[j + 1]:
            continue
        hold = zero
        for u in range(starts[j], starts[j + 1]):
            i, w = users[u] // width, users[u] % width
            hold += values[i, w] * values[i, w]
        hold *= reference.HOLD
        for f in range(p):
            atom[f], power[f] = hold * atoms[j, f], hold
        for u in range(starts[j], starts[j + 1]):
            i, w = users[u] // width, users[u] % width
            g = values[i, w]
            for f in range(p):
                if observed[i, f]:
                    residual[i, f] += g * atoms[j, f]
                    atom[f] += g * residual[i, f]
                    power[f] += g * g
        for f in range(p):
            atom[f] /= power[f]
        norm2 = zero
        for f in range(p):  # a separate loop: a sum beside a write rounds by addresses
            norm2 += atom[f] * atom[f]
        is_nonzero = norm2 > 0
        for f in range(p):
            if is_nonzero:
                atoms[j, f] = atom[f] / np.sqrt(norm2)
        for u in range(starts[j], starts[j + 1]):
            i, w = users[u] // width, users[u] % width
            if is_nonzero:
                values[i, w] = _coefficient(residual[i], atoms[j], observed[i])
            g = values[i, w]
            for f in range(p):
                if observed[i, f]:
                    residual[i, f] -= g * atoms[j, f]


@part_jit
def _coefficient(error, atom, observed):
    """Σ E d / Σ d² over the observed entries, 0 if d is 0 there."""
    product, norm2 = atom[0] * 0, atom[0] * 0
    for f in range(len(atom)):
        if observed[f]:
            product += error[f] * atom[f]
            norm2 += atom[f] * atom[f]
    return product / norm2 if norm2 > 0 else norm2
