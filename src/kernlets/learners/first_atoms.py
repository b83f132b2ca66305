"""First atoms of unit norm, from a name or an array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..backend.arrays import (
    as_like,
    check_points,
    namespace,
    or_wider,
    row_norms,
    to_numpy,
)
from ..backend.clipping import clipped
from ..backend.missing_rows import all_in_memory
from ..backend.rows import sum_rows, take_rows
from ..backend.scale import (
    all_finite,
    check_range,
    least_energy,
    lengths,
    quiet,
    unit_rows,
)
from ..backend.weights import Weights, draw_rows, n_drawable, weights_of_rows
from ..clustering import lloyd
from ..core import Array


def start_atoms(
    init: Any,
    X: Any,  # (n, p), anywhere
    n_components: int,
    rng: np.random.Generator,
    weights: Weights = None,
) -> Array:  # (m, p)
    """Unit-norm atoms from ``init``: a name in `STARTS` or an array of atoms."""
    if isinstance(init, str):
        _check_at_hand(X)
        return _normalized(STARTS[init](X, n_components, rng, weights))
    atoms = given_atoms(init, X)
    if atoms.shape[0] != n_components:
        raise ValueError(
            f"init has {atoms.shape[0]} atoms but n_components={n_components}: "
            "make them equal or leave n_components out"
        )
    return atoms


def given_atoms(init: Any, X: Any) -> Array:  # (m, p)
    """Unit-norm atoms from an array, as many as it has."""
    _check_at_hand(X)
    return _normalized(check_points(init, _first_row(X), "init"))


def _check_at_hand(X: Any) -> None:
    """`check_range`; rows elsewhere are looked at block by block as they are coded."""
    if all_in_memory(X):
        check_range(X)


def _normalized(atoms: Array) -> Array:  # (m, p)
    if not bool((lengths(atoms) > 0).all()):
        raise ValueError("init has an atom that is zero: remove it")
    return unit_rows(atoms)


def nonzero_rows(X: Array) -> np.ndarray:
    """Indices of samples that can serve as atoms: their squares do not vanish."""
    return np.flatnonzero(to_numpy(row_norms(X)) > least_energy(X))


@dataclass(frozen=True)
class Usable:
    """The non-zero rows of any row source: their number, and random ones of them."""

    n: int
    zeros: np.ndarray  # rows that are zero, in order

    @classmethod
    def find(cls, X: Any) -> Usable:
        """Read all rows once."""
        found = sum_rows(_zero_rows, X, row_bytes=16 * X.shape[1], numbered=True)
        return cls(X.shape[0], np.concatenate(found))

    def __len__(self) -> int:
        return self.n - len(self.zeros)

    def count(self, weights: Weights) -> int:
        """How many samples the rows count for."""
        return len(self) if weights is None else int(self._cleared(weights).sum())

    def n_drawable(self, weights: Weights) -> int:
        return len(self) if weights is None else n_drawable(self._cleared(weights))

    def draw(
        self, m: int, rng: np.random.Generator, weights: Weights = None
    ) -> np.ndarray:  # (m,)
        """Row numbers of m non-zero rows, distinct ones without weights."""
        if weights is not None:
            return draw_rows(self.n, m, rng, self._cleared(weights))
        chosen = rng.choice(len(self), m, replace=False)
        usable_before = self.zeros - np.arange(len(self.zeros))
        return chosen + np.searchsorted(usable_before, chosen, side="right")

    def _cleared(self, weights: np.ndarray) -> np.ndarray:  # (n,)
        cleared = weights.copy()
        cleared[self.zeros] = 0
        return cleared


def _zero_rows(block: Array, first: int) -> list[np.ndarray]:
    """A list, so that those of several blocks add up."""
    return [first + np.flatnonzero(to_numpy(row_norms(block)) <= least_energy(block))]


def _first_row(X: Any) -> Array:  # (1, p)
    return take_rows(X, np.array([0]))


def from_samples(
    X: Any,
    n_components: int,
    rng: np.random.Generator,
    weights: Weights = None,
    others: int = 0,  # atoms beside these
) -> Array:
    """Random non-zero samples, distinct ones without weights, at most all of them.

    All rows are read only if a drawn row is zero, because rows may be on disk, on a
    cluster, or not computed yet.
    """
    n, before = X.shape[0], rng.bit_generator.state
    if n_components <= (n if weights is None else n_drawable(weights)):
        rows = take_rows(X, draw_rows(n, n_components, rng, weights))
        if len(nonzero_rows(rows)) == n_components:
            return rows
    usable = Usable.find(X)
    n_usable = usable.n_drawable(weights)
    if n_usable < n_components:
        if n_usable == 0:
            raise ValueError(
                "there are no non-zero samples to draw atoms from: set init='normal', "
                "or scale samples that are tiny, since their squares vanish"
            )
        wanted = n_components + others, n_usable + others
        clipped("n_components", *wanted, "atoms that non-zero samples give")
        rng.bit_generator.state = before  # the same atoms as if so many were asked for
        return from_samples(X, n_usable, rng, weights)
    return take_rows(X, usable.draw(n_components, rng, weights))


def from_kmeans(
    X: Any, n_components: int, rng: np.random.Generator, weights: Weights = None
) -> Array:
    """Centres of clusters; a centre at zero is replaced by a sample."""
    start = from_samples(X, n_components, rng, weights)
    centres = lloyd(X, start, max_iter=20, weights=weights)
    xp = namespace(centres)
    return xp.where(xp.all(centres == 0, axis=1)[:, None], start, centres)


def from_svd(
    X: Any, n_components: int, rng: np.random.Generator, weights: Weights = None
) -> Array:
    """Leading right singular vectors, then random samples."""
    with quiet():
        gram = _gram(X, weights)
    if not all_finite(gram):
        raise ValueError(
            f"XᵀX overflows in {gram.dtype}: scale the samples, e.g. with UnitNorm or "
            f"StandardScaler{or_wider(gram.dtype)}"
        )
    xp = namespace(gram)
    values, vectors = xp.linalg.eigh(gram)
    rank = int((values > values[-1] * (X.shape[1] * 1e-6)).sum())
    n_vectors = min(rank, n_components)
    leading = _largest_positive(xp.flip(vectors, axis=1)[:, :n_vectors].T)
    if n_vectors == n_components:
        return leading
    rest = from_samples(X, n_components - n_vectors, rng, weights, n_vectors)
    return xp.concat([leading, rest])


def _largest_positive(vectors: Array) -> Array:  # (m, p)
    """The vectors or their opposites: which of them a library finds is arbitrary."""
    xp = namespace(vectors)
    high, low = xp.max(vectors, axis=1), -xp.min(vectors, axis=1)
    return xp.where((high >= low)[:, None], vectors, -vectors)


def _gram(X: Any, weights: Weights) -> Array:  # (n, p) -> (p, p)
    """XᵀX, or XᵀWX."""

    def gram(block: Array, first: int = 0) -> Array:
        own = weights_of_rows(weights, first, block.shape[0], block)
        return block.T @ (block if own is None else block * own[:, None])

    p = X.shape[1]
    how = {"result_bytes": 8 * p * p, "numbered": weights is not None}
    return sum_rows(gram, X, 16 * p, **how)


def from_normal(
    X: Array, n_components: int, rng: np.random.Generator, weights: Weights = None
) -> Array:
    """Random directions, whatever the weights."""
    return as_like(rng.standard_normal((n_components, X.shape[1])), _first_row(X))


STARTS: dict[str, Callable[[Any, int, np.random.Generator, Weights], Array]] = {
    "samples": from_samples,
    "kmeans": from_kmeans,
    "svd": from_svd,
    "normal": from_normal,
}


def given_rows(init: Any, n_atoms: int, n_samples: int, names: str) -> np.ndarray:
    """`init` as row numbers of the training samples that become the first atoms."""
    rows = _numbers(init)
    whole = rows.shape == (n_atoms,) and rows.dtype.kind in "iu"
    if not whole or rows.min() < 0 or rows.max() >= n_samples:
        raise ValueError(
            f"init must be {names} or {n_atoms} row numbers of training samples, "
            f"below {n_samples}"
        )
    return rows


def n_given(init: Any) -> int:
    """How many atoms `init` names; `given_rows` refuses what are no row numbers."""
    return max(_numbers(init).size, 1)


def _numbers(init: Any) -> np.ndarray:
    """An array; an empty one of lists that are not equally long."""
    try:
        return to_numpy(init)
    except ValueError:
        return np.empty(0)
