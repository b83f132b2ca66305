"""Named data sets: what `load` returns, what each file holds, and where it is found.

The folder named by the environment variable KERNLETS_DATA comes first, then
$XDG_CACHE_HOME/kernlets (~/.cache/kernlets), then, for the sets that OpenML has, a
download that is kept in the cache. All three hold the same .npz layout.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..base.names import guess
from ..base.notebook import data_portrait
from ..io.atomic_write import atomic_write
from ..io.data_file import DataFileError
from ..io.tables import read_arrays
from ..numerics.text import field_text

Arrays = dict[str, np.ndarray]
DATA_VARIABLE = "KERNLETS_DATA"


class DatasetNotFoundError(FileNotFoundError):
    """A data set was not found; the message lists the places and the remedy."""


@dataclass(frozen=True)
class OpenML:
    """How an OpenML set becomes the arrays of our .npz file."""

    data_id: int
    n_train: int  # the leading rows are the training part
    test_counts: tuple[int, ...]  # test rows per class, to check the order of the rows
    convert: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


class Split(NamedTuple):
    """Training and test rows, in the order of scikit-learn's `train_test_split`."""

    X_train: np.ndarray
    X_test: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray

    def __repr__(self) -> str:
        return field_text(self)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set: rows are samples, and images are flattened to rows.

    Parameters
    ----------
    name : str
        Name in the catalogue.
    X_train, y_train : arrays (n, p) and (n,)
        Training rows and labels; all rows if there is no published split. `y_train` is
        None if there are no labels.
    X_test, y_test : arrays, optional
        Test rows and labels of the published split.
    image_shape : tuple of int, optional
        Shape of an image; None if features are not pixels.
    description : str
        One line about the set.

    Examples
    --------
    >>> from kernlets import datasets
    >>> digits = datasets.load("digits")
    >>> digits.X_train.shape, digits.image_shape
    ((898, 64), (8, 8))
    >>> parts = digits.split(n_train_per_class=20, random_state=0)
    >>> parts.X_train.shape
    (200, 64)
    """

    name: str
    X_train: np.ndarray  # (n, p)
    y_train: np.ndarray | None  # (n,)
    X_test: np.ndarray | None = None
    y_test: np.ndarray | None = None
    image_shape: tuple[int, ...] | None = None
    description: str = ""

    __repr__ = field_text

    def _repr_html_(self) -> str:
        return data_portrait(self.X_train, self.image_shape, repr(self))

    def split(
        self,
        n_train_per_class: int | float,
        random_state: int | np.random.Generator | None = None,
    ) -> Split:
        """Draw the same number (int) or share (float) of each class for training.

        All other rows form the test part. A published split is pooled first. Both
        parts keep the order of the rows.
        """
        X, y = self._pool_split()
        rng = np.random.default_rng(random_state)
        train = np.zeros(len(y), dtype=bool)
        for label in np.unique(y):
            members = np.flatnonzero(y == label)
            count = self._train_count(n_train_per_class, len(members), label)
            train[rng.permutation(members)[:count]] = True
        return Split(X[train], X[~train], y[train], y[~train])

    def _pool_split(self) -> tuple[np.ndarray, np.ndarray]:
        if self.y_train is None:
            raise ValueError(
                f"data set {self.name!r} has no labels to split by: "
                "use sklearn.model_selection.train_test_split on X_train"
            )
        if self.X_test is None or self.y_test is None:
            return self.X_train, self.y_train
        return (
            np.concatenate([self.X_train, self.X_test]),
            np.concatenate([self.y_train, self.y_test]),
        )

    def _train_count(
        self, n_train_per_class: int | float, size: int, label: object
    ) -> int:
        count = (
            round(n_train_per_class * size)
            if isinstance(n_train_per_class, float)
            else int(n_train_per_class)
        )
        if not 0 < count < size:
            raise ValueError(
                f"n_train_per_class={n_train_per_class} leaves no training or no test "
                f"row of class {label} of {self.name!r}, which has {size} rows: pass a "
                f"count from 1 to {size - 1} or a share between 0.0 and 1.0"
            )
        return count


@dataclass(frozen=True)
class Entry:
    """A data set in the catalogue; only sets of images have an image shape."""

    pattern: str  # file name below the data folder; may contain wildcards
    description: str
    image_shape: tuple[int, ...] | None = None
    file_white: float = 255.0  # grey level of white in the file
    white: float = 1.0  # grey level of white in the rows that `load` returns
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


def load(
    name: str,
    *,
    download: bool = True,
    dtype: Any = np.float32,
    white: float | None = None,
    smooth: float | None = None,
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
    white : float, optional
        Grey level of white, where black is 0. Default: 1; 2 for usps, the range of the
        original files, in which the papers state noise levels.
    smooth : float, optional
        Width in pixels of a Gaussian blur with zeros around the image; LKDL's USPS
        protocol is ``load("usps", smooth=0.75)``.

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
    return load_entry(name, CATALOGUE[name], download, dtype, white, smooth)


def load_entry(
    name: str,
    entry: Entry,
    download: bool = True,
    dtype: Any = np.float32,
    white: float | None = None,
    smooth: float | None = None,
) -> Dataset:
    """The data set that an entry describes; `load` says what the arguments are."""
    for option, value in (("white", white), ("smooth", smooth)):
        if value is not None and entry.image_shape is None:
            raise TypeError(
                f"data set {name!r} takes no option {option!r}: it has no images"
            )
    arrays = _load_arrays(name, entry, download)
    X = {
        key: _image_rows(arrays[key], entry, dtype, white, smooth)
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


def _load_arrays(name: str, entry: Entry, download: bool) -> Arrays:
    """The set's arrays, with X and y of unsplit sets called X_train and y_train."""
    if entry.pattern:
        arrays = _find_arrays(name, entry, download)
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
    white: float | None,
    smooth: float | None,
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


# --------------------------------------------------------------- where arrays are found


def data_folder() -> Path | None:
    """The folder named by KERNLETS_DATA, or None."""
    value = os.environ.get(DATA_VARIABLE)
    return Path(os.path.expanduser(value)) if value else None


def cache_folder() -> Path | None:
    """The user's cache, by the XDG convention; None for a user without a home."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "kernlets" if os.path.isabs(home) else None


def folders() -> list[Path]:
    """The folders to search, in order."""
    return [folder for folder in (data_folder(), cache_folder()) if folder is not None]


def find(pattern: str) -> Iterator[Path]:
    """Files matching a glob pattern, ignoring case, in order of preference."""
    parent, name = os.path.split(pattern)
    for folder in folders():
        try:
            paths = sorted((folder / parent).iterdir())
        except OSError:  # no such folder, or one that this user may not read
            continue
        for path in paths:
            if fnmatchcase(path.name.lower(), name.lower()):
                yield path


def _find_arrays(name: str, entry: Entry, download: bool) -> Arrays:
    """The arrays of set `name`, from the first place that has them."""
    for path in find(entry.pattern):
        arrays = read_arrays(path)
        if arrays.keys().isdisjoint({"X", "X_train"}):
            problem = "has no array X or X_train: use the original file"
            raise DataFileError(path, problem)
        return arrays
    if entry.openml is not None and download:
        return _fetch(name, entry.pattern, entry.openml)
    raise DatasetNotFoundError(_not_found_text(name, entry.pattern))


def _not_found_text(name: str, pattern: str) -> str:
    where = ", ".join(str(folder / pattern) for folder in folders())
    hint = "" if data_folder() else f" ({DATA_VARIABLE} is not set)"
    return (
        f"data set {name!r} was not found{where and f' at {where}'}{hint}: set "
        f"{DATA_VARIABLE} to the folder that has it, and that you may read"
    )


def _fetch(name: str, pattern: str, openml: OpenML) -> dict[str, np.ndarray]:
    from sklearn.datasets import fetch_openml

    try:
        X, y = fetch_openml(
            data_id=openml.data_id,
            return_X_y=True,
            as_frame=False,
            parser="liac-arff",  # the parser that does not need pandas
            cache=False,  # kept in our own cache instead
        )
    except (OSError, ValueError, HTTPException) as error:
        raise DatasetNotFoundError(
            f"{_not_found_text(name, pattern)}, or connect to the network "
            f"(OpenML: {type(error).__name__}: {error})"
        ) from error
    arrays = _published_split(name, *openml.convert(X, y), openml)
    _save_in_cache(cache_folder(), pattern, arrays)
    return arrays


def _published_split(
    name: str, X: np.ndarray, y: np.ndarray, openml: OpenML
) -> dict[str, np.ndarray]:
    n = openml.n_train
    if tuple(np.bincount(y[n:])) != openml.test_counts:
        raise DatasetNotFoundError(
            f"OpenML's set {openml.data_id} is not the published split of {name!r}: "
            f"put {name}.npz into the folder named by {DATA_VARIABLE}"
        )
    return {"X_train": X[:n], "y_train": y[:n], "X_test": X[n:], "y_test": y[n:]}


def _save_in_cache(
    folder: Path | None, pattern: str, arrays: dict[str, np.ndarray]
) -> None:
    try:
        if folder is None:
            raise OSError("the user has no home: set XDG_CACHE_HOME to a folder")
        save_arrays(folder / pattern, arrays)
    except OSError as error:
        warnings.warn(f"{pattern}: could not be cached ({error})", stacklevel=2)


def save_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write an .npz file completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
