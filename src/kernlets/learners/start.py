"""First atoms of unit norm, from a name or an array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..backend.arrays import (
    as_like,
    check_points,
    is_array,
    namespace,
    row_norms,
    to_numpy,
)
from ..backend.lloyd import lloyd
from ..backend.masks import column_means, filled, has_gaps
from ..backend.rows import is_blocks, map_rows, sum_rows, take_rows
from ..backend.scale import (
    all_finite,
    check_range,
    least_energy,
    lengths,
    quiet,
    unit_rows,
)
from ..backend.stored import LazyRows, is_stored
from ..core import Array


def start_atoms(
    init: Any,
    X: Any,  # (n, p), anywhere
    n_components: int,
    rng: np.random.Generator,
) -> Array:  # (m, p)
    """Unit-norm atoms from ``init``: a name in `STARTS` or an array of atoms."""
    if is_array(X):  # of rows elsewhere blocks are looked at as they are coded
        check_range(X)
    if isinstance(init, str):
        atoms = STARTS[init](X, n_components, rng)
    else:
        atoms = check_points(init, _first_row(X), "init")
        if atoms.shape[0] != n_components:
            raise ValueError(
                f"init has {atoms.shape[0]} atoms but n_components={n_components}: "
                "make them equal or leave n_components out"
            )
    norms = lengths(atoms)
    if not bool((norms > 0).all()):
        raise ValueError("init has an atom that is zero: remove it")
    return unit_rows(atoms)


def start_rows(X: Any) -> Any:
    """Rows to draw first atoms from: gaps are filled with the means of their columns.

    For k-means and the other starts to see complete rows. What follows learns from
    what was observed only. A feature that was never observed is 0 in all atoms.
    """
    if is_blocks(X) or not int(sum_rows(_gaps, X, 9 * X.shape[1])):
        return X
    means = as_like(column_means(X), _first_row(X)[0])
    fill = partial(_filled, means)
    if is_stored(X):
        return LazyRows(X, fill, 24 * X.shape[1])
    return map_rows(fill, X, 24 * X.shape[1])


def _gaps(block: Array) -> np.ndarray:
    return np.array(int(has_gaps(block)))


def _filled(means: Array, block: Array) -> Array:
    return filled(block, means)


def nonzero_rows(X: Array) -> np.ndarray:
    """Indices of samples that can serve as atoms: their squares do not vanish."""
    return np.flatnonzero(to_numpy(row_norms(X)) > least_energy(X))


@dataclass(frozen=True)
class Usable:
    """The non-zero rows of any row source: their number, and random ones of them."""

    n: int
    zeros: np.ndarray  # rows that are zero, in order

    @classmethod
    def of(cls, X: Any) -> Usable:
        found = sum_rows(_zero_rows, X, row_bytes=16 * X.shape[1], numbered=True)
        return cls(X.shape[0], np.concatenate(found))

    def __len__(self) -> int:
        return self.n - len(self.zeros)

    def draw(self, m: int, rng: np.random.Generator) -> np.ndarray:  # (m,)
        """Row numbers of m distinct non-zero rows."""
        chosen = rng.choice(len(self), m, replace=False)
        usable_before = self.zeros - np.arange(len(self.zeros))
        return chosen + np.searchsorted(usable_before, chosen, side="right")


def _zero_rows(block: Array, first: int) -> list[np.ndarray]:
    """A list, so that those of several blocks add up."""
    return [first + np.flatnonzero(to_numpy(row_norms(block)) <= least_energy(block))]


def _first_row(X: Any) -> Array:  # (1, p)
    return take_rows(X, np.array([0]))


def from_samples(X: Any, n_components: int, rng: np.random.Generator) -> Array:
    """Random distinct non-zero samples.

    All rows are read only if a drawn row is zero, because rows may be on disk, on a
    cluster, or not computed yet.
    """
    if n_components <= X.shape[0]:
        rows = take_rows(X, rng.choice(X.shape[0], n_components, replace=False))
        if len(nonzero_rows(rows)) == n_components:
            return rows
    usable = Usable.of(X)
    if len(usable) < n_components:
        raise ValueError(
            f"n_components={n_components} atoms cannot be drawn from {len(usable)} "
            "non-zero samples: lower n_components or set init='normal' (and scale "
            "samples that are tiny: their squares vanish)"
        )
    return take_rows(X, usable.draw(n_components, rng))


def from_kmeans(X: Any, n_components: int, rng: np.random.Generator) -> Array:
    """Centres of clusters; a centre at zero is replaced by a sample."""
    start = from_samples(X, n_components, rng)
    centres = lloyd(X, start, max_iter=20)
    xp = namespace(centres)
    return xp.where(xp.all(centres == 0, axis=1)[:, None], start, centres)


def from_svd(X: Any, n_components: int, rng: np.random.Generator) -> Array:
    """Leading right singular vectors, then random samples."""
    p = X.shape[1]
    with quiet():
        gram = sum_rows(_gram, X, row_bytes=16 * p, result_bytes=8 * p * p)
    if not all_finite(gram):
        raise ValueError(
            f"XᵀX overflows in {gram.dtype}: scale the samples, e.g. with UnitNorm or "
            "StandardScaler, or pass float64"
        )
    xp = namespace(gram)
    values, vectors = xp.linalg.eigh(gram)
    rank = int((values > values[-1] * X.shape[1] * 1e-6).sum())
    n_vectors = min(rank, n_components)
    leading = xp.flip(vectors, axis=1)[:, :n_vectors].T
    if n_vectors == n_components:
        return leading
    rest = from_samples(X, n_components - n_vectors, rng)
    return xp.concat([leading, rest])


def _gram(block: Array) -> Array:  # (n, p) -> (p, p)
    return block.T @ block


def from_normal(X: Array, n_components: int, rng: np.random.Generator) -> Array:
    """Random directions."""
    return as_like(rng.standard_normal((n_components, X.shape[1])), _first_row(X))


STARTS: dict[str, Callable[[Any, int, np.random.Generator], Array]] = {
    "samples": from_samples,
    "kmeans": from_kmeans,
    "svd": from_svd,
    "normal": from_normal,
}
