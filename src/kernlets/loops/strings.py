"""Local alignments of strings in plain NumPy: the specification of the compiled loop.

M[i, j] sums over the alignments that end with xᵢ beside yⱼ; X and Y sum over those that
end with a gap, where characters of x, or of y, are left out.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .lanes import Series


def log_local(
    rows: Series,
    columns: Series,
    match: float,
    mismatch: float,
    opened: float,
    extended: float,
) -> np.ndarray:  # (rows, columns)
    """log(1 + Σ M[i, j]), of strings given as the numbers of their characters.

    Vert et al. (2004), equations 4 to 10: weights are exp(β score).
    """
    weights = match, mismatch, opened, extended
    texts = [
        [side.values[a:b, 0] for a, b in pairwise(side.starts)]
        for side in (rows, columns)
    ]
    logs = [[_pair(x, y, *weights) for y in texts[1]] for x in texts[0]]
    return np.array(logs).reshape(len(texts[0]), len(texts[1]))


def _pair(
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
