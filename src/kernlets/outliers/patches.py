"""Outliers within an image or a series: scores of patches, and a map of scores."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..base.constraints import AT_LEAST_1
from ..base.estimator import Estimator
from ..data.rows import map_rows
from ..numerics.arrays import to_numpy
from ..numerics.pixels import (
    as_pixels,
    average_scores,
    random_patches,
    window_starts,
    windows,
)
from ..numerics.random import generator
from ..schema import Declared, Number, Part, Whole
from .base import OutlierDetector, with_seed
from .detector import DictionaryOutlierDetector


class PatchOutlierDetector(Estimator):
    """Finds the positions in an image or a series that are unlike the normal ones.

    Overlapping patches of an image, or windows of a series, are the rows of an outlier
    detector. A pixel, or a step in time, gets the mean score of all patches that it is
    in. Patches are made a few at a time, as the memory option allows.

    Parameters
    ----------
    detector : DictionaryOutlierDetector or StreamOutlierDetector, optional
        Scores the patches. Default: ``DictionaryOutlierDetector(novelty=True)``.
    patch_size : int or tuple of int
        Height and width of a patch: 8 is short for (8, 8). A tuple of one, (50,), is
        for series; of three, for volumes.
    stride : int, optional
        Steps between patches that are scored; 1 takes all. Default: a quarter of the
        patch.
    n_patches : int
        The most patches to learn from.
    random_state : int, RandomState, Generator or None
        Chooses them, and seeds a detector that has no ``random_state`` of its own.

    Attributes
    ----------
    detector_ : OutlierDetector
        The detector, fitted to patches.
    threshold_ : float
        The score above which a patch is an outlier, a sensible one for pixels, too.
    n_channels_ : int
        Number of channels; 1 for grey images and simple series.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets.outliers import PatchOutlierDetector
    >>> rng = np.random.default_rng(0)
    >>> wave = np.sin(np.arange(600) / 4) + 0.05 * rng.standard_normal(600)
    >>> detector = PatchOutlierDetector(patch_size=(25,), random_state=0).fit(wave)
    >>> broken = wave[:200].copy()
    >>> broken[90:110] = 0
    >>> bool(90 <= detector.score_map(broken).argmax() < 110)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "detector": [OutlierDetector, None],
        "patch_size": [AT_LEAST_1, tuple],
        "stride": [AT_LEAST_1, None],
        "n_patches": [AT_LEAST_1],
        "random_state": ["random_state", np.random.Generator],
    }

    _declared: ClassVar[Declared] = {
        "detector_": Part(OutlierDetector),
        "threshold_": Number(),
        "n_channels_": Whole(1),
    }

    def __init__(
        self,
        detector: OutlierDetector | None = None,
        patch_size: int | tuple[int, ...] = 8,
        *,
        stride: int | None = None,
        n_patches: int = 10_000,
        random_state: Any = None,
    ) -> None:
        self.detector = detector
        self.patch_size = patch_size
        self.stride = stride
        self.n_patches = n_patches
        self.random_state = random_state

    def fit(self, images: Any, y: Any = None) -> PatchOutlierDetector:
        """Learn what patches look like from one image or series, or a list of them.

        Their shape is (height, width) or (height, width, channels), or (steps,) or
        (steps, channels). NaN means missing, if the detector accepts missing values.
        """
        self._validate_params()
        is_list = isinstance(images, Sequence)
        pictures = [
            self._as_picture(image) for image in (images if is_list else [images])
        ]
        channels = {picture.shape[-1] for picture in pictures}
        if len(channels) != 1:
            raise ValueError(
                "images is an empty list: pass at least one"
                if not channels
                else f"images have {sorted(channels)} channels: pass those of one kind"
            )
        rng = generator(self.random_state)
        shape, count = self._shape(), -(-self.n_patches // len(pictures))
        rows = [random_patches(picture, shape, count, rng) for picture in pictures]
        detector, seed = self.detector, int(rng.integers(2**31))
        if detector is None:
            detector = DictionaryOutlierDetector(novelty=True)
        self.detector_ = with_seed(detector, seed).fit(np.concatenate(rows))
        self.threshold_ = -self.detector_.offset_
        (self.n_channels_,) = channels
        return self

    def score_map(self, image: Any) -> np.ndarray:
        """Return the mean score, at each pixel or step, of the patches that it is in.

        Large scores are abnormal; compare them with `threshold_`.
        """
        check_is_fitted(self)
        picture = self._as_picture(image)
        if picture.shape[-1] != self.n_channels_:
            raise ValueError(
                f"image has {picture.shape[-1]} channels, and {self.n_channels_} were "
                "learned"
            )
        shape, stride = self._shape(), self._stride()
        image_shape = picture.shape[: len(shape)]
        sizes = zip(image_shape, shape, strict=True)
        starts = [window_starts(n - size, stride) for n, size in sizes]
        grid = tuple(len(axis) for axis in starts)

        def score(numbers: np.ndarray) -> np.ndarray:  # (k,)
            steps = np.unravel_index(numbers, grid)
            corners = tuple(a[i] for a, i in zip(starts, steps, strict=True))
            rows = windows(picture, shape)[corners].reshape(len(numbers), -1)
            return -to_numpy(self.detector_.score_samples(rows)).astype(np.float64)

        row_bytes = 4 * 8 * prod(shape) * self.n_channels_
        scores = map_rows(score, np.arange(prod(grid)), row_bytes)
        return average_scores(scores.reshape(grid), starts, shape, image_shape)

    # ------------------------------------------------------------------------ patches

    def _shape(self) -> tuple[int, ...]:
        size = self.patch_size
        shape = size if isinstance(size, tuple) else (size, size)
        if not shape or not all(isinstance(n, int) and n > 0 for n in shape):
            raise ValueError(
                f"patch_size={size!r} must be whole numbers above 0: 8 or (8, 8) for "
                "images, (50,) for series"
            )
        return shape

    def _stride(self) -> int:
        least = min(self._shape())
        if self.stride is None:
            return max(1, least // 4)
        if self.stride > least:
            raise ValueError(
                f"stride={self.stride} leaves gaps between patches of {least}: lower it"
            )
        return int(self.stride)

    def _as_picture(self, image: Any) -> np.ndarray:  # (..., c)
        """Return the pixels with an axis of channels; refuse images without patches."""
        pixels, shape = to_numpy(as_pixels(image)), self._shape()
        pixels = pixels[..., None] if pixels.ndim == len(shape) else pixels
        sizes = zip(pixels.shape, shape, strict=False)
        if pixels.ndim != len(shape) + 1 or any(n < size for n, size in sizes):
            raise ValueError(
                f"an image of shape {np.shape(image)} has no patches of {shape}: it "
                f"must have {len(shape)} axes of at least that size, and may have one "
                "for channels; set patch_size, (50,) for series"
            )
        return pixels
