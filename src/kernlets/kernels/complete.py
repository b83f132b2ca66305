"""Missing entries from the samples nearest to a row, coded in a feature space.

With the rows z of the dictionary nearest to x over its observed features o, centred at
their mean z̄, the code a minimises ‖φ(x_o) − Σᵢ aᵢ φ(zᵢ_o)‖² + λ‖a‖², and the missing
entries are z̄ + Σᵢ aᵢ (zᵢ − z̄): the pre-image of the code by the map that is learned on
the same samples (`kernlets.preimage`, "ridge").

`DictionaryImputer` is this as an estimator. Kernel methods fill in the rows that they
learn from likewise, because κ(x, y) needs the same features of both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..backend.arrays import as_like, to_numpy
from ..backend.convergence import warn_unfinished
from ..backend.fill import at_hand
from ..backend.masks import column_means, filled, has_gaps, split
from ..backend.threads import parallel
from ..core import Array, Kernel
from .dot import Linear
from .radial import RBF

PIECE = 64  # rows that one thread works on
NEIGHBORS, RIDGE, ROUNDS, TOL = 60, 0.3, 20, 0.05  # of `DictionaryImputer` by default


def completed_rows(X: Any) -> Any:
    """Rows filled in over each other, if all are in memory and have gaps; else X."""
    if not at_hand(X) or not has_gaps(X):
        return X
    rows = to_numpy(X)
    mean, scale = observed_moments(rows)
    rows = (rows - mean) / scale
    step = partial(_round, rows, usual_kernel(rows.shape[1]))
    start = filled(rows, rows.dtype.type(0))
    known, _, converged = refined(rows, start, step, ROUNDS, TOL)
    if not converged:
        warn_unfinished(
            f"filled-in values still moved after {ROUNDS} passes over the rows to "
            "learn from: fill them in before, with kernlets.DictionaryImputer and a "
            "larger max_iter or tol"
        )
    return filled(X, as_like(known * scale + mean, X))


def filled_over(X: Array, samples: Array) -> Array:  # (n, p), (N, p) -> (n, p)
    """Rows with their gaps filled in over complete samples; rows without any stay.

    Features are centred and scaled as they are among the samples.
    """
    if not has_gaps(X):
        return X
    rows, known = to_numpy(X), to_numpy(samples)
    mean, scale = observed_moments(known)
    rows, known = (rows - mean) / scale, (known - mean) / scale
    found = fill_in(rows, known, usual_kernel(X.shape[1]), NEIGHBORS, RIDGE)
    return filled(X, as_like(found * scale + mean, X))


def _round(rows: np.ndarray, kernel: Kernel, samples: np.ndarray) -> np.ndarray:
    return fill_in(rows, samples, kernel, NEIGHBORS, RIDGE, np.arange(len(rows)))


def usual_kernel(p: int) -> Kernel:
    """xᵀy/p + exp(−‖x − y‖²/(2p)): a linear model and its neighbourhood."""
    return Linear() * (1.0 / p) + RBF(gamma=0.5 / p)


def observed_moments(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (p,), (p,)
    """Mean and deviation of what was observed; the latter is 1 of constant columns."""
    mean = column_means(X).astype(X.dtype)
    centred = filled(X - mean, X.dtype.type(0))
    counts = np.maximum((~np.isnan(X)).sum(axis=0), 1)
    spread = np.sqrt(np.square(centred, dtype=np.float64).sum(axis=0) / counts)
    varies = spread > 10 * np.finfo(X.dtype).eps * np.abs(mean)
    return mean, np.where(varies, spread, 1.0).astype(X.dtype)


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
    out = X.copy()
    gaps = np.flatnonzero(np.isnan(X).any(axis=1))
    count = min(n_neighbors, len(samples) - (own is not None))
    if count == 0:  # a single row has no others: the means, which are 0 here
        return filled(X, X.dtype.type(0))

    def work(rows: np.ndarray) -> None:
        near = neighbors(X[rows], samples, count, None if own is None else own[rows])
        for i, places in zip(rows, near, strict=True):
            out[i] = _filled_row(X[i], samples[places], kernel, ridge)

    parallel(work, [gaps[i : i + PIECE] for i in range(0, len(gaps), PIECE)])
    return out


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
) -> tuple[np.ndarray, list[float], bool]:
    """Rows filled in again and again, each time over the rows as filled in before.

    Returns them, the mean squared change of the missing entries in each pass, and
    whether it has ended where that is at most tol² times their mean square.
    """
    known, changes = start, []
    gaps = np.isnan(X)
    if not gaps.any():
        return known, [0.0], True
    for _ in range(max_iter):
        before, known = known, step(known)
        change = float(np.square(known - before, dtype=np.float64)[gaps].mean())
        size = float(np.square(known, dtype=np.float64)[gaps].mean())
        changes.append(change)
        if change <= tol * tol * size:
            return known, changes, True
    return known, changes, False
