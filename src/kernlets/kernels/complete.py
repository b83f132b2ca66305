"""Missing entries from the samples nearest to a row, coded in a feature space.

With the rows z of the dictionary nearest to x over its observed features o, centred at
their mean z̄, the code a minimises ‖φ(x_o) − Σᵢ aᵢ φ(zᵢ_o)‖² + λ‖a‖², and the missing
entries are z̄ + Σᵢ aᵢ (zᵢ − z̄): the pre-image of the code by the map that is learned on
the same samples (`kernlets.preimage`, "ridge").

`DictionaryImputer` is the estimator of this method. Kernel methods fill in their
training rows in the same way, because κ(x, y) needs the same features of both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..contracts import Array
from ..data.missing import (
    all_in_memory,
    column_means,
    fill_missing,
    has_missing,
    split_mask,
)
from ..data.weights import Weights, are_whole
from ..numerics.arrays import as_like, index_like, to_numpy
from ..numerics.convergence import warn_unfinished
from ..numerics.threads import parallel
from .base import Kernel
from .distance import RBF
from .dot import Linear

MOST_COPIES = 100  # of a row that its weight repeats: more than it has neighbours
PIECE = 64  # rows that one thread works on
NEIGHBORS, RIDGE, ROUNDS, TOL = 60, 0.3, 20, 0.05  # of `DictionaryImputer` by default


def completed_rows(X: Any, weights: Weights = None) -> Any:
    """Fill in missing entries of rows in memory from the other rows.

    Rows that are not in memory, and rows without missing entries, are returned as X.
    Whole weights, none of them 0, repeat rows up to 100 times; others have no effect.
    """
    if not all_in_memory(X) or not has_missing(X):
        return X
    if weights is not None and are_whole(weights):
        times = np.minimum(weights, MOST_COPIES).astype(np.intp)
        copies = np.repeat(np.arange(len(times)), times)
        found = completed_rows(X[index_like(copies, X)])
        return found[index_like(np.cumsum(times) - times, X)]
    rows = to_numpy(X)
    mean, scale = observed_moments(rows)
    rows = (rows - mean) / scale
    kernel, row_numbers = usual_kernel(rows.shape[1]), np.arange(len(rows))

    def step(samples: np.ndarray) -> np.ndarray:
        return fill_in(rows, samples, kernel, NEIGHBORS, RIDGE, row_numbers)

    start = fill_missing(rows, rows.dtype.type(0))
    complete_rows, _, converged = refine(rows, start, step, ROUNDS, TOL)
    if not converged:
        warn_unfinished(
            f"filled-in values still moved after {ROUNDS} passes over the rows to "
            "learn from: fill them in before, with kernlets.DictionaryImputer and a "
            "larger max_iter or tol"
        )
    return fill_missing(X, as_like(complete_rows * scale + mean, X))


def filled_over(X: Array, samples: Array) -> Array:  # (n, p), (N, p) -> (n, p)
    """Fill in missing entries of rows from complete samples.

    Features are centred and scaled by the moments of the samples.
    """
    if not has_missing(X):
        return X
    rows, reference = to_numpy(X), to_numpy(samples)
    mean, scale = observed_moments(reference)
    rows, reference = (rows - mean) / scale, (reference - mean) / scale
    complete_rows = fill_in(rows, reference, usual_kernel(X.shape[1]), NEIGHBORS, RIDGE)
    return fill_missing(X, as_like(complete_rows * scale + mean, X))


def usual_kernel(p: int) -> Kernel:
    """Return xᵀy/p + exp(−‖x − y‖²/(2p)): a linear model and its neighbourhood."""
    return Linear() * (1.0 / p) + RBF(gamma=0.5 / p)


def observed_moments(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (p,), (p,)
    """Compute mean and deviation of observed entries; constant columns deviate by 1."""
    mean = column_means(X).astype(X.dtype)
    centred = fill_missing(X - mean, X.dtype.type(0))
    counts = np.maximum((~np.isnan(X)).sum(axis=0), 1)
    deviation = np.sqrt(np.square(centred, dtype=np.float64).sum(axis=0) / counts)
    varies = deviation > 10 * np.finfo(X.dtype).eps * np.abs(mean)
    return mean, np.where(varies, deviation, 1.0).astype(X.dtype)


def fill_in(
    X: np.ndarray,  # (n, p) with NaN
    samples: np.ndarray,  # (N, p) complete
    kernel: Kernel,
    n_neighbors: int,
    ridge: float,
    self_indices: np.ndarray | None = None,  # (n,) in samples, not neighbours
) -> np.ndarray:  # (n, p)
    """Fill in the missing entries of X; rows without observed entries get means."""
    if not has_missing(X):
        return X
    complete_rows = X.copy()
    incomplete = np.flatnonzero(np.isnan(X).any(axis=1))
    count = min(n_neighbors, len(samples) - (self_indices is not None))
    if count == 0:  # a single row has no neighbours; the means are 0 here
        return fill_missing(X, X.dtype.type(0))

    def fill_piece(rows: np.ndarray) -> None:
        not_near = None if self_indices is None else self_indices[rows]
        near = neighbors(X[rows], samples, count, not_near)
        for i, indices in zip(rows, near, strict=True):
            complete_rows[i] = _fill_row(X[i], samples[indices], kernel, ridge)

    starts = range(0, len(incomplete), PIECE)
    parallel(fill_piece, [incomplete[i : i + PIECE] for i in starts])
    return complete_rows


def neighbors(
    X: np.ndarray, samples: np.ndarray, count: int, self_indices: np.ndarray | None
) -> np.ndarray:  # (n, count)
    """Find the indices of the samples nearest to each row over its observed entries."""
    zero_filled, observed = split_mask(X)
    distances = (
        observed.astype(X.dtype) @ (samples * samples).T - 2 * zero_filled @ samples.T
    )
    if self_indices is not None:
        distances[np.arange(len(X)), self_indices] = np.inf
    if count < len(samples):
        return np.argpartition(distances, count - 1, axis=1)[:, :count]
    return np.broadcast_to(np.arange(len(samples)), (len(X), len(samples)))


def _fill_row(
    x: np.ndarray, near: np.ndarray, kernel: Kernel, ridge: float
) -> np.ndarray:  # (p,)
    o = ~np.isnan(x)
    mean = near.mean(axis=0)
    deviations = near - mean
    if not o.any():
        return mean.astype(x.dtype)
    kernel_o = kernel.restricted(float(o.mean()))
    points = np.ascontiguousarray(deviations[:, o], dtype=np.float64)
    K = kernel_o(points)
    level = ridge * float(np.diagonal(K).mean()) + np.finfo(np.float64).tiny
    k_x = kernel_o((x[o] - mean[o])[None].astype(np.float64), points)[0]
    code = np.linalg.solve(K + level * np.eye(len(K)), k_x)
    return np.where(o, x, mean + code @ deviations).astype(x.dtype)


def refine(
    X: np.ndarray,  # (n, p) with NaN
    start: np.ndarray,  # (n, p) complete
    step: Callable[[np.ndarray], np.ndarray],
    max_iter: int,
    tol: float,
) -> tuple[np.ndarray, list[float], bool]:
    """Repeat a step that fills in missing entries from the rows of the last pass.

    Returns the rows, the mean squared change of the missing entries in each pass, and
    whether the loop ended because that was at most tol² times their mean square.
    """
    rows, changes = start, []
    is_missing = np.isnan(X)
    if not is_missing.any():
        return rows, [0.0], True
    for _ in range(max_iter):
        previous, rows = rows, step(rows)
        change = float(np.square(rows - previous, dtype=np.float64)[is_missing].mean())
        size = float(np.square(rows, dtype=np.float64)[is_missing].mean())
        changes.append(change)
        if change <= tol * tol * size:
            return rows, changes, True
    return rows, changes, False
