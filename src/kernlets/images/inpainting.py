"""Inpainting: fill in the lost pixels of images."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from ..base.constraints import AT_LEAST_1, Interval
from ..contracts import Array
from ..numerics.arrays import move_like, namespace, to_numpy
from ..numerics.pixels import as_array
from ..numerics.threads import serial_blas
from ..sklearn_base import BaseEstimator
from .groups import Grouping
from .holes import fill_holes
from .picture import Picture, check_pixels

FIRST, LAST = 0.047, 0.012  # deviations of the first and the last pass, of the range
REACH = 10  # largest distance of similar patches, in pixels
STRIDE = 4


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
        picture = Picture.of(_fill_with_mean(pixels, lost))
        with serial_blas:
            channels = self._inpaint_channels(picture.channels, lost)
        return _replace_lost(image, picture.to_image(channels, image), lost)

    def fit_transform(self, image: Any, mask: Any = None) -> Any:
        """The same as `transform`."""
        return self.transform(image, mask)

    def _inpaint_channels(
        self, channels: Array, lost: np.ndarray
    ) -> Array:  # (c, h, w)
        shape = channels.shape[1:]
        if min(shape) < self.patch_size:
            raise ValueError(
                f"image has {shape[0]} x {shape[1]} pixels, fewer than a patch of "
                f"{self.patch_size}: lower patch_size to {min(shape)}"
            )
        stride = min(STRIDE, self.patch_size)
        grouping = Grouping(self.patch_size, self.n_similar, REACH, stride)
        steps = np.geomspace(FIRST, LAST, self.max_iter)
        lost_anywhere = lost.reshape(*shape, -1).max(axis=2)
        report = self.progress or (lambda share: None)
        return fill_holes(channels, lost_anywhere, grouping, steps.tolist(), report)


def lost_pixels(pixels: Array, mask: Any) -> np.ndarray:  # the shape of `pixels`
    """Mask of the lost pixels, which the mask of the user marks or which are NaN."""
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


def _fill_with_mean(pixels: Array, lost: np.ndarray) -> Array:
    """Put the mean of the observed pixels in place of the lost ones, to start with."""
    values = np.array(to_numpy(pixels))
    values[lost] = values[~lost].mean()
    return move_like(values, pixels)


def _replace_lost(image: Any, restored: Any, lost: np.ndarray) -> Any:
    """Take observed pixels from the image, and lost ones from the restored image."""
    lost = move_like(lost, restored)
    return namespace(restored).where(lost, restored, as_array(image))
