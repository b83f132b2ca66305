"""Alignments of series in plain NumPy: the specification of the compiled loops.

M[i, j] sums (or minimises) over all ways to align the first i steps of x with the first
j steps of y, where each move goes one step on in x, in y, or in both.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from .lanes import Lanes, Series


def log_gak(
    rows: Series,
    columns: Lanes,
    first: int,
    n: int,
    rate: float,
    band: int,
    geometric: bool,
) -> np.ndarray:  # (rows, n - first)
    """Logarithms of the global alignment kernel, for columns `first` to n.

    Cuturi (2011): M[i, j] = k(xᵢ, yⱼ)(M[i-1, j-1] + M[i-1, j] + M[i, j-1]) with
    k = ωe/(2 - ωe), e = exp(-rate·|xᵢ - yⱼ|²), ω = max(0, 1 - |i - j|/band), or 1
    without a band (0). If it is not to be `geometric`, k = ωe: that is soft-DTW.
    """
    return _compare_all(_log_gak_pair, rows, columns, first, n, rate, band, geometric)


def dtw(
    rows: Series, columns: Lanes, first: int, n: int, radius: int
) -> np.ndarray:  # (rows, n - first)
    """Squared DTW distances: the least Σ|xᵢ - yⱼ|² along an alignment.

    With a radius (-1: none), |i - j| is at most max(radius, |T - T'|).
    """
    return _compare_all(_dtw_pair, rows, columns, first, n, radius)


def _compare_all(
    pair: Callable[..., float],
    rows: Series,
    columns: Lanes,
    first: int,
    n: int,
    *parameters: Any,
) -> np.ndarray:
    out = np.empty((len(rows.lengths), n - first))
    for i, (begin, end) in enumerate(pairwise(rows.starts)):
        for j in range(first, n):
            x, y = rows.values[begin:end], columns.sample(j)
            out[i, j - first] = pair(x, y, *parameters)
    return out


def _log_gak_pair(
    x: np.ndarray, y: np.ndarray, rate: float, band: int, geometric: bool
) -> float:
    scores = -rate * ((x[:, None] - y) ** 2).sum(axis=2)
    if band > 0:
        lag = np.abs(np.arange(len(x))[:, None] - np.arange(len(y)))
        with np.errstate(divide="ignore"):
            scores += np.log(np.maximum(0.0, 1 - lag / band))
    if geometric:
        scores -= np.log(2 - np.exp(scores))
    M = np.full((len(x) + 1, len(y) + 1), -np.inf)
    M[0, 0] = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            total = np.logaddexp.reduce([M[i, j], M[i, j + 1], M[i + 1, j]])
            M[i + 1, j + 1] = total + scores[i, j]
    return float(M[-1, -1])


def _dtw_pair(x: np.ndarray, y: np.ndarray, radius: int) -> float:
    costs = ((x[:, None] - y) ** 2).sum(axis=2)
    if radius >= 0:
        lag = np.abs(np.arange(len(x))[:, None] - np.arange(len(y)))
        costs[lag > max(radius, abs(len(x) - len(y)))] = np.inf
    M = np.full((len(x) + 1, len(y) + 1), np.inf)
    M[0, 0] = 0.0
    for i in range(len(x)):
        for j in range(len(y)):
            M[i + 1, j + 1] = costs[i, j] + min(M[i, j], M[i, j + 1], M[i + 1, j])
    return float(M[-1, -1])
