"""Landmarks as cluster centres: k-means, LKDL section IV-C and its reference [52]."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning

from ..backend.arrays import as_like, to_numpy
from ..core import Array, Kernel

LARGE = 4e12  # multiplications over which mini-batches replace full passes


def kmeans(
    kernel: Kernel,
    X: Array,
    m: int,
    rng: np.random.Generator,
    *,
    init: str = "random",
    max_iter: int = 10,
) -> Array:  # (m, p)
    """The m centres of one k-means run on X; the kernel plays no part.

    A few iterations from random samples are enough for landmarks;
    ``init="k-means++"`` lowers the error further where m is small, at the cost of a
    slow start. With m = n each sample is its own centre. For very large X mini-batches
    of samples replace passes over all of them.
    """
    if m == X.shape[0]:
        return X
    samples = X if sparse.issparse(X) else to_numpy(X)
    work = max_iter * m * X.shape[0] * X.shape[1]
    model = KMeans if work <= LARGE else MiniBatchKMeans
    clusters = model(
        n_clusters=m,
        init=init,
        n_init=1,
        max_iter=max_iter,
        random_state=int(rng.integers(2**31)),
    )
    with warnings.catch_warnings():
        # fewer distinct samples than centres: the map copes with repeated landmarks
        warnings.simplefilter("ignore", ConvergenceWarning)
        centres = clusters.fit(samples).cluster_centers_
    return as_like(centres, X)
