"""The K-SVD update, which improves each atom together with its coefficients."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any, ClassVar

import numpy as np

from ..backend import ops
from ..backend.arrays import diagonal, index_like, namespace, row_norms, to_numpy
from ..backend.products import matmul
from ..backend.rows import slices
from ..backend.scale import peaks, power_of_two
from ..core import (
    Array,
    AtomUpdate,
    Coded,
    Dictionary,
    SparseCodes,
    Statistics,
    Step,
)
from ..dictionaries import ExplicitDictionary, GramDictionary
from ..pursuits.encode import squared_residual
from .least_squares import normalized
from .refresh import LIMITS, refresh, refresh_from


class KSVDUpdate(AtomUpdate):
    """Replaces each atom and its coefficients by the best rank-one fit, in turn.

    Let E be the residual, without atom d, of the samples that use d. The exact update
    is E's leading singular pair. The approximate one is d ∝ Eᵀg, then g = E d, a step
    of alternation that never raises the error either.

    Parameters
    ----------
    exact : bool
        Whether to use a singular value decomposition instead of a step of alternation.
    min_uses, max_coherence : int, float
        After the sweep, atoms that are used less often, or are more coherent with
        another atom, are replaced by the worst represented samples.
    """

    needs = "codes"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LIMITS,
        "exact": ["boolean"],
    }

    def __init__(
        self, exact: bool = False, min_uses: int = 4, *, max_coherence: float = 0.99
    ) -> None:
        self.exact = exact
        self.min_uses = min_uses
        self.max_coherence = max_coherence

    def step(
        self, dictionary: Dictionary, coded: Coded, rng: np.random.Generator
    ) -> Step:
        order = rng.permutation(dictionary.n_atoms)
        dictionary, errors = sweep(dictionary, coded, order, self.exact)
        uses = coded.codes.uses()
        dictionary = self._refreshed(dictionary, coded.X, uses, errors)
        return Step(dictionary, float(errors.sum(dtype=np.float64)))

    def _refreshed(
        self, dictionary: Dictionary, X: Array, uses: np.ndarray, errors: np.ndarray
    ) -> Dictionary:
        worst = np.argsort(-errors, kind="stable")[: dictionary.n_atoms]
        return refresh(
            dictionary,
            uses,
            X[index_like(worst, X)],
            errors[worst],
            self.min_uses,
            self.max_coherence,
        )


class ParallelKSVDUpdate(AtomUpdate):
    """Updates all atoms at once: dⱼ ∝ Σᵢ gᵢⱼ (rᵢ + gᵢⱼ dⱼ), with the old other atoms.

    This is the approximate K-SVD step without its order, which makes it one matrix
    product: dⱼ ∝ (ΓᵀX)ⱼ − Σ_{k≠j} (ΓᵀΓ)ⱼₖ dₖ. It needs only sums over samples, so it
    works on data larger than memory and is fast on a GPU. Unlike the sweep it may raise
    the error at fixed codes; it reports the error of the codes that it was given.

    Parameters
    ----------
    min_uses, max_coherence : int, float
        As in `KSVDUpdate`.
    """

    needs = "statistics"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = LIMITS

    def __init__(self, min_uses: int = 4, max_coherence: float = 0.99) -> None:
        self.min_uses = min_uses
        self.max_coherence = max_coherence

    def step(
        self, dictionary: Dictionary, coded: Statistics, rng: np.random.Generator
    ) -> Step:
        power = diagonal(coded.codes_gram)[:, None]
        weights = dictionary.weights
        moved = coded.cross - matmul(coded.codes_gram, weights) + power * weights
        # scaled, so that products with a kernel matrix do not overflow
        moved = moved / power_of_two(peaks(moved, 1))
        dictionary = normalized(dictionary.with_weights(moved), dictionary)
        limits = self.min_uses, self.max_coherence
        dictionary = refresh_from(coded, dictionary, *limits)
        return Step(dictionary, coded.error)


@singledispatch
def sweep(
    dictionary: Dictionary, coded: Coded, order: np.ndarray, exact: bool
) -> tuple[Dictionary, np.ndarray]:
    """The dictionary after one pass over the atoms, and the samples' errors (n,)."""
    raise TypeError(f"no K-SVD sweep for {type(dictionary).__name__}")


@sweep.register
def _(
    dictionary: ExplicitDictionary, coded: Coded, order: np.ndarray, exact: bool
) -> tuple[ExplicitDictionary, np.ndarray]:
    X, codes = coded.X, coded.codes
    atoms, values = _copy(dictionary.atoms), _copy(codes.values)
    residual = ops.subtract_codes(X, codes.indices, values, atoms)
    ops.ksvd_sweep(residual, atoms, codes.indices, values, index_like(order, X), exact)
    return dictionary.with_weights(atoms), to_numpy(row_norms(residual))


@sweep.register
def _(
    dictionary: GramDictionary, coded: Coded, order: np.ndarray, exact: bool
) -> tuple[GramDictionary, np.ndarray]:
    # this state is nearly as large as K, so it is overwritten, not copied
    codes, values = coded.codes, _copy(coded.codes.values)
    gram, order = dictionary.gram(), index_like(order, dictionary.coefs)
    ops.gram_sweep(
        dictionary.matrix,
        dictionary.coefs,
        dictionary.products,
        gram,
        codes.indices,
        values,
        order,
        exact,
    )
    return dictionary, _gram_errors(dictionary, gram, replace(codes, values=values))


def _gram_errors(
    dictionary: GramDictionary, gram: Array, codes: SparseCodes
) -> np.ndarray:  # (N,)
    """Squared errors of all training samples, in blocks of rows."""
    errors = np.empty(len(codes))
    for rows in slices(len(codes), 4 * dictionary.row_bytes):
        part = SparseCodes(codes.indices[rows], codes.values[rows], codes.n_atoms)
        corr = dictionary.products[:, rows].T
        energy = diagonal(dictionary.matrix)[rows]
        residual = squared_residual(gram, corr, energy, part.toarray())
        errors[rows] = to_numpy(residual)
    return errors


def _copy(array: Array) -> Array:
    return namespace(array).asarray(array, copy=True)
