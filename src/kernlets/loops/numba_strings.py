"""Numba twin of `strings`: rows are scaled down before they overflow."""

from __future__ import annotations

import math

import numpy as np

from .compiled import jit
from .lanes import Series

LARGE, FACTOR = 1e150, 1e-150  # sums above LARGE are multiplied by FACTOR


def log_local(
    rows: Series,
    columns: Series,
    match: float,
    mismatch: float,
    opened: float,
    extended: float,
) -> np.ndarray:
    """Logarithms of the local alignment kernel."""
    out = np.empty((len(rows.starts) - 1, len(columns.starts) - 1))
    weights = match, mismatch, opened, extended
    room = int(columns.lengths.max(initial=0)) + 1
    _log_local(
        rows.values[:, 0],
        rows.starts,
        columns.values[:, 0],
        columns.starts,
        weights,
        room,
        out,
    )
    return out


@jit
def _log_local(x_codes, x_starts, y_codes, y_starts, weights, room, out):
    work = np.empty((3, room))
    for i in range(out.shape[0]):
        x = x_codes[x_starts[i] : x_starts[i + 1]]
        for j in range(out.shape[1]):
            out[i, j] = _pair(x, y_codes[y_starts[j] : y_starts[j + 1]], weights, work)


@jit
def _pair(x, y, weights, work):
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
