"""Numba twins of the changes of anchors: they enter, are replaced and leave."""

from __future__ import annotations

import numpy as np

from ..compiled import jit, largest_magnitude
from .types import ERROR, MERGE, SPOILED


@jit
def append_anchor(stock, size, row, k_xx, corr, slot, jitter):
    """Append an anchor with coefficients 0 and its row of the kernel matrix."""
    needs_repair = len(stock.inverse) > 0
    if needs_repair:
        needs_repair = _grow_inverse(stock.inverse, size, row, k_xx, jitter)
    for a in range(size):
        stock.matrix[size, a] = stock.matrix[a, size] = row[a]
    stock.matrix[size, size] = row[size] = k_xx
    copy_row(corr, stock.products[size])
    stock.slots[size] = slot
    if needs_repair:
        repair_inverse(stock, size + 1, np.float64(jitter))


@jit
def copy_row(source, target):
    """Copy by a loop, because Numba compiles errors about shapes for an assignment."""
    for j in range(len(source)):
        target[j] = source[j]


@jit
def _grow_inverse(inverse, size, row, k_xx, jitter):
    """Append a row and a column; return whether the inverse was inaccurate before."""
    coords = np.zeros(len(inverse))
    schur = np.float64(k_xx) * (1 + np.float64(jitter))
    for a in range(size):
        coords[a] = _inner(inverse, a, row, size)
        schur -= coords[a] * row[a]
    least = np.float64(k_xx) * np.float64(jitter)
    coords[size] = -1
    _add_outer(inverse, size + 1, coords, coords, 1 / max(schur, least))
    return not schur >= least


@jit
def _add_outer(rows, n, u, v, factor):
    """rows[:n] += factor · u vᵀ."""
    for a in range(n):
        weight, row = factor * u[a], rows[a]
        for j in range(len(v)):
            row[j] += weight * v[j]


@jit
def begin_anchor(stock, size):
    """Set the coefficients of the newest anchor, one of the first anchors."""
    copy_row(stock.start[size - 1], stock.coefs[size - 1])
    np.dot(stock.matrix, stock.coefs, stock.products)
    np.dot(stock.coefs.T, stock.products, stock.gram)


@jit
def project(stock, size, row, coords):
    """Write K⁺κ to `coords` by the inverse; the second step corrects for the jitter."""
    residual = row[:size].astype(np.float64)
    for _ in range(2):
        for a in range(size):
            coords[a] += _inner(stock.inverse, a, residual, size)
        for a in range(size):
            residual[a] = row[a] - _inner(stock.matrix, a, coords, size)


@jit
def _inner(matrix, a, x, size):
    """Row a times x, summed in a register: in memory it would round by addresses."""
    total = 0.0
    for b in range(size):
        total += matrix[a, b] * x[b]
    return total


@jit
def repair_inverse(stock, size, jitter):
    """Invert again if updates have spoiled the inverse, as for a low-rank matrix."""
    inverse = stock.inverse
    jittered = stock.matrix[:size, :size].astype(np.float64)
    energies, product = np.zeros(size), np.zeros(size)
    for a in range(size):
        energies[a] = jittered[a, a]
        jittered[a, a] += jitter * energies[a]
    for a in range(size):
        product[a] = _inner(inverse, a, energies, size)
    residual = np.zeros(size)
    for a in range(size):
        residual[a] = _inner(jittered, a, product, size) - energies[a]
    is_finite = largest_magnitude(jittered.reshape(-1)) < np.inf
    bound = SPOILED * largest_magnitude(energies)
    if not is_finite or largest_magnitude(residual) <= bound:
        return
    for a in range(size):
        for b in range(size):
            jittered[a, b] *= 1 / np.sqrt(energies[a]) / np.sqrt(energies[b])
    inverted = np.linalg.inv(jittered)
    for a in range(size):
        for b in range(size):
            scale = 1 / np.sqrt(energies[a]) / np.sqrt(energies[b])
            inverse[a, b] = inverted[a, b] * scale


@jit
def choose_removal(stock, size, pruning):
    """Choose an anchor to remove, and the weights of the others that replace it."""
    weights = np.zeros(len(stock.coefs), stock.coefs.dtype)
    row_norms2 = np.empty(size)
    for a in range(size):
        row_norms2[a] = 0
        for j in range(stock.coefs.shape[1]):
            row_norms2[a] += stock.coefs[a, j] * stock.coefs[a, j]
    if pruning == ERROR:
        for a in range(size):
            row_norms2[a] /= stock.inverse[a, a]
        removed = _smallest(row_norms2)
        for a in range(size):
            weights[a] = -stock.inverse[removed, a] / stock.inverse[removed, removed]
        weights[removed] = 0
        return removed, weights
    if pruning == MERGE:
        removed, other = _nearest_pair(stock.matrix, size, row_norms2)
        weights[other] = stock.matrix[removed, other] / stock.matrix[other, other]
        return removed, weights
    return _smallest(row_norms2), weights


@jit
def _smallest(numbers):
    """The place of the first smallest number."""
    place = 0
    for a in range(len(numbers)):
        if numbers[a] < numbers[place]:
            place = a
    return place


@jit
def _nearest_pair(matrix, size, row_norms2):
    """The anchor whose replacement by another has the least error, and the other."""
    least, removed, other = np.inf, 0, 0
    for a in range(size):
        for b in range(size):
            distance2 = matrix[a, a] - matrix[a, b] * matrix[a, b] / matrix[b, b]
            loss = max(distance2, 0) * row_norms2[a]
            if a != b and loss < least:
                least, removed, other = loss, a, b
    return removed, other


@jit
def prune_anchor(stock, size, removed, weights):
    """Replace φ of one anchor by a combination of the others, or by 0."""
    omega, change = stock.coefs[removed].copy(), stock.products[removed].copy()
    residual = stock.matrix[removed, :size].copy()
    for b in range(size):
        if weights[b] != 0:
            for a in range(size):
                residual[a] -= weights[b] * stock.matrix[b, a]
            for j in range(len(change)):
                change[j] -= weights[b] * stock.products[b, j]
    error2 = residual[removed]
    for a in range(size):
        error2 -= weights[a] * residual[a]
    _add_outer(stock.coefs, size, weights, omega, omega.dtype.type(1))
    _add_outer(stock.products, size, residual, omega, omega.dtype.type(-1))
    for j in range(len(omega)):
        change[j] -= error2 * omega[j] / 2
    _add_outer(stock.gram, len(omega), omega, change, omega.dtype.type(-1))
    _add_outer(stock.gram, len(omega), change, omega, omega.dtype.type(-1))
    if len(stock.inverse):
        inverse_row = stock.inverse[removed].copy()
        _add_outer(
            stock.inverse, size, inverse_row, inverse_row, -1 / inverse_row[removed]
        )
        _move(stock.inverse, removed, size - 1)
    _drop(stock, removed, size - 1)


@jit
def _drop(stock, removed, last):
    """Move the last anchor to the row of the removed one."""
    stock.slots[removed] = stock.slots[last]
    stock.slots[last] = 0
    copy_row(stock.coefs[last], stock.coefs[removed])
    copy_row(stock.products[last], stock.products[removed])
    stock.coefs[last] = 0
    stock.products[last] = 0
    _move(stock.matrix, removed, last)


@jit
def _move(square, removed, last):
    for a in range(last + 1):
        square[removed, a] = square[last, a]
    for a in range(last + 1):
        square[a, removed] = square[a, last]
    for a in range(last + 1):
        square[last, a] = square[a, last] = 0


@jit
def normalize_atoms(stock, size):
    """Scale atoms to unit norm."""
    m = len(stock.gram)
    scale = np.empty(m, stock.gram.dtype)
    for j in range(m):
        energy = stock.gram[j, j]
        scale[j] = 1 / np.sqrt(energy) if energy > 0 else 1
    for a in range(size):
        for j in range(m):
            stock.coefs[a, j] *= scale[j]
            stock.products[a, j] *= scale[j]
    for j in range(m):
        for k in range(m):
            stock.gram[j, k] *= scale[j] * scale[k]
