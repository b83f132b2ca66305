"""Inpainting: lost pixels, estimated from the observed pixels of similar patches.

The patches of a group are samples of a normal distribution. Its mean m and covariance C
are those of the current guess; the pixels o of each patch are observed, and the
expectation of the patch is

    x = m + C_o (C_oo + s²I)⁻¹ (y_o − m_o).

Guesses and groups improve in turn. The deviation s of the guess from the truth falls
from pass to pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy.ndimage import zoom

from ..base.constraints import AT_LEAST_1, Interval
from ..contracts import Array
from ..numerics.arrays import as_like, move_like, namespace, to_numpy
from ..numerics.pixels import as_array
from ..numerics.threads import serial_blas
from ..sklearn_base import BaseEstimator
from .patches import Grouping, Progress, filter_groups
from .picture import Picture, check_pixels, check_size

FIRST, LAST = 0.047, 0.012  # deviations of the first and the last pass, of the range
REACH = 10  # largest distance of similar patches, in pixels
STRIDE = 4
FILLED = 8  # number of most similar patches of a group that are filled in
TRUST = 5.0  # the mean of the guess counts as much as so many observed pixels


def inpaint(
    image: Any,
    mask: Any = None,
    *,
    patch_size: int = 7,
    max_iter: int = 6,
    progress: Callable[[float], Any] | None = None,
) -> Any:
    """Fill in the lost pixels of a picture.

    Other pixels do not change. See `ImageInpainter` for the method.

    Parameters
    ----------
    image : array (h, w) or (h, w, c), NumPy or torch
        Grey, colour or other channels; integers or floats of any range.
    mask : array (h, w) or of the shape of `image`, optional
        True, or not zero, where pixels are lost. NaN pixels are lost, too.
    patch_size : int
        Height and width of a patch in pixels.
    max_iter : int
        Passes over the picture. Half as many are quicker and nearly as good.
    progress : callable, optional
        Called with the share of the work that is done.

    Returns
    -------
    array of the shape and type of `image`
        Integers are rounded, and cut off at the ends of their type.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets.images import inpaint, psnr
    >>> ramp = np.add.outer(np.arange(40.0), 2 * np.arange(40.0))
    >>> lost = np.random.default_rng(0).random(ramp.shape) < 0.5
    >>> psnr(ramp, inpaint(ramp, lost)) > 40
    True
    """
    model = ImageInpainter(patch_size, max_iter=max_iter, progress=progress)
    return model.transform(image, mask)


class ImageInpainter(BaseEstimator):
    """Estimates lost pixels from the observed pixels of similar patches.

    The first guess interpolates. Then groups of similar patches are searched in the
    guess. The patches of a group are samples of a normal distribution; its conditional
    expectation, given the observed pixels of a patch, is the next guess (Yu, Sapiro,
    Mallat 2012, with a model for each group instead of a few for the whole picture).
    Pixels with a lost channel are lost.

    Parameters
    ----------
    patch_size : int
        Height and width of a patch in pixels.
    n_similar : int
        Patches in a group.
    max_iter : int
        Passes over the picture.
    progress : callable, optional
        Called with the share of the work that is done.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets.images import ImageInpainter
    >>> stripes = np.tile([0.0, 0.0, 1.0, 1.0], (32, 8))
    >>> stripes[10:14, 9:12] = np.nan
    >>> filled = ImageInpainter().transform(stripes)
    >>> filled[11, 9:12].round(1).tolist()
    [0.0, 1.0, 1.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "patch_size": [Interval(Integral, 2, None, closed="left")],
        "n_similar": [Interval(Integral, 2, None, closed="left")],
        "max_iter": [AT_LEAST_1],
        "progress": [callable, None],
    }

    def __init__(
        self,
        patch_size: int = 7,
        *,
        n_similar: int = 70,
        max_iter: int = 6,
        progress: Callable[[float], Any] | None = None,
    ) -> None:
        self.patch_size = patch_size
        self.n_similar = n_similar
        self.max_iter = max_iter
        self.progress = progress

    def fit(self, images: Any = None, y: Any = None) -> ImageInpainter:
        """Check the parameters; nothing is learned from other pictures."""
        self._validate_params()
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, image: Any, mask: Any = None) -> Any:
        """Fill in the pixels of a picture that the mask marks, or that are NaN."""
        self._validate_params()
        pixels = check_pixels(image)
        lost = lost_pixels(pixels, mask)
        if not lost.any():
            return namespace(pixels).asarray(as_array(image), copy=True)
        values = np.array(to_numpy(pixels))
        values[lost] = values[~lost].mean()
        picture = Picture.of(move_like(values, pixels))
        with serial_blas:
            channels = self._inpaint_channels(picture.channels, lost)
        restored = picture.to_image(channels, image)
        lost = move_like(lost, restored)
        return namespace(restored).where(lost, restored, as_array(image))

    def fit_transform(self, image: Any, mask: Any = None) -> Any:
        """Do the same as `transform`."""
        return self.transform(image, mask)

    def _inpaint_channels(
        self, channels: Array, lost: np.ndarray
    ) -> Array:  # (c, h, w)
        shape = channels.shape[1:]
        check_size(shape, self.patch_size)
        stride = min(STRIDE, self.patch_size)
        grouping = Grouping(self.patch_size, self.n_similar, REACH, stride)
        steps = np.geomspace(FIRST, LAST, self.max_iter)
        lost_anywhere = lost.reshape(*shape, -1).max(axis=2)
        report = self.progress or (lambda share: None)
        return fill_holes(channels, lost_anywhere, grouping, steps.tolist(), report)


def lost_pixels(pixels: Array, mask: Any) -> np.ndarray:  # the shape of `pixels`
    """Return the mask of lost pixels, which the mask marks or which are NaN."""
    shape = tuple(pixels.shape)
    lost = np.isnan(to_numpy(pixels))
    if mask is not None:
        marks = to_numpy(mask) != 0
        if marks.shape not in (shape, shape[:2]):
            raise ValueError(
                f"mask has the shape {marks.shape}, image {shape}: pass a mask of the "
                "image's height and width, true where pixels are lost"
            )
        lost |= marks if marks.shape == shape else marks[:, :, None]
    if lost.all():
        raise ValueError(
            "all pixels of the image are lost, so that there is nothing to fill them "
            "in from: the mask is true where pixels are lost"
        )
    return lost


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
    first_guess = [interpolate(to_numpy(channel), ~lost) for channel in channels]
    guess = as_like(np.stack(first_guess), channels)
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
    """Return the expectations of the most similar patches of each group."""
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
    image = np.where(observed, image, 0.0)
    return _fill_from_coarse(image, observed.astype(image.dtype))


def _fill_from_coarse(image: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Where weights are below one, mix in an upsampled image of half the size."""
    if (weight >= 1).all() or image.size == 1:
        return image
    sums, weights = _halve(image * weight), _halve(weight)
    means = sums / np.where(weights > 0, weights, 1)
    coarse = _fill_from_coarse(means, np.minimum(weights, 1))
    upsampled = zoom(coarse, 2, order=1, mode="nearest", grid_mode=True)
    upsampled = upsampled[: image.shape[0], : image.shape[1]]
    return image * weight + (1 - weight) * upsampled


def _halve(image: np.ndarray) -> np.ndarray:
    """Sum over squares of four pixels; the image is padded with zeros."""
    image = np.pad(image, [(0, n % 2) for n in image.shape])
    return image[::2, ::2] + image[1::2, ::2] + image[::2, 1::2] + image[1::2, 1::2]
