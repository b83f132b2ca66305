"""Numba twins of `series`: one series is aligned with eight at a time.

M is filled by its diagonals i + j = d. A number needs the two diagonals before it and
none beside it, so that all of a diagonal are computed by vector instructions. They
stand by j, eight lanes next to each other; one series is turned round, so that its
steps run along a diagonal as those of the others do.

The global alignment kernel sums over up to (1 + √2)^(T + T') alignments. Divided by
that number it never overflows, because the three moves then have weights that sum to
1, and k is at most 1. So it is computed without logarithms; what underflows, below
1e-300, matters only where the sum itself is as small, and there logarithms are used.
"""

from __future__ import annotations

import math

import numpy as np

from .compiled import exact_jit, jit
from .lanes import LANES, Lanes, Series, aligned
from .numba_ import _as_bits, _as_float

_aligned = jit(aligned)

GROWTH = math.log(1 + math.sqrt(2))
BOTH, ONE = math.exp(-2 * GROWTH), math.exp(-GROWTH)  # weights of moves; sum 1
TINY = 1e-300
LEAST = -600.0  # logarithm of sums, so divided, that are accurate

LOG2E = 1 / math.log(2)
MAGIC = 1.5 * 2.0**52 + 1023  # what a number is added to, to round it
LOWEST = 1000.0  # 2 to the minus this is below TINY


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
    limit = int(max(rows.lengths.max(initial=0), columns.lengths.max(initial=0)))
    weights = np.ones(limit + 1)
    if band > 0:
        weights = np.maximum(0.0, 1 - np.arange(limit + 1) / band)
    local = rate, 1.0 if geometric else 0.0
    _log_gak(*rows, *columns, first, n, local, band, weights, out)
    return out


@jit
def _log_gak(
    values, starts, others, groups, lengths, first, n, local, band, weights, out
):
    M, gaps, found = _room(lengths)
    wide = _by_diagonal(weights)
    for i in range(len(starts) - 1):
        x = values[starts[i] : starts[i + 1]]
        back = _turned(x)
        for g in range(first // LANES, (n + LANES - 1) // LANES):
            y = others[groups[g] : groups[g + 1]].reshape(x.shape[1], -1)
            _gak_group(back, y, lengths[g], local, band, wide, M, gaps, found)
            for lane in range(LANES):
                j = g * LANES + lane
                if first <= j < n:
                    total, length = found[lane], lengths[g, lane]
                    value = math.log(total) if total > 0 else -np.inf
                    if not value > LEAST:
                        value = _log_gak_pair(x, y, lane, length, local, band, weights)
                    else:
                        value += GROWTH * (len(x) + length)
                    out[i, j - first] = value


@jit
def _room(lengths):
    """Three diagonals of M, one of distances that are 0 at first, what is found."""
    width = LANES * (lengths.max() + 2 if lengths.size else 0)
    M, gaps = _aligned(3 * width).reshape(3, width), _aligned(width)
    gaps[:] = 0.0
    return M, gaps, np.empty(LANES)


@jit
def _by_diagonal(weights):
    """Weights of |i - j| on even and on odd diagonals, repeated for each lane."""
    middle = len(weights) // 2 + 1
    count = 2 * middle + 1
    wide = _aligned(2 * count * LANES).reshape(2, count * LANES)
    for odd in range(2):
        for place in range(count):
            apart = abs(2 * (place - middle) + odd)
            weight = weights[apart] if apart < len(weights) else 0.0
            wide[odd, place * LANES : (place + 1) * LANES] = weight
    return wide


@jit
def _turned(x):
    """A series, last step first, each step repeated for each lane."""
    back = _aligned(x.size * LANES).reshape(x.shape[1], len(x) * LANES)
    for i in range(len(x)):
        for c in range(x.shape[1]):
            place = (len(x) - 1 - i) * LANES
            back[c, place : place + LANES] = x[i, c]
    return back


@jit
def _gak_group(back, y, lengths, local, band, wide, M, gaps, found):
    """The sums divided by (1 + √2)^(T + T'), of eight lanes."""
    steps, size = back.shape[1] // LANES, y.shape[1] // LANES
    width = band - 1 if band > 0 else steps + size
    _start(M, found, 1.0, 0.0)
    for d in range(2, steps + size + 1):
        low, high = _limits(d, width, steps, size)
        if len(y) > 1:
            _most_channels(back, y, d, low, high, gaps)
        _gak_diagonal(back, y, gaps, wide, local, M, d, low, high)
        _finish(M, lengths, d, steps, low, high, found, 0.0)


@jit
def _start(M, found, origin, empty):
    """Diagonals 0 and 1, of which only M[0, 0] is the end of an alignment."""
    M[0, :LANES], M[0, LANES : 2 * LANES] = origin, empty
    M[1, : 2 * LANES], found[:] = empty, empty


@jit
def _limits(d, width, steps, size):
    """The j from `low` to before `high` on a diagonal, at most `width` from i.

    Beyond the end of a band both are the first place past the end of y.
    """
    low = min(max(max(1, d - steps), (d - width + 1) // 2), size + 1)
    return low, max(low, min(min(size + 1, d), (d + width) // 2 + 1))


@jit
def _finish(M, lengths, d, steps, low, high, found, empty):
    """Keep the last number of lanes that end on a diagonal; what is beside is `empty`.

    The next two diagonals read no further than one place beside this one.
    """
    row, end = d % 3, d - steps
    for lane in range(LANES):
        M[row, (low - 1) * LANES + lane] = M[row, high * LANES + lane] = empty
        if lengths[lane] == end and low <= end < high:
            found[lane] = M[row, end * LANES + lane]


@jit
def _places(steps, d, low):
    """Where a diagonal begins: the steps of x; those of y and of M before; in M.

    Numbers without a sign: an index that may be negative, and so be meant from the
    end, keeps the compiler from using vector instructions.
    """
    return (
        np.uint64((steps - d + low) * LANES),
        np.uint64((low - 1) * LANES),
        np.uint64(low * LANES),
    )


@jit
def _rows(d):
    """Where in M are the diagonal before the last, the last and this one."""
    return np.uint64((d - 2) % 3), np.uint64((d - 1) % 3), np.uint64(d % 3)


@jit
def _most_channels(back, y, d, low, high, gaps):
    """|xᵢ - yⱼ|² along a diagonal, without the last channel."""
    start, left, _ = _places(back.shape[1] // LANES, d, low)
    n = np.uint64((high - low) * LANES)
    for s in range(n):
        gaps[s] = 0.0
    for c in range(np.uint64(len(y) - 1)):
        for s in range(n):
            gap = back[c, start + s] - y[c, left + s]
            gaps[s] += gap * gap


@exact_jit
def _gak_diagonal(back, y, gaps, wide, local, M, d, low, high):
    """One diagonal of M; the weight of a step is e/(2 - e) if it is geometric, or e.

    With `TINY` added no number is subnormal, which would be slow.
    """
    start, left, here = _places(back.shape[1] // LANES, d, low)
    before, last, now = _rows(d)
    middle, odd = wide.shape[1] // LANES // 2, np.uint64(d % 2)
    place = np.uint64((low - (d + 1) // 2 + middle) * LANES)
    c, rate, geometric = np.uint64(len(y) - 1), local[0] * LOG2E, local[1]
    cap = min(LOWEST / rate, 1e300)
    for s in range(np.uint64((high - low) * LANES)):
        gap = back[c, start + s] - y[c, left + s]
        gap = gap * gap + gaps[s]
        gap = gap if gap < cap else cap
        e = wide[odd, place + s] * _power_of_2(gap, -rate)
        e = e / (1.0 + geometric * (1.0 - e))
        sums = ONE * (M[last, left + s] + M[last, here + s])
        M[now, here + s] = e * (BOTH * M[before, left + s] + sums) + TINY


@exact_jit
def _power_of_2(a, b):
    """2^(a·b), within 1e-15 of itself if a·b is from -1000 to 0.

    It is 2ᵐ 2ʳ, m the nearest whole number. Adding 1.5 · 2⁵² + 1023 rounds, and leaves
    m + 1023 in the last bits, from where a shift brings it into the exponent. The
    polynomial is the Chebyshev fit of 2ʳ for |r| up to ½.
    """
    whole = a * b + MAGIC
    r = a * b - (whole - MAGIC)
    p = 7.072585949269223e-09
    p = p * r + 1.0208690299958306e-07
    p = p * r + 1.321544258792169e-06
    p = p * r + 1.5252657260200837e-05
    p = p * r + 0.0001540353044173605
    p = p * r + 0.0013333558230164974
    p = p * r + 0.009618129107606888
    p = p * r + 0.05550410866444772
    p = p * r + 0.24022650695910097
    p = p * r + 0.69314718055995
    p = p * r + 1.0
    return p * _as_float(_as_bits(whole) << 52)


@jit
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
    _dtw(*rows, *columns, first, n, radius, out)
    return out


@jit
def _dtw(values, starts, others, groups, lengths, first, n, radius, out):
    M, gaps, found = _room(lengths)
    for i in range(len(starts) - 1):
        x = values[starts[i] : starts[i + 1]]
        back = _turned(x)
        for g in range(first // LANES, (n + LANES - 1) // LANES):
            y = others[groups[g] : groups[g + 1]].reshape(x.shape[1], -1)
            _dtw_group(back, y, lengths[g], radius, M, gaps, found)
            for lane in range(LANES):
                j = g * LANES + lane
                if first <= j < n:
                    out[i, j - first] = found[lane]


@jit
def _dtw_group(back, y, lengths, radius, M, gaps, found):
    """The least sums of eight lanes."""
    steps, size = back.shape[1] // LANES, y.shape[1] // LANES
    width = _widest(steps, lengths, radius) if radius >= 0 else steps + size
    cut = width > radius >= 0
    _start(M, found, 0.0, np.inf)
    for d in range(2, steps + size + 1):
        low, high = _limits(d, width, steps, size)
        if cut or len(y) > 1:
            _most_channels(back, y, d, low, high, gaps)
        if cut:
            _cut_band(gaps, d, steps, lengths, radius, low, high)
        _dtw_diagonal(back, y, gaps, M, d, low, high)
        _finish(M, lengths, d, steps, low, high, found, np.inf)
    if cut:
        gaps[:] = 0.0  # the next group may have no narrower band


@jit
def _widest(steps, lengths, radius):
    """The widest band of the lanes."""
    width = radius
    for lane in range(LANES):
        width = max(width, abs(steps - lengths[lane]) if lengths[lane] > 0 else 0)
    return width


@jit
def _cut_band(gaps, d, steps, lengths, radius, low, high):
    """Lanes whose series are nearly as long as x have a narrower band."""
    for lane in range(LANES):
        allowed = max(radius, abs(steps - lengths[lane]))
        for j in range(low, high):
            if abs(d - 2 * j) > allowed:
                gaps[(j - low) * LANES + lane] = np.inf


@exact_jit
def _dtw_diagonal(back, y, gaps, M, d, low, high):
    """One diagonal of M."""
    start, left, here = _places(back.shape[1] // LANES, d, low)
    before, last, now = _rows(d)
    c = np.uint64(len(y) - 1)
    for s in range(np.uint64((high - low) * LANES)):
        least = M[before, left + s]
        least = M[last, left + s] if M[last, left + s] < least else least
        least = M[last, here + s] if M[last, here + s] < least else least
        gap = back[c, start + s] - y[c, left + s]
        M[now, here + s] = gap * gap + gaps[s] + least
