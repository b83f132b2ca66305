"""`start_atoms` returns the initial atoms of a learner, by a name or from an array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.constraints import clipped
from ..clustering import lloyd
from ..contracts import Array
from ..data.missing import all_in_memory
from ..data.rows import sum_rows, take_rows
from ..data.weights import Weights, draw_rows, n_drawable, weights_of_rows
from ..numerics.arrays import (
    as_like,
    check_points,
    namespace,
    row_norms,
    scalers_for,
    to_numpy,
    with_fixed_signs,
)
from ..numerics.scaling import (
    all_finite,
    check_range,
    least_energy,
    lengths,
    quiet,
    unit_rows,
)


def start_atoms(
    init: Any,
    X: Any,  # (n, p), anywhere
    n_components: int,
    rng: np.random.Generator,
    weights: Weights = None,
) -> Array:  # (m, p)
    """Return unit-norm atoms from ``init``: a name in `STARTS` or an array of atoms."""
    if isinstance(init, str):
        _check_range_in_memory(X)
        return _normalize(STARTS[init](X, n_components, rng, weights))
    atoms = atoms_from_array(init, X)
    if atoms.shape[0] != n_components:
        raise ValueError(
            f"init has {atoms.shape[0]} atoms but n_components={n_components}: "
            "make them equal or leave n_components out"
        )
    return atoms


def atoms_from_array(init: Any, X: Any) -> Array:  # (m, p)
    """Return the rows of the array `init`, scaled to unit norm."""
    _check_range_in_memory(X)
    return _normalize(check_points(init, _first_row(X), "init"))


def _check_range_in_memory(X: Any) -> None:
    """Check the range of rows in memory; other rows are checked when they are coded."""
    if all_in_memory(X):
        check_range(X)


def _normalize(atoms: Array) -> Array:  # (m, p)
    if not bool((lengths(atoms) > 0).all()):
        raise ValueError("init has an atom that is zero: remove it")
    return unit_rows(atoms)


def nonzero_rows(X: Array) -> np.ndarray:
    """Return the indices of samples whose squares do not underflow to zero."""
    return np.flatnonzero(to_numpy(row_norms(X)) > least_energy(X))


@dataclass(frozen=True)
class NonzeroRows:
    """Counts and draws non-zero rows of an array, of blocks or of a cluster."""

    n: int
    zeros: np.ndarray  # numbers of rows that are zero, in order

    @classmethod
    def find(cls, X: Any) -> NonzeroRows:
        """Find the zero rows in one pass."""
        zero_rows = sum_rows(_zero_rows, X, row_bytes=16 * X.shape[1], numbered=True)
        return cls(X.shape[0], np.concatenate(zero_rows))

    def __len__(self) -> int:
        return self.n - len(self.zeros)

    def count(self, weights: Weights) -> int:
        """Return the number of non-zero samples, each counted with its weight."""
        return (
            len(self)
            if weights is None
            else int(self._weights_without_zeros(weights).sum())
        )

    def n_drawable(self, weights: Weights) -> int:
        """Return the number of rows that can be drawn."""
        return (
            len(self)
            if weights is None
            else n_drawable(self._weights_without_zeros(weights))
        )

    def draw(
        self, m: int, rng: np.random.Generator, weights: Weights = None
    ) -> np.ndarray:  # (m,)
        """Draw m non-zero rows; without weights they are distinct."""
        if weights is not None:
            return draw_rows(self.n, m, rng, self._weights_without_zeros(weights))
        positions = rng.choice(len(self), m, replace=False)
        n_usable_before = self.zeros - np.arange(len(self.zeros))
        return positions + np.searchsorted(n_usable_before, positions, side="right")

    def _weights_without_zeros(self, weights: np.ndarray) -> np.ndarray:  # (n,)
        usable_weights = weights.copy()
        usable_weights[self.zeros] = 0
        return usable_weights


def _zero_rows(block: Array, first: int) -> list[np.ndarray]:
    """Return the numbers of zero rows in a list, to which those of blocks are added."""
    return [first + np.flatnonzero(to_numpy(row_norms(block)) <= least_energy(block))]


def _first_row(X: Any) -> Array:  # (1, p)
    return take_rows(X, np.array([0]))


def from_samples(
    X: Any,
    n_components: int,
    rng: np.random.Generator,
    weights: Weights = None,
    n_other_atoms: int = 0,  # atoms that are not samples, for the warning
) -> Array:
    """Draw non-zero samples; without weights they are distinct.

    All rows are read only if a row that was drawn is zero, because rows may be on
    disk, on a cluster, or not computed yet.
    """
    n, rng_state = X.shape[0], rng.bit_generator.state
    if n_components <= (n if weights is None else n_drawable(weights)):
        rows = take_rows(X, draw_rows(n, n_components, rng, weights))
        if len(nonzero_rows(rows)) == n_components:
            return rows
    usable = NonzeroRows.find(X)
    n_usable = usable.n_drawable(weights)
    if n_usable < n_components:
        if n_usable == 0:
            raise ValueError(
                "there are no non-zero samples to draw atoms from: set init='normal', "
                "or scale samples that are tiny, since their squares vanish"
            )
        n_asked_and_usable = n_components + n_other_atoms, n_usable + n_other_atoms
        clipped("n_components", *n_asked_and_usable, "atoms that non-zero samples give")
        # the atoms are those of a call with n_components=n_usable
        rng.bit_generator.state = rng_state
        return from_samples(X, n_usable, rng, weights)
    return take_rows(X, usable.draw(n_components, rng, weights))


def from_kmeans(
    X: Any, n_components: int, rng: np.random.Generator, weights: Weights = None
) -> Array:
    """Compute the centres of clusters; a sample replaces a centre that is zero."""
    start = from_samples(X, n_components, rng, weights)
    centres = lloyd(X, start, max_iter=20, weights=weights)
    xp = namespace(centres)
    return xp.where(xp.all(centres == 0, axis=1)[:, None], start, centres)


def from_svd(
    X: Any, n_components: int, rng: np.random.Generator, weights: Weights = None
) -> Array:
    """Compute leading right singular vectors; random samples follow if they are few."""
    with quiet():
        gram = _gram(X, weights)
    if not all_finite(gram):
        raise ValueError(
            f"XᵀX overflows in {gram.dtype}: scale the samples, e.g. with "
            f"{scalers_for(gram.dtype)}"
        )
    xp = namespace(gram)
    eigenvalues, eigenvectors = xp.linalg.eigh(gram)
    rank = int((eigenvalues > eigenvalues[-1] * (X.shape[1] * 1e-6)).sum())
    n_vectors = min(rank, n_components)
    leading = with_fixed_signs(xp.flip(eigenvectors, axis=1)[:, :n_vectors]).T
    if n_vectors == n_components:
        return leading
    samples = from_samples(X, n_components - n_vectors, rng, weights, n_vectors)
    return xp.concat([leading, samples])


def _gram(X: Any, weights: Weights) -> Array:  # (n, p) -> (p, p)
    """Compute XᵀX, or XᵀWX."""

    def gram(block: Array, first: int = 0) -> Array:
        block_weights = weights_of_rows(weights, first, block.shape[0], block)
        return block.T @ (
            block if block_weights is None else block * block_weights[:, None]
        )

    p = X.shape[1]
    options = {"result_bytes": 8 * p * p, "numbered": weights is not None}
    return sum_rows(gram, X, 16 * p, **options)


def from_normal(
    X: Array, n_components: int, rng: np.random.Generator, weights: Weights = None
) -> Array:
    """Draw directions from a normal distribution; weights do not matter."""
    return as_like(rng.standard_normal((n_components, X.shape[1])), _first_row(X))


STARTS: dict[str, Callable[[Any, int, np.random.Generator, Weights], Array]] = {
    "samples": from_samples,
    "kmeans": from_kmeans,
    "svd": from_svd,
    "normal": from_normal,
}


def check_row_numbers(
    init: Any, n_atoms: int, n_samples: int, names: str
) -> np.ndarray:  # (m,)
    """Return `init` as an array, if it has `n_atoms` row numbers of samples."""
    rows = _as_array(init)
    has_row_numbers = rows.shape == (n_atoms,) and rows.dtype.kind in "iu"
    if not has_row_numbers or rows.min() < 0 or rows.max() >= n_samples:
        raise ValueError(
            f"init must be {names} or {n_atoms} row numbers of training samples, "
            f"below {n_samples}"
        )
    return rows


def count_row_numbers(init: Any) -> int:
    """Return the number of entries of `init`, which need not be row numbers."""
    return max(_as_array(init).size, 1)


def _as_array(init: Any) -> np.ndarray:
    """Return an array, which is empty for lists of different lengths."""
    try:
        return to_numpy(init)
    except ValueError:
        return np.empty(0)
