"""Samples side by side: the layout in which loops compare one sample with eight.

Numbers of eight samples stand next to each other, so that a processor computes eight
comparisons at a time. Each comparison is computed by itself, in the same order of
operations wherever its sample stands.
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
        """From arrays (T, c)."""
        if not samples:
            return cls(np.empty((0, 1)), np.zeros(1, np.int64))
        lengths = [len(sample) for sample in samples]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return cls(np.concatenate(samples).astype(np.float64), starts)

    @property
    def lengths(self) -> np.ndarray:  # (n,)
        return np.diff(self.starts)


class Lanes(NamedTuple):
    """The same series in groups of eight, as long as the longest of their group."""

    values: np.ndarray  # (total,) float64, each group (c, T, LANES)
    starts: np.ndarray  # (groups + 1,) where each group begins
    lengths: np.ndarray  # (groups, LANES), 0 of lanes without a series

    @classmethod
    def of(cls, series: Series) -> Lanes:
        """Groups of neighbours; sort series by length before to save work."""
        n_groups = -(-len(series.lengths) // LANES)
        lengths = np.zeros((n_groups, LANES), dtype=np.int64)
        lengths.ravel()[: len(series.lengths)] = series.lengths
        width = series.values.shape[1]
        longest = lengths.max(axis=1, initial=0)
        starts = np.concatenate([[0], np.cumsum(longest * width * LANES)])
        values = aligned(int(starts[-1]))
        values[:] = PAD
        for i, (begin, end) in enumerate(pairwise(series.starts)):
            group, lane = divmod(i, LANES)
            part = values[starts[group] : starts[group + 1]]
            part = part.reshape(width, longest[group], LANES)
            part[:, : end - begin, lane] = series.values[begin:end].T
        return cls(values, starts.astype(np.int64), lengths)

    def sample(self, j: int) -> np.ndarray:  # (T, c)
        """One of the series."""
        group, lane = divmod(j, LANES)
        part = self.values[self.starts[group] : self.starts[group + 1]]
        length = self.lengths[group]
        part = part.reshape(-1, length.max(), LANES)
        return part[:, : length[lane], lane].T


def aligned(n: int) -> np.ndarray:  # (n,) float64, not set
    """Room whose groups of eight are one line of the processor's cache each."""
    room = np.empty(n + LANES)
    begin = -(room.ctypes.data // room.itemsize) % LANES
    return room[begin : begin + n]
