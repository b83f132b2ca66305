"""Numba twins of the changes of anchors: they enter, are replaced and leave."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compiled import largest_magnitude, part_jit
from .types import ERROR, MERGE, SPOILED, Stock


class PruningScratch(NamedTuple):
    """Arrays to compute with when an anchor is removed."""

    weights: np.ndarray  # (c,) of the anchors that replace it
    row_norms2: np.ndarray  # (c,) of Ω
    residual: np.ndarray  # (c,) its kernel row, less that of its replacement
    omega: np.ndarray  # (m,) its coefficients
    change: np.ndarray  # (m,)

    @classmethod
    def of(cls, stock: Stock) -> PruningScratch:
        (c, m), dtype = stock.coefs.shape, stock.coefs.dtype
        return cls(
            np.empty(c, dtype),
            np.empty(c),
            np.empty(c, dtype),
            np.empty(m, dtype),
            np.empty(m, dtype),
        )


@part_jit
def append_anchor(stock, inverse, size, row, k_xx, corr, slot, jitter):
    """Append an anchor with coefficients 0 and its row of the kernel matrix."""
    needs_repair = False
    if inverse is not None:
        needs_repair = _grow_inverse(inverse, size, row, k_xx, jitter)
    for a in range(size):
        stock.matrix[size, a] = stock.matrix[a, size] = row[a]
    stock.matrix[size, size] = row[size] = k_xx
    for j in range(len(corr)):  # for an assignment Numba compiles errors about shapes
        stock.products[size, j] = corr[j]
    stock.slots[size] = slot
    if inverse is not None:
        if needs_repair:
            repair_inverse(stock.matrix, inverse, size + 1, np.float64(jitter))


@part_jit
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


@part_jit
def _add_outer(rows, n, u, v, factor):
    """rows[:n] += factor · u vᵀ."""
    for a in range(n):
        weight = factor * u[a]
        for j in range(len(v)):
            rows[a, j] += weight * v[j]


@part_jit
def begin_anchor(stock, size):
    """Set the coefficients of the newest anchor, one of the first anchors."""
    new, m, k_zz = size - 1, len(stock.gram), stock.matrix[size - 1, size - 1]
    omega, products = stock.start[new], stock.products
    for j in range(m):
        for k in range(m):
            change = omega[j] * products[new, k] + products[new, j] * omega[k]
            stock.gram[j, k] += change + k_zz * omega[j] * omega[k]
    for j in range(m):
        stock.coefs[new, j] = omega[j]
    _add_outer(products, size, stock.matrix[new], omega, products.dtype.type(1))


@part_jit
def project(matrix, inverse, size, row, coords):
    """Write K⁺κ to `coords` by the inverse; the second step corrects for the jitter."""
    residual = row[:size].astype(np.float64)
    for _ in range(2):
        for a in range(size):
            coords[a] += _inner(inverse, a, residual, size)
        for a in range(size):
            residual[a] = row[a] - _inner(matrix, a, coords, size)


@part_jit
def _inner(matrix, a, x, size):
    """Row a times x, summed in a register: in memory it would round by addresses."""
    total = 0.0
    for b in range(size):
        total += matrix[a, b] * x[b]
    return total


@part_jit
def repair_inverse(matrix, inverse, size, jitter):
    """Invert again if updates have spoiled the inverse, as for a low-rank matrix."""
    jittered = matrix[:size, :size].astype(np.float64)
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


@part_jit
def choose_removal(stock, inverse, size, rule, scratch):
    """Choose an anchor to remove; write the weights of the others that replace it."""
    weights, row_norms2 = scratch.weights, scratch.row_norms2
    for a in range(size):
        weights[a], row_norms2[a] = 0, 0
        for j in range(stock.coefs.shape[1]):
            row_norms2[a] += stock.coefs[a, j] * stock.coefs[a, j]
    if inverse is not None:
        if rule == ERROR:
            for a in range(size):
                row_norms2[a] /= inverse[a, a]
            removed = _smallest(row_norms2, size)
            for a in range(size):
                weights[a] = -inverse[removed, a] / inverse[removed, removed]
            weights[removed] = 0
            return removed
    if rule == MERGE:
        removed, other = _nearest_pair(stock.matrix, size, row_norms2)
        weights[other] = stock.matrix[removed, other] / stock.matrix[other, other]
        return removed
    return _smallest(row_norms2, size)


@part_jit
def _smallest(numbers, size):
    """The place of the first smallest number."""
    place = 0
    for a in range(size):
        if numbers[a] < numbers[place]:
            place = a
    return place


@part_jit
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


@part_jit
def prune_anchor(stock, inverse, size, removed, scratch):
    """Replace φ of an anchor by the weighted sum of the others, which may be 0."""
    weights, residual, omega = scratch.weights, scratch.residual, scratch.omega
    change, one = scratch.change, stock.gram.dtype.type(1)
    for j in range(len(omega)):
        omega[j], change[j] = stock.coefs[removed, j], stock.products[removed, j]
    for a in range(size):
        residual[a] = stock.matrix[removed, a]
    for b in range(size):
        if weights[b] != 0:
            for a in range(size):
                residual[a] -= weights[b] * stock.matrix[b, a]
            for j in range(len(change)):
                change[j] -= weights[b] * stock.products[b, j]
    error2 = residual[removed]
    for a in range(size):
        error2 -= weights[a] * residual[a]
    _add_outer(stock.coefs, size, weights, omega, one)
    _add_outer(stock.products, size, residual, omega, -one)
    for j in range(len(omega)):
        change[j] -= error2 * omega[j] / 2
    for j in range(len(omega)):
        for k in range(len(omega)):
            stock.gram[j, k] -= omega[j] * change[k] + change[j] * omega[k]
    if inverse is not None:
        inverse_row = inverse[removed].copy()
        _add_outer(inverse, size, inverse_row, inverse_row, -1 / inverse_row[removed])
        _move(inverse, removed, size - 1)
    _drop(stock, removed, size - 1)


@part_jit
def _drop(stock, removed, last):
    """Move the last anchor to the row of the removed one."""
    coefs, products, slots = stock.coefs, stock.products, stock.slots
    slots[removed], slots[last] = slots[last], 0
    for j in range(coefs.shape[1]):
        coefs[removed, j], coefs[last, j] = coefs[last, j], 0
        products[removed, j], products[last, j] = products[last, j], 0
    _move(stock.matrix, removed, last)


@part_jit
def _move(square, removed, last):
    for a in range(last + 1):
        square[removed, a] = square[last, a]
    for a in range(last + 1):
        square[a, removed] = square[a, last]
    for a in range(last + 1):
        square[last, a] = square[a, last] = 0


@part_jit
def normalize_atoms(stock, size, scale):
    """Scale atoms to unit norm; `scale` is room for a number for each."""
    m = len(scale)
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
