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
    work, pivots = np.empty((d, d, LANES)), np.empty((d, LANES))
    scaled = np.empty((d, LANES))
    for i in range(len(rows)):
        for g in range(first // LANES, (n + LANES - 1) // LANES):
            _half_sum(rows[i], columns[g], work)
            _factor(work, pivots, scaled)
            for lane in range(LANES):
                j = g * LANES + lane
                if first <= j < n:
                    out[i, j - first] = _log_product(pivots[:, lane])


@jit
def _half_sum(a, b, work):
    for r in range(len(a)):
        for c in range(r + 1):
            for lane in range(LANES):
                work[r, c, lane] = 0.5 * (a[r, c] + b[r, c, lane])


@jit
def _factor(work, pivots, scaled):
    """S = L D Lᵀ, column after column; D goes to `pivots`, a column of L to `scaled`.

    Entries of S are not multiplied with each other: those of tiny matrices vanish then.
    """
    d = len(pivots)
    for c in range(d):
        for lane in range(LANES):
            pivots[c, lane] = work[c, c, lane]
            scaled[c, lane] = 1.0 / work[c, c, lane]
        for r in range(c + 1, d):
            for lane in range(LANES):
                scaled[r, lane] = work[r, c, lane] * scaled[c, lane]
            for s in range(c + 1, r + 1):
                for lane in range(LANES):
                    work[r, s, lane] -= scaled[r, lane] * work[s, c, lane]


@jit
def _log_product(values):
    """Σ log, with a few numbers multiplied before; they are neither huge nor tiny."""
    total, product = 0.0, 1.0
    for value in values:
        product *= value
        if not 1e-100 < product < 1e100:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)
