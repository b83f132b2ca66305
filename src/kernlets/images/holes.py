"""Pixels that were lost, from what is known of them and of similar patches.

The patches of a group are samples of a normal distribution. Its mean m and covariance C
are those of the current guess; of each patch the pixels o are known, and the others are
expected to be

    x = m + C_o (C_oo + s²I)⁻¹ (y_o − m_o).

Guesses and groups improve in turn. The deviation s, of what the guess does not know
yet, falls from pass to pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.ndimage import zoom

from ..backend.arrays import as_like, namespace, to_numpy
from ..core import Array
from .groups import Grouping, Progress, filter_groups

FILLED = 8  # most similar patches of a group that are filled in
TRUST = 5.0  # known pixels that count as much as the guess of a mean


def fill_holes(
    channels: Array,  # (c, h, w)
    lost: np.ndarray,  # (h, w) booleans
    grouping: Grouping,
    deviations: Sequence[float],
    progress: Progress = lambda share: None,
) -> Array:  # (c, h, w)
    """The channels with lost pixels filled in, by one pass for each deviation."""
    xp = namespace(channels)
    known = xp.zeros_like(channels) + as_like(~lost, channels)
    guess = as_like(
        np.stack([interpolated(to_numpy(c), ~lost) for c in channels]), channels
    )
    for number, deviation in enumerate(deviations):

        def tell(share: float, done: int = number) -> None:
            progress((done + share) / len(deviations))

        estimate = partial(_expected, deviation=deviation)
        images = channels * known, known, guess
        found = filter_groups(images, guess, grouping, estimate, tell, lost)
        guess = xp.where(known > 0, channels, found)
    return guess


def _expected(
    pixels: Array,  # (g, k, p), zero where it is not known
    known: Array,  # (g, k, p), one or zero
    guess: Array,  # (g, k, p)
    deviation: float,
) -> tuple[Array, Array]:  # (g, k', p), (g,)
    """The expected patches for the most similar ones of each group."""
    xp = namespace(guess)
    mean = xp.mean(guess, axis=1, keepdims=True)
    covariance = xp.matrix_transpose(guess - mean) @ (guess - mean) / guess.shape[1]
    pixels, known = pixels[:, :FILLED], known[:, :FILLED]
    seen = xp.sum(known, axis=1, keepdims=True)
    mean = mean + xp.sum(pixels - known * mean, axis=1, keepdims=True) / (seen + TRUST)
    both = known[..., :, None] * covariance[:, None] * known[..., None, :]
    noise = deviation**2 * as_like(np.eye(guess.shape[2]), guess)
    rest = (pixels - known * mean)[..., None]
    found = (xp.linalg.solve(both + noise, rest)[..., 0] * known) @ covariance
    return mean + found, xp.ones_like(mean[:, 0, 0])


def interpolated(image: np.ndarray, known: np.ndarray) -> np.ndarray:  # (h, w)
    """Lost pixels from the means of known ones over larger and larger squares."""
    return _pulled(np.where(known, image, 0.0), known.astype(image.dtype))


def _pulled(image: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Weights below one give way to an image of half the size."""
    if (weight >= 1).all() or image.size == 1:
        return image
    sums, weights = _halved(image * weight), _halved(weight)
    coarse = _pulled(sums / np.where(weights > 0, weights, 1), np.minimum(weights, 1))
    wide = zoom(coarse, 2, order=1, mode="nearest", grid_mode=True)
    wide = wide[: image.shape[0], : image.shape[1]]
    return image * weight + (1 - weight) * wide


def _halved(image: np.ndarray) -> np.ndarray:
    """Sums over squares of four pixels; missing ones at the end are zero."""
    image = np.pad(image, [(0, n % 2) for n in image.shape])
    return image[::2, ::2] + image[1::2, ::2] + image[::2, 1::2] + image[1::2, 1::2]
