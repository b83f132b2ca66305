"""Images prepared as the papers' protocols ask, loaded once per process."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kernlets.datasets import Dataset, DatasetNotFoundError, unit_norm
from kernlets.datasets.catalogue import Split

from .datasets import load
from .spec import Sizes


class Images(NamedTuple):
    """Training and test rows with their labels; `rows` and `tests` of them at most."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def digit_images(name: str, sizes: Sizes, **options: Any) -> Images:
    """The published split of a set of digits, shortened where the sizes say so."""
    smoke = sizes.get("smoke", False)
    data = _digits(name, smoke, tuple(sorted(options.items())))
    rows, tests = slice(sizes.get("rows")), slice(sizes.get("tests"))
    assert data.y_train is not None
    assert data.X_test is not None and data.y_test is not None
    return Images(
        data.X_train[rows], data.y_train[rows], data.X_test[tests], data.y_test[tests]
    )


def unit_digits(name: str, sizes: Sizes) -> Images:
    """Digits of unit norm."""
    return _unit(name, tuple(sorted(sizes.items())))


@lru_cache(maxsize=1)
def _unit(name: str, sizes: tuple[tuple[str, Any], ...]) -> Images:
    raw = digit_images(name, dict(sizes))
    return raw._replace(X=unit_norm(raw.X), X_test=unit_norm(raw.X_test))


@lru_cache(maxsize=2)  # smoothed and not
def _digits(name: str, smoke: bool, options: tuple[tuple[str, Any], ...]) -> Dataset:
    """A set of digits; a smoke test falls back on those bundled with scikit-learn."""
    try:
        return load(name, **dict(options))
    except DatasetNotFoundError:
        if not smoke:
            raise
        return load("digits", **dict(options))


@lru_cache(maxsize=2)
def loaded(name: str) -> Dataset:
    """A set that must be in the data folder."""
    return load(name)


def split_of(name: str, per_class: int, seed: int, sizes: Sizes) -> Split:
    """A random split of faces or features, limited to some classes where asked."""
    data = loaded(name)
    classes = sizes.get("classes")
    assert data.y_train is not None
    if classes is not None:
        keep = data.y_train < classes
        data = Dataset(name, data.X_train[keep], data.y_train[keep])
    return data.split(per_class, random_state=seed)


def photographs(colour: bool) -> np.ndarray:  # (n, height, width), colour: (..., 3)
    """The sample of STL-10, with levels from 0 to 255."""
    data = load("stl10", white=255.0, dtype=np.float64)
    assert data.image_shape is not None
    images = data.X_train.reshape(-1, *data.image_shape)
    return images if colour else images.mean(axis=-1)


def subset(X: np.ndarray, count: int | None, seed: int) -> np.ndarray:
    """Random rows, or all."""
    if count is None or count >= len(X):
        return np.arange(len(X))
    return np.random.default_rng(seed).choice(len(X), count, replace=False)
