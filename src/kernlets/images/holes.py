"""Lost pixels, estimated from the observed pixels of similar patches.

The patches of a group are samples of a normal distribution. Its mean m and covariance C
are those of the current guess; the pixels o of each patch are observed, and the
expectation of the patch is

    x = m + C_o (C_oo + s²I)⁻¹ (y_o − m_o).

Guesses and groups improve in turn. The deviation s of the guess from the truth falls
from pass to pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.ndimage import zoom

from ..contracts import Array
from ..numerics.arrays import as_like, namespace, to_numpy
from .groups import Grouping, Progress, filter_groups

FILLED = 8  # number of most similar patches of a group that are filled in
TRUST = 5.0  # the mean of the guess counts as much as so many observed pixels


def fill_holes(
    channels: Array,  # (c, h, w)
    lost: np.ndarray,  # (h, w) booleans
    grouping: Grouping,
    deviations: Sequence[float],
    progress: Progress = lambda share: None,
) -> Array:  # (c, h, w)
    """Fill in the lost pixels of the channels, with one pass for each deviation."""
    xp = namespace(channels)
    observed = xp.zeros_like(channels) + as_like(~lost, channels)
    guess = as_like(
        np.stack([interpolate(to_numpy(c), ~lost) for c in channels]), channels
    )
    for i_pass, deviation in enumerate(deviations):

        def report(share: float, n_passes: int = i_pass) -> None:
            progress((n_passes + share) / len(deviations))

        estimate = partial(_expect_patches, deviation=deviation)
        images = channels * observed, observed, guess
        estimates = filter_groups(images, guess, grouping, estimate, report, lost)
        guess = xp.where(observed > 0, channels, estimates)
    return guess


def _expect_patches(
    pixels: Array,  # (g, k, p), zero where lost
    o: Array,  # (g, k, p), one or zero
    guess: Array,  # (g, k, p)
    deviation: float,
) -> tuple[Array, Array]:  # (g, k', p), (g,)
    """The expectations of the most similar patches of each group."""
    xp = namespace(guess)
    m = xp.mean(guess, axis=1, keepdims=True)
    C = xp.matrix_transpose(guess - m) @ (guess - m) / guess.shape[1]
    pixels, o = pixels[:, :FILLED], o[:, :FILLED]
    n_observed = xp.sum(o, axis=1, keepdims=True)
    m = m + xp.sum(pixels - o * m, axis=1, keepdims=True) / (n_observed + TRUST)
    C_oo = o[..., :, None] * C[:, None] * o[..., None, :]
    noise = deviation**2 * as_like(np.eye(guess.shape[2]), guess)
    residual = (pixels - o * m)[..., None]
    correction = (xp.linalg.solve(C_oo + noise, residual)[..., 0] * o) @ C
    return m + correction, xp.ones_like(m[:, 0, 0])


def interpolate(image: np.ndarray, observed: np.ndarray) -> np.ndarray:  # (h, w)
    """Fill lost pixels with the means of observed pixels over growing squares."""
    return _fill_from_coarse(
        np.where(observed, image, 0.0), observed.astype(image.dtype)
    )


def _fill_from_coarse(image: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Where weights are below one, mix in an upsampled image of half the size."""
    if (weight >= 1).all() or image.size == 1:
        return image
    sums, weights = _halve(image * weight), _halve(weight)
    coarse = _fill_from_coarse(
        sums / np.where(weights > 0, weights, 1), np.minimum(weights, 1)
    )
    upsampled = zoom(coarse, 2, order=1, mode="nearest", grid_mode=True)
    upsampled = upsampled[: image.shape[0], : image.shape[1]]
    return image * weight + (1 - weight) * upsampled


def _halve(image: np.ndarray) -> np.ndarray:
    """Sum over squares of four pixels; the image is padded with zeros."""
    image = np.pad(image, [(0, n % 2) for n in image.shape])
    return image[::2, ::2] + image[1::2, ::2] + image[::2, 1::2] + image[1::2, 1::2]
