"""The K-SVD update, which improves each atom together with its coefficients."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any, ClassVar

import numpy as np

from ..backend import ops
from ..backend.arrays import (
    as_like,
    diagonal,
    index_like,
    namespace,
    row_norms,
    to_numpy,
)
from ..backend.block_loop import slices
from ..backend.codes import weighted_uses
from ..backend.constraints import AT_LEAST_1
from ..backend.masks import has_gaps, split
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
from ..pursuits.bookkeeping import squared_residual
from ..pursuits.coded_sums import completed, worst_rows
from .least_squares import atom_lengths, fit_term, normalized
from .refresh import LIMITS, refresh, refresh_from
from .sweeps import gauss_seidel, nonnegative, positive_sweeps

ROUNDED = 1e-4  # squared norms of atoms in feature space are that near to 1
How = tuple[bool, bool, bool]  # exact, codes non-negative, atoms non-negative
ROWS_ONLY = (
    "positive_atoms needs atoms that are rows of a matrix: use KSVD, or leave it out"
)
NO_GAPS = (
    "non-negative codes or atoms cannot be learned from rows with missing values: fill "
    "them in first, e.g. with kernlets.DictionaryImputer, or leave positive out"
)


class KSVDUpdate(AtomUpdate):
    """Replaces each atom and its coefficients by the best rank-one fit, in turn.

    Let E be the residual, without atom d, of the samples that use d. The exact update
    is E's leading singular pair. The approximate one is d ∝ Eᵀg, then g = E d, a step
    of alternation that never raises the error either. Of samples with missing values
    only what was observed counts: see `hot.masked.masked_ksvd_sweep`.

    Parameters
    ----------
    exact : bool
        Whether to use a singular value decomposition instead of a step of alternation.
    min_uses, max_coherence : int, float
        After the sweep, atoms that are used less often, or are more coherent with
        another atom, are replaced by the worst represented samples.
    positive : bool
        Keep coefficients non-negative in the rank-one fits: cut them off at zero, which
        is the best fit to the new atom. K-SVD learners set it if their coder is so.
    positive_atoms : bool
        Keep atoms non-negative, in the same way; for explicit dictionaries only.
    """

    needs = "codes"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LIMITS,
        "exact": ["boolean"],
        "positive": ["boolean"],
        "positive_atoms": ["boolean"],
    }

    def __init__(
        self,
        exact: bool = False,
        min_uses: int = 4,
        *,
        max_coherence: float = 0.99,
        positive: bool = False,
        positive_atoms: bool = False,
    ) -> None:
        self.exact = exact
        self.min_uses = min_uses
        self.max_coherence = max_coherence
        self.positive = positive
        self.positive_atoms = positive_atoms

    def step(
        self, dictionary: Dictionary, coded: Coded, rng: np.random.Generator
    ) -> Step:
        order = rng.permutation(dictionary.n_atoms)
        how = self.exact, self.positive, self.positive_atoms
        before, errors, values = sweep(dictionary, coded, order, how)
        dictionary = self._refreshed(before, coded, errors)
        if self.positive_atoms:  # a sample that took a place may have any sign
            dictionary = dictionary.with_weights(nonnegative(dictionary.weights))
        codes = replace(coded.codes, values=values, residual=None)
        error = weighted_sum(errors, coded.weights)
        return Step(dictionary, error, before, codes)

    def _refreshed(
        self, dictionary: Dictionary, coded: Coded, errors: np.ndarray
    ) -> Dictionary:
        X = completed(dictionary, coded.codes, coded.X)
        worst = worst_rows(errors, dictionary.n_atoms, coded.weights)
        return refresh(
            dictionary,
            weighted_uses(coded.codes, coded.weights),
            X[index_like(worst, X)],
            errors[worst],
            self.min_uses,
            self.max_coherence,
        )


class ParallelKSVDUpdate(AtomUpdate):
    """Updates all atoms from sums over samples: dⱼ ∝ (ΓᵀX)ⱼ − Σ_{k≠j} (ΓᵀΓ)ⱼₖ dₖ.

    This is the approximate K-SVD step dⱼ ∝ Σᵢ gᵢⱼ (rᵢ + gᵢⱼ dⱼ) with the codes of the
    other atoms as they were. ΓᵀΓ and ΓᵀX are summed once, so it works on data larger
    than memory, and a sweep is a few matrix products, which are fast on a GPU. Several
    sweeps follow without another pass over the samples, see `sweeps.gauss_seidel`. The
    error at these codes never rises; as in `MODUpdate`, the length that an atom gains
    is a factor of its codes.

    Parameters
    ----------
    min_uses, max_coherence : int, float
        As in `KSVDUpdate`. Atoms that are nearly the same share their samples and keep
        others from being found; on images, too, errors are smaller than with 0.99.
    n_sweeps : int
        Sweeps over the atoms. With many of them the update is that of `MODUpdate`.
    positive_atoms : bool
        As in `KSVDUpdate`.
    """

    needs = "statistics"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LIMITS,
        "n_sweeps": [AT_LEAST_1],
        "positive_atoms": ["boolean"],
    }

    def __init__(
        self,
        min_uses: int = 4,
        max_coherence: float = 0.95,
        *,
        n_sweeps: int = 5,
        positive_atoms: bool = False,
    ) -> None:
        self.min_uses = min_uses
        self.max_coherence = max_coherence
        self.n_sweeps = n_sweeps
        self.positive_atoms = positive_atoms

    def step(
        self, dictionary: Dictionary, coded: Statistics, rng: np.random.Generator
    ) -> Step:
        if self.positive_atoms and not isinstance(dictionary, ExplicitDictionary):
            raise ValueError(ROWS_ONLY)
        sweeps = positive_sweeps if self.positive_atoms else gauss_seidel
        sums = coded.codes_gram, coded.cross
        weights = sweeps(*sums, dictionary.weights, self.n_sweeps)
        moved = dictionary.with_weights(weights)
        error = coded.error + fit_term(coded, moved) - fit_term(coded, dictionary)
        before = normalized(moved, dictionary)
        limits = self.min_uses, self.max_coherence
        dictionary = refresh_from(coded, before, *limits)
        if self.positive_atoms:
            dictionary = dictionary.with_weights(nonnegative(dictionary.weights))
        return Step(dictionary, error, before, lengths=atom_lengths(moved))


@singledispatch
def sweep(
    dictionary: Dictionary, coded: Coded, order: np.ndarray, how: How
) -> tuple[Dictionary, np.ndarray, Array]:
    """The dictionary after one pass over the atoms, errors (n,) and codes (n, w)."""
    raise TypeError(f"no K-SVD sweep for {type(dictionary).__name__}")


@sweep.register
def _(
    dictionary: ExplicitDictionary, coded: Coded, order: np.ndarray, how: How
) -> tuple[ExplicitDictionary, np.ndarray, Array]:
    if has_gaps(coded.X):
        if how[1] or how[2]:
            raise ValueError(NO_GAPS)
        return _masked_sweep(dictionary, coded, order)
    X, codes = coded.X, coded.codes
    atoms, values = _copy(dictionary.atoms), _copy(codes.values)
    residual = ops.subtract_codes(X, codes.indices, values, atoms)
    residual, values = scaled_rows(coded.weights, residual, values)
    ops.ksvd_sweep(residual, atoms, codes.indices, values, index_like(order, X), *how)
    errors = _squares(residual, coded.weights)
    return dictionary.with_weights(atoms), errors, unscaled(coded, values)


def scaled_rows(weights: np.ndarray | None, *arrays: Array) -> tuple[Array, ...]:
    """Rows times the roots of their weights: plain sums of squares are then weighted.

    A rank-one fit of √w eᵢ by √w gᵢ d is the weighted one of eᵢ by gᵢ d.
    """
    if weights is None:
        return arrays
    return tuple(as_like(np.sqrt(weights), each)[:, None] * each for each in arrays)


def unscaled(coded: Coded, values: Array) -> Array:  # (n, width)
    """Coefficients of samples from those of samples times √w; where w is 0, the old."""
    if coded.weights is None:
        return values
    xp, often = namespace(values), as_like(coded.weights, values)[:, None]
    root = xp.sqrt(xp.where(often > 0, often, 1.0))
    return xp.where(often > 0, values / root, coded.codes.values)


def _squares(residual: Array, weights: np.ndarray | None) -> np.ndarray:  # (n,)
    """Squared errors of the samples, from residuals of `scaled_rows`."""
    squares = to_numpy(row_norms(residual))
    if weights is None:
        return squares
    return np.where(weights > 0, squares / np.where(weights > 0, weights, 1), 0)


def weighted_sum(errors: np.ndarray, weights: np.ndarray | None) -> float:
    """Σ w‖e‖²."""
    total = errors if weights is None else weights * errors
    return float(total.sum(dtype=np.float64))


def _masked_sweep(
    dictionary: ExplicitDictionary, coded: Coded, order: np.ndarray
) -> tuple[ExplicitDictionary, np.ndarray, Array]:
    """The pass over what was observed, by alternation whether exact or not."""
    (X, known), codes = split(coded.X), coded.codes
    atoms, values = _copy(dictionary.atoms), _copy(codes.values)
    residual = ops.subtract_codes(X, codes.indices, values, atoms)
    residual = namespace(X).where(known, residual, namespace(X).zeros_like(residual))
    residual, values = scaled_rows(coded.weights, residual, values)
    places = codes.indices, values, index_like(order, X)
    ops.masked_ksvd_sweep(residual, known, atoms, *places)
    errors = _squares(residual, coded.weights)
    return dictionary.with_weights(atoms), errors, unscaled(coded, values)


@sweep.register
def _(
    dictionary: GramDictionary, coded: Coded, order: np.ndarray, how: How
) -> tuple[GramDictionary, np.ndarray, Array]:
    if how[2]:
        raise ValueError(ROWS_ONLY)
    # handed over, and as large as a good part of K: overwritten, not copied
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
        *how[:2],
        weights=_like_values(coded.weights, values),
    )
    errors = _gram_errors(dictionary, gram, replace(codes, values=values))
    return _unit_again(dictionary), errors, values


def _unit_again(dictionary: GramDictionary) -> GramDictionary:
    """Atoms of unit norm, where rounding has changed norms.

    An atom that is the small difference of samples has few digits in float32.
    """
    xp = namespace(dictionary.coefs)
    squares = xp.vecdot(dictionary.products, dictionary.coefs)
    off = (xp.abs(squares - 1) > ROUNDED) & (squares > 0)
    if not bool(xp.any(off)):
        return dictionary
    return dictionary.rescaled(xp.where(off, 1 / xp.sqrt(xp.abs(squares)), 1.0))


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


def _like_values(weights: np.ndarray | None, values: Array) -> Array | None:
    return None if weights is None else as_like(weights, values)


def _copy(array: Array) -> Array:
    return namespace(array).asarray(array, copy=True)
