"""Determinants of sums of matrices in plain NumPy; see `kernels.spd`."""

from __future__ import annotations

import numpy as np

from .lanes import LANES


def stein(
    rows: np.ndarray,  # (k, d, d)
    columns: np.ndarray,  # (groups, d, d, LANES)
    first: int,
    n: int,
) -> np.ndarray:  # (k, n - first)
    """log det((A + B)/2) for all matrices A and those from `first` to n."""
    out = np.empty((len(rows), n - first))
    for j in range(first, n):
        B = columns[j // LANES, :, :, j % LANES]
        out[:, j - first] = np.linalg.slogdet((rows + B) / 2)[1]
    return out
