"""The noise in an image, estimated from its patches."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics.arrays import double, to_numpy
from .patches import random_rows
from .picture import Picture

SIZE = 8
PATCHES = 50_000


def estimate_noise(image: Any) -> float:
    """The standard deviation of white Gaussian noise, in the unit of the pixels.

    Patches of a photograph vary in few directions. In the others there is noise only,
    so that the smallest eigenvalues of the patches' covariance scatter around σ². The
    largest ones are left out until mean and median of the rest agree (Chen, Zhu, Heng,
    ICCV 2015, algorithm 1). The other estimate is the median of |(a − b − c + d)/2|
    over squares of four pixels, divided by 0.6745 (Donoho, Johnstone 1994). Both are
    too large where there is texture, so that the smaller one counts.

    Parameters
    ----------
    image : array (h, w) or (h, w, c)
        The pixels. For several channels the mean of their variances is returned, as a
        standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets.images import estimate_noise
    >>> noise = np.random.default_rng(0).normal(0, 5, (64, 64))
    >>> bool(4.5 < estimate_noise(100 + noise) < 5.5)
    True
    """
    return noise_of(Picture.of(image))


def noise_of(picture: Picture) -> float:
    """Estimate the noise of a converted picture; see `estimate_noise`."""
    variances = [
        min(_eigenvalue_variance(channel), _median_variance(channel))
        for channel in picture.channels
    ]
    return float(np.sqrt(np.mean(variances))) * picture.unit


def _median_variance(channel: Any) -> float:
    if min(channel.shape) < 2:
        return 0.0
    x = to_numpy(double(channel))
    differences = (x[:-1, :-1] - x[1:, :-1] - x[:-1, 1:] + x[1:, 1:]) / 2
    return float(np.median(np.abs(differences)) / 0.6745) ** 2


def _eigenvalue_variance(channel: Any) -> float:
    size = min(SIZE, *channel.shape)
    rng = np.random.default_rng(0)
    rows = to_numpy(double(random_rows(channel, size, PATCHES, rng)))
    if len(rows) < 2:
        return 0.0
    values = np.sort(np.linalg.eigvalsh(np.atleast_2d(np.cov(rows.T))))
    values = np.clip(values, 0.0, None)
    means = np.cumsum(values) / np.arange(1, len(values) + 1)
    medians = [np.median(values[: n + 1]) for n in range(len(values))]
    agree = np.flatnonzero(means <= medians)
    return float(means[agree[-1]])
