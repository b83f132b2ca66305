"""Landmarks as cluster centres: k-means, LKDL section IV-C and its reference [52]."""

from __future__ import annotations

import numpy as np

from ..clustering import lloyd
from ..contracts import Array, Kernel
from ..data.rows import host_rows, take_rows
from ..data.sparse_rows import as_dense
from ..numerics.arrays import as_like, is_array

LARGE = 4e12  # with more multiplications than this, only a share of the rows is used


def kmeans(
    kernel: Kernel,
    X: Array,
    m: int,
    rng: np.random.Generator,
    *,
    init: str = "random",
    max_iter: int = 10,
) -> Array:  # (m, p)
    """The m centres of one k-means run on X; the kernel is not used.

    A few iterations from random samples are enough for landmarks.
    ``init="k-means++"`` lowers the error further if m is small, at the cost of a slow
    start. With m = n each sample is its own centre. If X is very large, a random share
    of the rows is used.
    """
    if m == X.shape[0] and is_array(X):
        return X
    start = as_dense(_first_centres(X, m, rng, init))
    share = min(1.0, LARGE / (max_iter * m * X.shape[0] * X.shape[1]))
    return lloyd(X, start, max_iter, share, int(rng.integers(2**63)))


def _first_centres(X: Array, m: int, rng: np.random.Generator, init: str) -> Array:
    if init == "random":
        return take_rows(X, np.sort(rng.choice(X.shape[0], m, replace=False)))
    from sklearn.cluster import kmeans_plusplus

    rows = host_rows(X, f"init={init!r} needs X in memory: use init='random'")
    seed = int(rng.integers(2**31))
    return as_like(as_dense(kmeans_plusplus(rows, m, random_state=seed)[0]), X)
