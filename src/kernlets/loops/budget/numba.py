"""Numba twin of `budget_stream`; the reference has the formulas.

Matrices are multiplied at their full capacity, where unused rows are zero, so that
BLAS gets contiguous arrays and nothing is copied.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compiled import jit, part_jit
from ..lasso.numba_descent import lasso_samples
from ..omp.numba import omp_samples, precision, work_space
from .numba_anchors import (
    PruningScratch,
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

    @classmethod
    def of(cls, stock: Stock) -> _Scratch:
        (c, m), dtype = stock.coefs.shape, stock.coefs.dtype
        return cls(
            np.zeros(c, dtype),
            np.empty((1, m), dtype),
            np.empty((1, m), dtype),
            np.empty(m, dtype),
            np.empty(1, dtype),
            np.ones(1, np.bool_),
        )


class _OmpScratch(NamedTuple):
    """What `omp_samples` computes with."""

    tol: float
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
    def of(cls, pursuit: BudgetPursuit, m: int, dtype: np.dtype) -> _OmpScratch:
        width = pursuit.width
        return cls(
            pursuit.tol,
            *precision(dtype),
            *work_space(m, width, dtype),
            np.empty((1, width), np.int32),
            np.empty((1, width), dtype),
        )


def budget_stream(stock, size, cross, energy, rates, rules, pursuit):
    """Learn from a block of samples; this changes the stock in place."""
    (c, m), dtype, width = stock.coefs.shape, energy.dtype, pursuit.width
    rules, pursuit = _cast_floats(rules, dtype.type), _cast_floats(pursuit, dtype.type)
    diagnostics = np.zeros((3, len(energy)), dtype)
    counts = _samples(
        stock,
        size,
        np.ascontiguousarray(cross),
        energy,
        rates,
        rules,
        pursuit.alpha,
        _Scratch.of(stock),
        None if width else pursuit,
        _OmpScratch.of(pursuit, m, dtype) if width else None,
        None if rules.feature_space else np.empty((2, c, m), dtype),
        np.empty(c) if rules.feature_space else None,
        stock.inverse if len(stock.inverse) else None,
        None if rules.patience < 0 else rules.patience,
        np.empty(m, dtype) if rules.unit else None,
        PruningScratch.of(stock),
        diagnostics,
    )
    return BudgetOutcome(*counts, *diagnostics)


def _cast_floats(numbers, dtype):
    """Convert the floats of a tuple to the precision of the samples."""
    return type(numbers)(*[dtype(x) if isinstance(x, float) else x for x in numbers])


@jit
def _samples(
    stock, size, cross, energy, rates, rules, alpha, scratch, lasso, omp, gradients,
    coords, inverse, patience, scale, pruning, diagnostics,
):  # fmt: skip
    """The loop over samples.

    The arguments from `lasso` to `scale` are None where the rules do without them.
    Numba then does not compile what stands after ``is not None``, so that the first
    call takes half as long.
    """
    row, corr = scratch.row, scratch.corr[0]
    first, n_admitted, n_unstable = cross.shape[1] - len(cross), 0, 0
    for i in range(len(cross)):
        k_xx = energy[i]
        coherence, babel, distance = _compare(stock, size, cross[i], k_xx, row)
        is_new = k_xx > 0 and (rules.repeats or coherence < 1 - rules.tiny)
        is_first = is_new and size < len(stock.start)
        error, alpha1 = _code_sample(stock, size, k_xx, scratch, lasso, omp)
        shrinkage = rules.penalty * _trace(stock.gram)
        diagnostics[0, i], diagnostics[2, i] = error, scratch.converged[0]
        diagnostics[1, i] = (error + shrinkage) / 2 + alpha * alpha1
        is_admitted = is_new and coherence < rules.coherence and error > rules.cost
        is_admitted &= babel < rules.babel and distance > rules.distance
        if inverse is not None:
            if is_admitted and rules.dependence >= 0:
                error2 = _distance_to_span(stock.matrix, inverse, size, row, k_xx)
                is_admitted = error2 > rules.dependence
        if is_first or is_admitted:
            append_anchor(
                stock, inverse, size, row, k_xx, corr, first + i, rules.jitter
            )
            size += 1
            n_admitted += 1
        if is_first:
            begin_anchor(stock, size)
        elif is_admitted or rules.learn_rejected:
            is_too_long = False
            if gradients is not None:
                is_too_long = _parameter_step(
                    stock, size, rates[i], rules, scratch, gradients
                )
            if coords is not None:
                _write_coordinates(stock, inverse, size, is_admitted, row, coords)
                is_too_long = _feature_step(
                    stock, size, coords, rates[i], rules, scratch
                )
            n_unstable += is_too_long
        _count_idle(stock.idle, scratch.codes[0])
        if patience is not None:
            idlest = _largest(stock.idle)
            if is_admitted and not is_first and patience < stock.idle[idlest]:
                _revive(stock, size, idlest, patience)
        if size > rules.budget:
            if inverse is not None:
                repair_inverse(stock.matrix, inverse, size, np.float64(rules.jitter))
            worst = choose_removal(stock, inverse, size, rules.pruning, pruning)
            prune_anchor(stock, inverse, size, worst, pruning)
            size -= 1
        if scale is not None:
            normalize_atoms(stock, size, scale)
    return size, n_admitted, n_unstable


@part_jit
def _compare(stock, size, cross, k_xx, row):
    """Write κ(anchors, x) to `row`; return what criteria of section III-A compare.

    It is the largest coherence of a sample with an anchor, their sum, and the squared
    distance to the nearest anchor.
    """
    largest, babel, distance = 0.0, 0.0, np.inf
    for a in range(len(row)):
        row[a] = 0
    for a in range(size):
        norm = stock.matrix[a, a]
        row[a] = cross[stock.slots[a]]
        largest = max(largest, (row[a] / norm) * (row[a] / k_xx))
        babel += abs(row[a]) / np.sqrt(norm) / np.sqrt(k_xx)
        distance = min(distance, k_xx + norm - 2 * row[a])
    return np.sqrt(largest), babel, distance


@part_jit
def _distance_to_span(matrix, inverse, size, row, k_xx):
    """The squared distance of a sample to the span of the anchors."""
    coords, distance2 = np.zeros(size), np.float64(k_xx)
    project(matrix, inverse, size, row, coords)
    for a in range(size):
        distance2 -= row[a] * coords[a]
    return distance2


@part_jit
def _code_sample(stock, size, k_xx, scratch, lasso, omp):
    """Write the code of a sample to `scratch`; return its squared error and ‖α‖₁."""
    corr, code, explained = scratch.corr[0], scratch.codes[0], scratch.explained
    _combine(scratch.row, stock.coefs, size, corr)
    for j in range(len(code)):
        code[j] = 0
    if lasso is not None:
        lasso_samples(
            stock.gram, scratch.corr, lasso.alpha, lasso.positive, lasso.max_iter,
            lasso.tol, scratch.codes, scratch.converged,
        )  # fmt: skip
    if omp is not None:
        _omp_code(stock.gram, k_xx, scratch, omp)
    _combine(code, stock.gram, len(code), explained)
    error, alpha1 = k_xx, 0.0
    for j in range(len(code)):
        error -= code[j] * (2 * corr[j] - explained[j])
        alpha1 += abs(code[j])
    return max(error, 0.0), alpha1


@part_jit
def _omp_code(gram, k_xx, scratch, omp):
    scratch.energy[0] = k_xx
    omp_samples(
        gram, scratch.corr, scratch.energy, omp.tol, omp.eps, omp.magnitude,
        omp.corr_residual, omp.bits, omp.V, omp.c, omp.support,
        omp.indices, omp.values, scratch.explained[:1],
    )  # fmt: skip
    for s in range(omp.indices.shape[1]):
        if omp.indices[0, s] >= 0:
            scratch.codes[0, omp.indices[0, s]] = omp.values[0, s]


@part_jit
def _combine(weights, rows, n, total):
    """total = Σ weightsₐ rowsₐ over the first n rows; weights of 0 are skipped."""
    for j in range(len(total)):
        total[j] = 0
    for a in range(n):
        weight = weights[a]
        if weight != 0:
            for j in range(len(total)):
                total[j] += weight * rows[a, j]


@part_jit
def _trace(square):
    total = square[0, 0] * 0
    for j in range(len(square)):
        total += square[j, j]
    return total


@part_jit
def _largest(numbers):
    """The place of the first largest number."""
    place = 0
    for j in range(len(numbers)):
        if numbers[j] > numbers[place]:
            place = j
    return place


@part_jit
def _count_idle(idle, code):
    for j in range(len(code)):
        idle[j] = idle[j] + 1 if code[j] == 0 else 0


@part_jit
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


@part_jit
def _write_coordinates(stock, inverse, size, is_admitted, row, coords):
    """Write the sample in the span of the anchors, of which it may be the newest."""
    for a in range(size):
        coords[a] = 0
    if is_admitted:
        coords[size - 1] = 1
    elif inverse is not None:
        project(stock.matrix, inverse, size, row, coords)


@part_jit
def _parameter_step(stock, size, rate, rules, scratch, gradients):
    """Ω ← Ω − ρG, G = (KΩα − κ)αᵀ + μKΩ, eqs. (19) and (20).

    A step that was too long is shortened if the rules say so; return whether it was.
    """
    row, code, mu = scratch.row, scratch.codes[0], rules.penalty
    coefs, products, G, KG = stock.coefs, stock.products, gradients[0], gradients[1]
    for a in range(len(G)):
        error = -row[a]
        for j in range(len(code)):
            error += products[a, j] * code[j]
        for j in range(len(code)):
            G[a, j] = error * code[j] + mu * products[a, j]
    # the matrix is symmetric; transposed as below, the product is compiled only once
    np.dot(stock.matrix.T, G, KG)
    G2, curvature = _curvature(G, KG, size, code, mu)
    is_too_long = rate * curvature > rules.reach * G2
    if is_too_long and rules.guard:
        rate = rules.reach * G2 / curvature
    for a in range(size):
        for j in range(len(code)):
            coefs[a, j] -= rate * G[a, j]
            products[a, j] -= rate * KG[a, j]
    np.dot(coefs.T, products, stock.gram)
    return is_too_long


@part_jit
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


@part_jit
def _feature_step(stock, size, coords, rate, rules, scratch):
    """D ← D − ρG, G = (Dα − φ(x))αᵀ + μD, eq. (15); returns as `_parameter_step`."""
    row, code, explained = scratch.row, scratch.codes[0], scratch.explained
    mu, corr_residual, m = rules.penalty, scratch.corr[0], len(code)
    for j in range(m):
        corr_residual[j] -= explained[j]
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
        _blend(stock.coefs[a], row.dtype.type(coords[a]), code, decay, rate)
        _blend(stock.products[a], row[a], code, decay, rate)
    for j in range(m):
        for k in range(m):
            change = decay * (corr_residual[j] * code[k] + corr_residual[k] * code[j])
            change += rate * error2 * code[j] * code[k]
            stock.gram[j, k] = decay * decay * stock.gram[j, k] + rate * change
    return is_too_long


@part_jit
def _blend(row, target, code, decay, rate):
    """row ← decay · row + rate · (target − row·code) code."""
    error = target
    for j in range(len(code)):
        error -= row[j] * code[j]
    for j in range(len(code)):
        row[j] = decay * row[j] + rate * error * code[j]
