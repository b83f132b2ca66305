"""`ConvolutionMap`: features of series, from random convolutions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..base.constraints import AT_LEAST_1
from ..data.samples import float_like
from ..kernels.samples import check_samples, describe_input
from ..kernels.series import GAK
from ..loops.kernels.layout import Series, Waves
from ..loops.table import convolve
from ..numerics.random import generator
from ..numerics.scaling import all_finite
from ..numerics.threads import parallel
from ..schema import Declared, Floats, Indices
from .base import FeatureMap

LENGTHS = (7, 9, 11)  # possible numbers of weights of a wave
MOST = max(LENGTHS)
AT_ONCE = 16  # number of series that a thread convolves in one call


class ConvolutionMap(FeatureMap):
    """Random convolutional features of time series, in the manner of ROCKET.

    Each wave is a short sequence of random weights, which are some steps apart, with a
    random bias. Of its convolution with a series there are two features: the share of
    positive values and the largest value. Linear methods and dictionaries take them as
    rows of numbers, best after `Standardize`.

    Parameters
    ----------
    n_waves : int
        Number of waves, half the number of features.
    random_state : int, RandomState, Generator or None
        Draws the waves.

    Attributes
    ----------
    weights_ : array (n_waves, channels, 11)
        Weights, 0 past the end of a wave and for channels that it does not use.
    lengths_, gaps_, padded_ : arrays (n_waves,)
        Weights of each wave, steps between them, and whether series are continued with
        zeros.
    biases_ : array (n_waves,)
    n_features_in_ : int
        1: samples are a column of objects.

    Notes
    -----
    A. Dempster, F. Petitjean and G. Webb, ROCKET, DMKD 2020. Series of different
    offsets and scales need `datasets.z_normalize` first.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets.maps import ConvolutionMap
    >>> series = [np.sin(np.arange(n)) for n in (20, 30)]
    >>> ConvolutionMap(50, random_state=0).fit_transform(series).shape
    (2, 100)
    """

    _parameter_constraints = {
        "n_waves": [AT_LEAST_1],
        "random_state": ["random_state", np.random.Generator],
    }
    _declared: ClassVar[Declared] = {
        "weights_": Floats("k", "c", MOST),
        "lengths_": Indices("k", least=1, below=MOST + 1),
        "gaps_": Indices("k", least=1),
        "padded_": Indices("k", below=2),
        "biases_": Floats("k"),
    }

    def __init__(self, n_waves: int = 1000, random_state: Any = None) -> None:
        self.n_waves = n_waves
        self.random_state = random_state

    def _fit(self, head: np.ndarray, rows: np.ndarray) -> None:
        """Draw the waves, for series as long as those in the rows."""
        rng, k = generator(self.random_state), int(self.n_waves)
        longest = max(len(sample) for sample in rows)
        self.lengths_ = rng.choice(LENGTHS, size=k)
        # steps 2ᵘ with u uniform, so small that no wave is longer than a series
        most_steps = np.maximum(1.0, (longest - 1) / (self.lengths_ - 1))
        steps = 2 ** rng.uniform(0.0, np.log2(most_steps))
        self.gaps_ = np.floor(steps).astype(np.int64)
        self.padded_ = rng.integers(0, 2, size=k)
        self.biases_ = rng.uniform(-1.0, 1.0, size=k)
        self.weights_ = _draw_weights(rng, rows[0].shape[1], self.lengths_)

    def _check_rows(self, X: Any, reset: bool = False) -> Any:
        return check_samples(
            self, X, GAK(), reset=reset, containers="array" if reset else "dask"
        )

    def _features(self, X: np.ndarray) -> np.ndarray:  # (n,) -> (n, 2 n_waves)
        n_fitted = self.weights_.shape[1]
        n_channels = X[0].shape[1] if len(X) else n_fitted
        if n_fitted != n_channels:
            raise ValueError(
                f"series have {n_channels} channels, but {n_fitted} in the fit: "
                "samples are arrays (steps, channels), or (steps,) for one channel"
            )
        features = np.empty((len(X), self._n_features_out), float_like(X).dtype)
        waves = Waves(
            np.asarray(self.weights_, np.float64),
            np.asarray(self.lengths_, np.int64),
            np.asarray(self.gaps_, np.int64),
            np.asarray(self.padded_, np.int64),
            np.asarray(self.biases_, np.float64),
        )

        def convolve_some(start: int) -> None:
            series = Series.of(list(X[start : start + AT_ONCE]))
            features[start : start + AT_ONCE] = convolve(series, waves)

        parallel(convolve_some, range(0, len(X), AT_ONCE))
        if not all_finite(features):
            raise ValueError(
                f"convolutions of these series overflow in {features.dtype}: scale "
                "them, e.g. with kernlets.datasets.z_normalize"
            )
        return features

    @property
    def _row_bytes(self) -> int:
        return 16 * len(self.biases_)

    @property
    def _n_features_out(self) -> int:
        return 2 * len(self.biases_)

    def __sklearn_tags__(self) -> Any:
        return describe_input(super().__sklearn_tags__(), GAK())


def _draw_weights(
    rng: np.random.Generator, n_channels: int, lengths: np.ndarray
) -> np.ndarray:  # (k, c, MOST)
    """Draw normal weights of mean zero, on one or several random channels."""
    weights = np.zeros((len(lengths), n_channels, MOST))
    for wave, length in zip(weights, lengths, strict=True):
        largest_exponent = np.log2(min(n_channels, length) + 1)
        n_used = min(n_channels, int(2 ** rng.uniform(0.0, largest_exponent)))
        channels = rng.choice(n_channels, size=n_used, replace=False)
        normal = rng.standard_normal((n_used, length))
        wave[channels, :length] = normal - normal.mean(axis=1, keepdims=True)
    return weights
