"""`ImageClassifier`: labels of images from their patches, in one line."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..base.constraints import HasMethods
from ..contracts import Array
from ..data.check import check_rows
from ..data.limits import work_context
from ..data.rows import map_rows
from ..datasets import add_noise, drop_pixels
from ..images.left_out import on_pixels, without_atoms, without_patches
from ..images.patch_map import PatchDictionaryMap, flat_images, image_shape
from ..images.pooling import cell_weights
from ..images.restoring import ImageRestorer
from ..numerics.arrays import as_like, namespace, to_numpy
from ..numerics.random import generator
from ..schema import Declared, Either, Many, Nothing, Number, Part, Whole
from .base import ScoreVoting
from .kernel_ridge import MAX_ROWS, KernelRidgeClassifier
from .labels import check_labels

LARGEST_SIDE = 40  # pixels; larger images are shrunk
PATCH_SIZE, SMALLEST_PATCH = 6, 3
LOST_SHARE = 0.5
KINDS = 3  # of damage: noise, zeros, missing pixels
ZEROS = 0.05  # share of zeros more than in training images that are lost pixels


ReadOut = Callable[[Any, Array], Array]  # of a classifier and features


class ImageReasons(NamedTuple):
    """What makes the label of an image."""

    scores: np.ndarray  # (C,)
    atom_weights: np.ndarray  # (m,), what the margin loses without each atom
    score_map: np.ndarray  # (h, w), what it loses without the patches of each pixel


def _readout_has_probabilities(model: Any) -> bool:
    readout = getattr(model, "classifier_", model.classifier)
    return readout is None or hasattr(readout, "predict_proba")


class ImageClassifier(ScoreVoting):
    """A classifier of images: patches, pooled over a grid, and kernel ridge regression.

    Images larger than 40 pixels are shrunk by averages. `PatchDictionaryMap` turns an
    image into features and `KernelRidgeClassifier` features into scores. Both are
    fitted to images as they are. With ``robust=True`` an `ImageRestorer` looks for
    damaged images, and a second classifier, fitted to restored copies of damaged
    training images, labels these; so damage of new images costs nothing where there is
    none.

    Parameters
    ----------
    patches : PatchDictionaryMap, optional
        Features of an image. Default: patches of 6 x 6 pixels, smaller ones of images
        below 15 pixels.
    classifier : classifier, optional
        The read-out, with `decision_function`. Default: `KernelRidgeClassifier`.
    robust : bool
        Whether to expect noise, missing (NaN) and lost (zero) pixels in new images.
    image_shape : tuple of int, optional
        (height, width) or (height, width, channels) of flat rows; see
        `PatchDictionaryMap`.
    random_state : int, RandomState, Generator or None
        Draws patches and damage, and seeds parts that have no ``random_state``.

    Attributes
    ----------
    classes_ : array (C,)
        The labels.
    image_shape_ : (int, int, int)
        Height, width and channels.
    patches_ : PatchDictionaryMap
    classifier_ : classifier
        The read-out of images that are not damaged.
    restorer_ : ImageRestorer
        Fills in missing pixels, and finds and restores damaged images.
    damaged_classifier_ : classifier or None
        The read-out of restored images; None without ``robust``.
    zero_share_ : float
        The largest share of zeros in a training image.

    Notes
    -----
    Zeros of an image that has many more of them than any training image are missing
    pixels. The damage of training images is noise of the standard deviation of all
    pixels, half of the pixels zero, or half of them missing.

    Examples
    --------
    >>> from kernlets import ImageClassifier, datasets
    >>> digits = datasets.load("digits")
    >>> model = ImageClassifier(robust=False, random_state=0)
    >>> model = model.fit(digits.X_train, digits.y_train)
    >>> model.score(digits.X_test, digits.y_test) > 0.97
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "patches": [PatchDictionaryMap, None],
        "classifier": [HasMethods(["fit", "decision_function"]), None],
        "robust": ["boolean"],
        "image_shape": [tuple, list, None],
        "random_state": ["random_state", np.random.Generator],
    }
    _declared: ClassVar[Declared] = {
        "image_shape_": Many(Whole(1), 3),
        "restorer_": Part(ImageRestorer),
        "patches_": Part(PatchDictionaryMap),
        "classifier_": Part(ScoreVoting),
        "damaged_classifier_": Either(Nothing(), Part(ScoreVoting)),
        "zero_share_": Number(0),
    }

    def __init__(
        self,
        patches: PatchDictionaryMap | None = None,
        classifier: Any = None,
        *,
        robust: bool = True,
        image_shape: tuple[int, ...] | None = None,
        random_state: Any = None,
    ) -> None:
        self.patches = patches
        self.classifier = classifier
        self.robust = robust
        self.image_shape = image_shape
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ImageClassifier:
        """Learn atoms of patches, and the read-outs of whole and restored images."""
        self._validate_params()
        X, shape = flat_images(X)
        X = check_rows(
            self,
            X,
            reset=True,
            containers="memory",
            allow_nan=True,
            ensure_min_samples=2,
        )
        labels, rng = check_labels(self, y, X.shape[0]), generator(self.random_state)
        if shape is None or self.image_shape is not None:
            shape = image_shape(self.image_shape, X.shape[1])
        self.classes_, self.image_shape_ = np.unique(labels), shape
        self.zero_share_ = float(np.max(_zero_shares(to_numpy(X))))

        small = self._shrunk(X)
        self.restorer_ = ImageRestorer().fit(small)
        xp = namespace(small)
        is_missing = xp.isnan(small)
        if bool(xp.any(is_missing)):
            small = xp.where(is_missing, self.restorer_.transform(small), small)
        self.patches_ = self._new_patches(rng).fit(small)
        features = self.patches_.transform(small)
        self.classifier_ = self._new_classifier(rng).fit(features, labels)
        self.damaged_classifier_ = None
        if self.robust:
            del features
            numbers, damaged = _damaged_copies(to_numpy(X), rng)
            restored = self._restored(as_like(damaged, X))
            features = self.patches_.transform(restored)
            readout = self._new_classifier(rng)
            self.damaged_classifier_ = readout.fit(features, labels[numbers])
        return self

    def _new_patches(self, rng: np.random.Generator) -> PatchDictionaryMap:
        """Return the map of patches, with the shape of shrunken images."""
        height, width, _ = shape = self._small_shape
        if self.patches is None:
            side = min(height, width) if min(height, width) > 1 else max(shape)
            size = max(SMALLEST_PATCH, min(PATCH_SIZE, int(0.4 * side)))
            padding = 2 if min(height, width) > 1 else 0
            patches = PatchDictionaryMap(size, padding=padding)
        else:
            patches = clone(self.patches)
        return _seeded(patches.set_params(image_shape=shape), rng)

    def _new_classifier(self, rng: np.random.Generator) -> Any:
        readout = self.classifier
        return _seeded(
            KernelRidgeClassifier() if readout is None else clone(readout), rng
        )

    # -------------------------------------------------------------------------- images

    @property
    def _small_shape(self) -> tuple[int, int, int]:
        height, width, channels = self.image_shape_
        is_line = min(height, width) == 1
        factor = 1 if is_line else -(-max(height, width) // LARGEST_SIDE)
        return -(-height // factor), -(-width // factor), channels

    def _shrunk(self, X: Array) -> Array:  # (n, p) -> (n, q)
        """Return images of at most 40 pixels a side; too many zeros become NaN."""
        return map_rows(self._shrink, X, 64 * X.shape[1])

    def _shrink(self, X: Array) -> Array:
        xp = namespace(X)
        least = 2 * self.zero_share_ + ZEROS
        has_lost = xp.mean(xp.astype(X == 0, X.dtype), axis=1, keepdims=True) > least
        X = xp.where(has_lost & (X == 0), np.nan, X)
        shape, small = self.image_shape_, self._small_shape
        if tuple(shape) == small:
            return X
        images = X.reshape(X.shape[0], *shape)
        is_missing = xp.isnan(images)
        weights = xp.astype(~is_missing, X.dtype)
        sums, shares = (
            _average(part, small) for part in (xp.where(is_missing, 0, images), weights)
        )
        means = sums / xp.where(shares > 0, shares, np.nan)
        return means.reshape(X.shape[0], -1)

    def _restored(self, X: Array) -> Array:  # (n, p) -> (n, q)
        return self.restorer_.transform(self._shrunk(X))

    # -------------------------------------------------------------------------- scores

    def _scores(self, X: Any) -> Array:  # (n, C)
        return self._read_out(_class_scores, X)

    @available_if(_readout_has_probabilities)
    def predict_proba(self, X: Any) -> Array:  # (n, C)
        """Return the probability of each class, as the read-out gives it."""
        with work_context():
            return self._read_out(_class_probabilities, X)

    def _read_out(self, read_out: ReadOut, X: Any) -> Array:  # (n, C)
        check_is_fitted(self)
        X, shape = flat_images(X)
        if shape not in (None, tuple(self.image_shape_)):
            raise ValueError(
                f"images have the shape {shape} (height, width, channels), but those "
                f"of the fit {tuple(self.image_shape_)}"
            )
        rows = check_rows(
            self,
            X,
            containers="disk",
            like=self.patches_._model_array,
            allow_nan=True,
        )
        row_bytes = self.patches_._row_bytes + 64 * rows.shape[1]
        return map_rows(partial(self._block_scores, read_out), rows, row_bytes)

    def _block_scores(self, read_out: ReadOut, X: Array) -> Array:  # (n, C)
        """Read the features of whole and of restored images out, each by its own."""
        restored, is_damaged = self._restored_images(X)
        features = self.patches_.transform(restored)
        scores = read_out(self.classifier_, features)
        if bool(namespace(X).any(is_damaged)):
            others = read_out(self.damaged_classifier_, features)
            scores = namespace(X).where(is_damaged, others, scores)
        return scores

    def _restored_images(self, X: Array) -> tuple[Array, Array]:  # (n, q), (n, 1)
        """Return shrunken images without damage, and which of them had some."""
        small = self._shrunk(X)
        xp, restored = namespace(small), self.restorer_.transform(small)
        is_changed = xp.any(restored != small, axis=1, keepdims=True)
        if self.damaged_classifier_ is None:  # only what is missing is filled in
            return xp.where(xp.isnan(small), restored, small), is_changed & False
        return restored, is_changed

    # ----------------------------------------------------------------------- reasons

    def _reasons(self, row: Array) -> ImageReasons:  # (1, p)
        """Say what patches and atoms add to the margin of the label of an image."""
        restored, is_damaged = self._restored_images(row)
        readout = self.damaged_classifier_ if bool(is_damaged[0]) else self.classifier_
        features = self.patches_.transform(restored)
        scores = to_numpy(_class_scores(readout, features))[0]
        winner = int(scores.argmax())

        def lost_margins(others: Array) -> np.ndarray:  # (g, k) -> (g,)
            if len(others) == 0:
                return np.empty(0)
            left = to_numpy(_class_scores(readout, others))
            return _margin(scores[None], winner) - _margin(left, winner)

        atom_weights = lost_margins(without_atoms(self.patches_, features))
        groups = without_patches(self.patches_, restored)
        small_map = on_pixels(self.patches_, groups, lost_margins(groups.features))
        down, across = (
            np.arange(n) * cells // n
            for n, cells in zip(self.image_shape_, small_map.shape, strict=False)
        )
        score_map = small_map[np.ix_(down, across)]
        return ImageReasons(scores, atom_weights, score_map)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _margin(scores: np.ndarray, winner: int) -> np.ndarray:  # (n, C) -> (n,)
    """Return the score of one class less the largest score of the others."""
    return scores[:, winner] - np.delete(scores, winner, axis=1).max(axis=1)


def _class_probabilities(classifier: Any, features: Array) -> Array:  # (n, C)
    return classifier.predict_proba(features)


def _class_scores(classifier: Any, features: Array) -> Array:  # (n, C)
    """Return a column of scores for each class, also of two."""
    if isinstance(classifier, ScoreVoting):
        return classifier._scores(features)
    scores = classifier.decision_function(features)
    if scores.ndim == 1:
        return namespace(scores).stack([-scores, scores], axis=1)
    return scores


def _average(images: Array, shape: tuple[int, int, int]) -> Array:
    """Average images (n, h, w, c) over the cells of a smaller image."""
    down, across = (
        as_like(cell_weights(n, cells, "mean"), images)
        for n, cells in zip(images.shape[1:3], shape[:2], strict=True)
    )
    n, height, width, channels = images.shape
    rows = down @ images.reshape(n, height, width * channels)
    return across @ rows.reshape(n, shape[0], width, channels)


def _zero_shares(X: Array) -> Array:  # (n,)
    return namespace(X).mean(namespace(X).astype(X == 0, X.dtype), axis=1)


def _damaged_copies(
    X: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of images, in random order, and damaged copies of them.

    Each has one kind of damage, all if there is space.
    """
    n_copies = max(1, min(KINDS, MAX_ROWS // len(X)))
    n = min(len(X), MAX_ROWS)
    numbers = np.concatenate(
        [rng.choice(len(X), n, replace=False) for _ in range(n_copies)]
    )
    damaged, seed = X[numbers], int(rng.integers(2**31))
    thirds = np.array_split(np.arange(len(numbers)), KINDS)
    damaged[thirds[0]] = add_noise(damaged[thirds[0]], float(np.nanstd(X)), seed)
    damaged[thirds[1]] = drop_pixels(damaged[thirds[1]], LOST_SHARE, seed)
    damaged[thirds[2]] = drop_pixels(damaged[thirds[2]], LOST_SHARE, seed, np.nan)
    return numbers, damaged


def _seeded(part: Any, rng: np.random.Generator) -> Any:
    """Set the seed of a part that has a parameter for it, and no seed."""
    if part.get_params(deep=False).get("random_state", 0) is None:
        part.set_params(random_state=int(rng.integers(2**31)))
    return part
