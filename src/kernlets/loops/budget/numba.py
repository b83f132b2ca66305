"""Numba twin of `budget_stream`; the reference has the formulas.

Matrices are multiplied at their full capacity, where unused rows are zero, so that
BLAS gets contiguous arrays and nothing is copied.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compiled import jit
from ..lasso.numba_descent import lasso_samples
from ..omp.numba import omp_samples, precision, work_space
from .numba_anchors import (
    append_anchor,
    begin_anchor,
    choose_removal,
    normalize_atoms,
    project,
    prune_anchor,
    repair_inverse,
)
from .types import BudgetOutcome, BudgetPursuit, Stock


class _Scratch(NamedTuple):
    """Arrays to compute with one sample and its code."""

    row: np.ndarray  # (c,) κ(anchors, x), zero past the anchors
    corr: np.ndarray  # (1, m) Dᵀφ(x)
    codes: np.ndarray  # (1, m) α
    explained: np.ndarray  # (m,) DᵀDα
    energy: np.ndarray  # (1,)
    converged: np.ndarray  # (1,)
    # of OMP
    eps: np.floating
    magnitude: np.integer
    corr_residual: np.ndarray
    bits: np.ndarray
    V: np.ndarray
    c: np.ndarray
    support: np.ndarray
    indices: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, stock: Stock, pursuit: BudgetPursuit) -> _Scratch:
        (c, m), dtype = stock.coefs.shape, stock.coefs.dtype
        width = max(pursuit.width, 1)
        return cls(
            np.zeros(c, dtype),
            np.empty((1, m), dtype),
            np.empty((1, m), dtype),
            np.empty(m, dtype),
            np.empty(1, dtype),
            np.ones(1, np.bool_),
            *precision(dtype),
            *work_space(m, width, dtype),
            np.empty((1, width), np.int32),
            np.empty((1, width), dtype),
        )


def budget_stream(stock, size, cross, energy, rates, rules, pursuit):
    """Learn from a block of samples; this changes the stock in place."""
    dtype = energy.dtype.type
    diagnostics = np.zeros((3, len(energy)), dtype)
    cross, scratch = np.ascontiguousarray(cross), _Scratch.of(stock, pursuit)
    rules, pursuit = _cast_floats(rules, dtype), _cast_floats(pursuit, dtype)
    counts = _samples(
        stock, size, cross, energy, rates, rules, pursuit, scratch, diagnostics
    )
    return BudgetOutcome(*counts, *diagnostics)


def _cast_floats(numbers, dtype):
    """Convert the floats of a tuple to the precision of the samples."""
    return type(numbers)(*[dtype(x) if isinstance(x, float) else x for x in numbers])


@jit
def _samples(stock, size, cross, energy, rates, rules, pursuit, scratch, diagnostics):
    row, corr = scratch.row, scratch.corr[0]
    first, n_admitted, n_unstable = cross.shape[1] - len(cross), 0, 0
    for i in range(len(cross)):
        k_xx = energy[i]
        coherence = _largest_coherence(stock, size, cross[i], k_xx, row)
        is_new = k_xx > 0 and (rules.repeats or coherence < 1 - rules.tiny)
        is_first = is_new and size < len(stock.start)
        error, alpha1 = _code_sample(stock, size, k_xx, pursuit, scratch)
        shrinkage = rules.penalty * _trace(stock.gram)
        diagnostics[0, i], diagnostics[2, i] = error, scratch.converged[0]
        diagnostics[1, i] = (error + shrinkage) / 2 + pursuit.alpha * alpha1
        is_admitted = is_new and coherence < rules.coherence and error > rules.cost
        if is_admitted:
            is_admitted = _meets_further_criteria(stock, size, row, k_xx, rules)
        if is_first or is_admitted:
            append_anchor(stock, size, row, k_xx, corr, first + i, rules.jitter)
            size += 1
            n_admitted += 1
        if is_first:
            begin_anchor(stock, size)
        elif is_admitted or rules.learn_rejected:
            n_unstable += _step(stock, size, is_admitted, rates[i], rules, scratch)
        _count_idle(stock.idle, scratch.codes[0])
        idlest = _largest(stock.idle)
        if is_admitted and not is_first and 0 <= rules.patience < stock.idle[idlest]:
            _revive(stock, size, idlest, rules.patience)
        if size > rules.budget:
            if len(stock.inverse):
                repair_inverse(stock, size, np.float64(rules.jitter))
            worst, share = choose_removal(stock, size, rules.pruning)
            prune_anchor(stock, size, worst, share)
            size -= 1
        if rules.unit:
            normalize_atoms(stock, size)
    return size, n_admitted, n_unstable


@jit
def _largest_coherence(stock, size, cross, k_xx, row):
    """Write κ(anchors, x) to `row`; return the largest coherence with an anchor."""
    largest = 0.0
    row[:] = 0
    for a in range(size):
        row[a] = cross[stock.slots[a]]
        largest = max(largest, (row[a] / stock.matrix[a, a]) * (row[a] / k_xx))
    return np.sqrt(largest)


@jit
def _meets_further_criteria(stock, size, row, k_xx, rules):
    """Whether the further criteria of section III-A admit a sample."""
    babel, distance = 0.0, np.inf
    for a in range(size):
        norm = stock.matrix[a, a]
        babel += abs(row[a]) / np.sqrt(norm) / np.sqrt(k_xx)
        distance = min(distance, k_xx + norm - 2 * row[a])
    if not (babel < rules.babel and distance > rules.distance):
        return False
    if rules.dependence < 0:
        return True
    coords, distance2 = np.zeros(size), np.float64(k_xx)
    project(stock, size, row, coords)
    for a in range(size):
        distance2 -= row[a] * coords[a]
    return distance2 > rules.dependence


@jit
def _code_sample(stock, size, k_xx, pursuit, scratch):
    """Write the code of a sample to `scratch`; return its squared error and ‖α‖₁."""
    corr, code, explained = scratch.corr[0], scratch.codes[0], scratch.explained
    _combine(scratch.row, stock.coefs, size, corr)
    code[:] = 0
    if pursuit.width == 0:
        lasso_samples(
            stock.gram, scratch.corr, pursuit.alpha, pursuit.positive,
            pursuit.max_iter, pursuit.tol, scratch.codes, scratch.converged,
        )  # fmt: skip
    else:
        _omp_code(stock.gram, k_xx, pursuit, scratch)
    _combine(code, stock.gram, len(code), explained)
    error, alpha1 = k_xx, 0.0
    for j in range(len(code)):
        error -= code[j] * (2 * corr[j] - explained[j])
        alpha1 += abs(code[j])
    return max(error, 0.0), alpha1


@jit
def _omp_code(gram, k_xx, pursuit, scratch):
    scratch.energy[0] = k_xx
    omp_samples(
        gram, scratch.corr, scratch.energy, pursuit.tol, scratch.eps, scratch.magnitude,
        scratch.corr_residual, scratch.bits, scratch.V, scratch.c, scratch.support,
        scratch.indices, scratch.values, scratch.explained[:1],
    )  # fmt: skip
    for s in range(pursuit.width):
        if scratch.indices[0, s] >= 0:
            scratch.codes[0, scratch.indices[0, s]] = scratch.values[0, s]


@jit
def _combine(weights, rows, n, total):
    """total = Σ weightsₐ rowsₐ over the first n rows; weights of 0 are skipped."""
    total[:] = 0
    for a in range(n):
        weight, row = weights[a], rows[a]
        if weight != 0:
            for j in range(len(total)):
                total[j] += weight * row[j]


@jit
def _trace(square):
    total = square[0, 0] * 0
    for j in range(len(square)):
        total += square[j, j]
    return total


@jit
def _largest(numbers):
    """The place of the first largest number."""
    place = 0
    for j in range(len(numbers)):
        if numbers[j] > numbers[place]:
            place = j
    return place


@jit
def _count_idle(idle, code):
    for j in range(len(code)):
        idle[j] = idle[j] + 1 if code[j] == 0 else 0


@jit
def _revive(stock, size, atom, patience):
    """Set the atom to the newest anchor, scaled to the mean norm of atoms in use."""
    last, total, n_used = size - 1, 0.0, 0
    k_zz = stock.matrix[last, last]
    for j in range(len(stock.gram)):
        if stock.idle[j] <= patience:
            total += stock.gram[j, j]
            n_used += 1
    scale = np.sqrt(total / (n_used * k_zz)) if n_used else k_zz / k_zz
    for a in range(len(stock.coefs)):
        stock.coefs[a, atom] = 0
    stock.coefs[last, atom] = scale
    for a in range(size):
        stock.products[a, atom] = scale * stock.matrix[a, last]
    for j in range(len(stock.gram)):
        stock.gram[atom, j] = stock.gram[j, atom] = scale * stock.products[last, j]
    stock.idle[atom] = 0


@jit
def _step(stock, size, is_admitted, rate, rules, scratch):
    """Take a gradient step on the cost of a sample; return whether it was too long."""
    if not rules.feature_space:
        return _parameter_step(stock, size, rate, rules, scratch)
    coords = np.zeros(size)
    if is_admitted:
        coords[size - 1] = 1
    else:
        project(stock, size, scratch.row, coords)
    typed_coords = coords.astype(scratch.row.dtype)
    return _feature_step(stock, size, typed_coords, rate, rules, scratch)


@jit
def _parameter_step(stock, size, rate, rules, scratch):
    """Ω ← Ω − ρG, G = (KΩα − κ)αᵀ + μKΩ, eqs. (19) and (20)."""
    row, code, mu = scratch.row, scratch.codes[0], rules.penalty
    G = np.zeros_like(stock.products)
    for a in range(size):
        error, products = -row[a], stock.products[a]
        for j in range(len(code)):
            error += products[j] * code[j]
        for j in range(len(code)):
            G[a, j] = error * code[j] + mu * products[j]
    KG = np.dot(stock.matrix, G)
    G2, curvature = _curvature(G, KG, size, code, mu)
    is_too_long = rate * curvature > rules.reach * G2
    if is_too_long and rules.guard:
        rate = rules.reach * G2 / curvature
    for a in range(size):
        for j in range(len(code)):
            stock.coefs[a, j] -= rate * G[a, j]
            stock.products[a, j] -= rate * KG[a, j]
    np.dot(stock.coefs.T, stock.products, stock.gram)
    return is_too_long


@jit
def _curvature(G, KG, size, code, mu):
    """‖G‖², and the second derivative of the cost of the sample along G."""
    G2, curvature = 0.0, 0.0
    for a in range(size):
        G_alpha, KG_alpha = 0.0, 0.0
        for j in range(len(code)):
            G2 += G[a, j] * G[a, j]
            curvature += mu * G[a, j] * KG[a, j]
            G_alpha += G[a, j] * code[j]
            KG_alpha += KG[a, j] * code[j]
        curvature += G_alpha * KG_alpha
    return G2, curvature


@jit
def _feature_step(stock, size, coords, rate, rules, scratch):
    """D ← D − ρG, G = (Dα − φ(x))αᵀ + μD, eq. (15)."""
    row, code, explained = scratch.row, scratch.codes[0], scratch.explained
    mu, corr_residual, m = rules.penalty, scratch.corr[0] - explained, len(code)
    error2, alpha2, cross_term, energy = 0.0, 0.0, 0.0, 0.0
    for a in range(size):
        error2 += coords[a] * row[a]
    for j in range(m):
        error2 -= code[j] * (2 * corr_residual[j] + explained[j])
        alpha2 += code[j] * code[j]
        cross_term += 2 * mu * code[j] * corr_residual[j]
        energy += code[j] * explained[j]
    G2 = error2 * alpha2 - cross_term + mu**2 * _trace(stock.gram)
    curvature = alpha2 * (error2 * alpha2 - cross_term) + mu**2 * energy + mu * G2
    is_too_long = rate * curvature > rules.reach * G2
    if is_too_long and rules.guard:
        rate = rules.reach * G2 / curvature
    decay = 1 - mu * rate
    for a in range(size):
        _blend(stock.coefs[a], coords[a], code, decay, rate)
        _blend(stock.products[a], row[a], code, decay, rate)
    for j in range(m):
        for k in range(m):
            change = decay * (corr_residual[j] * code[k] + corr_residual[k] * code[j])
            change += rate * error2 * code[j] * code[k]
            stock.gram[j, k] = decay * decay * stock.gram[j, k] + rate * change
    return is_too_long


@jit
def _blend(row, target, code, decay, rate):
    """row ← decay · row + rate · (target − row·code) code."""
    error = target
    for j in range(len(code)):
        error -= row[j] * code[j]
    for j in range(len(code)):
        row[j] = decay * row[j] + rate * error * code[j]
