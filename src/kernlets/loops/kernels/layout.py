"""The layout of series in which loops compare one series with eight at a time.

Numbers of eight series are interleaved, so that vector instructions compute eight
comparisons at once, one in each lane. A comparison has the same order of operations in
every lane, so that its result does not depend on the series beside it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

LANES = 8
PAD = 1e100  # past the end of a series: far from everything, and its square is finite


class Series(NamedTuple):
    """Series one after another."""

    values: np.ndarray  # (total, c) float64
    starts: np.ndarray  # (n + 1,) where each series begins

    @classmethod
    def of(cls, samples: list[np.ndarray]) -> Series:
        """Join arrays (T, c)."""
        if not samples:
            return cls(np.empty((0, 1)), np.zeros(1, np.int64))
        lengths = [len(sample) for sample in samples]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return cls(np.concatenate(samples).astype(np.float64), starts)

    @property
    def lengths(self) -> np.ndarray:  # (n,)
        return np.diff(self.starts)


class GroupedSeries(NamedTuple):
    """Series in groups of eight, padded to the longest of their group."""

    values: np.ndarray  # (total,) float64, each group (c, T, LANES)
    starts: np.ndarray  # (groups + 1,) where each group begins
    lengths: np.ndarray  # (groups, LANES), 0 of lanes without a series

    @classmethod
    def of(cls, series: Series) -> GroupedSeries:
        """Group consecutive series; if they are sorted by length, padding is short."""
        n_groups = -(-len(series.lengths) // LANES)
        lengths = np.zeros((n_groups, LANES), dtype=np.int64)
        lengths.ravel()[: len(series.lengths)] = series.lengths
        n_channels = series.values.shape[1]
        longest = lengths.max(axis=1, initial=0)
        starts = np.concatenate([[0], np.cumsum(longest * n_channels * LANES)])
        values = allocate_aligned(int(starts[-1]))
        values[:] = PAD
        for i, (begin, end) in enumerate(pairwise(series.starts)):
            group, lane = divmod(i, LANES)
            group_values = values[starts[group] : starts[group + 1]]
            group_values = group_values.reshape(n_channels, longest[group], LANES)
            group_values[:, : end - begin, lane] = series.values[begin:end].T
        return cls(values, starts.astype(np.int64), lengths)

    def sample(self, j: int) -> np.ndarray:  # (T, c)
        """Return series j."""
        group, lane = divmod(j, LANES)
        group_values = self.values[self.starts[group] : self.starts[group + 1]]
        length = self.lengths[group]
        group_values = group_values.reshape(-1, length.max(), LANES)
        return group_values[:, : length[lane], lane].T


def allocate_aligned(n: int) -> np.ndarray:  # (n,) float64, not set
    """An array in which each group of eight numbers is one cache line."""
    buffer = np.empty(n + LANES)
    begin = -(buffer.ctypes.data // buffer.itemsize) % LANES
    return buffer[begin : begin + n]


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
