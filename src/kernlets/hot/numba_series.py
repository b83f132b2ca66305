"""Numba twins of `series`: one series is aligned with eight at a time.

The global alignment kernel sums over up to (1 + √2)^(T + T') alignments. Divided by
that number it never overflows, because the three moves then have weights that sum to
1, and k is at most 1. So it is computed without logarithms; what underflows, below
1e-300, matters only where the sum itself is as small, and there logarithms are used.
"""

from __future__ import annotations

import math

import numpy as np

from .lanes import LANES, Lanes, Series
from .numba_ import _exact_jit, _jit

GROWTH = math.log(1 + math.sqrt(2))
BOTH, ONE = math.exp(-2 * GROWTH), math.exp(-GROWTH)  # weights of moves; sum 1
TINY = 1e-300
SMALL = 1e-100  # rows of M below this are scaled up
LEAST = -600.0  # logarithm of sums, so divided, that are accurate

LOG2E = 1 / math.log(2)
MAGIC = 1.5 * 2.0**52  # a number to which x is added to round it
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


def log_gak(
    rows: Series,
    columns: Lanes,
    first: int,
    n: int,
    rate: float,
    band: int,
    geometric: bool,
) -> np.ndarray:
    """Logarithms of the global alignment kernel."""
    out = np.empty((len(rows.starts) - 1, n - first))
    longest = int(columns.lengths.max(initial=0)) + 1
    limit = max(int(rows.lengths.max(initial=0)), longest)
    weights = np.ones(limit + 1)
    if band > 0:
        weights = np.maximum(0.0, 1 - np.arange(limit + 1) / band)
    room = longest * LANES
    local = rate, 1.0 if geometric else 0.0
    _log_gak(*rows, *columns, first, n, local, band, weights, room, out)
    return out


@_jit
def _log_gak(
    values, starts, others, groups, lengths, first, n, local, band, weights, room, out
):
    before, now = np.empty(room), np.empty(room)
    k, turn = np.empty(room), np.empty(room)
    shift, found = np.empty(LANES), np.empty(LANES)
    for i in range(len(starts) - 1):
        x = values[starts[i] : starts[i + 1]]
        for g in range(first // LANES, (n + LANES - 1) // LANES):
            y = others[groups[g] : groups[g + 1]].reshape(x.shape[1], -1)
            work = before, now, k, turn, shift
            _gak_group(x, y, lengths[g], local, band, weights, work, found)
            for lane in range(LANES):
                j = g * LANES + lane
                if first <= j < n:
                    length = lengths[g, lane]
                    value = found[lane]
                    if not value > LEAST:
                        value = _log_gak_pair(x, y, lane, length, local, band, weights)
                    else:
                        value += GROWTH * (len(x) + length)
                    out[i, j - first] = value


@_jit
def _gak_group(x, y, lengths, local, band, weights, work, found):
    """Logarithms of the sums divided by (1 + √2)^(T + T'), of eight lanes.

    Of each row only what the band allows is computed, and zeros are left beside it.
    """
    before, now, k, turn, shift = work
    rate, geometric = local
    size = y.shape[1] // LANES
    _clear(before, 0, size + 1, 0.0)
    for lane in range(LANES):
        before[lane], shift[lane] = 1.0, 0.0
    for i in range(len(x)):
        low, high = _limits(i, band - 1 if band > 0 else size + len(x), size)
        first, last = low * LANES, high * LANES
        _exponents(x[i], y, rate, k, first, last)
        _exponential(k, turn, first, last)
        if band > 0:
            _weigh(k, weights, i, low, high)
        _moves(before, k, turn, geometric, first, last)
        _clear(now, low, low + 1, 0.0)
        if _gak_row(now, k, turn, first, last) < SMALL:
            _scale_up(now, shift, first, last + LANES)
        _clear(now, high + 1, min(high + 2, size + 1), 0.0)
        before, now = now, before
    for lane in range(LANES):
        inside = low < lengths[lane] <= high
        total = before[lengths[lane] * LANES + lane] if inside else 0.0
        found[lane] = math.log(total) - shift[lane] if total > 0 else -np.inf


@_jit
def _clear(row, low, high, value):
    for s in range(low * LANES, high * LANES):
        row[s] = value


@_jit
def _limits(i, width, size):
    """The steps from `low` to `high` that are at most `width` from step i."""
    low = min(max(i - width, 0), size)
    return low, max(low, min(i + width + 1, size))


@_jit
def _exponents(x, y, rate, k, begin, end):
    """-rate · |x - y|² into k, for one step of x and some steps of all lanes.

    Here and below, parts of arrays are cut out first: loops that begin at 0 are those
    that the compiler turns into vector instructions.
    """
    k, first, step = k[begin:end], y[0][begin:end], x[0]
    for s in range(len(k)):
        gap = step - first[s]
        k[s] = -rate * (gap * gap)
    for c in range(1, len(x)):
        other, step = y[c][begin:end], x[c]
        for s in range(len(k)):
            gap = step - other[s]
            k[s] -= rate * (gap * gap)


@_jit
def _weigh(k, weights, i, low, high):
    for j in range(low, high):
        weight, part = weights[abs(i - j)], k[j * LANES : (j + 1) * LANES]
        for lane in range(LANES):
            part[lane] *= weight


@_jit
def _moves(before, k, turn, geometric, begin, end):
    """What comes from the row before into `turn`, the weight of this row into k.

    The weight of a step is e/(2 - e) if `geometric` is 1, and e if it is 0.
    """
    k, turn = k[begin:end], turn[begin:end]
    left, down = before[begin:end], before[begin + LANES : end + LANES]
    for s in range(len(k)):
        e = k[s]
        e = e / (1.0 + geometric * (1.0 - e))
        value = e * (BOTH * left[s] + ONE * down[s])
        turn[s] = value if value > TINY else 0.0
        k[s] = ONE * e


@_jit
def _gak_row(now, k, turn, begin, end):
    """One row of M of eight lanes; the least of the lanes' maxima."""
    k, turn, now = k[begin:end], turn[begin:end], now[begin : end + LANES]
    a = b = c = d = e = f = g = h = 0.0
    ta = tb = tc = td = te = tf = tg = th = 0.0
    for s in range(0, len(k), LANES):
        a = turn[s] + k[s] * a
        b = turn[s + 1] + k[s + 1] * b
        c = turn[s + 2] + k[s + 2] * c
        d = turn[s + 3] + k[s + 3] * d
        e = turn[s + 4] + k[s + 4] * e
        f = turn[s + 5] + k[s + 5] * f
        g = turn[s + 6] + k[s + 6] * g
        h = turn[s + 7] + k[s + 7] * h
        ta = a if a > ta else ta
        tb = b if b > tb else tb
        tc = c if c > tc else tc
        td = d if d > td else td
        te = e if e > te else te
        tf = f if f > tf else tf
        tg = g if g > tg else tg
        th = h if h > th else th
        now[s + 8], now[s + 9], now[s + 10], now[s + 11] = a, b, c, d
        now[s + 12], now[s + 13], now[s + 14], now[s + 15] = e, f, g, h
    return min(min(min(ta, tb), min(tc, td)), min(min(te, tf), min(tg, th)))


@_jit
def _scale_up(row, shift, begin, end):
    """Bring the largest number of each lane near 1."""
    for lane in range(LANES):
        top = 0.0
        for s in range(begin + lane, end, LANES):
            top = max(top, row[s])
        if 0 < top < SMALL:
            exponent = -math.frexp(top)[1]
            factor = math.ldexp(1.0, exponent)
            for s in range(begin + lane, end, LANES):
                row[s] *= factor
            shift[lane] += exponent / LOG2E


@_exact_jit
def _exponential(x, t, begin, end):
    """exp of numbers up to 0, in place, within 1e-14 of itself.

    exp(x) = 2ᵐ exp(r), m = round(x log₂ e). Adding 1.5 · 2⁵² rounds, and leaves m in
    the last bits, from where a shift brings it into the exponent.
    """
    x, t = x[begin:end], t[begin:end]
    bits = t.view(np.int64)
    for s in range(len(x)):
        v = x[s] if x[s] > -690.0 else -690.0
        whole = v * LOG2E + MAGIC
        t[s] = whole
        m = whole - MAGIC
        r = (v - m * LN2_HIGH) - m * LN2_LOW
        p = 2.505210838544172e-08
        p = p * r + 2.755731922398589e-07
        p = p * r + 2.7557319223985893e-06
        p = p * r + 2.48015873015873e-05
        p = p * r + 1.984126984126984e-04
        p = p * r + 1.388888888888889e-03
        p = p * r + 8.333333333333333e-03
        p = p * r + 4.1666666666666664e-02
        p = p * r + 1.6666666666666666e-01
        p = p * r + 0.5
        p = p * r + 1.0
        x[s] = p * r + 1.0
    for s in range(len(x)):
        bits[s] = (bits[s] + 1023) << 52
    for s in range(len(x)):
        x[s] *= t[s]


@_jit
def _log_gak_pair(x, y, lane, length, local, band, weights):
    """The same with logarithms, for sums that are too small otherwise."""
    rate, geometric = local
    before, now = np.full(length + 1, -np.inf), np.full(length + 1, -np.inf)
    before[0] = 0.0
    for i in range(len(x)):
        now[0] = -np.inf
        for j in range(length):
            score = 0.0
            for c in range(x.shape[1]):
                gap = x[i, c] - y[c, j * LANES + lane]
                score -= gap * gap
            score *= rate
            if band > 0:
                weight = weights[abs(i - j)]
                score = score + math.log(weight) if weight > 0 else -np.inf
            top = max(before[j], before[j + 1], now[j])
            if top == -np.inf or score == -np.inf:
                now[j + 1] = -np.inf
                continue
            total = math.exp(before[j] - top) + math.exp(before[j + 1] - top)
            total += math.exp(now[j] - top)
            score -= math.log(1 + geometric * (1 - math.exp(score)))
            now[j + 1] = top + math.log(total) + score
        before, now = now, before
    return before[length]


def dtw(rows: Series, columns: Lanes, first: int, n: int, radius: int) -> np.ndarray:
    """Squared DTW distances."""
    out = np.empty((len(rows.starts) - 1, n - first))
    longest = int(columns.lengths.max(initial=0)) + 1
    _dtw(*rows, *columns, first, n, radius, longest, out)
    return out


@_jit
def _dtw(values, starts, others, groups, lengths, first, n, radius, longest, out):
    room = longest * LANES
    before, now, costs = np.empty(room), np.empty(room), np.empty(room)
    for i in range(len(starts) - 1):
        x = values[starts[i] : starts[i + 1]]
        for g in range(first // LANES, (n + LANES - 1) // LANES):
            y = others[groups[g] : groups[g + 1]].reshape(x.shape[1], -1)
            ends = _dtw_group(x, y, lengths[g], radius, before, now, costs)
            for lane in range(LANES):
                j = g * LANES + lane
                if first <= j < n:
                    out[i, j - first] = ends[lengths[g, lane] * LANES + lane]


@_jit
def _dtw_group(x, y, lengths, radius, before, now, costs):
    """The last row of M of eight lanes; infinite where the band does not reach."""
    size = y.shape[1] // LANES
    width = size + len(x)
    if radius >= 0:
        width = radius
        for lane in range(LANES):
            width = max(width, abs(len(x) - lengths[lane]) if lengths[lane] > 0 else 0)
    _clear(before, 0, size + 1, np.inf)
    _clear(now, 0, size + 1, np.inf)
    for lane in range(LANES):
        before[lane] = 0.0
    for i in range(len(x)):
        low, high = _limits(i, width, size)
        _exponents(x[i], y, -1.0, costs, low * LANES, high * LANES)
        if radius >= 0:
            _cut_band(costs, i, len(x), lengths, radius, low, high)
        _clear(now, low, low + 1, np.inf)
        _dtw_row(before, now, costs, low * LANES, high * LANES)
        _clear(now, high + 1, min(high + 2, size + 1), np.inf)
        before, now = now, before
    return before


@_jit
def _cut_band(costs, i, length, lengths, radius, low, high):
    """Lanes whose series are nearly as long as x have a narrower band."""
    for lane in range(LANES):
        allowed = max(radius, abs(length - lengths[lane]))
        for j in range(low, high):
            if abs(i - j) > allowed:
                costs[j * LANES + lane] = np.inf


@_jit
def _dtw_row(before, now, costs, begin, end):
    """One row of M of eight lanes: what comes from the row before, then along it."""
    costs, now = costs[begin:end], now[begin : end + LANES]
    lefts, downs = before[begin:end], before[begin + LANES : end + LANES]
    for s in range(len(costs)):
        left, down = lefts[s], downs[s]
        now[s + LANES] = left if left < down else down
    a = b = c = d = e = f = g = h = np.inf
    for s in range(0, len(costs), LANES):
        a = (a if a < now[s + 8] else now[s + 8]) + costs[s]
        b = (b if b < now[s + 9] else now[s + 9]) + costs[s + 1]
        c = (c if c < now[s + 10] else now[s + 10]) + costs[s + 2]
        d = (d if d < now[s + 11] else now[s + 11]) + costs[s + 3]
        e = (e if e < now[s + 12] else now[s + 12]) + costs[s + 4]
        f = (f if f < now[s + 13] else now[s + 13]) + costs[s + 5]
        g = (g if g < now[s + 14] else now[s + 14]) + costs[s + 6]
        h = (h if h < now[s + 15] else now[s + 15]) + costs[s + 7]
        now[s + 8], now[s + 9], now[s + 10], now[s + 11] = a, b, c, d
        now[s + 12], now[s + 13], now[s + 14], now[s + 15] = e, f, g, h
