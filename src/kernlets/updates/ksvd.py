"""The K-SVD update, which improves each atom together with its coefficients."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any, ClassVar

import numpy as np

from ..coders.encoding import fill_by_codes, worst_rows
from ..contracts import (
    Array,
    AtomUpdate,
    Coded,
    Dictionary,
    SparseCodes,
    Step,
)
from ..data.block_loop import block_slices
from ..data.missing import has_missing, split_mask
from ..dictionaries import ExplicitDictionary, GramDictionary
from ..loops.codes import squared_residual, weighted_uses
from ..loops.table import gram_sweep, ksvd_sweep, masked_ksvd_sweep, subtract_codes
from ..numerics.arrays import (
    as_like,
    diagonal,
    index_like,
    namespace,
    row_norms,
    to_numpy,
)
from ..numerics.scaling import unit_rows
from .replace import LIMITS, put_atoms, refresh

ROUNDED = 1e-4  # squared norms of atoms farther from 1 are corrected
ROWS_ONLY = (
    "positive_atoms needs atoms that are rows of a matrix: use KSVD, or leave it out"
)
NO_MISSING = (
    "non-negative codes or atoms cannot be learned from rows with missing values: fill "
    "them in first, e.g. with kernlets.DictionaryImputer, or leave positive out"
)


class KSVDUpdate(AtomUpdate):
    """Replaces one atom after the other, with its coefficients, by a rank-one fit.

    Let E be the residual, without atom d, of the samples that use d. The exact update
    is E's leading singular pair. The approximate one is d ∝ Eᵀg, then g = E d, a step
    of alternation that never raises the error either. Of samples with missing values
    only the observed entries count: see `loops.updates.reference.masked_ksvd_sweep`.

    Parameters
    ----------
    exact : bool
        Whether to use a singular value decomposition instead of a step of alternation.
    min_uses, max_coherence : int, float
        After the sweep, atoms that are used less often, or are more coherent with
        another atom, are replaced by the worst represented samples.
    redraw : bool
        Whether atoms that are used less often become random instead, which is the
        practice of RKDL's authors. Coherent atoms are then not replaced.
    positive : bool
        Keep coefficients non-negative in the rank-one fits: cut them off at zero, which
        is the best fit to the new atom. K-SVD learners set it if their coder has
        ``positive=True``.
    positive_atoms : bool
        Keep atoms non-negative, in the same way; for explicit dictionaries only.
    """

    needs = "codes"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LIMITS,
        "exact": ["boolean"],
        "redraw": ["boolean"],
        "positive": ["boolean"],
        "positive_atoms": ["boolean"],
    }

    def __init__(
        self,
        exact: bool = False,
        min_uses: int = 4,
        *,
        max_coherence: float = 0.99,
        redraw: bool = False,
        positive: bool = False,
        positive_atoms: bool = False,
    ) -> None:
        self.exact = exact
        self.min_uses = min_uses
        self.max_coherence = max_coherence
        self.redraw = redraw
        self.positive = positive
        self.positive_atoms = positive_atoms

    def step(
        self, dictionary: Dictionary, coded: Coded, rng: np.random.Generator
    ) -> Step:
        order = rng.permutation(dictionary.n_atoms)
        improved, errors, values = sweep(dictionary, coded, order, self)
        dictionary = self._refresh(improved, coded, errors, rng)
        if self.positive_atoms:  # a sample that became an atom may have any sign
            dictionary = dictionary.with_weights(clip_negative(dictionary.weights))
        codes = replace(coded.codes, values=values, residual=None)
        error = weighted_sum(errors, coded.weights)
        return Step(dictionary, error, improved, codes)

    def _refresh(
        self,
        dictionary: Dictionary,
        coded: Coded,
        errors: np.ndarray,
        rng: np.random.Generator,
    ) -> Dictionary:
        if self.redraw:
            return self._redraw(dictionary, coded, rng)
        X = fill_by_codes(dictionary, coded.codes, coded.X)
        worst = worst_rows(errors, dictionary.n_atoms, coded.weights)
        return refresh(
            dictionary,
            weighted_uses(coded.codes, coded.weights),
            X[index_like(worst, X)],
            errors[worst],
            self.min_uses,
            self.max_coherence,
        )

    def _redraw(
        self, dictionary: Dictionary, coded: Coded, rng: np.random.Generator
    ) -> Dictionary:
        uses = weighted_uses(coded.codes, coded.weights)
        unused = np.flatnonzero(uses < self.min_uses)
        if len(unused) == 0:
            return dictionary
        return put_atoms(dictionary, unused, self._draw(dictionary, len(unused), rng))

    def _draw(self, dictionary: Any, count: int, rng: np.random.Generator) -> Array:
        """Draw atoms in random directions, in the dictionary's coordinates."""
        weights = dictionary.weights
        return as_like(rng.standard_normal((count, weights.shape[1])), weights)


def clip_negative(atoms: Array) -> Array:  # (m, p)
    """Set negative entries of atoms to 0, and scale atoms to unit norm.

    The sign of an atom without positive entries is changed first.
    """
    xp = namespace(atoms)
    has_positive = xp.any(atoms > 0, axis=1)[:, None]
    return unit_rows(xp.clip(xp.where(has_positive, atoms, -atoms), 0, None))


@singledispatch
def sweep(
    dictionary: Dictionary, coded: Coded, order: np.ndarray, rule: KSVDUpdate
) -> tuple[Dictionary, np.ndarray, Array]:
    """Update all atoms once; return the dictionary, errors (n,) and codes (n, w)."""
    raise TypeError(f"no K-SVD sweep for {type(dictionary).__name__}")


@sweep.register
def _(
    dictionary: ExplicitDictionary,
    coded: Coded,
    order: np.ndarray,
    rule: KSVDUpdate,
) -> tuple[ExplicitDictionary, np.ndarray, Array]:
    if has_missing(coded.X):
        if rule.positive or rule.positive_atoms:
            raise ValueError(NO_MISSING)
        return _masked_sweep(dictionary, coded, order)
    X, codes = coded.X, coded.codes
    atoms, values = _copy(dictionary.atoms), _copy(codes.values)
    residual = subtract_codes(X, codes.indices, values, atoms)
    residual, values = weight_rows(coded.weights, residual, values)
    ksvd_sweep(
        residual,
        atoms,
        codes.indices,
        values,
        index_like(order, X),
        rule.exact,
        rule.positive,
        rule.positive_atoms,
    )
    errors = _squares(residual, coded.weights)
    return dictionary.with_weights(atoms), errors, unweight_codes(coded, values)


def weight_rows(weights: np.ndarray | None, *arrays: Array) -> tuple[Array, ...]:
    """Multiply rows by √w, so that plain sums of squares are weighted.

    A rank-one fit of √w eᵢ by √w gᵢ d is the weighted one of eᵢ by gᵢ d.
    """
    if weights is None:
        return arrays
    return tuple(as_like(np.sqrt(weights), array)[:, None] * array for array in arrays)


def unweight_codes(coded: Coded, values: Array) -> Array:  # (n, width)
    """Divide coefficients by √w, which undoes `weight_rows`; for w = 0 keep the old."""
    if coded.weights is None:
        return values
    xp, w = namespace(values), as_like(coded.weights, values)[:, None]
    root_w = xp.sqrt(xp.where(w > 0, w, 1.0))
    return xp.where(w > 0, values / root_w, coded.codes.values)


def _squares(residual: Array, weights: np.ndarray | None) -> np.ndarray:  # (n,)
    """Return squared errors of the samples from residuals times √w (`weight_rows`)."""
    squares = to_numpy(row_norms(residual))
    if weights is None:
        return squares
    return np.where(weights > 0, squares / np.where(weights > 0, weights, 1), 0)


def weighted_sum(errors: np.ndarray, weights: np.ndarray | None) -> float:
    """Return Σ w‖e‖²."""
    total = errors if weights is None else weights * errors
    return float(total.sum(dtype=np.float64))


def _masked_sweep(
    dictionary: ExplicitDictionary, coded: Coded, order: np.ndarray
) -> tuple[ExplicitDictionary, np.ndarray, Array]:
    """One pass over the observed entries, by alternation also if `exact` is set."""
    (X, observed), codes = split_mask(coded.X), coded.codes
    atoms, values = _copy(dictionary.atoms), _copy(codes.values)
    residual = subtract_codes(X, codes.indices, values, atoms)
    residual = namespace(X).where(observed, residual, namespace(X).zeros_like(residual))
    residual, values = weight_rows(coded.weights, residual, values)
    masked_ksvd_sweep(
        residual, observed, atoms, codes.indices, values, index_like(order, X)
    )
    errors = _squares(residual, coded.weights)
    return dictionary.with_weights(atoms), errors, unweight_codes(coded, values)


@sweep.register
def _(
    dictionary: GramDictionary, coded: Coded, order: np.ndarray, rule: KSVDUpdate
) -> tuple[GramDictionary, np.ndarray, Array]:
    if rule.positive_atoms:
        raise ValueError(ROWS_ONLY)
    # coefs and products are as large as K: they are overwritten, not copied
    codes, values = coded.codes, _copy(coded.codes.values)
    gram, order = dictionary.gram(), index_like(order, dictionary.coefs)
    gram_sweep(
        dictionary.matrix,
        dictionary.coefs,
        dictionary.products,
        gram,
        codes.indices,
        values,
        order,
        rule.exact,
        rule.positive,
        weights=None if coded.weights is None else as_like(coded.weights, values),
    )
    errors = _gram_errors(dictionary, gram, replace(codes, values=values))
    return _renormalize(dictionary), errors, values


def _renormalize(dictionary: GramDictionary) -> GramDictionary:
    """Scale atoms to unit norm where rounding has changed their norms.

    An atom that is the small difference of samples has few digits in float32.
    """
    xp = namespace(dictionary.coefs)
    squares = xp.vecdot(dictionary.products, dictionary.coefs)
    is_off = (xp.abs(squares - 1) > ROUNDED) & (squares > 0)
    if not bool(xp.any(is_off)):
        return dictionary
    return dictionary.rescaled(xp.where(is_off, 1 / xp.sqrt(xp.abs(squares)), 1.0))


def _gram_errors(
    dictionary: GramDictionary, gram: Array, codes: SparseCodes
) -> np.ndarray:  # (N,)
    """Return squared errors of all training samples, in blocks of rows."""
    errors = np.empty(len(codes))
    for rows in block_slices(len(codes), 4 * dictionary.row_bytes):
        block = SparseCodes(codes.indices[rows], codes.values[rows], codes.n_atoms)
        corr = dictionary.products[:, rows].T
        energy = diagonal(dictionary.matrix)[rows]
        residual = squared_residual(gram, corr, energy, block.toarray())
        errors[rows] = to_numpy(residual)
    return errors


def _copy(array: Array) -> Array:
    return namespace(array).asarray(array, copy=True)
