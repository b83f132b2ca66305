"""Corrupt images as in the papers: noise and missing pixels on raw test rows.

Apply both functions *before* mean removal or normalisation. They return a new array
and keep float32.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .preprocess import as_float

RandomState = int | np.random.Generator | None


def add_noise(X: ArrayLike, s: float, random_state: RandomState = None) -> np.ndarray:
    """X + s·ε with ε ~ N(0, 1) independently for each pixel.

    Parameters
    ----------
    X : array (n, p)
        Rows of images.
    s : float
        Standard deviation of the noise.
    random_state : int, Generator or None
        Seed of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets.datasets import corrupt
    >>> noisy = corrupt.add_noise(np.zeros((100, 50)), 0.5, random_state=0)
    >>> float(noisy.std().round(1))
    0.5
    """
    X = as_float(X)
    if not s >= 0:
        raise ValueError(f"s={s} is not a standard deviation: pass a number >= 0")
    noise = np.random.default_rng(random_state).standard_normal(X.shape, X.dtype)
    return X + X.dtype.type(s) * noise


def drop_pixels(
    X: ArrayLike, share: float, random_state: RandomState = None, value: float = 0.0
) -> np.ndarray:
    """Set round(share·p) random pixels of each row to zero, or to NaN: unknown.

    Parameters
    ----------
    X : array (n, p)
        Rows of images.
    share : float
        Share of pixels, from 0 to 1.
    random_state : int, Generator or None
        Seed of the choice of pixels.
    value : float
        What stands in their place.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets.datasets import corrupt
    >>> corrupt.drop_pixels(np.ones((2, 10)), 0.3, random_state=0).sum(axis=1).tolist()
    [7.0, 7.0]
    """
    X = as_float(X).copy()
    if not 0 <= share <= 1:
        raise ValueError(f"share={share} is not a share of pixels: pass 0 to 1")
    ranks = np.random.default_rng(random_state).random(X.shape, np.float32)
    order = ranks.argsort(axis=1)
    np.put_along_axis(X, order[:, : round(share * X.shape[1])], value, axis=1)
    return X
