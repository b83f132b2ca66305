"""Loops of kernels and feature maps in plain NumPy: the specification of their twins.

In alignments M[i, j] sums (or minimises) over all ways to align the first i steps of x
with the first j steps of y, where each move goes one step on in x, in y, or in both.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import hadamard

from ...contracts import Array
from .layout import LANES, GroupedSeries, Series, Waves


@np.errstate(all="ignore")
def l1_distances(X: np.ndarray, Y: np.ndarray) -> np.ndarray:  # (n, m)
    """Σ |xᵢ − yⱼ| over the features."""
    return np.stack([np.abs(x - Y).sum(axis=1) for x in X])


@np.errstate(all="ignore")
def fwht(X: np.ndarray) -> None:  # (n, d) changed in place
    """X ← X H with the Hadamard matrix H of order d, a power of two, entries ±1."""
    X[:] = X @ hadamard(X.shape[1], dtype=X.dtype)


def stein(
    rows: Array,  # (k, d, d)
    columns: Array,  # (groups, d, d, LANES)
    first: int,
    n: int,
) -> np.ndarray:  # (k, n - first)
    """log det((A + B)/2) for all matrices A and those from `first` to n."""
    out = np.empty((len(rows), n - first))
    for j in range(first, n):
        B = columns[j // LANES, :, :, j % LANES]
        out[:, j - first] = np.linalg.slogdet((rows + B) / 2)[1]
    return out


def log_gak(
    rows: Series,
    columns: GroupedSeries,
    first: int,
    n: int,
    rate: float,
    band: int,
    geometric: bool = True,
) -> np.ndarray:  # (rows, n - first)
    """Logarithms of the global alignment kernel, for columns `first` to n.

    Cuturi (2011): M[i, j] = k(xᵢ, yⱼ)(M[i-1, j-1] + M[i-1, j] + M[i, j-1]) with
    k = ωe/(2 - ωe), e = exp(-rate·|xᵢ - yⱼ|²), ω = max(0, 1 - |i - j|/band), or 1
    without a band (0). If `geometric` is False, k = ωe, which is soft-DTW.
    """
    return _compare_all(_log_gak_pair, rows, columns, first, n, rate, band, geometric)


def dtw(
    rows: Series, columns: GroupedSeries, first: int, n: int, radius: int
) -> np.ndarray:  # (rows, n - first)
    """Squared DTW distances: the least Σ|xᵢ - yⱼ|² along an alignment.

    With a radius (-1: none), |i - j| is at most max(radius, |T - T'|).
    """
    return _compare_all(_dtw_pair, rows, columns, first, n, radius)


def _compare_all(
    pair: Callable[..., float],
    rows: Series,
    columns: GroupedSeries,
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


def log_local(
    rows: Series,
    columns: Series,
    match: float,
    mismatch: float,
    opened: float,
    extended: float,
) -> np.ndarray:  # (rows, columns)
    """log(1 + Σ M[i, j]), of strings given as the numbers of their characters.

    Vert et al. (2004), equations 4 to 10: weights are exp(β score). M[i, j] sums over
    the alignments that end with xᵢ beside yⱼ; X and Y sum over those that end with a
    gap, where characters of x, or of y, are left out.
    """
    weights = match, mismatch, opened, extended
    X = [rows.values[a:b, 0] for a, b in pairwise(rows.starts)]
    Y = [columns.values[a:b, 0] for a, b in pairwise(columns.starts)]
    logs = [[_log_local_pair(x, y, *weights) for y in Y] for x in X]
    return np.array(logs).reshape(len(X), len(Y))


def _log_local_pair(
    x: np.ndarray,
    y: np.ndarray,
    match: float,
    mismatch: float,
    opened: float,
    extended: float,
) -> float:
    start, longer = np.log(opened), np.log(extended)
    same = np.equal.outer(x, y)
    scores = np.log(mismatch) + (np.log(match) - np.log(mismatch)) * same
    M, X, Y = np.full((3, len(x) + 1, len(y) + 1), -np.inf)
    add = np.logaddexp.reduce
    for i in range(1, len(x) + 1):
        for j in range(1, len(y) + 1):
            diagonal = M[i - 1, j - 1], X[i - 1, j - 1], Y[i - 1, j - 1]
            M[i, j] = scores[i - 1, j - 1] + add([0.0, *diagonal])
            X[i, j] = add([start + M[i - 1, j], longer + X[i - 1, j]])
            terms = start + M[i, j - 1], start + X[i, j - 1], longer + Y[i, j - 1]
            Y[i, j] = add(terms)
    return float(add([0.0, *M.ravel()]))


def convolve(series: Series, waves: Waves) -> np.ndarray:  # (n, 2 k)
    """The share of positive values, and the largest, of bias + Σ wₗ x[t + l · gap].

    A series that is shorter than a wave is always continued with zeros.
    """
    samples = [series.values[a:b] for a, b in pairwise(series.starts)]
    features = [
        [_convolve_pair(x, *wave) for wave in zip(*waves, strict=True)] for x in samples
    ]
    return np.array(features).reshape(len(samples), -1)


def _convolve_pair(
    x: np.ndarray,  # (T, c)
    weights: np.ndarray,  # (c, most)
    length: int,
    gap: int,
    padded: int,
    bias: float,
) -> tuple[float, float]:
    span = (length - 1) * gap
    margin = span // 2 if padded or len(x) <= span else 0
    padded_x = np.pad(x, ((margin, margin + span % 2), (0, 0)))
    n = len(x) + 2 * margin - span
    sums = [
        bias + sum(weights[:, k] @ padded_x[t + k * gap] for k in range(length))
        for t in range(n)
    ]
    return float(np.mean(np.array(sums) > 0)), float(max(sums))
