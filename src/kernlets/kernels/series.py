"""Kernels of time series: global alignment, DTW, soft-DTW and cross-correlation.

Series may have different lengths and several channels: a list of arrays (T,) or (T, c),
or an array (n, T) or (n, T, c) padded with NaN.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from scipy import fft

from ..base.constraints import AT_LEAST_0, POSITIVE
from ..contracts import Array
from ..data.rows import evenly_spaced_rows
from ..loops.kernels.layout import GroupedSeries, Series
from ..loops.table import dtw, log_gak
from ..numerics.scaling import quiet
from .base import positive
from .distance import squared_distances
from .samples import spread_parts
from .structured import AllAlignments, Structured, median_positive

SOME_STEPS = 1000  # number of steps whose distances set a bandwidth
SOME_SERIES = 100  # number of series whose distances set gamma
SHIFTS_AT_ONCE = 2**22  # correlations that one thread holds in memory


@dataclass(frozen=True)
class PackedSeries:
    """Series one after another, and in groups of eight."""

    series: Series
    lanes: GroupedSeries

    def rows(self, rows: slice) -> Series:
        """Return consecutive series as a view."""
        return slice_series(self.series, rows)


class Alignment(Structured):
    """A kernel that aligns pairs of series."""

    takes: ClassVar[str] = "series"

    @abstractmethod
    def defaults(self, samples: np.ndarray) -> dict[str, Any]:
        """Return the parameters that series set where they are open."""

    def __call__(self, X: Array, Y: Array | None = None) -> Array:  # (n, m)
        """Sort the series by length, so that groups of eight need little padding."""
        samples = self.samples(X)
        order = Y_order = _by_length(samples)
        if Y is None or Y is X:
            sorted_K = super().__call__(samples[order])
        else:
            Y_samples = self.samples(Y)
            Y_order = _by_length(Y_samples)
            sorted_K = super().__call__(samples[order], Y_samples[Y_order])
        K = np.empty_like(sorted_K)
        K[np.ix_(order, Y_order)] = sorted_K
        return K

    def prepare(self, samples: np.ndarray) -> PackedSeries:
        series = Series.of(list(samples))
        return PackedSeries(series, GroupedSeries.of(series))

    def matrix(
        self, left: PackedSeries, right: PackedSeries, n: int, m: int
    ) -> np.ndarray:  # (n, m)
        _check_channels(left.series.values[:1], right.series.values[:1])
        return super().matrix(left, right, n, m)

    def energies(self, prepared: PackedSeries) -> np.ndarray:  # (n,)
        return np.ones(len(prepared.series.lengths))


def _by_length(samples: np.ndarray) -> np.ndarray:
    return np.argsort([len(sample) for sample in samples], kind="stable")


class GAK(Alignment, AllAlignments):
    """Global alignment kernel: a sum over all alignments of two series, normalised.

    k(x, y) = Σ_π Π κ(x_π(i), y_π(i)) with κ = ωe/(2 - ωe), e = exp(-‖x - y‖²/(2σ²)),
    and κ(x, y) = k(x, y)/√(k(x, x) k(y, y)). It is positive definite, unlike kernels of
    DTW distances, which keep the best alignment only.

    Parameters
    ----------
    sigma : float, default=None
        Width σ. None sets it by Cuturi's rule, the median distance of steps of the
        training series times the square root of their median length. Try 0.1 to 10
        times that.
    triangular : int, default=0
        With T > 0, steps i and j have the weight ω = max(0, 1 - |i - j|/T), so that
        series whose lengths differ by T or more have κ = 0; 0 means no weights.

    Notes
    -----
    M. Cuturi, Fast global alignment kernels, ICML 2011; J. Vert et al., A kernel for
    time series based on global alignments, ICASSP 2007. With small σ all κ(x, y) but
    κ(x, x) vanish.

    Examples
    --------
    >>> from kernlets import GAK
    >>> series = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    >>> GAK(sigma=1.0)(series).round(3).tolist()
    [[1.0, 0.747, 0.302], [0.747, 1.0, 0.202], [0.302, 0.202, 1.0]]
    """

    set_from_data = ("sigma",)
    _parameter_constraints = {"sigma": [POSITIVE, None], "triangular": [AT_LEAST_0]}

    def __init__(self, sigma: float | None = None, triangular: int = 0) -> None:
        self.sigma = sigma
        self.triangular = triangular

    def defaults(self, samples: np.ndarray) -> dict[str, Any]:
        length = float(np.median([len(sample) for sample in samples]))
        return {"sigma": (median_distance(samples) or 1.0) * sqrt(length)}

    def tile(
        self, left: PackedSeries, right: PackedSeries, rows: slice, columns: slice
    ) -> np.ndarray:
        sigma = positive(self, "sigma", default=1.0)
        rate, T = 0.5 / sigma / sigma, int(self.triangular)
        first, n = columns.start, columns.stop
        return log_gak(left.rows(rows), right.lanes, first, n, rate, T)


class DTW(Alignment):
    """κ(x, y) = exp(-γ d(x, y)²), d the DTW distance: the best alignment's length.

    d² is the least Σ‖xᵢ - yⱼ‖² over alignments. DTW is no metric, and this kernel is
    not positive semi-definite in general: `GAK` is. Methods that factor a kernel matrix
    drop its negative eigenvalues; other methods need ``Clipped(DTW())``.

    Parameters
    ----------
    gamma : float, default=None
        Factor γ. None sets it to 1 over the median of d² among training series.
    radius : int, default=None
        Sakoe-Chiba band: steps i and j are aligned only if |i - j| is at most this, or
        at most the difference of the lengths if that is more.

    Examples
    --------
    >>> from kernlets import DTW
    >>> series = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 1.0]]
    >>> DTW(gamma=1.0)(series[:1], series[1:]).round(4).tolist()
    [[0.3679, 0.1353]]
    """

    psd: ClassVar[bool] = False
    set_from_data = ("gamma",)
    _parameter_constraints = {"gamma": [POSITIVE, None], "radius": [AT_LEAST_0, None]}

    def __init__(self, gamma: float | None = None, radius: int | None = None) -> None:
        self.gamma = gamma
        self.radius = radius

    def defaults(self, samples: np.ndarray) -> dict[str, Any]:
        sample = self.prepare(samples[evenly_spaced_rows(len(samples), SOME_SERIES)])
        n = len(sample.series.lengths)
        squares = self._squares(sample.series, sample.lanes, slice(0, n))
        return {"gamma": 1.0 / median_positive(squares)}

    def tile(
        self, left: PackedSeries, right: PackedSeries, rows: slice, columns: slice
    ) -> np.ndarray:
        squares = self._squares(left.rows(rows), right.lanes, columns)
        with quiet():  # exp(-∞) = 0 is intended
            squares *= -positive(self, "gamma", default=1.0)
        return np.exp(squares)

    def _squares(
        self, rows: Series, columns: GroupedSeries, which: slice
    ) -> np.ndarray:
        radius = -1 if self.radius is None else int(self.radius)
        return dtw(rows, columns, which.start, which.stop, radius)


class SoftDTW(Alignment, AllAlignments):
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
    set_from_data = ("gamma", "smoothing")
    _parameter_constraints = {"gamma": [POSITIVE, None], "smoothing": [POSITIVE, None]}

    def __init__(
        self, gamma: float | None = None, smoothing: float | None = None
    ) -> None:
        self.gamma = gamma
        self.smoothing = smoothing

    def defaults(self, samples: np.ndarray) -> dict[str, Any]:
        smoothing, gamma = self.smoothing, self.gamma
        if smoothing is None:
            smoothing = median_distance(samples) ** 2 or 1.0
        if gamma is None:
            sample = samples[evenly_spaced_rows(len(samples), SOME_SERIES)]
            gamma = 1.0 / median_positive(
                type(self)(1.0, smoothing).divergences(sample)
            )
        return {"gamma": gamma, "smoothing": smoothing}

    def divergences(self, samples: np.ndarray) -> np.ndarray:  # (n, n)
        """Compute D of checked samples with each other."""
        packed, n = self.prepare(samples), len(samples)
        logs = self.matrix(packed, packed, n, n)
        return -self._beta * self.normalized_logs(logs, packed, packed)

    def finish(
        self, K: np.ndarray, left: PackedSeries, right: PackedSeries
    ) -> np.ndarray:
        gamma = positive(self, "gamma", default=1.0)
        K = self.normalized_logs(K, left, right)
        with quiet():  # exp(-∞) = 0 is intended
            K *= self._beta
            K *= gamma
        return np.exp(K, out=K)

    def tile(
        self, left: PackedSeries, right: PackedSeries, rows: slice, columns: slice
    ) -> np.ndarray:
        x, first, n = left.rows(rows), columns.start, columns.stop
        return log_gak(x, right.lanes, first, n, 1 / self._beta, 0, geometric=False)

    @property
    def _beta(self) -> float:
        return positive(self, "smoothing", default=1.0)


@dataclass(frozen=True)
class UnitSeries:
    """Series of unit norm."""

    samples: list[np.ndarray]
    energies: np.ndarray  # (n,) κ(x, x) before it is normalised


class CrossCorrelation(Structured):
    """Shift-invariant kernel: Σ over shifts s of (exp(γ c_s(x, y)) - 1), normalised.

    c_s is the cross-correlation of x and y, both scaled to unit norm, when y is shifted
    by s steps; channels are added. Terms vanish without overlap, so that all shifts
    count and the kernel is positive semi-definite, unlike the maximum over shifts that
    it approaches for large γ. It is divided by √(κ(x, x) κ(y, y)).

    Parameters
    ----------
    gamma : float, default=10.0
        Factor γ; the larger it is, the more the best shift outweighs the others.

    Notes
    -----
    The sum over cyclic shifts is from G. Wachman et al., Kernels for periodic time
    series arising in astronomy, ECML 2009. Series that are 0 have κ = 0.

    Examples
    --------
    >>> from kernlets import CrossCorrelation
    >>> series = [[0.0, 1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 2.0]]
    >>> CrossCorrelation()(series).round(6).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    takes: ClassVar[str] = "series"
    _parameter_constraints = {"gamma": [POSITIVE]}

    def __init__(self, gamma: float = 10.0) -> None:
        self.gamma = gamma

    def prepare(self, samples: np.ndarray) -> UnitSeries:
        units = [_unit_norm(sample.astype(np.float64)) for sample in samples]
        with np.errstate(over="ignore"):
            energies = [self._own_sum(x) for x in units]
        if not all(np.isfinite(energy).all() for energy in energies):
            raise ValueError(
                f"CrossCorrelation: exp(γ c) overflows: lower gamma={self.gamma!r}"
            )
        return UnitSeries(units, np.concatenate(energies) if energies else np.empty(0))

    def _own_sum(self, x: np.ndarray) -> np.ndarray:  # (1,)
        size = _fast_length([x], [x])
        return self._sums(_spectrum(x, size)[None], x, size)

    def energies(self, prepared: UnitSeries) -> np.ndarray:  # (n,)
        return (prepared.energies > 0).astype(np.float64)

    def tile(
        self, left: UnitSeries, right: UnitSeries, rows: slice, columns: slice
    ) -> np.ndarray:
        xs, ys = left.samples[rows], right.samples[columns]
        _check_channels(*xs[:1], *ys[:1])
        K = np.empty((len(xs), len(ys)))
        size = _fast_length(xs, ys)
        n_channels = xs[0].shape[1] if xs else 1
        step = max(1, SHIFTS_AT_ONCE // (size * n_channels))
        for j in range(0, len(ys), step):
            spectra = np.stack([_spectrum(y, size) for y in ys[j : j + step]])
            for i, x in enumerate(xs):
                K[i, j : j + step] = self._sums(spectra, x, size)
        left_norms, right_norms = left.energies[rows], right.energies[columns]
        return K * _inverse_roots(left_norms)[:, None] * _inverse_roots(right_norms)

    def _sums(self, spectra: np.ndarray, x: np.ndarray, size: int) -> np.ndarray:
        """Sum over the shifts of x with each of many series, given by their spectra."""
        products = (_spectrum(x, size) * spectra.conj()).sum(axis=1)
        shifts = fft.irfft(products, size, axis=-1)
        return np.expm1(positive(self, "gamma") * shifts).sum(axis=-1)


def _spectrum(x: np.ndarray, size: int) -> np.ndarray:  # (c, size // 2 + 1)
    return fft.rfft(x.T, size, axis=-1)


def _fast_length(xs: list[np.ndarray], ys: list[np.ndarray]) -> int:
    """Return a length for fast transforms at which no shift wraps round."""
    longest = max((len(x) for x in xs), default=1)
    return fft.next_fast_len(longest + max((len(y) for y in ys), default=1), True)


def _unit_norm(x: np.ndarray) -> np.ndarray:
    scale = np.abs(x).max()
    if scale == 0:
        return x
    x = x / scale
    return x / sqrt(float((x * x).sum()))


def _inverse_roots(energies: np.ndarray) -> np.ndarray:
    return 1.0 / np.sqrt(np.where(energies > 0, energies, np.inf))


def slice_series(series: Series, rows: slice) -> Series:
    """Return consecutive series as a view."""
    starts = series.starts[rows.start : rows.stop + 1]
    return Series(series.values[starts[0] : starts[-1]], starts - starts[0])


def _check_channels(*arrays: np.ndarray) -> None:
    counts = {values.shape[1] for values in arrays if len(values)}
    if len(counts) > 1:
        few, many = sorted(counts)[:2]
        raise ValueError(
            f"some series have {few} channels and others {many}: samples are arrays "
            "(steps, channels), or (steps,) for one channel"
        )


def median_distance(samples: np.ndarray) -> float:
    """Return the median distance of steps that are evenly spaced over all series."""
    steps = spread_parts(samples, SOME_STEPS)
    squares = squared_distances(steps, steps)
    upper = squares[np.triu_indices(len(steps), 1)]
    return float(np.median(np.sqrt(upper))) if len(upper) else 0.0
