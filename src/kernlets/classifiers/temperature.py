"""Probabilities of classes from residuals, and the temperature that they need.

With the residual r_c of a sample for class c, or its squared distance from the class,

    p_c ∝ (r_c / max r + FLOOR)^(−1/T),

a softmax of logarithms. It depends on the ratios of residuals only, so that a sample
far from all training samples is not certain of its class because it is large. T is the
temperature at which residuals of held-out samples have the least log-loss.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from ..config import options
from ..contracts import Array
from ..data.check import is_sparse
from ..kernels import Kernel, Precomputed
from ..numerics.arrays import index_like, namespace, to_numpy
from ..numerics.convergence import without_warnings

FLOOR = 1e-3  # residuals below this share of the largest are nearly the same
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.02, 50.0
UNKNOWN_TEMPERATURE = 0.5  # where no row can be left out
MOST_ROWS = 1000  # rows of a sample of which a part is left out
FOLD_ROWS = 500  # up to so many rows are all left out in turn; of more, at most so many
N_FOLDS = 3


def class_scores(temperature: float, residuals: Array) -> Array:
    """Return −log(r_c / max r + FLOOR)/temperature, less the largest of a sample."""
    xp = namespace(residuals)
    largest = xp.max(residuals, axis=1, keepdims=True)
    levels = residuals / xp.where(largest > 0, largest, xp.ones_like(largest)) + FLOOR
    lowest = xp.min(levels, axis=1, keepdims=True)
    return xp.log(lowest / levels) / temperature


def class_probabilities(temperature: float, residuals: Array) -> Array:
    """p_c ∝ (r_c / max r + FLOOR)^(−1/temperature), with sum 1 over the classes."""
    weights = namespace(residuals).exp(class_scores(temperature, residuals))
    return weights / namespace(weights).sum(weights, axis=1, keepdims=True)


def residuals_of_prior(counts: np.ndarray, temperature: float) -> np.ndarray:
    """Return residuals up to 1 whose probabilities are the shares of the counts."""
    prior = np.maximum(counts, 1e-9) / counts.sum()
    levels = (prior.min() / prior) ** temperature
    return np.clip(levels * (1 + FLOOR) - FLOOR, 0, None)


def fit_temperature(residuals: np.ndarray, class_indices: np.ndarray) -> float:
    """Return the temperature with the least log-loss on held-out residuals.

    The true class has the probability (n + 1)/(n + 2) and the others share the rest, as
    in Platt scaling: n samples without an error do not make the next one certain.
    """
    n, n_classes = residuals.shape
    if n_classes == 1:  # its probability is 1 at any temperature
        return 1.0
    targets = np.full((n, n_classes), 1 / ((n + 2) * (n_classes - 1)))
    targets[np.arange(n), class_indices] = (n + 1) / (n + 2)
    largest = np.maximum(residuals.max(axis=1, keepdims=True), 1e-300)
    log_levels = np.log(residuals / largest + FLOOR)

    def slope(temperature: float) -> float:
        """Return the slope of the log-loss over 1/T, which rises with 1/T."""
        errors = softmax(-log_levels / temperature, axis=1) - targets
        return -float(np.mean((errors * log_levels).sum(axis=1)))

    if slope(MIN_TEMPERATURE) <= 0:
        return MIN_TEMPERATURE
    if slope(MAX_TEMPERATURE) >= 0:
        return MAX_TEMPERATURE
    return brentq(slope, MIN_TEMPERATURE, MAX_TEMPERATURE, xtol=1e-14, rtol=1e-14)


class HeldOut(NamedTuple):
    """The samples of a part of a fit: to learn from, and to compute residuals of."""

    X: Array
    y: np.ndarray  # class indices
    X_valid: Array
    y_valid: np.ndarray


def temperature_of_parts(
    X: Array,  # (n, p)
    class_indices: np.ndarray,  # (n,)
    kernel: Kernel | None,
    residuals_of_part: Callable[[HeldOut], Array],
) -> float | None:
    """Fit the temperature to residuals of rows that parts of the fit leave out.

    Return None if no row can be left out, or if a part cannot be learned from.
    """
    residuals: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    for train, valid in _splits(_ranks_in_classes(X, class_indices), class_indices):
        parts = [_take(X, rows, train, kernel) for rows in (train, valid)]
        part = HeldOut(parts[0], class_indices[train], parts[1], class_indices[valid])
        # the fit to all rows has warned already
        with options(checkpoint=None), without_warnings(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                residuals.append(to_numpy(residuals_of_part(part)))
            except (ValueError, np.linalg.LinAlgError):
                return None  # e.g. first atoms that are rows of the fit to all rows
        labels.append(part.y_valid)
    if not labels:
        return None
    held_out = np.concatenate(residuals).astype(np.float64)
    if not np.isfinite(held_out).all():
        return None
    return fit_temperature(held_out, np.concatenate(labels))


def _take(X: Array, rows: np.ndarray, train: np.ndarray, kernel: Any) -> Array:
    """Select samples; of a kernel matrix, also the columns of the training samples."""
    selected = X[index_like(rows, X)]
    if isinstance(kernel, Precomputed):
        return selected[:, index_like(train, X)]
    return selected


def _ranks_in_classes(X: Array, class_indices: np.ndarray) -> np.ndarray:  # (n,)
    """Rank the samples of each class by size; equal rows have the same rank.

    So copies of a row are left out together, and the order of rows and of features has
    no effect.
    """
    n = len(class_indices)
    keys = np.arange(n, dtype=np.float64)  # of samples that are no rows of numbers
    if X.ndim == 2:
        keys = _rounded(_row_sizes(X if is_sparse(X) else to_numpy(X).astype(float)))
    ranks = np.empty(n, dtype=np.intp)
    for c in np.unique(class_indices):
        rows = np.flatnonzero(class_indices == c)
        ranks[rows] = np.unique(keys[rows], return_inverse=True)[1].ravel()
    return ranks


def _row_sizes(X: Any) -> np.ndarray:  # (n, p) -> (n,)
    """Σ |x_j|³ in the units of the largest entry, which tells unit rows apart, too."""
    if is_sparse(X):
        return np.asarray((abs(X) / (abs(X).max() or 1.0)).power(3).sum(1)).ravel()
    sizes = np.abs(np.nan_to_num(X))
    return np.sort((sizes / (sizes.max() or 1.0)) ** 3, axis=1).sum(axis=1)


def _rounded(keys: np.ndarray) -> np.ndarray:
    """Round to a millionth of the largest: of copies, filled-in values differ less."""
    return np.round(keys / (keys.max(initial=0.0) or 1.0), 6)


def _splits(
    ranks: np.ndarray, class_indices: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Leave out every third rank of each class; few rows are all left out in turn."""
    n = len(ranks)
    n_ranks = np.zeros(n, dtype=np.intp)
    for c in np.unique(class_indices):
        n_ranks[class_indices == c] = len(np.unique(ranks[class_indices == c]))
    step = max(N_FOLDS, -(-n // FOLD_ROWS))
    splits = []
    for fold in range(N_FOLDS if n <= FOLD_ROWS else 1):
        is_left_out = (ranks % step == fold) & (n_ranks > 1)
        if is_left_out.any():
            parts = np.flatnonzero(~is_left_out), np.flatnonzero(is_left_out)
            splits.append(parts)
    return splits
