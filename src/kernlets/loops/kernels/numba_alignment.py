"""Numba twins of `log_gak` and `dtw`: one series is aligned with eight at a time.

M is filled by its diagonals i + j = d. A number needs the two diagonals before it and
none beside it, so that vector instructions compute a whole diagonal. Its numbers are
ordered by j, with eight lanes next to each other. The order of x is reversed, so that
its steps run along a diagonal in the same direction as those of y.

The global alignment kernel sums over up to (1 + √2)^(T + T') alignments. Divided by
that number it never overflows, because the three moves then have weights that sum to
1, and k is at most 1. So it is computed without logarithms. Numbers below 1e-300
underflow; that matters only where the sum itself is as small, and there `_log_gak_pair`
computes with logarithms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from ..compiled import exact_jit, jit, part_jit
from .layout import LANES, allocate_aligned

_aligned = jit(allocate_aligned)

GROWTH = math.log(1 + math.sqrt(2))
BOTH, ONE = math.exp(-2 * GROWTH), math.exp(-GROWTH)  # weights of moves; sum 1
TINY = 1e-300
LEAST = -600.0  # smallest logarithm of a divided sum that is accurate

LOG2E = 1 / math.log(2)
MAGIC = 1.5 * 2.0**52 + 1023  # adding it to a number rounds the number
LOWEST = 1000.0  # 2 to the power of minus this is below TINY


def log_gak(rows, columns, first, n, rate, band, geometric=True):
    """Logarithms of the global alignment kernel, for columns `first` to n."""
    out = np.empty((len(rows.starts) - 1, n - first))
    longest = int(max(rows.lengths.max(initial=0), columns.lengths.max(initial=0)))
    weights = np.ones(longest + 1)
    if band > 0:
        weights = np.maximum(0.0, 1 - np.arange(longest + 1) / band)
    # parameters of the kernel of steps
    kappa = float(rate), 1.0 if geometric else 0.0
    _log_gak(*rows, *columns, first, n, kappa, int(band), weights, out)
    return out


@jit
def _log_gak(
    x_values, x_starts, y_values, y_starts, lengths, first, n, kappa, band, weights, out
):
    M, partial_d2, totals = _work_arrays(lengths)
    band_weights = _weights_by_diagonal(weights)
    for i in range(len(x_starts) - 1):
        x = x_values[x_starts[i] : x_starts[i + 1]]
        x_rev = _reverse_and_repeat(x)
        for g in range(first // LANES, (n + LANES - 1) // LANES):
            y = y_values[y_starts[g] : y_starts[g + 1]].reshape(x.shape[1], -1)
            _gak_group(
                x_rev, y, lengths[g], kappa, band, band_weights, M, partial_d2, totals
            )
            for lane in range(LANES):
                j = g * LANES + lane
                if first <= j < n:
                    total, length = totals[lane], lengths[g, lane]
                    value = math.log(total) if total > 0 else -np.inf
                    if not value > LEAST:
                        value = _log_gak_pair(x, y, lane, length, kappa, band, weights)
                    else:
                        value += GROWTH * (len(x) + length)
                    out[i, j - first] = value


@part_jit
def _work_arrays(lengths):
    """Allocate three diagonals of M, one of squared distances (0) and the sums."""
    longest = 0
    for length in lengths.flat:
        longest = max(longest, length)
    size = LANES * (longest + 2)
    M, partial_d2 = _aligned(3 * size).reshape(3, size), _aligned(size)
    partial_d2[:] = 0.0
    return M, partial_d2, np.empty(LANES)


@part_jit
def _weights_by_diagonal(weights):
    """Weights of |i - j| on even and on odd diagonals, repeated for each lane."""
    middle = len(weights) // 2 + 1
    count = 2 * middle + 1
    band_weights = _aligned(2 * count * LANES).reshape(2, count * LANES)
    for odd in range(2):
        for position in range(count):
            lag = abs(2 * (position - middle) + odd)
            weight = weights[lag] if lag < len(weights) else 0.0
            band_weights[odd, position * LANES : (position + 1) * LANES] = weight
    return band_weights


@part_jit
def _reverse_and_repeat(x):
    """Reverse the steps of a series, and repeat each step for each lane."""
    x_rev = _aligned(x.size * LANES).reshape(x.shape[1], len(x) * LANES)
    for i in range(len(x)):
        for c in range(x.shape[1]):
            position = (len(x) - 1 - i) * LANES
            x_rev[c, position : position + LANES] = x[i, c]
    return x_rev


@part_jit
def _gak_group(x_rev, y, lengths, kappa, band, band_weights, M, partial_d2, totals):
    """The sums divided by (1 + √2)^(T + T'), of eight lanes."""
    x_steps, y_steps = x_rev.shape[1] // LANES, y.shape[1] // LANES
    band_width = band - 1 if band > 0 else x_steps + y_steps
    _start(M, totals, 1.0, 0.0)
    for d in range(2, x_steps + y_steps + 1):
        low, high = _limits(d, band_width, x_steps, y_steps)
        if len(y) > 1:
            _sum_channels(x_rev, y, d, low, high, partial_d2)
        _gak_diagonal(x_rev, y, partial_d2, band_weights, kappa, M, d, low, high)
        _finish(M, lengths, d, x_steps, low, high, totals, 0.0)


@part_jit
def _start(M, totals, origin, outside):
    """Set diagonals 0 and 1; only M[0, 0] is the end of an alignment."""
    M[0, :LANES], M[0, LANES : 2 * LANES] = origin, outside
    M[1, : 2 * LANES], totals[:] = outside, outside


@part_jit
def _limits(d, band_width, x_steps, y_steps):
    """The j from `low` to before `high` on a diagonal, at most `band_width` from i.

    Beyond the end of a band both are one past the last step of y.
    """
    low = min(max(max(1, d - x_steps), (d - band_width + 1) // 2), y_steps + 1)
    return low, max(low, min(min(y_steps + 1, d), (d + band_width) // 2 + 1))


@part_jit
def _finish(M, lengths, d, x_steps, low, high, totals, outside):
    """Store the sums of lanes whose last step is on a diagonal, and set its borders.

    The next two diagonals read one number on either side of this one: `outside`.
    """
    row, end = d % 3, d - x_steps
    for lane in range(LANES):
        M[row, (low - 1) * LANES + lane] = M[row, high * LANES + lane] = outside
        if lengths[lane] == end and low <= end < high:
            totals[lane] = M[row, end * LANES + lane]


@part_jit
def _offsets(x_steps, d, low):
    """Indices at which a diagonal begins: in x, in y and M[·, j - 1], in M[·, j].

    They are unsigned, because an index that may be negative, and then counts from the
    end, keeps the compiler from using vector instructions.
    """
    return (
        np.uint64((x_steps - d + low) * LANES),
        np.uint64((low - 1) * LANES),
        np.uint64(low * LANES),
    )


@part_jit
def _diagonal_rows(d):
    """Rows of M with the diagonals d - 2, d - 1 and d."""
    return np.uint64((d - 2) % 3), np.uint64((d - 1) % 3), np.uint64(d % 3)


@part_jit
def _sum_channels(x_rev, y, d, low, high, partial_d2):
    """|xᵢ - yⱼ|² along a diagonal, without the last channel."""
    x_start, y_start, _ = _offsets(x_rev.shape[1] // LANES, d, low)
    n = np.uint64((high - low) * LANES)
    for s in range(n):
        partial_d2[s] = 0.0
    for c in range(np.uint64(len(y) - 1)):
        for s in range(n):
            difference = x_rev[c, x_start + s] - y[c, y_start + s]
            partial_d2[s] += difference * difference


@exact_jit
def _gak_diagonal(x_rev, y, partial_d2, band_weights, kappa, M, d, low, high):
    """One diagonal of M; the weight of a step is e/(2 - e) if it is geometric, or e.

    With `TINY` added no number is subnormal, which would be slow.
    """
    x_start, y_start, m_start = _offsets(x_rev.shape[1] // LANES, d, low)
    previous2, previous, current = _diagonal_rows(d)
    middle, odd = band_weights.shape[1] // LANES // 2, np.uint64(d % 2)
    w_start = np.uint64((low - (d + 1) // 2 + middle) * LANES)
    c, rate, geometric = np.uint64(len(y) - 1), kappa[0] * LOG2E, kappa[1]
    cap = min(LOWEST / rate, 1e300)
    for s in range(np.uint64((high - low) * LANES)):
        d2 = x_rev[c, x_start + s] - y[c, y_start + s]
        d2 = d2 * d2 + partial_d2[s]
        d2 = d2 if d2 < cap else cap
        e = band_weights[odd, w_start + s] * _power_of_2(d2, -rate)
        e = e / (1.0 + geometric * (1.0 - e))
        sums = ONE * (M[previous, y_start + s] + M[previous, m_start + s])
        M[current, m_start + s] = e * (BOTH * M[previous2, y_start + s] + sums) + TINY


@exact_jit
def _power_of_2(a, b):
    """2^(a·b), within 1e-15 of itself if a·b is from -1000 to 0.

    It is 2ᵐ 2ʳ, m the nearest whole number. Adding 1.5 · 2⁵² + 1023 rounds, and leaves
    m + 1023 in the last bits, from where a shift brings it into the exponent. The
    polynomial is the Chebyshev fit of 2ʳ for |r| up to ½.
    """
    rounded = a * b + MAGIC
    r = a * b - (rounded - MAGIC)
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
    return p * _as_float(_as_bits(rounded) << 52)


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


@jit
def _log_gak_pair(x, y, lane, length, kappa, band, weights):
    """Compute one sum by logarithms, for sums that would underflow."""
    rate, geometric = kappa
    previous, current = np.full(length + 1, -np.inf), np.full(length + 1, -np.inf)
    previous[0] = 0.0
    for i in range(len(x)):
        current[0] = -np.inf
        for j in range(length):
            score = 0.0
            for c in range(x.shape[1]):
                difference = x[i, c] - y[c, j * LANES + lane]
                score -= difference * difference
            score *= rate
            if band > 0:
                weight = weights[abs(i - j)]
                score = score + math.log(weight) if weight > 0 else -np.inf
            top = max(previous[j], previous[j + 1], current[j])
            if top == -np.inf or score == -np.inf:
                current[j + 1] = -np.inf
                continue
            total = math.exp(previous[j] - top) + math.exp(previous[j + 1] - top)
            total += math.exp(current[j] - top)
            score -= math.log(1 + geometric * (1 - math.exp(score)))
            current[j + 1] = top + math.log(total) + score
        previous, current = current, previous
    return previous[length]


def dtw(rows, columns, first, n, radius):
    """Squared DTW distances."""
    out = np.empty((len(rows.starts) - 1, n - first))
    _dtw(*rows, *columns, first, n, int(radius), out)
    return out


@jit
def _dtw(x_values, x_starts, y_values, y_starts, lengths, first, n, radius, out):
    M, partial_d2, totals = _work_arrays(lengths)
    for i in range(len(x_starts) - 1):
        x = x_values[x_starts[i] : x_starts[i + 1]]
        x_rev = _reverse_and_repeat(x)
        for g in range(first // LANES, (n + LANES - 1) // LANES):
            y = y_values[y_starts[g] : y_starts[g + 1]].reshape(x.shape[1], -1)
            _dtw_group(x_rev, y, lengths[g], radius, M, partial_d2, totals)
            for lane in range(LANES):
                j = g * LANES + lane
                if first <= j < n:
                    out[i, j - first] = totals[lane]


@part_jit
def _dtw_group(x_rev, y, lengths, radius, M, partial_d2, totals):
    """The least sums of eight lanes."""
    x_steps, y_steps = x_rev.shape[1] // LANES, y.shape[1] // LANES
    band_width = (
        _widest_band(x_steps, lengths, radius) if radius >= 0 else x_steps + y_steps
    )
    cut_lanes = band_width > radius >= 0
    _start(M, totals, 0.0, np.inf)
    for d in range(2, x_steps + y_steps + 1):
        low, high = _limits(d, band_width, x_steps, y_steps)
        if cut_lanes or len(y) > 1:
            _sum_channels(x_rev, y, d, low, high, partial_d2)
        if cut_lanes:
            _cut_band(partial_d2, d, x_steps, lengths, radius, low, high)
        _dtw_diagonal(x_rev, y, partial_d2, M, d, low, high)
        _finish(M, lengths, d, x_steps, low, high, totals, np.inf)
    if cut_lanes:
        partial_d2[:] = 0.0  # ∞ must not stay for the next group


@part_jit
def _widest_band(x_steps, lengths, radius):
    """The widest band of the lanes."""
    widest = radius
    for lane in range(LANES):
        widest = max(widest, abs(x_steps - lengths[lane]) if lengths[lane] > 0 else 0)
    return widest


@part_jit
def _cut_band(partial_d2, d, x_steps, lengths, radius, low, high):
    """Lanes whose series are nearly as long as x have a narrower band."""
    for lane in range(LANES):
        allowed = max(radius, abs(x_steps - lengths[lane]))
        for j in range(low, high):
            if abs(d - 2 * j) > allowed:
                partial_d2[(j - low) * LANES + lane] = np.inf


@exact_jit
def _dtw_diagonal(x_rev, y, partial_d2, M, d, low, high):
    """One diagonal of M."""
    x_start, y_start, m_start = _offsets(x_rev.shape[1] // LANES, d, low)
    previous2, previous, current = _diagonal_rows(d)
    c = np.uint64(len(y) - 1)
    for s in range(np.uint64((high - low) * LANES)):
        least = M[previous2, y_start + s]
        least = M[previous, y_start + s] if M[previous, y_start + s] < least else least
        least = M[previous, m_start + s] if M[previous, m_start + s] < least else least
        difference = x_rev[c, x_start + s] - y[c, y_start + s]
        M[current, m_start + s] = difference * difference + partial_d2[s] + least
