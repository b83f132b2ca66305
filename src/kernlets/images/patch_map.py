"""`PatchDictionaryMap`: features of whole images, from codes of their patches."""

from __future__ import annotations

from math import isqrt, prod
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..base.constraints import AT_LEAST_0, AT_LEAST_1, TRANSFORMER, StrOptions
from ..coders import OMP, resolve_coder
from ..coders.encoding import encode_block
from ..coders.threshold import Threshold
from ..contracts import Array, SparseCoder
from ..data.block_loop import BLOCK_ROWS
from ..data.check import check_rows
from ..data.rows import n_rows_in_memory, take_rows
from ..learners import KSVD
from ..learners.base import DictionaryLearner
from ..maps.base import FeatureMap
from ..numerics.arrays import (
    diagonal,
    empty,
    index_like,
    namespace,
    to_numpy,
)
from ..numerics.pixels import windows
from ..numerics.random import generator
from ..schema import Conditions, Declared, Many, Part, Whole
from .pooling import POOLINGS, GridPool
from .whitening import PatchWhitening

if TYPE_CHECKING:
    from typing_extensions import Self

N_ATOMS = 192
N_PATCHES = 50_000  # that atoms are learned from, at most
PATCHES_PER_ATOM = 8  # at least, or the default has fewer atoms
MAX_IMAGES = 4000  # that patches are drawn from
BAND = 2048  # patches of an image that are coded at once
FLAT = 1e-3  # contrast of a patch, relative to the largest one, that is none
CODER = "threshold:0.5"
TRIANGLE = "triangle"


class PatchDictionaryMap(FeatureMap):
    """Codes of all small patches of an image, pooled over its regions.

    Patches are normalised and whitened, coded over atoms that were learned from
    patches, and each coefficient is pooled over the cells of a grid: its positive and
    its negative part apart. A linear or kernel classifier of these features compares
    which strokes, edges and blobs there are in which region of the image.

    Images are arrays (n, height, width) or (n, height, width, channels), or flat rows.
    The features of an image are ordered as an image, too, with the grid as its pixels
    and the pooled coefficients as channels, so that a second map can follow with
    ``image_shape=(4, 4, -1)``.

    Parameters
    ----------
    patch_size : int or (int, int)
        Height and width of a patch, at most those of the image.
    learner : learner or map, optional
        Learns atoms from whitened patches: any learner of linear atoms. A map such as
        `NystroemMap` or `IKAMap` gives features of patches instead of codes; they are
        pooled as they are, a layer of a convolutional kernel network. Default:
        ``KSVD(192, coder=OMP(1))``.
    coder : str or SparseCoder
        How a whitened patch is coded. The default soft threshold is cheap and keeps
        what sparse codes keep; "triangle" is max(0, mean distance − distance) for each
        atom; any other coder is a pursuit, such as "omp:4".
    whitening : PatchWhitening, optional
        Contrast normalisation and whitening of patches.
    stride : int
        Steps between patches.
    grid : int or tuple of int
        Cells along each axis of the image; several for a pyramid, such as (1, 2, 4).
    pooling : {"gaussian", "mean", "max"}
        How coefficients of a cell become one: a mean with normal weights that reach
        into the neighbouring cells, the mean, or the largest.
    image_shape : tuple of int, optional
        (height, width) or (height, width, channels) of flat rows; -1 stands for what is
        left. Default: the shape of the arrays; rows are square grey images, or of
        height 1 if their length is no square.
    padding : int
        Width of a frame that repeats the pixels at the edge, so that these are in as
        many patches as others.
    random_state : int, RandomState, Generator or None
        Draws the patches, and seeds a learner that has no ``random_state`` of its own.

    Attributes
    ----------
    patch_learner_ : estimator
        The learner or map, fitted to whitened patches.
    whitening_ : PatchWhitening
    image_shape_ : (int, int, int)
        Height, width and channels.
    components_ : array (m, p)
        The atoms as patches, before whitening.

    Notes
    -----
    Missing pixels (NaN) of a patch are replaced by their conditional means given the
    others; see `PatchWhitening`. `ImageRestorer` in front does the same for whole
    images, better where images are aligned. Arrays of images of whole numbers up to 16
    bits are computed in float32. `fit` reads arrays and memory maps, `transform` also
    Dask arrays and iterables of blocks of rows. A few thousand patches of one image per
    thread are in memory at a time.

    A. Coates and A. Ng, The importance of encoding versus training with sparse coding
    and vector quantization, ICML 2011; J. Mairal et al., Convolutional kernel networks,
    arXiv:1406.3332.

    Examples
    --------
    >>> from kernlets import PatchDictionaryMap, datasets
    >>> digits = datasets.load("digits")
    >>> patches = PatchDictionaryMap(3, grid=3, random_state=0).fit(digits.X_train)
    >>> patches.transform(digits.X_test[:5]).shape
    (5, 3456)
    """

    _keeps_missing = True  # rows to be fitted and transformed may have NaN
    _parameter_constraints = {
        "patch_size": [AT_LEAST_1, tuple],
        "learner": [TRANSFORMER, None],
        "coder": [str, SparseCoder],
        "whitening": [PatchWhitening, None],
        "stride": [AT_LEAST_1],
        "grid": [AT_LEAST_1, tuple, list],
        "pooling": [StrOptions(set(POOLINGS))],
        "image_shape": [tuple, list, None],
        "padding": [AT_LEAST_0],
        "random_state": ["random_state", np.random.Generator],
    }
    _declared: ClassVar[Declared] = {
        "image_shape_": Many(Whole(1), 3),
        "whitening_": Part(PatchWhitening, p="q", k="k"),
        "patch_learner_": Part(DictionaryLearner, FeatureMap, p="k"),
    }
    _conditions: ClassVar[Conditions] = {
        "image_shape_ must be that of rows with n_features_in_ pixels": lambda self: (
            prod(self.image_shape_) == self.n_features_in_
        ),
        "whitening_ must be of patches of patch_size": lambda self: (
            prod(self._patch_shape) * self.image_shape_[2]
            == self.whitening_.n_features_in_
        ),
    }

    def __init__(
        self,
        patch_size: int | tuple[int, int] = 6,
        learner: Any = None,
        *,
        coder: str | SparseCoder = CODER,
        whitening: PatchWhitening | None = None,
        stride: int = 1,
        grid: int | tuple[int, ...] = 4,
        pooling: Literal["gaussian", "mean", "max"] = "gaussian",
        image_shape: tuple[int, ...] | None = None,
        padding: int = 0,
        random_state: Any = None,
    ) -> None:
        self.patch_size = patch_size
        self.learner = learner
        self.coder = coder
        self.whitening = whitening
        self.stride = stride
        self.grid = grid
        self.pooling = pooling
        self.image_shape = image_shape
        self.padding = padding
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn atoms of patches from images; y is ignored."""
        self._validate_params()
        self._check_sizes()
        X, shape = flat_images(X)
        head, rows = self._head_and_rows(X)
        if shape is None or self.image_shape is not None:
            shape = image_shape(self.image_shape, head.shape[1])
        self.image_shape_ = shape
        self._fit(head, rows)
        return self

    def _fit(self, head: Array, rows: Any) -> None:
        """Draw patches, whiten them, and learn their atoms."""
        rng = generator(self.random_state)
        patches = self._draw_patches(rows, rng)
        self.whitening_ = clone(self.whitening or PatchWhitening()).fit(patches)
        Z = self.whitening_.transform(patches)
        if self.learner is None:
            n_atoms = min(N_ATOMS, max(1, Z.shape[0] // PATCHES_PER_ATOM))
            learner = KSVD(n_atoms, coder=OMP(1))
        else:
            learner = clone(self.learner)
        if learner.get_params(deep=False).get("random_state", 0) is None:
            learner.set_params(random_state=int(rng.integers(2**31)))
        self.patch_learner_ = learner.fit(Z)

    def _draw_patches(self, rows: Any, rng: np.random.Generator) -> Array:  # (·, p)
        """Draw patches with some contrast at random positions of random images."""
        n = min(rows.shape[0], MAX_IMAGES, max(1, n_rows_in_memory(rows, 8)))
        numbers = np.sort(rng.choice(rows.shape[0], n, replace=False))
        images = self._padded(take_rows(rows, numbers))
        xp = namespace(images)
        views = windows(xp.permute_dims(images, (1, 2, 0, 3)), self._patch_shape)
        grid = views.shape[:2]
        count = min(prod(grid), -(-N_PATCHES // n))
        places = rng.random((n, prod(grid))).argpartition(count - 1, axis=1)[:, :count]
        down, across = np.unravel_index(places, grid)
        where = down, across, np.broadcast_to(np.arange(n)[:, None], down.shape)
        indices = (index_like(axis.ravel(), images) for axis in where)
        patches = views[tuple(indices)].reshape(n * count, -1)
        is_missing = xp.isnan(patches)
        highest = xp.amax(xp.where(is_missing, -np.inf, patches), axis=1)
        lowest = xp.amin(xp.where(is_missing, np.inf, patches), axis=1)
        # patches without contrast, as of an empty background, teach nothing
        contrast = to_numpy(highest - lowest)
        varied = np.flatnonzero(contrast > FLAT * max(contrast.max(), 0))
        return patches[index_like(varied, patches)] if len(varied) else patches

    def _features(self, X: Array) -> Array:  # (n, p) -> (n, k)
        features = empty((X.shape[0], self._n_features_out), like=X)
        for number in range(X.shape[0]):
            image = self._padded(X[number : number + 1])[0]
            features[number] = self._image_features(image)
        return features

    def _padded(self, rows: Array) -> Array:  # (n, p) -> (n, h, w, c)
        """Return rows as images, each in its frame."""
        images = rows.reshape(rows.shape[0], *self.image_shape_)
        if not self.padding:
            return images
        down, across = (
            np.clip(np.arange(-self.padding, n + self.padding), 0, n - 1)
            for n in self.image_shape_[:2]
        )
        return images[:, index_like(down, rows)][:, :, index_like(across, rows)]

    def _image_features(self, image: Array) -> Array:  # (h, w, c) -> (k,)
        """Code the patches of one image, some rows at a time, and pool the codes."""
        views = windows(image, self._patch_shape)[:: self.stride, :: self.stride]
        a, b = views.shape[:2]
        n_rows = max(1, BAND // b)
        pools: list[list[GridPool]] = []
        for first in range(0, a, n_rows):
            band = views[first : first + n_rows]
            Z = self.whitening_._features(band.reshape(band.shape[0] * b, -1))
            for sign, codes in enumerate(self._code(Z)):
                if sign == len(pools):
                    pools.append(
                        [GridPool((a, b), g, self.pooling) for g in self._grids]
                    )
                for pool in pools[sign]:
                    pool.add(first, codes.reshape(-1, b, codes.shape[1]))
        xp = namespace(image)
        cells = [
            xp.concat([signs[g].pooled for signs in pools], axis=2).reshape(-1)
            for g in range(len(self._grids))
        ]
        return xp.concat(cells)

    def _code(self, Z: Array) -> list[Array]:  # (n, k) -> one or two (n, m)
        """Code whitened patches: positive and negative parts, or features of a map."""
        xp, dictionary = namespace(Z), getattr(self.patch_learner_, "dictionary_", None)
        if dictionary is None:
            return [self.patch_learner_.transform(Z)]
        if self.coder == TRIANGLE:
            squares = xp.clip(
                dictionary.energy(Z)[:, None]
                - 2 * dictionary.correlate(Z)
                + diagonal(dictionary.gram()),
                0,
                None,
            )
            distances = xp.sqrt(squares)
            means = xp.mean(distances, axis=1, keepdims=True)
            return [xp.clip(means - distances, 0, None)]
        coder = resolve_coder(self.coder)
        if isinstance(coder, Threshold) and coder.kind == "soft":
            corr, alpha = dictionary.correlate(Z), float(coder.alpha)
            return [xp.clip(s - alpha, 0, None) for s in (corr, -corr)]
        codes = encode_block(dictionary, coder, Z).toarray()
        return [xp.clip(s, 0, None) for s in (codes, -codes)]

    # ------------------------------------------------------------------------- shapes

    @property
    def _grids(self) -> tuple[int, ...]:
        return tuple(np.atleast_1d(self.grid).tolist())

    @property
    def _patch_shape(self) -> tuple[int, int]:
        sizes = np.atleast_1d(self.patch_size).tolist()
        height, width = (n + 2 * self.padding for n in self.image_shape_[:2])
        return min(sizes[0], height), min(sizes[-1], width)

    def _check_sizes(self) -> None:
        """Refuse patches, grids and coders that mean nothing."""
        sizes = {"patch_size": self.patch_size, "grid": self.grid}
        for name, size in sizes.items():
            numbers = np.atleast_1d(np.asarray(size, dtype=object)).tolist()
            are_counts = all(isinstance(n, Integral) and int(n) > 0 for n in numbers)
            if not numbers or not are_counts:
                raise ValueError(
                    f"{name}={size!r} must be a whole number above 0, or several"
                )
        if np.size(self.patch_size) > 2:
            raise ValueError(
                f"patch_size={self.patch_size!r} must be a height and a width, "
                "such as (6, 6), or one number for both"
            )
        if self.coder != TRIANGLE:
            resolve_coder(self.coder)

    def _check_rows(self, X: Any, reset: bool = False) -> Any:
        """Check images and return them as rows."""
        X, shape = flat_images(X)
        if not reset and shape not in (None, tuple(self.image_shape_)):
            raise ValueError(
                f"images have the shape {shape} (height, width, channels), but those "
                f"of the fit {tuple(self.image_shape_)}"
            )
        if not reset:
            return super()._check_rows(X)
        return check_rows(self, X, reset=True, containers="disk", allow_nan=True)

    @property
    def components_(self) -> Array:  # (m, p)
        """The atoms as patches, before whitening: rows of height, width, channels."""
        check_is_fitted(self)
        atoms = self.whitening_.inverse_transform(self.patch_learner_.components_)
        channels, shape = self.image_shape_[2], self._patch_shape
        patches = atoms.reshape(-1, channels, *shape)
        return namespace(atoms).permute_dims(patches, (0, 2, 3, 1)).reshape(atoms.shape)

    @property
    def _model_array(self) -> Array:
        return self.whitening_.projection_

    @property
    def _n_channels(self) -> int:
        n_features = self.patch_learner_._n_features_out
        has_signs = (
            hasattr(self.patch_learner_, "dictionary_") and self.coder != TRIANGLE
        )
        return 2 * n_features if has_signs else n_features

    @property
    def _n_features_out(self) -> int:
        return self._n_channels * sum(g * g for g in self._grids)

    @property
    def _row_bytes(self) -> int:
        patch = sum(self.whitening_.projection_.shape) + 4 * self._n_channels
        band = BAND * patch // BLOCK_ROWS
        return 8 * (self._n_features_out + self.n_features_in_ + band)


def flat_images(X: Any) -> tuple[Any, tuple[int, int, int] | None]:
    """Return arrays of images as rows, with their shape; other X without one.

    Whole numbers of up to 16 bits become float32, which holds them exactly.
    """
    if getattr(X, "ndim", 2) not in (3, 4) or not hasattr(X, "reshape"):
        return X, None
    height, width, channels = (*X.shape[1:], 1)[:3]
    is_plain = type(X) is np.ndarray and X.dtype.kind in "uib"
    if is_plain and X.dtype.itemsize <= 2:
        X = X.astype(np.float32)
    return X.reshape(X.shape[0], -1), (height, width, channels)


def image_shape(shape: tuple[int, ...] | None, n_pixels: int) -> tuple[int, int, int]:
    """Return height, width and channels of rows, from a parameter or their length."""
    if shape is None:
        side = isqrt(n_pixels)
        return (side, side, 1) if side**2 == n_pixels else (1, n_pixels, 1)
    sizes = [int(n) for n in shape]
    known = prod(n for n in sizes if n != -1)
    if -1 in sizes and known > 0 and n_pixels % known == 0:
        sizes[sizes.index(-1)] = n_pixels // known
    if len(sizes) not in (2, 3) or min(sizes) < 1 or prod(sizes) != n_pixels:
        raise ValueError(
            f"image_shape={shape!r} does not fit rows of {n_pixels} pixels: pass "
            "(height, width) or (height, width, channels), one of which may be -1"
        )
    return sizes[0], sizes[1], sizes[2] if len(sizes) == 3 else 1
