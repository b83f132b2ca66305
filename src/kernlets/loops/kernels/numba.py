"""Numba twins of kernels and feature maps, but for alignments of series."""

from __future__ import annotations

import math

import numpy as np

from ..compiled import exact_jit, jit, part_jit
from .layout import LANES

LARGE, FACTOR = 1e150, 1e-150  # sums above LARGE are multiplied by FACTOR


def l1_distances(X, Y):
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


@part_jit
def _butterflies(x, h):
    """(a, b) -> (a + b, a − b) on neighbouring segments of length h."""
    for start in range(0, len(x), 2 * h):
        a, b = x[start : start + h], x[start + h : start + 2 * h]
        for i in range(h):
            a[i], b[i] = a[i] + b[i], a[i] - b[i]


@part_jit
def _double_butterflies(x, h):
    """The steps h and 2h in one pass over memory."""
    for start in range(0, len(x), 4 * h):
        a, b = x[start : start + h], x[start + h : start + 2 * h]
        c, d = x[start + 2 * h : start + 3 * h], x[start + 3 * h : start + 4 * h]
        for i in range(h):
            p, q, r, s = a[i] + b[i], a[i] - b[i], c[i] + d[i], c[i] - d[i]
            a[i], b[i], c[i], d[i] = p + r, q + s, p - r, q - s


@part_jit
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


def stein(rows, columns, first, n):
    """log det((A + B)/2) by LDLᵀ without square roots, for eight B at a time."""
    out = np.empty((len(rows), n - first))
    _stein(np.ascontiguousarray(rows), np.ascontiguousarray(columns), first, n, out)
    return out


@jit
def _stein(rows, columns, first, n, out):
    d = rows.shape[1]
    S, pivots = np.empty((d, d, LANES)), np.empty((d, LANES))
    L_column = np.empty((d, LANES))
    for i in range(len(rows)):
        for g in range(first // LANES, (n + LANES - 1) // LANES):
            _half_sum(rows[i], columns[g], S)
            _factor(S, pivots, L_column)
            for lane in range(LANES):
                j = g * LANES + lane
                if first <= j < n:
                    out[i, j - first] = _log_product(pivots[:, lane])


@part_jit
def _half_sum(A, B, S):
    for r in range(len(A)):
        for c in range(r + 1):
            for lane in range(LANES):
                S[r, c, lane] = 0.5 * (A[r, c] + B[r, c, lane])


@part_jit
def _factor(S, pivots, L_column):
    """S = L D Lᵀ, column after column; D goes to `pivots`, a column of L to `L_column`.

    Products of two entries of S are avoided, because they underflow for tiny matrices.
    """
    d = len(pivots)
    for c in range(d):
        for lane in range(LANES):
            pivots[c, lane] = S[c, c, lane]
            L_column[c, lane] = 1.0 / S[c, c, lane]
        for r in range(c + 1, d):
            for lane in range(LANES):
                L_column[r, lane] = S[r, c, lane] * L_column[c, lane]
            for s in range(c + 1, r + 1):
                for lane in range(LANES):
                    S[r, s, lane] -= L_column[r, lane] * S[s, c, lane]


@part_jit
def _log_product(values):
    """Σ log, by logarithms of partial products of about 1e-100 to 1e100."""
    total, product = 0.0, 1.0
    for value in values:
        product *= value
        if not 1e-100 < product < 1e100:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


def log_local(rows, columns, match, mismatch, opened, extended):
    """Logarithms of the local alignment kernel; large sums are scaled down."""
    out = np.empty((len(rows.starts) - 1, len(columns.starts) - 1))
    x_codes, y_codes = rows.values[:, 0], columns.values[:, 0]
    weights = match, mismatch, opened, extended
    length = int(columns.lengths.max(initial=0)) + 1
    _log_local(x_codes, rows.starts, y_codes, columns.starts, weights, length, out)
    return out


@jit
def _log_local(x_codes, x_starts, y_codes, y_starts, weights, length, out):
    work = np.empty((3, length))
    for i in range(out.shape[0]):
        x = x_codes[x_starts[i] : x_starts[i + 1]]
        for j in range(out.shape[1]):
            out[i, j] = _log_local_pair(
                x, y_codes[y_starts[j] : y_starts[j + 1]], weights, work
            )


@jit
def _log_local_pair(x, y, weights, work):
    """log(1 + Σ M), with all sums divided by the same number, exp(shift)."""
    match, mismatch, opened, extended = weights
    M, X, Y = work[0], work[1], work[2]
    work[:, : len(y) + 1] = 0.0
    one, total, shift = 1.0, 0.0, 0.0
    for i in range(len(x)):
        character, largest = x[i], 0.0
        diagonal = one  # the sum 1 + M + X + Y at i - 1, j - 1
        for j in range(1, len(y) + 1):
            m = (match if character == y[j - 1] else mismatch) * diagonal
            diagonal = one + M[j] + X[j] + Y[j]
            X[j] = opened * M[j] + extended * X[j]
            Y[j] = opened * (M[j - 1] + X[j - 1]) + extended * Y[j - 1]
            M[j] = m
            total += m
            largest = max(largest, max(m, max(X[j], Y[j])))
        if max(largest, total) > LARGE:
            for j in range(len(y) + 1):
                M[j] *= FACTOR
                X[j] *= FACTOR
                Y[j] *= FACTOR
            one *= FACTOR
            total *= FACTOR
            shift -= math.log(FACTOR)
    return shift + math.log(one + total)


def convolve(series, waves):
    """Features of convolutions; each weight is added to all steps at once."""
    out = np.empty((len(series.lengths), 2 * len(waves.biases)))
    longest = int(series.lengths.max(initial=0)) + 1
    channels = np.ascontiguousarray(series.values.T)
    _convolve(channels, series.starts, *waves, np.empty(longest), out)
    return out


@exact_jit
def _convolve(values, starts, weights, lengths, gaps, padded, biases, sums, out):
    for i in range(len(out)):
        x = values[:, starts[i] : starts[i + 1]]
        for w in range(len(biases)):
            span = (lengths[w] - 1) * gaps[w]
            margin = 0
            if padded[w] or x.shape[1] <= span:
                margin = span // 2
            row = sums[: x.shape[1] + 2 * margin - span]
            row[:] = biases[w]
            for c in range(weights.shape[1]):
                for k in range(lengths[w]):
                    if weights[w, c, k] != 0.0:
                        _add_shifted(row, x[c], k * gaps[w] - margin, weights[w, c, k])
            out[i, 2 * w], out[i, 2 * w + 1] = _summary(row)


@exact_jit
def _add_shifted(row, x, offset, weight):
    """row[t] += weight · x[t + offset], for the t at which x has such a step."""
    begin, end = max(0, -offset), min(len(row), len(x) - offset)
    if begin < end:
        target, steps = row[begin:end], x[begin + offset : end + offset]
        for t in range(len(target)):
            target[t] += weight * steps[t]


@exact_jit
def _summary(row):
    """The share of positive values, and the largest."""
    n_positive, largest = 0, row[0]
    for value in row:
        n_positive += value > 0
        largest = max(largest, value)
    return n_positive / len(row), largest
