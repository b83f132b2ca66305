"""Numba twin of `reference_budget`; see there for what is computed and why.

Matrices are multiplied at their full capacity, where unused rows are zero, so that
BLAS gets contiguous arrays and nothing is copied.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .budget import ERROR, MERGE, SPOILED, Outcome, Pursuit, Rules, Stock
from .numba_ import _jit, _lasso_samples, _omp_samples, _peak, work_space


class _Scratch(NamedTuple):
    """Room for one sample and its code."""

    row: np.ndarray  # (c,) κ(anchors, x), zero past the anchors
    corr: np.ndarray  # (1, m) Dᵀφ(x)
    codes: np.ndarray  # (1, m) α
    explained: np.ndarray  # (m,) DᵀDα
    energy: np.ndarray  # (1,)
    converged: np.ndarray  # (1,)
    # of OMP
    left: np.ndarray
    bits: np.ndarray
    rows: np.ndarray
    indices: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, stock: Stock, pursuit: Pursuit) -> _Scratch:
        (c, m), kind = stock.coefs.shape, stock.coefs.dtype
        width = max(pursuit.width, 1)
        return cls(
            np.zeros(c, kind),
            np.empty((1, m), kind),
            np.empty((1, m), kind),
            np.empty(m, kind),
            np.empty(1, kind),
            np.ones(1, np.bool_),
            *work_space(m, width, kind),
            np.empty((1, width), np.int32),
            np.empty((1, width), kind),
        )


def budget_stream(
    stock: Stock,
    size: int,
    cross: np.ndarray,
    energy: np.ndarray,
    rates: np.ndarray,
    rules: Rules,
    pursuit: Pursuit,
) -> Outcome:
    """Learn from a block of samples; changes the stock in place."""
    kind = energy.dtype.type
    noted = np.zeros((3, len(energy)), kind)
    counts = _samples(
        stock,
        size,
        np.ascontiguousarray(cross),
        energy,
        rates,
        _typed(rules, kind),
        _typed(pursuit, kind),
        _Scratch.of(stock, pursuit),
        noted,
    )
    return Outcome(*counts, *noted)


def _typed(numbers, kind):
    """The same with floats in the precision of the samples."""
    return type(numbers)(*[kind(x) if isinstance(x, float) else x for x in numbers])


@_jit
def _samples(stock, size, cross, energy, rates, rules, pursuit, scratch, noted):
    row, corr = scratch.row, scratch.corr[0]
    first, n_admitted, n_unstable = cross.shape[1] - len(cross), 0, 0
    for i in range(len(cross)):
        own = energy[i]
        near = _nearness(stock, size, cross[i], own, row)
        is_new = own > 0 and (rules.repeats or near < 1 - rules.tiny)
        starting = is_new and size < len(stock.start)
        error, length = _coded(stock, size, own, pursuit, scratch)
        shrinkage = rules.penalty * np.trace(stock.gram)
        noted[0, i], noted[2, i] = error, scratch.converged[0]
        noted[1, i] = (error + shrinkage) / 2 + pursuit.alpha * length
        admitted = is_new and near < rules.coherence and error > rules.cost
        admitted = admitted and _differs(stock, size, row, own, rules)
        if starting or admitted:
            _append(stock, size, row, own, corr, first + i, rules.jitter)
            size += 1
            n_admitted += 1
        if starting:
            _begin(stock, size)
        elif admitted or rules.learn_rejected:
            n_unstable += _step(stock, size, admitted, rates[i], rules, scratch)
        _count_idle(stock.idle, scratch.codes[0])
        if admitted and not starting and 0 <= rules.patience < stock.idle.max():
            _revive(stock, size, np.argmax(stock.idle), rules.patience)
        if size > rules.budget:
            if len(stock.inverse):
                _settle_inverse(stock, size, np.float64(rules.jitter))
            worst, share = _least(stock, size, rules.pruning)
            _prune(stock, size, worst, share)
            size -= 1
        if rules.unit:
            _normalize(stock, size)
    return size, n_admitted, n_unstable


@_jit
def _nearness(stock, size, cross, own, row):
    """κ(anchors, x) into `row`; the largest coherence with an anchor."""
    best = 0.0
    row[:] = 0
    for a in range(size):
        row[a] = cross[stock.slots[a]]
        best = max(best, (row[a] / stock.matrix[a, a]) * (row[a] / own))
    return np.sqrt(best)


@_jit
def _differs(stock, size, row, own, rules):
    """Whether the further criteria of section III-A admit a sample."""
    total, gap = 0.0, np.inf
    for a in range(size):
        norm = stock.matrix[a, a]
        total += abs(row[a]) / np.sqrt(norm) / np.sqrt(own)
        gap = min(gap, own + norm - 2 * row[a])
    if not (total < rules.babel and gap > rules.distance):
        return False
    if rules.dependence < 0:
        return True
    place, left = np.zeros(size), np.float64(own)
    _project(stock, size, row, place)
    for a in range(size):
        left -= row[a] * place[a]
    return left > rules.dependence


@_jit
def _coded(stock, size, own, pursuit, scratch):
    """The code of the sample in the scratch; its squared error and ‖α‖₁."""
    corr, code, explained = scratch.corr[0], scratch.codes[0], scratch.explained
    _combine(scratch.row, stock.coefs, size, corr)
    code[:] = 0
    if pursuit.width == 0:
        alpha, tol = pursuit.alpha, pursuit.tol
        _lasso_samples(
            stock.gram,
            scratch.corr.copy(),
            alpha,
            pursuit.positive,
            pursuit.max_iter,
            tol,
            scratch.codes,
            scratch.converged,
        )
    else:
        _omp_code(stock.gram, own, pursuit, scratch)
    _combine(code, stock.gram, len(code), explained)
    error, length = own, 0.0
    for j in range(len(code)):
        error -= code[j] * (2 * corr[j] - explained[j])
        length += abs(code[j])
    return max(error, 0.0), length


@_jit
def _omp_code(gram, own, pursuit, scratch):
    eps = np.finfo(gram.dtype).eps
    mask = np.iinfo(scratch.bits.dtype).max
    scratch.energy[0] = own
    _omp_samples(
        gram,
        scratch.corr,
        scratch.energy,
        pursuit.tol,
        eps,
        scratch.left,
        scratch.bits,
        mask,
        scratch.rows,
        scratch.indices,
        scratch.values,
        scratch.explained[:1],
    )
    for s in range(pursuit.width):
        if scratch.indices[0, s] >= 0:
            scratch.codes[0, scratch.indices[0, s]] = scratch.values[0, s]


@_jit
def _combine(weights, rows, n, out):
    """out = Σ weightsₐ rowsₐ over the first n; zeros are skipped."""
    out[:] = 0
    for a in range(n):
        weight, row = weights[a], rows[a]
        if weight != 0:
            for j in range(len(out)):
                out[j] += weight * row[j]


@_jit
def _add_outer(rows, n, left, right, factor):
    """rows[:n] += factor · left rightᵀ."""
    for a in range(n):
        weight, row = factor * left[a], rows[a]
        for j in range(len(right)):
            row[j] += weight * right[j]


@_jit
def _append(stock, size, row, own, corr, slot, jitter):
    spoiled = len(stock.inverse) > 0
    if spoiled:
        spoiled = _grow_inverse(stock.inverse, size, row, own, jitter)
    for a in range(size):
        stock.matrix[size, a] = stock.matrix[a, size] = row[a]
    stock.matrix[size, size] = row[size] = own
    stock.products[size] = corr
    stock.slots[size] = slot
    if spoiled:
        _settle_inverse(stock, size + 1, np.float64(jitter))


@_jit
def _inner(matrix, a, x, size):
    """Row a times x: a sum of its own, since one in memory rounds by the addresses."""
    total = 0.0
    for b in range(size):
        total += matrix[a, b] * x[b]
    return total


@_jit
def _grow_inverse(inverse, size, row, own, jitter):
    """One more row and column; whether what is left of it shows an error before."""
    reached = np.zeros(len(inverse))
    left = np.float64(own) * (1 + np.float64(jitter))
    for a in range(size):
        reached[a] = _inner(inverse, a, row, size)
        left -= reached[a] * row[a]
    least = np.float64(own) * np.float64(jitter)
    reached[size] = -1
    _add_outer(inverse, size + 1, reached, reached, 1 / max(left, least))
    return not left >= least


@_jit
def _settle_inverse(stock, size, jitter):
    """Invert again if updates have spoiled the inverse, as for a low-rank matrix."""
    inverse = stock.inverse
    jittered = stock.matrix[:size, :size].astype(np.float64)
    own, found = np.zeros(size), np.zeros(size)
    for a in range(size):
        own[a] = jittered[a, a]
        jittered[a, a] += jitter * own[a]
    for a in range(size):
        found[a] = _inner(inverse, a, own, size)
    gap = -own
    for a in range(size):
        gap[a] += _inner(jittered, a, found, size)
    finite = _peak(jittered.reshape(-1)) < np.inf
    if not finite or _peak(gap) <= SPOILED * _peak(own):
        return
    unit = 1 / np.sqrt(own)
    for a in range(size):
        for b in range(size):
            jittered[a, b] *= unit[a] * unit[b]
    inverted = np.linalg.inv(jittered)
    for a in range(size):
        for b in range(size):
            inverse[a, b] = inverted[a, b] * unit[a] * unit[b]


@_jit
def _begin(stock, size):
    """The newest of the first anchors gets its coefficients."""
    stock.coefs[size - 1] = stock.start[size - 1]
    np.dot(stock.matrix, stock.coefs, stock.products)
    np.dot(stock.coefs.T, stock.products, stock.gram)


@_jit
def _count_idle(idle, code):
    for j in range(len(code)):
        idle[j] = idle[j] + 1 if code[j] == 0 else 0


@_jit
def _revive(stock, size, atom, patience):
    """The atom becomes the newest anchor, as long as atoms in use are."""
    last, total, n_used = size - 1, 0.0, 0
    own = stock.matrix[last, last]
    for j in range(len(stock.gram)):
        if stock.idle[j] <= patience:
            total += stock.gram[j, j]
            n_used += 1
    scale = np.sqrt(total / (n_used * own)) if n_used else own / own
    stock.coefs[:, atom] = 0
    stock.coefs[last, atom] = scale
    for a in range(size):
        stock.products[a, atom] = scale * stock.matrix[a, last]
    for j in range(len(stock.gram)):
        stock.gram[atom, j] = stock.gram[j, atom] = scale * stock.products[last, j]
    stock.idle[atom] = 0


@_jit
def _step(stock, size, admitted, rate, rules, scratch):
    """One gradient step on the cost of the sample; 1 if it was too long."""
    if not rules.feature_space:
        return _parameter_step(stock, size, rate, rules, scratch)
    place = np.zeros(size)
    if admitted:
        place[size - 1] = 1
    else:
        _project(stock, size, scratch.row, place)
    inside = place.astype(scratch.row.dtype)
    return _feature_step(stock, size, inside, rate, rules, scratch)


@_jit
def _parameter_step(stock, size, rate, rules, scratch):
    """Ω ← Ω − ρG, G = (KΩα − κ)αᵀ + μKΩ, eqs. (19) and (20)."""
    row, code, penalty = scratch.row, scratch.codes[0], rules.penalty
    slope = np.zeros_like(stock.products)
    for a in range(size):
        error, products = -row[a], stock.products[a]
        for j in range(len(code)):
            error += products[j] * code[j]
        for j in range(len(code)):
            slope[a, j] = error * code[j] + penalty * products[j]
    lifted = np.dot(stock.matrix, slope)
    square, bend = _bends(slope, lifted, size, code, penalty)
    too_long = rate * bend > rules.reach * square
    if too_long and rules.guard:
        rate = rules.reach * square / bend
    for a in range(size):
        for j in range(len(code)):
            stock.coefs[a, j] -= rate * slope[a, j]
            stock.products[a, j] -= rate * lifted[a, j]
    np.dot(stock.coefs.T, stock.products, stock.gram)
    return too_long


@_jit
def _bends(slope, lifted, size, code, penalty):
    """‖G‖², and the second derivative of the cost of the sample along G."""
    square, bend = 0.0, 0.0
    for a in range(size):
        along, above = 0.0, 0.0
        for j in range(len(code)):
            square += slope[a, j] * slope[a, j]
            bend += penalty * slope[a, j] * lifted[a, j]
            along += slope[a, j] * code[j]
            above += lifted[a, j] * code[j]
        bend += along * above
    return square, bend


@_jit
def _feature_step(stock, size, inside, rate, rules, scratch):
    """D ← D − ρG, G = (Dα − φ(x))αᵀ + μD, eq. (15)."""
    row, code, explained = scratch.row, scratch.codes[0], scratch.explained
    penalty, turn, m = rules.penalty, scratch.corr[0] - explained, len(code)
    length, spent, shared, energy = 0.0, 0.0, 0.0, 0.0
    for a in range(size):
        length += inside[a] * row[a]
    for j in range(m):
        length -= code[j] * (2 * turn[j] + explained[j])
        spent += code[j] * code[j]
        shared += 2 * penalty * code[j] * turn[j]
        energy += code[j] * explained[j]
    square = length * spent - shared + penalty**2 * np.trace(stock.gram)
    bend = spent * (length * spent - shared) + penalty**2 * energy + penalty * square
    too_long = rate * bend > rules.reach * square
    if too_long and rules.guard:
        rate = rules.reach * square / bend
    keep = 1 - penalty * rate
    for a in range(size):
        _blend(stock.coefs[a], inside[a], code, keep, rate)
        _blend(stock.products[a], row[a], code, keep, rate)
    for j in range(m):
        for k in range(m):
            both = keep * (turn[j] * code[k] + turn[k] * code[j])
            both += rate * length * code[j] * code[k]
            stock.gram[j, k] = keep * keep * stock.gram[j, k] + rate * both
    return too_long


@_jit
def _blend(row, target, code, keep, rate):
    """row ← keep · row + rate · (target − row·code) code."""
    error = target
    for j in range(len(code)):
        error -= row[j] * code[j]
    for j in range(len(code)):
        row[j] = keep * row[j] + rate * error * code[j]


@_jit
def _project(stock, size, row, inside):
    """K⁺κ by the inverse, and once more for what the jitter has taken."""
    left = row[:size].astype(np.float64)
    for _ in range(2):
        for a in range(size):
            inside[a] += _inner(stock.inverse, a, left, size)
        for a in range(size):
            left[a] = row[a] - _inner(stock.matrix, a, inside, size)


@_jit
def _least(stock, size, pruning):
    """Which anchor to remove, and how to write it over the others instead."""
    share = np.zeros(len(stock.coefs), stock.coefs.dtype)
    sizes = np.empty(size)
    for a in range(size):
        sizes[a] = np.sum(stock.coefs[a] * stock.coefs[a])
    if pruning == ERROR:
        for a in range(size):
            sizes[a] /= stock.inverse[a, a]
        worst = np.argmin(sizes)
        for a in range(size):
            share[a] = -stock.inverse[worst, a] / stock.inverse[worst, worst]
        share[worst] = 0
        return worst, share
    if pruning == MERGE:
        worst, other = _nearest_pair(stock.matrix, size, sizes)
        share[other] = stock.matrix[worst, other] / stock.matrix[other, other]
        return worst, share
    return np.argmin(sizes), share


@_jit
def _nearest_pair(matrix, size, sizes):
    """The anchor that another one replaces with the least error, and that one."""
    least, worst, other = np.inf, 0, 0
    for a in range(size):
        for b in range(size):
            apart = matrix[a, a] - matrix[a, b] * matrix[a, b] / matrix[b, b]
            loss = max(apart, 0) * sizes[a]
            if a != b and loss < least:
                least, worst, other = loss, a, b
    return worst, other


@_jit
def _prune(stock, size, worst, share):
    """φ of one anchor becomes a combination of the others, or nothing."""
    part, turn = stock.coefs[worst].copy(), stock.products[worst].copy()
    lost = stock.matrix[worst, :size].copy()
    for b in range(size):
        if share[b] != 0:
            for a in range(size):
                lost[a] -= share[b] * stock.matrix[b, a]
            for j in range(len(turn)):
                turn[j] -= share[b] * stock.products[b, j]
    length = lost[worst]
    for a in range(size):
        length -= share[a] * lost[a]
    _add_outer(stock.coefs, size, share, part, part.dtype.type(1))
    _add_outer(stock.products, size, lost, part, part.dtype.type(-1))
    for j in range(len(part)):
        turn[j] -= length * part[j] / 2
    _add_outer(stock.gram, len(part), part, turn, part.dtype.type(-1))
    _add_outer(stock.gram, len(part), turn, part, part.dtype.type(-1))
    if len(stock.inverse):
        gone = stock.inverse[worst].copy()
        _add_outer(stock.inverse, size, gone, gone, -1 / gone[worst])
        _move(stock.inverse, worst, size - 1)
    _drop(stock, worst, size - 1)


@_jit
def _drop(stock, worst, last):
    """The last anchor takes the place of the one that goes."""
    stock.slots[worst] = stock.slots[last]
    stock.slots[last] = 0
    stock.coefs[worst] = stock.coefs[last]
    stock.products[worst] = stock.products[last]
    stock.coefs[last] = 0
    stock.products[last] = 0
    _move(stock.matrix, worst, last)


@_jit
def _move(square, worst, last):
    for a in range(last + 1):
        square[worst, a] = square[last, a]
    for a in range(last + 1):
        square[a, worst] = square[a, last]
    for a in range(last + 1):
        square[last, a] = square[a, last] = 0


@_jit
def _normalize(stock, size):
    """Atoms of unit norm."""
    m = len(stock.gram)
    scale = np.ones(m, stock.gram.dtype)
    for j in range(m):
        if stock.gram[j, j] > 0:
            scale[j] = 1 / np.sqrt(stock.gram[j, j])
    for a in range(size):
        for j in range(m):
            stock.coefs[a, j] *= scale[j]
            stock.products[a, j] *= scale[j]
    for j in range(m):
        for k in range(m):
            stock.gram[j, k] *= scale[j] * scale[k]
