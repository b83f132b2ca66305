"""Three sets of digits: what each file holds and how `load` prepares it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.names import guess
from . import locations
from .base import Dataset
from .locations import OpenML

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Entry:
    """A data set in the catalogue; only sets of images have an image shape."""

    pattern: str  # file name below the data folder; may contain wildcards
    description: str
    image_shape: tuple[int, ...] | None = None
    file_white: float = 255.0  # grey level of white in the file ...
    white: float = 1.0  # ... and in what `load` returns by default
    openml: OpenML | None = None


def _usps_from_openml(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """OpenML stores grey levels in [-1, 1] and digits as 1 to 10."""
    return ((X + 1) / 2).astype(np.float32), y.astype(int) - 1


def _mnist_from_openml(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return X.astype(np.uint8), y.astype(int)


_USPS_TEST = (359, 264, 198, 166, 200, 160, 170, 147, 166, 177)
_MNIST_TEST = (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009)

CATALOGUE: dict[str, Entry] = {
    "digits": Entry(
        "", "898 + 899 digits of 8x8 pixels, bundled with scikit-learn", (8, 8), 16.0
    ),
    "usps": Entry(
        "usps.npz",
        "USPS ZIP-code digits, 7291 + 2007 of 16x16 pixels, grey range [0, 2]",
        (16, 16),
        file_white=1.0,
        white=2.0,
        openml=OpenML(41082, 7291, _USPS_TEST, _usps_from_openml),
    ),
    "mnist": Entry(
        "mnist.npz",
        "MNIST digits, 60000 + 10000 of 28x28 pixels",
        (28, 28),
        openml=OpenML(554, 60000, _MNIST_TEST, _mnist_from_openml),
    ),
}
IMAGE_OPTIONS = ("white", "smooth")


def load(
    name: str, *, download: bool = True, dtype: Any = np.float32, **options: Any
) -> Dataset:
    """Load a data set by name.

    The file is looked for in the folder named by KERNLETS_DATA, then in the user's
    cache. If it is in neither, usps and mnist are downloaded from OpenML (unless
    ``download=False``) and kept in the cache. "digits" needs no file.

    Parameters
    ----------
    name : {"digits", "usps", "mnist"}
        The set.
    download : bool
        Whether the network may be used.
    dtype : dtype
        Type of the rows.
    **options
        `white`: grey level of white, where black is 0 (default 1; 2
        for usps, the range of the original files, in which the papers state noise
        levels). `smooth`: width in pixels of a Gaussian blur with zeros around the
        image; LKDL's USPS protocol is ``load("usps", smooth=0.75)``.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from kernlets import datasets
    >>> datasets.load("digits").X_test.shape
    (899, 64)
    """
    if name not in CATALOGUE:
        raise ValueError(
            f"name={name!r} is not a known data set: {guess(name, CATALOGUE)}"
            f"choose from {', '.join(CATALOGUE)}"
        )
    return load_entry(name, CATALOGUE[name], download, dtype, **options)


def load_entry(
    name: str,
    entry: Entry,
    download: bool = True,
    dtype: Any = np.float32,
    **options: Any,
) -> Dataset:
    """The data set that an entry describes; `load` says what the arguments are."""
    _check_options(name, entry, options)
    arrays = _load_arrays(name, entry, download)
    X = {
        key: _image_rows(arrays[key], entry, dtype, **options)
        for key in ("X_train", "X_test")
        if key in arrays
    }
    return Dataset(
        name,
        X["X_train"],
        _labels(arrays.get("y_train")),
        X.get("X_test"),
        _labels(arrays.get("y_test")),
        entry.image_shape,
        entry.description,
    )


def _check_options(name: str, entry: Entry, options: dict[str, Any]) -> None:
    allowed = IMAGE_OPTIONS if entry.image_shape else ()
    unknown = sorted(options.keys() - set(allowed))
    if unknown:
        choice = f"choose from {', '.join(allowed)}" if allowed else "it has no images"
        raise TypeError(f"data set {name!r} takes no option {unknown[0]!r}: {choice}")


def _load_arrays(name: str, entry: Entry, download: bool) -> Arrays:
    """The set's arrays, with X and y of unsplit sets called X_train and y_train."""
    if entry.pattern:
        arrays = locations.arrays_of(name, entry.pattern, entry.openml, download)
    else:
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        half = len(X) // 2  # scikit-learn's split; other writers wrote the second half
        arrays = {"X_train": X[:half], "y_train": y[:half]}
        arrays |= {"X_test": X[half:], "y_test": y[half:]}
    renamed = {"X": "X_train", "y": "y_train"}
    return {renamed.get(key, key): array for key, array in arrays.items()}


def _labels(y: np.ndarray | None) -> np.ndarray | None:
    """Labels as signed integers; differences of unsigned ones would wrap around."""
    return None if y is None else y.astype(np.int64)


def _image_rows(
    X: np.ndarray,
    entry: Entry,
    dtype: Any,
    white: float | None = None,
    smooth: float | None = None,
) -> np.ndarray:
    """Images or features as rows of the given type, grey range and blur."""
    rows = X.reshape(len(X), -1).astype(dtype)
    if entry.image_shape is None:
        return rows
    scale = (entry.white if white is None else white) / entry.file_white
    rows *= rows.dtype.type(scale)
    return blur_images(rows, entry.image_shape, smooth) if smooth else rows


def blur_images(X: np.ndarray, shape: tuple[int, ...], width: float) -> np.ndarray:
    """Blur images with a Gaussian of `width` pixels, with zeros around the image."""
    from scipy.ndimage import gaussian_filter

    widths = (0, width, width) + (0,) * (len(shape) - 2)  # no blur across colours
    images = X.reshape(len(X), *shape)
    return gaussian_filter(images, widths, mode="constant").reshape(X.shape)
