"""Codes of samples of which a part was observed: each over what is known of it.

Correlations, energies and Gram entries are sums over the observed features o only:
minimise ‖x_o − D_oᵀγ‖² with as few non-zeros, in the input space or in that of a
kernel. Samples with equal masks are one problem on fewer features, solved by any coder.
For OMP over linear atoms, where masks may all differ, `ops.masked_omp` works on
supports: no sample has a Gram matrix of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from typing import Any

import numpy as np
from sklearn.base import clone

from ..backend import ops
from ..backend.arrays import (
    diagonal,
    double,
    empty,
    eps,
    index_like,
    namespace,
    to_numpy,
)
from ..backend.convergence import warn_unfinished
from ..backend.masks import (
    MaskedRows,
    MaskGroup,
    group_by_mask,
    split_mask,
    take_observed,
)
from ..backend.scale import quiet
from ..core import UNUSED, Array, Dictionary, SparseCoder, SparseCodes
from .bookkeeping import pack, refuse_unbounded, squared_residual, widened
from .lasso import Lasso
from .omp import OMP
from .ridge import Ridge
from .threshold import Threshold

ROUNDS = 2000  # of thresholding, at most
REST = 1e-6  # largest move of a coefficient, relative to the largest, that ends it


def refuse_incomplete_groups(coder: SparseCoder) -> None:
    """Refuse NaN where rows share atoms with others, of which other features are known.

    What the rows of a group have in common is not defined then.
    """
    size = getattr(coder, "group_size", 1)
    if size > 1:
        raise ValueError(
            f"{type(coder).__name__} with group_size={size} needs rows without missing "
            "values (NaN): fill them in, e.g. with kernlets.DictionaryImputer, or set "
            "group_size=1"
        )


class AllFeatures:
    """What coders of incomplete rows ask of a dictionary over all features."""

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
class Restricted:
    """Inner products of rows with one mask over their observed features."""

    gram: Array  # (m, m)
    corr: Array  # (n, m)
    energy: Array  # (n,)
    share: float  # of an energy over all features
    whole: AllFeatures


def incomplete_codes(
    dictionary: Dictionary, coder: SparseCoder, X: Array
) -> SparseCodes:
    """Codes of a block of rows with NaN, each over its observed features.

    The residual is that of the observed features. Of a row with nothing observed both
    are zero.
    """
    block, whole = split_mask(X), AllFeatures(dictionary)
    parts = group_by_mask(to_numpy(block.observed))
    codes = _Filled(block, dictionary.n_atoms)
    seen = [part for part in parts if len(part.features)]
    enough = _rows_for_a_gram(dictionary, coder)
    apart = [part.rows for part in seen if len(part.rows) < enough]
    together = [part for part in seen if len(part.rows) >= enough]
    with quiet():
        for part in together:
            problem = restricted_products(whole, block.rows, part)
            codes.put(part.rows, restricted_solve(coder, problem))
        if apart:
            rows = np.sort(np.concatenate(apart))
            codes.put(rows, _row_codes(dictionary, coder, block, rows))
    return refuse_unbounded(codes.result())


def _rows_for_a_gram(dictionary: Dictionary, coder: SparseCoder) -> float:
    """Rows with one mask that are worth a Gram matrix; fewer are pursued apart."""
    if type(coder) is not OMP or coder.positive or dictionary.linear_atoms is None:
        return 0
    m = dictionary.n_atoms
    return m / coder.width(m)  # a Gram matrix costs as much as so many pursuits


def _row_codes(
    dictionary: Dictionary, coder: Any, block: MaskedRows, rows: np.ndarray
) -> SparseCodes:
    some = index_like(rows, block.rows)
    width = coder.width(dictionary.n_atoms)
    seen = block.rows[some], block.observed[some]
    found = ops.masked_omp(dictionary.linear_atoms, *seen, width, coder.tol or 0.0)
    indices, values, residual = found
    return SparseCodes(indices, values, dictionary.n_atoms, residual)


def restricted_products(whole: AllFeatures, rows: Array, part: MaskGroup) -> Restricted:
    """The problem of rows with one mask without the other features."""
    features, dictionary = index_like(part.features, rows), whole.dictionary
    smaller, X = dictionary.restricted(features), take_observed(rows, part)
    share = dictionary.restricted_share(len(part.features) / rows.shape[1])
    products = smaller.gram(), smaller.correlate(X), smaller.energy(X)
    return Restricted(*products, share, whole)


@singledispatch
def restricted_solve(coder: SparseCoder, problem: Restricted) -> SparseCodes:
    """Codes over atoms of which a share of the features is left.

    They have no unit norm any more. By default they are scaled to it for the coder, and
    the coefficients back. Atoms of which next to nothing is left are not used.
    """
    xp, gram = namespace(problem.gram), problem.gram
    own = diagonal(gram)
    usable = own > ops.FAINT * xp.max(own)
    scale = xp.where(usable, 1 / xp.sqrt(xp.where(usable, own, 1.0)), 0.0)
    unit = gram * scale * scale[:, None]
    codes = coder.solve(unit, problem.corr * scale, problem.energy)
    return replace(codes, values=codes.values * _of_slots(scale, codes.indices))


@restricted_solve.register
def _(coder: OMP, problem: Restricted) -> SparseCodes:
    """A tolerance for all features is `share` of it for those observed."""
    if coder.tol is not None:
        coder = clone(coder).set_params(tol=coder.tol * problem.share)
    return restricted_solve.dispatch(SparseCoder)(coder, problem)


@restricted_solve.register
def _(coder: Lasso | Ridge, problem: Restricted) -> SparseCodes:
    """½‖x_o − D_oγ‖²/share + penalty: the error is estimated for all features."""
    weaker = clone(coder).set_params(alpha=coder.alpha * problem.share)
    return weaker.solve(problem.gram, problem.corr, problem.energy)


@restricted_solve.register
def _(coder: Threshold, problem: Restricted) -> SparseCodes:
    """γ ← T(c_o + (G − G_o)γ/max(1, ‖G‖)) until it rests.

    The missing features are filled in by γD, which for atoms that are no frame of bound
    1 is ‖G‖ times too long, and thresholds are taken of the correlations then. Each
    round lowers ½ γᵀMγ − γᵀc_o + penalty, M = I − (G − G_o)/max(1, ‖G‖), which is
    positive semi-definite. For orthonormal atoms this is ½‖x_o − D_oγ‖² + penalty, and
    with all features it is the threshold itself.
    """
    gram, corr, energy = problem.gram, problem.corr, problem.energy
    shrink = coder.restricted(problem.share)
    if problem.share == 1:
        codes = shrink(corr)
    else:
        fill = (problem.whole.gram - gram) / max(1.0, problem.whole.norm)
        codes = _at_rest(shrink, corr, fill)
    return refuse_unbounded(pack(codes, squared_residual(gram, corr, energy, codes)))


def _at_rest(shrink: Callable[[Array], Array], corr: Array, fill: Array) -> Array:
    """The codes γ = T(c + γ·fill)."""
    xp, codes = namespace(corr), shrink(corr)
    rest = max(REST, 16 * eps(corr))
    moving = xp.ones_like(corr[:, :1]) > 0
    for _ in range(ROUNDS):  # each sample until it rests, whatever the others do
        new = xp.where(moving, shrink(corr + codes @ fill), codes)
        moved = xp.max(xp.abs(new - codes), axis=1, keepdims=True)
        codes, size = new, xp.max(xp.abs(new), axis=1, keepdims=True)
        moving = moved > rest * size
        if not bool(xp.any(moving)):
            return codes
    warn_unfinished(
        f"codes by Threshold of rows with missing values still moved after {ROUNDS} "
        "rounds: leave rows out of which little was observed, or use OMP or Lasso"
    )
    return codes


def _of_slots(scale: Array, indices: Array) -> Array:  # (m,), (n, w) -> (n, w)
    """The number of each slot's atom; that of any for slots that are empty."""
    return scale[index_like(indices, scale)]


class _Filled:
    """Codes of a block, put together from those of some of its rows."""

    def __init__(self, block: MaskedRows, n_atoms: int) -> None:
        self.like, self.n_atoms = block.rows, n_atoms
        self.parts: list[tuple[np.ndarray, SparseCodes]] = []

    def put(self, rows: np.ndarray, codes: SparseCodes) -> None:
        self.parts.append((rows, codes))

    def result(self) -> SparseCodes:
        n = self.like.shape[0]
        width = max([1, *(codes.width for _, codes in self.parts)])
        values, residual = (empty(s, self.like) for s in ((n, width), (n,)))
        values[...], residual[...] = 0, 0
        indices = index_like(np.full((n, width), UNUSED), self.like)
        for rows, codes in self.parts:
            places = index_like(rows, self.like)
            values[places] = widened(codes.values, width, 0)
            wide = widened(codes.indices, width, UNUSED)
            indices[places] = index_like(wide, self.like)
            residual[places] = codes.residual
        return SparseCodes(indices, values, self.n_atoms, residual)
