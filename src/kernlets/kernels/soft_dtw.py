"""A kernel of time series by soft-DTW, the smoothed cost of their alignments."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..base.constraints import POSITIVE
from ..data.rows import evenly_spaced_rows
from ..loops import ops
from ..loops.ops import Lanes, Series
from ..numerics.scaling import quiet
from .base import positive
from .series import (
    SOME_SERIES,
    AllAlignments,
    PackedSeries,
    median_distance,
    median_square,
)
from .structured import symmetric_tiles


class SoftDTW(AllAlignments):
    """κ(x, y) = exp(-γ D(x, y)), D the soft-DTW divergence of two series.

    D(x, y) = s(x, y) - ½ s(x, x) - ½ s(y, y) with s(x, y) = -β log Σ_π exp(-c_π/β),
    where c_π = Σ‖xᵢ - yⱼ‖² is the cost of an alignment π. For small β, D becomes the
    squared DTW distance; more smoothing lets more alignments count. It is not positive
    semi-definite in general: `GAK` is. Make it so by ``Clipped(SoftDTW())``.

    Parameters
    ----------
    gamma : float, default=None
        Factor γ. None sets it to 1 over the median divergence among training series.
    smoothing : float, default=None
        Smoothing β. None sets it to the median squared distance of steps of the
        training series.

    Notes
    -----
    M. Cuturi and M. Blondel, Soft-DTW, ICML 2017; M. Blondel et al., Differentiable
    divergences between time series, AISTATS 2021. tslearn calls β gamma.

    Examples
    --------
    >>> from kernlets import SoftDTW
    >>> series = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    >>> SoftDTW(1.0, smoothing=0.1)(series).round(3).tolist()
    [[1.0, 0.947, 0.145], [0.947, 1.0, 0.137], [0.145, 0.137, 1.0]]
    """

    psd: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gamma": [POSITIVE, None],
        "smoothing": [POSITIVE, None],
    }

    def __init__(
        self, gamma: float | None = None, smoothing: float | None = None
    ) -> None:
        self.gamma = gamma
        self.smoothing = smoothing

    @property
    def unset(self) -> bool:
        return self.gamma is None or self.smoothing is None

    def defaults(self, samples: np.ndarray) -> dict[str, Any]:
        smoothing, gamma = self.smoothing, self.gamma
        if smoothing is None:
            smoothing = median_distance(samples) ** 2 or 1.0
        if gamma is None:
            sample = samples[evenly_spaced_rows(len(samples), SOME_SERIES)]
            gamma = 1.0 / median_square(type(self)(1.0, smoothing).divergences(sample))
        return {"gamma": gamma, "smoothing": smoothing}

    def divergences(self, samples: np.ndarray) -> np.ndarray:  # (n, n)
        """D of checked samples with each other."""
        packed = self.prepare(samples)
        logs = symmetric_tiles(self.tile, packed, len(samples))
        return -self._beta * self.normalize(logs, packed, packed)

    def finish(
        self, K: np.ndarray, left: PackedSeries, right: PackedSeries
    ) -> np.ndarray:
        gamma = 1.0 if self.gamma is None else positive(self, "gamma")
        K = self.normalize(K, left, right)
        with quiet():  # exp(-∞) = 0 is intended
            K *= self._beta
            K *= gamma
        return np.exp(K, out=K)

    def logs(self, rows: Series, columns: Lanes, which: slice) -> np.ndarray:
        ends = which.start, which.stop
        return ops.log_gak(rows, columns, *ends, 1 / self._beta, 0, geometric=False)

    @property
    def _beta(self) -> float:
        return 1.0 if self.smoothing is None else positive(self, "smoothing")
