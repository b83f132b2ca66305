"""Check and scale weights of samples, and draw rows by their weights.

A sample of weight w counts as w samples like it: one of weight 0 has no effect, and one
of weight 2 has the effect of two. None means that all weights are 1.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from ..contracts import Array
from ..numerics.arrays import as_like, index_like, is_array, is_dask, to_numpy
from .lazy_rows import is_lazy_or_dask
from .stream import is_blocks

Weights = np.ndarray | None  # (n,) float64
MOST_NUMBERS = 10**7  # `row_numbers_by_weight` returns at most so many
LARGEST_SUM = 2.0**53  # whole numbers beyond are not exact in float64


def check_weights(sample_weight: Any, X: Any) -> Weights:  # (n,)
    """Return the weights of the rows of X as float64, or None if all of them are 1."""
    if sample_weight is None:
        return None
    if is_blocks(X) or is_dask(X):
        raise ValueError(
            "sample_weight needs rows in one array or memory map, but X is a stream of "
            "blocks or a Dask collection: call partial_fit with each block and its "
            "weights, or leave sample_weight out"
        )
    n = X.shape[0]
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n, float(sample_weight))
    values = to_numpy(sample_weight) if is_array(sample_weight) else sample_weight
    weights = np.asarray(values, dtype=np.float64)
    if weights.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar: sample_weight has shape "
            f"{weights.shape}, pass one number per sample"
        )
    if len(weights) != n:
        raise ValueError(
            f"sample_weight.shape == {weights.shape}, expected {(n,)}: pass one weight "
            "per sample"
        )
    _refuse_impossible(weights)
    return None if (weights == 1).all() else weights


def _refuse_impossible(weights: np.ndarray) -> None:
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("sample_weight must be finite and not negative")
    if not weights.any():
        raise ValueError("sample_weight is zero for all samples: nothing to learn from")
    with np.errstate(over="ignore"):
        if weights.sum() > LARGEST_SUM:
            raise ValueError(
                "the sum of sample_weight is more than 2**53, the largest count of "
                "samples: divide the weights by the largest one"
            )


def nonzero_weight_rows(X: Any, weights: Weights) -> np.ndarray | None:
    """Return the numbers of the rows with a weight above 0, or None for all rows.

    Rows of weight zero are dropped from arrays in memory only. On disk or on a cluster
    they are read and have no effect.
    """
    if weights is None or weights.all() or is_lazy_or_dask(X):
        return None
    return np.flatnonzero(weights)


def drop_zero_weights(X: Any, weights: Weights) -> tuple[Any, Weights]:
    """Drop rows of weight zero from rows in memory."""
    rows = nonzero_weight_rows(X, weights)
    if rows is None or weights is None:
        return X, weights
    positive_weights = weights[rows]
    return X[index_like(rows, X)], None if (
        positive_weights == 1
    ).all() else positive_weights


def weights_as_counts(weights: Weights) -> Weights:
    """Divide the weights by their mean if it is below 1.

    The use of atoms is counted in samples, and weights that sum to 1 are no counts.
    """
    if weights is None:
        return None
    mean = weights.sum() / np.count_nonzero(weights)
    scaled = weights / mean if mean < 1 else weights
    return None if (scaled == 1).all() else scaled


def are_whole(weights: np.ndarray) -> bool:
    """Whether all weights are whole numbers."""
    return bool((weights == np.floor(weights)).all())


def n_weighted_samples(weights: Weights, n: int) -> int:
    """Return how many samples n rows count for."""
    return n if weights is None else int(weights.sum())


def draw_rows(n: int, m: int, rng: np.random.Generator, weights: Weights) -> np.ndarray:
    """Draw the numbers of m of n rows without replacement.

    With whole weights the draw is the same as from repeated rows, so a row may be drawn
    as often as its weight says. With other weights a row is drawn at most once, with a
    probability proportional to its weight.
    """
    if weights is None:
        return rng.choice(n, m, replace=False)
    if not are_whole(weights):
        return rng.choice(n, m, replace=False, p=weights / weights.sum())
    drawn = rng.choice(int(weights.sum()), m, replace=False)
    return np.searchsorted(np.cumsum(weights), drawn, side="right")


def n_drawable(weights: np.ndarray) -> int:
    """Return how many rows `draw_rows` can draw."""
    return int(weights.sum() if are_whole(weights) else np.count_nonzero(weights))


def row_numbers_by_weight(n: int, weights: Weights) -> np.ndarray:
    """Repeat row numbers by their weights, for statistics of a sample of rows.

    If weights are not whole or very large, the result has row numbers at evenly spaced
    quantiles of the weights.
    """
    if weights is None:
        return np.arange(n)
    total = weights.sum()
    if are_whole(weights) and total <= MOST_NUMBERS:
        return np.repeat(np.arange(n), weights.astype(np.intp))
    m = max(4 * n, 4096)
    quantiles = (np.arange(m) + 0.5) * (total / m)
    numbers = np.searchsorted(np.cumsum(weights), quantiles, side="right")
    return np.minimum(numbers, np.flatnonzero(weights)[-1])  # rounding of the sum


def weights_of_rows(
    weights: Weights, first: int, n: int, like: Array
) -> Array | None:  # (n,)
    """Return the weights of rows first..first+n in the type of `like`."""
    return None if weights is None else as_like(weights[first : first + n], like)


def repeat_by_weight(n: int, sample_weight: Weights, caller: str) -> np.ndarray | None:
    """Repeat row numbers by their whole weights; None means that all weights are 1.

    Methods that take one sample after another, or compare samples with each other,
    have no other way to use weights.
    """
    if sample_weight is None:
        return None
    if not are_whole(sample_weight):
        raise ValueError(
            f"sample_weight must be whole numbers for {caller}, which repeats samples: "
            "round them, or use a learner such as KSVD or MOD, which takes any weights"
        )
    return np.repeat(np.arange(n), sample_weight.astype(np.intp))
