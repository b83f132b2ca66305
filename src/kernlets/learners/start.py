"""First dictionaries: a name or an array becomes unit-norm atoms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..backend.arrays import (
    as_like,
    check_points,
    index_like,
    namespace,
    row_norms,
    to_numpy,
)
from ..core import Array


def start_atoms(
    init: Any,
    X: Array,  # (n, p)
    n_components: int,
    rng: np.random.Generator,
) -> Array:  # (m, p)
    """Unit-norm atoms from ``init``: a name in `STARTS` or an array of atoms."""
    if isinstance(init, str):
        atoms = STARTS[init](X, n_components, rng)
    else:
        atoms = check_points(init, X, "init")
        if atoms.shape[0] != n_components:
            raise ValueError(
                f"init has {atoms.shape[0]} atoms but n_components={n_components}: "
                "make them equal or leave n_components out"
            )
    norms = namespace(atoms).sqrt(row_norms(atoms))
    if not bool((norms > 0).all()):
        raise ValueError("init has an atom that is zero: remove it")
    return atoms / norms[:, None]


def nonzero_rows(X: Array) -> np.ndarray:
    """Indices of samples that can serve as atoms."""
    return np.flatnonzero(to_numpy(row_norms(X)) > 0)


def from_samples(X: Array, n_components: int, rng: np.random.Generator) -> Array:
    """Random distinct non-zero samples."""
    usable = nonzero_rows(X)
    if len(usable) < n_components:
        raise ValueError(
            f"n_components={n_components} atoms cannot be drawn from {len(usable)} "
            "non-zero samples: lower n_components or set init='normal'"
        )
    return X[index_like(rng.choice(usable, n_components, replace=False), X)]


def from_kmeans(X: Array, n_components: int, rng: np.random.Generator) -> Array:
    """Centres of clusters; a centre at zero is replaced by a sample."""
    from sklearn.cluster import KMeans

    start = to_numpy(from_samples(X, n_components, rng))
    seed = int(rng.integers(2**31))
    means = KMeans(n_components, init=start, n_init=1, max_iter=20, random_state=seed)
    centres = means.fit(to_numpy(X)).cluster_centers_
    zero = (centres == 0).all(axis=1)
    return as_like(np.where(zero[:, None], start, centres), X)


def from_svd(X: Array, n_components: int, rng: np.random.Generator) -> Array:
    """Leading right singular vectors, then random samples."""
    xp = namespace(X)
    values, vectors = xp.linalg.eigh(X.T @ X)
    rank = int((values > values[-1] * X.shape[1] * 1e-6).sum())
    n_vectors = min(rank, n_components)
    leading = xp.flip(vectors, axis=1)[:, :n_vectors].T
    if n_vectors == n_components:
        return leading
    rest = from_samples(X, n_components - n_vectors, rng)
    return xp.concat([leading, rest])


def from_normal(X: Array, n_components: int, rng: np.random.Generator) -> Array:
    """Random directions."""
    return as_like(rng.standard_normal((n_components, X.shape[1])), X)


STARTS: dict[str, Callable[[Array, int, np.random.Generator], Array]] = {
    "samples": from_samples,
    "kmeans": from_kmeans,
    "svd": from_svd,
    "normal": from_normal,
}
