"""Finds the arrays of a named set: the data folder, the user's cache, OpenML.

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

import numpy as np

from ..io.atomic_write import atomic_write
from ..io.data_file import DataFileError
from ..io.tables import read_arrays

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


def arrays_of(
    name: str, pattern: str, openml: OpenML | None, download: bool
) -> dict[str, np.ndarray]:
    """The arrays of set `name`, from the first place that has them."""
    for path in find(pattern):
        return _check_rows(path, read_arrays(path))
    if openml is not None and download:
        return _fetch(name, pattern, openml)
    raise DatasetNotFoundError(_not_found_text(name, pattern))


def _check_rows(path: Path, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    if arrays.keys().isdisjoint({"X", "X_train"}):
        raise DataFileError(path, "has no array X or X_train: use the original file")
    return arrays


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
