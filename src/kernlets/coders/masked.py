"""Codes of samples with missing entries, each over its observed features.

Correlations, energies and Gram entries are sums over the observed features o only:
minimise ‖x_o − D_oᵀγ‖² with as few non-zeros, in the input space or in that of a
kernel. Samples with equal masks are one problem on fewer features, solved by any coder.
For OMP over linear atoms, where masks may all differ, `masked_omp` works on
supports: no sample has a Gram matrix of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from typing import Any

import numpy as np
from sklearn.base import clone

from ..contracts import UNUSED, Array, Dictionary, SparseCoder, SparseCodes
from ..data.missing import (
    MaskedRows,
    MaskGroup,
    group_by_mask,
    split_mask,
    take_observed,
)
from ..loops.codes import pack, pad_slots, refuse_unbounded, squared_residual
from ..loops.omp.reference import FAINT
from ..loops.table import masked_omp
from ..numerics.arrays import (
    diagonal,
    double,
    empty,
    eps,
    index_like,
    namespace,
    to_numpy,
)
from ..numerics.convergence import warn_unfinished
from ..numerics.scaling import quiet
from .lasso import Lasso
from .omp import OMP
from .ridge import Ridge
from .threshold import Threshold

MAX_ROUNDS = 2000  # of thresholding, at most
REST_TOLERANCE = 1e-6  # of the largest move, relative to the largest coefficient


def refuse_incomplete_groups(coder: SparseCoder) -> None:
    """Refuse NaN in rows of groups, whose rows share their atoms.

    A common support is not defined if other features are observed in other rows.
    """
    size = getattr(coder, "group_size", 1)
    if size > 1:
        raise ValueError(
            f"{type(coder).__name__} with group_size={size} needs rows without missing "
            "values (NaN): fill them in, e.g. with kernlets.DictionaryImputer, or set "
            "group_size=1"
        )


class AllFeatures:
    """A dictionary over all features, with products that coders of NaN rows need."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary

    @cached_property
    def gram(self) -> Array:  # (m, m)
        return self.dictionary.gram()

    @cached_property
    def norm(self) -> float:
        """‖G‖, the largest factor by which D Dᵀ makes a code longer."""
        gram = double(self.gram)
        return float(namespace(gram).linalg.eigvalsh(gram)[-1])


@dataclass(frozen=True)
class RestrictedProducts:
    """Inner products of rows with one mask over their observed features."""

    gram: Array  # (m, m)
    corr: Array  # (n, m)
    energy: Array  # (n,)
    share: float  # of an energy over all features
    all_features: AllFeatures


def incomplete_codes(
    dictionary: Dictionary, coder: SparseCoder, X: Array
) -> SparseCodes:
    """Codes of a block of rows with NaN, each over its observed features.

    The residual is that of the observed features. The code and the residual of a row
    with no observed features are zero.
    """
    block, all_features = split_mask(X), AllFeatures(dictionary)
    mask_groups = group_by_mask(to_numpy(block.observed))
    codes = _BlockCodes(block, dictionary.n_atoms)
    observed_groups = [group for group in mask_groups if len(group.features)]
    least_rows = _rows_for_a_gram(dictionary, coder)
    rare_rows = [
        group.rows for group in observed_groups if len(group.rows) < least_rows
    ]
    large_groups = [group for group in observed_groups if len(group.rows) >= least_rows]
    with quiet():
        for group in large_groups:
            problem = restricted_products(all_features, block.rows, group)
            codes.put(group.rows, restricted_solve(coder, problem))
        if rare_rows:
            rows = np.sort(np.concatenate(rare_rows))
            codes.put(rows, _row_codes(dictionary, coder, block, rows))
    return refuse_unbounded(codes.result())


def _rows_for_a_gram(dictionary: Dictionary, coder: SparseCoder) -> float:
    """Rows with one mask that are worth a Gram matrix; fewer are pursued one by one."""
    if type(coder) is not OMP or coder.positive or dictionary.linear_atoms is None:
        return 0
    m = dictionary.n_atoms
    return m / coder.width(m)  # a Gram matrix costs as much as so many pursuits


def _row_codes(
    dictionary: Dictionary, coder: Any, block: MaskedRows, rows: np.ndarray
) -> SparseCodes:
    row_numbers = index_like(rows, block.rows)
    width = coder.width(dictionary.n_atoms)
    masked_rows = block.rows[row_numbers], block.observed[row_numbers]
    result = masked_omp(dictionary.linear_atoms, *masked_rows, width, coder.tol or 0.0)
    indices, values, residual = result
    return SparseCodes(indices, values, dictionary.n_atoms, residual)


def restricted_products(
    all_features: AllFeatures, rows: Array, group: MaskGroup
) -> RestrictedProducts:
    """Return the problem of rows with one mask without the other features."""
    features, dictionary = index_like(group.features, rows), all_features.dictionary
    restricted, X = dictionary.restricted(features), take_observed(rows, group)
    share = dictionary.restricted_share(len(group.features) / rows.shape[1])
    products = restricted.gram(), restricted.correlate(X), restricted.energy(X)
    return RestrictedProducts(*products, share, all_features)


@singledispatch
def restricted_solve(coder: SparseCoder, problem: RestrictedProducts) -> SparseCodes:
    """Codes over atoms that are restricted to the observed features.

    These atoms have no unit norm. By default they are scaled to it for the coder, and
    the coefficients are scaled back. Atoms that are nearly zero are not used.
    """
    xp, gram = namespace(problem.gram), problem.gram
    energies = diagonal(gram)
    is_usable = energies > FAINT * xp.max(energies)
    scale = xp.where(is_usable, 1 / xp.sqrt(xp.where(is_usable, energies, 1.0)), 0.0)
    unit_gram = gram * scale * scale[:, None]
    codes = coder.solve(unit_gram, problem.corr * scale, problem.energy)
    # empty slots have the value 0, whatever the scale
    slot_scale = scale[index_like(codes.indices, scale)]
    return replace(codes, values=codes.values * slot_scale)


@restricted_solve.register
def _(coder: OMP, problem: RestrictedProducts) -> SparseCodes:
    """A tolerance for all features is `share` of it for those observed."""
    if coder.tol is not None:
        coder = clone(coder).set_params(tol=coder.tol * problem.share)
    return restricted_solve.dispatch(SparseCoder)(coder, problem)


@restricted_solve.register
def _(coder: Lasso | Ridge, problem: RestrictedProducts) -> SparseCodes:
    """½‖x_o − D_oγ‖²/share + penalty: the error is estimated for all features."""
    scaled_coder = clone(coder).set_params(alpha=coder.alpha * problem.share)
    return scaled_coder.solve(problem.gram, problem.corr, problem.energy)


@restricted_solve.register
def _(coder: Threshold, problem: RestrictedProducts) -> SparseCodes:
    """γ ← T(c_o + (G − G_o)γ/max(1, ‖G‖)) until it converges.

    The missing features are filled in by γD, which for atoms that are no frame of bound
    1 is ‖G‖ times too long, and thresholds are taken of the correlations then. Each
    round lowers ½ γᵀMγ − γᵀc_o + penalty, M = I − (G − G_o)/max(1, ‖G‖), which is
    positive semi-definite. For orthonormal atoms this is ½‖x_o − D_oγ‖² + penalty, and
    with all features it is the threshold itself.
    """
    gram, corr, energy = problem.gram, problem.corr, problem.energy
    shrink = coder.restricted_threshold(problem.share)
    if problem.share == 1:
        codes = shrink(corr)
    else:
        fill = (problem.all_features.gram - gram) / max(1.0, problem.all_features.norm)
        codes = _iterate_threshold(shrink, corr, fill)
    return refuse_unbounded(pack(codes, squared_residual(gram, corr, energy, codes)))


def _iterate_threshold(
    shrink: Callable[[Array], Array], corr: Array, fill: Array
) -> Array:
    """Return the codes γ = T(c + γ·fill)."""
    xp, codes = namespace(corr), shrink(corr)
    tolerance = max(REST_TOLERANCE, 16 * eps(corr))
    is_moving = xp.ones_like(corr[:, :1]) > 0
    for _ in range(MAX_ROUNDS):  # each sample stops by itself
        new_codes = xp.where(is_moving, shrink(corr + codes @ fill), codes)
        moves = xp.max(xp.abs(new_codes - codes), axis=1, keepdims=True)
        codes, sizes = new_codes, xp.max(xp.abs(new_codes), axis=1, keepdims=True)
        is_moving = moves > tolerance * sizes
        if not bool(xp.any(is_moving)):
            return codes
    warn_unfinished(
        "codes by Threshold of rows with missing values still moved after "
        f"{MAX_ROUNDS} rounds: leave rows out of which little was observed, "
        "or use OMP or Lasso"
    )
    return codes


class _BlockCodes:
    """Codes of a block, collected from codes of its rows."""

    def __init__(self, block: MaskedRows, n_atoms: int) -> None:
        self.like, self.n_atoms = block.rows, n_atoms
        self.blocks: list[tuple[np.ndarray, SparseCodes]] = []

    def put(self, rows: np.ndarray, codes: SparseCodes) -> None:
        self.blocks.append((rows, codes))

    def result(self) -> SparseCodes:
        n = self.like.shape[0]
        width = max([1, *(codes.width for _, codes in self.blocks)])
        values, residual = (empty(s, self.like) for s in ((n, width), (n,)))
        values[...], residual[...] = 0, 0
        indices = index_like(np.full((n, width), UNUSED), self.like)
        for rows, codes in self.blocks:
            row_numbers = index_like(rows, self.like)
            values[row_numbers] = pad_slots(codes.values, width, 0)
            indices_of_rows = pad_slots(codes.indices, width, UNUSED)
            indices[row_numbers] = index_like(indices_of_rows, self.like)
            residual[row_numbers] = codes.residual
        return SparseCodes(indices, values, self.n_atoms, residual)
