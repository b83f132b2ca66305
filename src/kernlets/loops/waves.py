"""Convolutions of series with short random waves, in plain NumPy: the specification."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .lanes import Series


class Waves(NamedTuple):
    """Weights that series are convolved with."""

    weights: np.ndarray  # (k, c, most) float64, 0 past the end of a wave
    lengths: np.ndarray  # (k,) int64, at most `most`
    gaps: np.ndarray  # (k,) int64, steps from one weight to the next
    padded: np.ndarray  # (k,) int64, 1 if series are continued with zeros
    biases: np.ndarray  # (k,) float64

    @property
    def n_channels(self) -> int:
        return self.weights.shape[1]


def convolve(series: Series, waves: Waves) -> np.ndarray:  # (n, 2 k)
    """The share of positive values, and the largest, of bias + Σ wₗ x[t + l · gap].

    A series that is shorter than a wave is always continued with zeros.
    """
    samples = [series.values[a:b] for a, b in pairwise(series.starts)]
    features = [[_pair(x, *wave) for wave in zip(*waves, strict=True)] for x in samples]
    return np.array(features).reshape(len(samples), -1)


def _pair(
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
