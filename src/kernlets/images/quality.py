"""The quality of an image: its noise, and its similarity to another (PSNR, SSIM)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from ..contracts import Array
from ..numerics.arrays import double, to_numpy
from ..numerics.pixels import random_patches
from .picture import Picture

SIZE, PATCHES = 8, 50_000  # of patches in which the noise is estimated


def estimate_noise(image: Any) -> float:
    """Return the standard deviation of white Gaussian noise, in the unit of the pixels.

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


def _median_variance(channel: Array) -> float:
    if min(channel.shape) < 2:
        return 0.0
    x = to_numpy(double(channel))
    differences = (x[:-1, :-1] - x[1:, :-1] - x[:-1, 1:] + x[1:, 1:]) / 2
    return float(np.median(np.abs(differences)) / 0.6745) ** 2


def _eigenvalue_variance(channel: Array) -> float:
    size = min(SIZE, *channel.shape)
    rng = np.random.default_rng(0)
    patches = random_patches(channel, (size, size), PATCHES, rng)
    rows = to_numpy(double(patches))
    if len(rows) < 2:
        return 0.0
    values = np.sort(np.linalg.eigvalsh(np.atleast_2d(np.cov(rows.T))))
    values = np.clip(values, 0.0, None)
    means = np.cumsum(values) / np.arange(1, len(values) + 1)
    medians = [np.median(values[: n + 1]) for n in range(len(values))]
    return float(means[means <= medians][-1])


def psnr(reference: Any, image: Any, white: float = 255.0) -> float:
    """Return the peak signal-to-noise ratio, 10 log₁₀(white² / mean squared error).

    Parameters
    ----------
    reference, image : array
        Two pictures of one shape.
    white : float
        The largest possible pixel.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets.images import psnr
    >>> psnr(np.zeros((2, 2)), np.full((2, 2), 25.5))
    20.0
    """
    first, second = _float_pair(reference, image)
    error = float(np.mean((first - second) ** 2))
    return float("inf") if error == 0 else float(10 * np.log10(white**2 / error))


def ssim(reference: Any, image: Any, white: float = 255.0) -> float:
    """Return the structural similarity of two images, 1 for equal ones.

    It is that of Wang, Bovik, Sheikh and Simoncelli 2004, from means, variances and the
    covariance under a Gaussian window of σ = 1.5 pixels, as a mean over pixels and
    channels.

    Parameters
    ----------
    reference, image : array
        Two pictures of one shape.
    white : float
        The largest possible pixel.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets.images import ssim
    >>> ramp = np.arange(400.0).reshape(20, 20) / 2
    >>> ssim(ramp, ramp)
    1.0
    """
    first, second = _float_pair(reference, image)
    if first.ndim == 3:
        pairs = zip(np.moveaxis(first, 2, 0), np.moveaxis(second, 2, 0), strict=True)
        return float(np.mean([ssim(a, b, white) for a, b in pairs]))

    def smooth(values: np.ndarray) -> np.ndarray:
        return gaussian_filter(values, 1.5, truncate=3.5)

    mean_1, mean_2 = smooth(first), smooth(second)
    variances = smooth(first**2) - mean_1**2 + smooth(second**2) - mean_2**2
    covariance = smooth(first * second) - mean_1 * mean_2
    c1, c2 = (0.01 * white) ** 2, (0.03 * white) ** 2
    top = (2 * mean_1 * mean_2 + c1) * (2 * covariance + c2)
    return float(np.mean(top / ((mean_1**2 + mean_2**2 + c1) * (variances + c2))))


def _float_pair(reference: Any, image: Any) -> tuple[np.ndarray, np.ndarray]:
    first, second = (
        to_numpy(picture).astype(np.float64) for picture in (reference, image)
    )
    if first.shape != second.shape:
        raise ValueError(
            f"image has the shape {second.shape}, reference {first.shape}: compare "
            "images of one size"
        )
    return first, second
