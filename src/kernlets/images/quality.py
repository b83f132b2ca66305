"""Similarity of two images: PSNR and SSIM."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from ..numerics.arrays import to_numpy


def psnr(reference: Any, image: Any, white: float = 255.0) -> float:
    """Peak signal-to-noise ratio in decibel, 10 log₁₀(white² / mean squared error).

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
    """Structural similarity (Wang, Bovik, Sheikh, Simoncelli 2004), 1 for equal images.

    Means, variances and the covariance under a Gaussian window of σ = 1.5 pixels, and
    the mean of all of it over pixels and channels.

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
