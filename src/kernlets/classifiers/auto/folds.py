"""Cross-validation folds, and corruptions of validation rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...datasets.corrupt import add_noise, drop_pixels

LEADING_ROWS = 4  # of each class, which come first in the sampling order
TRAINING_ONLY = -1  # fold number of rows that are never held out
# standard deviation of the noise, in those of all entries; share of features set to 0
NOISE_LEVEL, DROPPED_SHARE = 1.0, 0.5


@dataclass(frozen=True)
class Fold:
    """Row numbers for training and for validation."""

    train: np.ndarray
    valid: np.ndarray


def sampling_order(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # (n,)
    """Return an order in which the first n rows are a stratified sample for every n.

    The first few rows of all classes come first, so that no class is left out.
    """
    ranks = _ranks(labels, rng)
    class_share = ranks / np.bincount(labels)[labels]
    return np.lexsort((ranks, class_share, ranks >= LEADING_ROWS))


def _ranks(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # (n,)
    """Draw a random rank, counted from 0, of each row within its class."""
    ranks = np.empty(len(labels), dtype=np.intp)
    for c in range(int(labels.max()) + 1):
        rows = np.flatnonzero(labels == c)
        ranks[rows] = rng.permutation(len(rows))
    return ranks


def stratified_folds(
    rows: np.ndarray, labels: np.ndarray, n_folds: int, rng: np.random.Generator
) -> Iterator[Fold]:
    """Yield stratified folds of these rows; a single fold holds out a quarter.

    The only row of a class is never held out, nor are rows if that left one class.
    """
    row_labels = labels[rows]
    n_parts = max(n_folds, 4) if n_folds == 1 else n_folds
    offsets = rng.permutation(int(labels.max()) + 1)  # spread small classes over folds
    folds = (_ranks(row_labels, rng) + offsets[row_labels]) % n_parts
    folds[np.bincount(row_labels)[row_labels] < 2] = TRAINING_ONLY
    for fold in range(n_folds):
        is_held_out = folds == fold
        if is_held_out.any() and len(np.unique(row_labels[~is_held_out])) > 1:
            yield Fold(rows[~is_held_out], rows[is_held_out])


def validation_rows(
    X: np.ndarray, std: float, robust: bool, seed: int
) -> list[np.ndarray]:
    """Return the rows unchanged and, if robust, with noise and with zeros."""
    if not robust:
        return [X]
    noisy = add_noise(X, NOISE_LEVEL * std, seed)
    return [X, noisy, drop_pixels(X, DROPPED_SHARE, seed)]
