"""Noise removal: by learned atoms first, then by groups of similar patches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..base.constraints import (
    AT_LEAST_0,
    AT_LEAST_1,
    NOT_NEGATIVE,
    Interval,
    StrOptions,
)
from ..coders import OMP, encode
from ..contracts import Array
from ..dictionaries import ExplicitDictionary
from ..learners import KSVD
from ..loops.table import subtract_codes
from ..numerics.arrays import as_like, namespace
from ..numerics.pixels import random_patches
from ..numerics.random import generator
from ..numerics.scaling import unit_rows
from ..numerics.threads import serial_blas
from ..sklearn_base import BaseEstimator
from .patches import Grouping, filter_patches
from .picture import Picture, check_size
from .quality import noise_of
from .wiener import Filter, wiener_filter

ATOMS = Path(__file__).with_name("atoms.npy")  # from `benchmarks/patch_atoms.py`
ATOM_SIZE = 8  # pixels along a side of a patch of these atoms
GAIN = 1.15  # codes stop when the residual is this many times the noise
LEAST = 1e-4  # noise below this share of the pixels' range counts as zero
Progress = Callable[[float], Any]


class Effort(NamedTuple):
    """How long a dictionary is learned, and the stride between coded patches."""

    max_iter: int
    n_patches: int
    stride: int


EFFORTS = {"best": Effort(10, 20_000, 1), "fast": Effort(3, 10_000, 2)}
PASSES = {
    "best": (
        Filter(Grouping(9, stride=5)),
        Filter(Grouping(8, stride=4), returned=0.1),
        Filter(Grouping(7, stride=3), returned=0.1),
    ),
    "fast": (Filter(Grouping(8, stride=5), scale=1.5, updates=1),),
}


def denoise(
    image: Any,
    sigma: float | None = None,
    *,
    quality: str = "best",
    atoms: str = "learned",
    patch_size: int = 8,
    random_state: Any = 0,
    progress: Progress | None = None,
) -> Any:
    """Remove white Gaussian noise from a picture.

    A dictionary is learned on the patches of the picture itself, unless atoms are
    "bundled". See `ImageDenoiser`, which also learns from other pictures.

    Parameters
    ----------
    image : array (h, w) or (h, w, c), NumPy or torch
        Grey, colour or other channels; integers or floats of any range.
    sigma : float, optional
        Standard deviation of the noise, in the unit of the pixels. Estimated if not
        given (`estimate_noise`).
    quality : {"best", "fast"}
        "fast" filters groups of similar patches once instead of three times, and learns
        from and codes fewer patches. It takes a quarter of the time.
    atoms : {"learned", "bundled"}
        Atoms learned from the picture itself, or the atoms of the library.
    patch_size : int
        Height and width of a patch in pixels.
    random_state : int, RandomState, Generator or None
        Chooses the patches to learn from.
    progress : callable, optional
        Called with the share of the work that is done.

    Returns
    -------
    array of the shape and type of `image`
        Integers are rounded, and cut off at the ends of their type.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets.images import denoise, psnr
    >>> clean = np.add.outer(np.arange(48.0), np.arange(48.0))
    >>> noisy = clean + np.random.default_rng(0).normal(0, 5, clean.shape)
    >>> psnr(clean, denoise(noisy, 5)) > psnr(clean, noisy) + 6
    True
    """
    model = ImageDenoiser(
        sigma,
        quality=quality,
        atoms=atoms,
        patch_size=patch_size,
        random_state=random_state,
        progress=progress,
    )
    return model.fit_transform(image)


class ImageDenoiser(BaseEstimator):
    """Denoising by a dictionary of patches, as Elad and Aharon did with K-SVD.

    Patches without their mean are coded by OMP until the squared residual is
    (1.15 σ)² times the number of pixels, and averaged where they overlap; sparse
    patches count more. Then come Wiener filters over groups of similar patches, whose
    covariances come from the estimate so far: three passes, or one if
    ``quality="fast"``.

    Parameters
    ----------
    sigma : float, optional
        Standard deviation of the noise. Estimated for each picture if not given.
    n_components : int
        Atoms of the dictionary.
    patch_size : int
        Height and width of a patch in pixels.
    quality : {"best", "fast"}
        "fast" uses fewer patches and one pass of filters; see `denoise`.
    atoms : {"learned", "bundled"}
        Learned by `fit`, or 256 atoms of 8 x 8 pixels that come with the library, from
        photographs in the public domain. These save the time of learning, and do not
        change with the picture.
    max_iter : int, optional
        Iterations of K-SVD. Default: 10, or 3 if ``quality="fast"``.
    n_patches : int, optional
        The most patches to learn from. Default: 20 000, or 10 000.
    random_state : int, RandomState, Generator or None
        Chooses them.
    progress : callable, optional
        Called with the share of the work that is done.

    Attributes
    ----------
    components_ : array (n_components, patch_size²)
        The atoms.
    sigma_ : float
        The noise of the pictures that were fitted, as a share of their range of pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets.images import ImageDenoiser
    >>> rng = np.random.default_rng(0)
    >>> pictures = [rng.normal(100, 5, (40, 40)) for _ in range(2)]
    >>> model = ImageDenoiser(5, n_components=32, max_iter=2, random_state=0)
    >>> float(model.fit(pictures).transform(pictures[0]).std()) < 2
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "sigma": [NOT_NEGATIVE, None],
        "n_components": [AT_LEAST_1],
        "patch_size": [Interval(Integral, 2, None, closed="left")],
        "quality": [StrOptions({"best", "fast"})],
        "atoms": [StrOptions({"learned", "bundled"})],
        "max_iter": [AT_LEAST_0, None],
        "n_patches": [AT_LEAST_1, None],
        "random_state": ["random_state", np.random.Generator],
        "progress": [callable, None],
    }

    def __init__(
        self,
        sigma: float | None = None,
        n_components: int = 256,
        *,
        patch_size: int = 8,
        quality: str = "best",
        atoms: str = "learned",
        max_iter: int | None = None,
        n_patches: int | None = None,
        random_state: Any = None,
        progress: Progress | None = None,
    ) -> None:
        self.sigma = sigma
        self.n_components = n_components
        self.patch_size = patch_size
        self.quality = quality
        self.atoms = atoms
        self.max_iter = max_iter
        self.n_patches = n_patches
        self.random_state = random_state
        self.progress = progress

    def fit(self, images: Any, y: Any = None) -> ImageDenoiser:
        """Learn atoms from patches of one picture, or of a list of them."""
        self._validate_params()
        images = images if isinstance(images, Sequence) else [images]
        if not images:
            raise ValueError("images is an empty list: pass at least one picture")
        return self._learn([self._picture_and_noise(image) for image in images])

    def _learn(self, pictures: list[tuple[Picture, float]]) -> ImageDenoiser:
        sigmas = [sigma for _, sigma in pictures]
        self.sigma_ = float(np.sqrt(np.mean(np.square(sigmas))))
        size, channels = self.patch_size, [p.channels[0] for p, _ in pictures]
        if self.atoms == "bundled":
            if size != ATOM_SIZE:
                raise ValueError(
                    "atoms='bundled' have patches of "
                    f"{ATOM_SIZE} x {ATOM_SIZE} pixels: leave patch_size={size} out, "
                    "or learn atoms"
                )
            self.components_ = as_like(bundled_atoms(), channels[0])
            return self
        rng = generator(self.random_state)
        n_patches = self._effort.n_patches if self.n_patches is None else self.n_patches
        count = -(-n_patches // len(channels))
        rows = [random_patches(c, (size, size), count, rng) for c in channels]
        with serial_blas:
            self.components_ = self._atoms(namespace(rows[0]).concat(rows), rng)
        return self

    def transform(self, image: Any) -> Any:
        """Return the picture without its noise."""
        check_is_fitted(self)
        return self._remove_noise(*self._picture_and_noise(image), image)

    def fit_transform(self, image: Any, y: Any = None) -> Any:
        """Learn from a picture, and return it without its noise."""
        self._validate_params()
        picture, sigma = self._picture_and_noise(image)
        return self._learn([(picture, sigma)])._remove_noise(picture, sigma, image)

    def _remove_noise(self, picture: Picture, sigma: float, image: Any) -> Any:
        channels = picture.channels
        if sigma >= LEAST:
            with serial_blas:
                channels = self._estimate(channels, sigma)
        return picture.to_image(channels, image)

    def _picture_and_noise(self, image: Any) -> tuple[Picture, float]:
        """Return the channels of a picture, and its noise as a share of their range."""
        picture = Picture.of(image)
        check_size(picture.channels.shape[1:], self.patch_size)
        sigma = noise_of(picture) if self.sigma is None else self.sigma
        return picture, sigma / picture.unit

    def _atoms(self, rows: Array, rng: np.random.Generator) -> Array:
        """Run K-SVD from a cosine dictionary, on patches without their mean."""
        rows = rows - namespace(rows).mean(rows, axis=1, keepdims=True)
        start = cosine_atoms(self.patch_size, self.n_components)
        max_iter = self._effort.max_iter if self.max_iter is None else self.max_iter
        if max_iter == 0 or not bool((rows != 0).any()):
            return as_like(start, rows)
        learner = KSVD(
            len(start),
            coder=self._coder(max(self.sigma_, LEAST), len(start)),
            max_iter=max_iter,
            init=as_like(start, rows),
            random_state=rng,
        )
        return learner.fit(rows).components_

    @property
    def _effort(self) -> Effort:
        return EFFORTS[self.quality]

    def _coder(self, sigma: float, n_atoms: int) -> OMP:
        """Return an OMP that stops where the residual is as large as the noise."""
        length = self.patch_size**2
        return OMP(min(length // 2, n_atoms), tol=(GAIN * sigma) ** 2 * length)

    def _estimate(self, channels: Array, sigma: float) -> Array:  # (c, h, w)
        passes, xp = filters(self.quality, channels.shape[1:]), namespace(channels)
        progress = _StepProgress(self.progress, channels.shape[0] + len(passes))
        pilot = xp.stack([self._code_channel(c, sigma, progress) for c in channels])
        for settings in passes:
            pilot = wiener_filter(channels, pilot, sigma, settings, progress)
            progress.next()
        return pilot

    def _code_channel(
        self, channel: Array, sigma: float, progress: _StepProgress
    ) -> Array:
        """Replace the patches of one channel by their codes over the dictionary."""
        atoms = as_like(self.components_, channel)
        dictionary = ExplicitDictionary(atoms)
        coder = self._coder(sigma, len(atoms))

        def estimate(rows: Array) -> tuple[Array, Array]:
            xp = namespace(rows)
            centred = rows - xp.mean(rows, axis=1, keepdims=True)
            codes = encode(dictionary, coder, centred)
            residual = subtract_codes(centred, codes.indices, codes.values, atoms)
            n_used = xp.sum(xp.astype(codes.values != 0, rows.dtype), axis=1)
            return rows - residual, 1 / (1 + n_used)

        shape = self.patch_size, self._effort.stride
        denoised = filter_patches(channel, *shape, estimate, progress)
        progress.next()
        return denoised


def bundled_atoms() -> np.ndarray:  # (256, 64)
    """Return atoms learned on eight photographs, without mean, of unit norm."""
    atoms = np.load(ATOMS).astype(np.float64)
    return unit_rows(atoms - atoms.mean(axis=1, keepdims=True))


def cosine_atoms(size: int, count: int) -> np.ndarray:  # (count, size²)
    """Return products of cosines of growing frequency, without mean, of unit norm."""
    per_axis = int(np.ceil(np.sqrt(count + 1)))
    frequencies = np.arange(per_axis) * np.pi / per_axis
    waves = np.cos((np.arange(size) + 0.5) * frequencies[:, None])
    waves[1:] -= waves[1:].mean(axis=1, keepdims=True)
    atoms = np.kron(waves, waves)
    order = np.add.outer(np.arange(per_axis), np.arange(per_axis)).ravel()
    atoms = atoms[np.argsort(order, kind="stable")][1 : count + 1]
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


class _StepProgress:
    """Converts the share of the current step to the share of all work, to report it."""

    def __init__(self, report: Progress | None, n_steps: int) -> None:
        self._report, self._n_steps, self._done = report, n_steps, 0

    def __call__(self, share: float) -> None:
        if self._report is not None:
            self._report(min(1.0, (self._done + share) / self._n_steps))

    def next(self) -> None:
        self._done += 1


def filters(quality: str, shape: tuple[int, ...]) -> list[Filter]:
    """Return the passes over groups of similar patches, in an image of this shape."""
    passes = []
    for settings in PASSES[quality]:
        size = min(settings.grouping.size, *shape)
        grouping = replace(settings.grouping, size=size)
        passes.append(replace(settings, grouping=grouping))
    return passes
