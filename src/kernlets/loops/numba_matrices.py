"""Numba twin of `matrices`: one matrix is added to eight, then all are factored."""

from __future__ import annotations

import math

import numpy as np

from .compiled import jit
from .lanes import LANES


def stein(rows: np.ndarray, columns: np.ndarray, first: int, n: int) -> np.ndarray:
    """log det((A + B)/2) by LDLᵀ without square roots."""
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


@jit
def _half_sum(A, B, S):
    for r in range(len(A)):
        for c in range(r + 1):
            for lane in range(LANES):
                S[r, c, lane] = 0.5 * (A[r, c] + B[r, c, lane])


@jit
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


@jit
def _log_product(values):
    """Σ log, by logarithms of partial products of about 1e-100 to 1e100."""
    total, product = 0.0, 1.0
    for value in values:
        product *= value
        if not 1e-100 < product < 1e100:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)
