"""Missing entries from the samples nearest to a row, coded in a feature space.

With the rows z of the dictionary nearest to x over its observed features o, centred at
their mean z̄, the code a minimises ‖φ(x_o) − Σᵢ aᵢ φ(zᵢ_o)‖² + λ‖a‖², and the missing
entries are z̄ + Σᵢ aᵢ (zᵢ − z̄): the pre-image of the code by the map that is learned on
the same samples (`kernlets.preimage`, "ridge").
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..backend.masks import has_gaps, split
from ..backend.threads import parallel
from ..core import Kernel

PIECE = 64  # rows that one thread works on


def fill_in(
    X: np.ndarray,  # (n, p) with NaN
    samples: np.ndarray,  # (N, p) complete
    kernel: Kernel,
    n_neighbors: int,
    ridge: float,
    own: np.ndarray | None = None,  # (n,) rows of X among the samples, not to be used
) -> np.ndarray:  # (n, p)
    """The rows with their missing entries filled in; those of empty rows by means."""
    if not has_gaps(X):
        return X
    filled = X.copy()
    gaps = np.flatnonzero(np.isnan(X).any(axis=1))
    count = min(n_neighbors, len(samples) - (own is not None))

    def work(rows: np.ndarray) -> None:
        near = neighbors(X[rows], samples, count, None if own is None else own[rows])
        for i, places in zip(rows, near, strict=True):
            filled[i] = _filled_row(X[i], samples[places], kernel, ridge)

    parallel(work, [gaps[i : i + PIECE] for i in range(0, len(gaps), PIECE)])
    return filled


def neighbors(
    X: np.ndarray, samples: np.ndarray, count: int, own: np.ndarray | None
) -> np.ndarray:  # (n, count)
    """Samples in the order of their distance over what was observed of each row."""
    rows, known = split(X)
    distances = known.astype(X.dtype) @ (samples * samples).T - 2 * rows @ samples.T
    if own is not None:
        distances[np.arange(len(X)), own] = np.inf
    if count < len(samples):
        return np.argpartition(distances, count - 1, axis=1)[:, :count]
    return np.broadcast_to(np.arange(len(samples)), (len(X), len(samples)))


def _filled_row(
    x: np.ndarray, near: np.ndarray, kernel: Kernel, ridge: float
) -> np.ndarray:  # (p,)
    seen = ~np.isnan(x)
    mean = near.mean(axis=0)
    around = near - mean
    if not seen.any():
        return mean.astype(x.dtype)
    smaller = kernel.restricted(float(seen.mean()))
    points = np.ascontiguousarray(around[:, seen], dtype=np.float64)
    K = smaller(points)
    level = ridge * float(np.diagonal(K).mean()) + np.finfo(np.float64).tiny
    right = smaller((x[seen] - mean[seen])[None].astype(np.float64), points)[0]
    code = np.linalg.solve(K + level * np.eye(len(K)), right)
    return np.where(seen, x, mean + code @ around).astype(x.dtype)


def refined(
    X: np.ndarray,  # (n, p) with NaN
    start: np.ndarray,  # (n, p) complete
    step: Callable[[np.ndarray], np.ndarray],
    max_iter: int,
    tol: float,
) -> tuple[np.ndarray, list[float]]:
    """Rows filled in again and again, each time over the rows as filled in before.

    Returns them, and the mean squared change of the missing entries in each pass. It
    ends where that is at most tol² times their mean square.
    """
    filled, changes = start, []
    gaps = np.isnan(X)
    if not gaps.any():
        return filled, [0.0]
    for _ in range(max_iter):
        before, filled = filled, step(filled)
        change = float(np.square(filled - before, dtype=np.float64)[gaps].mean())
        size = float(np.square(filled, dtype=np.float64)[gaps].mean())
        changes.append(change)
        if change <= tol * tol * size:
            break
    return filled, changes
