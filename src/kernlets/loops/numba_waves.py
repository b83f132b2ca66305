"""Numba twin of `waves`: each weight is added to all steps at once."""

from __future__ import annotations

import numpy as np

from .compiled import exact_jit
from .lanes import Series
from .waves import Waves


def convolve(series: Series, waves: Waves) -> np.ndarray:
    """Share of positive values, and the largest."""
    out = np.empty((len(series.lengths), 2 * len(waves.biases)))
    room = int(series.lengths.max(initial=0)) + 1
    channels = np.ascontiguousarray(series.values.T)
    _convolve(channels, series.starts, *waves, np.empty(room), out)
    return out


@exact_jit
def _convolve(values, starts, weights, lengths, gaps, padded, biases, sums, out):
    for i in range(len(out)):
        x = values[:, starts[i] : starts[i + 1]]
        for w in range(len(biases)):
            span = (lengths[w] - 1) * gaps[w]
            margin = 0
            if padded[w] or x.shape[1] <= span:
                margin = span // 2
            row = sums[: x.shape[1] + 2 * margin - span]
            row[:] = biases[w]
            for c in range(weights.shape[1]):
                for k in range(lengths[w]):
                    if weights[w, c, k] != 0.0:
                        _add(row, x[c], k * gaps[w] - margin, weights[w, c, k])
            out[i, 2 * w], out[i, 2 * w + 1] = _summary(row)


@exact_jit
def _add(row, x, offset, weight):
    """row[t] += weight · x[t + offset], for the t at which x has such a step."""
    begin, end = max(0, -offset), min(len(row), len(x) - offset)
    if begin < end:
        target, steps = row[begin:end], x[begin + offset : end + offset]
        for t in range(len(target)):
            target[t] += weight * steps[t]


@exact_jit
def _summary(row):
    above, top = 0, row[0]
    for value in row:
        above += value > 0
        top = max(top, value)
    return above / len(row), top
