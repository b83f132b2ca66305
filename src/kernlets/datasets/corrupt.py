"""Spoil images the way the papers do: noise and missing pixels on raw test rows.

Both act *before* any mean removal or normalisation, return a new array and keep
float32 as float32.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kernlets.datasets.preprocess import as_float

RandomState = int | np.random.Generator | None


def add_noise(X: ArrayLike, s: float, random_state: RandomState = None) -> np.ndarray:
    """X + s·ε with ε ~ N(0, 1) independently for each pixel."""
    X = as_float(X)
    if not s >= 0:
        raise ValueError(f"s={s} is not a standard deviation: give a number >= 0")
    noise = np.random.default_rng(random_state).standard_normal(X.shape, X.dtype)
    return X + X.dtype.type(s) * noise


def drop_pixels(
    X: ArrayLike, share: float, random_state: RandomState = None
) -> np.ndarray:
    """Set round(share·p) pixels of each row, drawn without replacement, to zero."""
    X = as_float(X).copy()
    if not 0 <= share <= 1:
        raise ValueError(f"share={share} is not a share of pixels: give 0 to 1")
    ranks = np.random.default_rng(random_state).random(X.shape, np.float32)
    order = ranks.argsort(axis=1)
    np.put_along_axis(X, order[:, : round(share * X.shape[1])], 0, axis=1)
    return X
