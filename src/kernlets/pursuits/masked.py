"""Codes of samples of which a part was observed: each over what is known of it.

Correlations, energies and Gram entries are sums over the observed features o only:
minimise ‖x_o − D_oᵀγ‖² with as few non-zeros, in the input space or in that of a
kernel. Samples with equal masks are one problem on fewer features, solved by any coder.
For OMP over linear atoms, where masks may all differ, `ops.masked_omp` works on
supports: no sample has a Gram matrix of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.base import clone

from ..backend import ops
from ..backend.arrays import diagonal, empty, index_like, namespace, to_numpy
from ..backend.masks import Alike, Observed, alike, split, take_part
from ..backend.scale import quiet
from ..core import UNUSED, Array, Dictionary, SparseCoder, SparseCodes
from .bookkeeping import pack, refuse_unbounded, squared_residual, widened
from .lasso import Lasso
from .omp import OMP
from .ridge import Ridge
from .threshold import Threshold

ROUNDS = 200  # of thresholding, at most
REST = 1e-6  # largest move of a coefficient, relative to the largest, that ends it


def incomplete_codes(
    dictionary: Dictionary, coder: SparseCoder, X: Array
) -> SparseCodes:
    """Codes of a block of rows with NaN, each over its observed features.

    The residual is that of the observed features. Of a row with nothing observed both
    are zero.
    """
    block = split(X)
    parts = alike(to_numpy(block.known))
    codes = _Filled(block, dictionary.n_atoms)
    seen = [part for part in parts if len(part.features)]
    enough = _rows_for_a_gram(dictionary, coder)
    apart = [part.rows for part in seen if len(part.rows) < enough]
    together = [part for part in seen if len(part.rows) >= enough]
    with quiet():
        for part in together:
            rest = _restricted_codes(dictionary, coder, block.rows, part)
            codes.put(part.rows, rest)
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
    dictionary: Dictionary, coder: Any, block: Observed, rows: np.ndarray
) -> SparseCodes:
    some = index_like(rows, block.rows)
    width = coder.width(dictionary.n_atoms)
    seen = block.rows[some], block.known[some]
    found = ops.masked_omp(dictionary.linear_atoms, *seen, width, coder.tol or 0.0)
    indices, values, residual = found
    return SparseCodes(indices, values, dictionary.n_atoms, residual)


def _restricted_codes(
    dictionary: Dictionary, coder: SparseCoder, rows: Array, part: Alike
) -> SparseCodes:
    """Codes of rows with one mask: the problem without the other features."""
    share = len(part.features) / rows.shape[1]
    return restricted_solve(coder, *restricted_products(dictionary, rows, part), share)


def restricted_products(
    dictionary: Dictionary, rows: Array, part: Alike
) -> tuple[Array, Array, Array]:  # (m, m), (n, m), (n,)
    """Gram matrix, correlations and energies over the observed features."""
    smaller = dictionary.restricted(index_like(part.features, rows))
    X = take_part(rows, part)
    return smaller.gram(), smaller.correlate(X), smaller.energy(X)


@singledispatch
def restricted_solve(
    coder: SparseCoder,
    gram: Array,  # (m, m)
    corr: Array,  # (n, m)
    energy: Array,  # (n,)
    share: float,
) -> SparseCodes:
    """Codes over atoms of which a share of the features is left.

    They have no unit norm any more. By default they are scaled to it for the coder, and
    the coefficients back. Atoms of which next to nothing is left are not used.
    """
    xp = namespace(gram)
    own = diagonal(gram)
    usable = own > ops.FAINT * xp.max(own)
    scale = xp.where(usable, 1 / xp.sqrt(xp.where(usable, own, 1.0)), 0.0)
    codes = coder.solve(gram * scale * scale[:, None], corr * scale, energy)
    return replace(codes, values=codes.values * _of_slots(scale, codes.indices))


@restricted_solve.register
def _(coder: OMP, gram: Array, corr: Array, energy: Array, share: float) -> SparseCodes:
    """A tolerance for all features is `share` of it for those observed."""
    if coder.tol is not None:
        coder = clone(coder).set_params(tol=coder.tol * share)
    default = restricted_solve.dispatch(SparseCoder)
    return default(coder, gram, corr, energy, share)


@restricted_solve.register
def _(
    coder: Lasso | Ridge, gram: Array, corr: Array, energy: Array, share: float
) -> SparseCodes:
    """½‖x_o − D_oγ‖²/share + penalty: the error is estimated for all features."""
    weaker = clone(coder).set_params(alpha=coder.alpha * share)
    return weaker.solve(gram, corr, energy)


@restricted_solve.register
def _(
    coder: Threshold, gram: Array, corr: Array, energy: Array, share: float
) -> SparseCodes:
    """γ ← T(γ + c − Gγ) until it rests: what is missing is filled in by the code.

    With all features and orthonormal atoms G is the identity, and the first round is
    the last. The threshold is for the estimated error, as in `Lasso`.
    """
    with quiet():  # codes may grow without bound; their residual is refused
        codes = _at_rest(coder.restricted(share), gram, corr)
    return refuse_unbounded(pack(codes, squared_residual(gram, corr, energy, codes)))


def _at_rest(shrink: Callable[[Array], Array], gram: Array, corr: Array) -> Array:
    """The codes that thresholds leave as they are, or those after many rounds."""
    xp, codes = namespace(corr), shrink(corr)
    moving = xp.ones_like(corr[:, :1]) > 0
    for _ in range(ROUNDS):  # each sample until it rests, whatever the others do
        new = xp.where(moving, shrink(codes + corr - codes @ gram), codes)
        moved = xp.max(xp.abs(new - codes), axis=1, keepdims=True)
        codes, size = new, xp.max(xp.abs(new), axis=1, keepdims=True)
        moving = moved > REST * size
        if not bool(xp.any(moving)):
            break
    return codes


def _of_slots(scale: Array, indices: Array) -> Array:  # (m,), (n, w) -> (n, w)
    """The number of each slot's atom; that of any for slots that are empty."""
    return scale[index_like(indices, scale)]


class _Filled:
    """Codes of a block, put together from those of some of its rows."""

    def __init__(self, block: Observed, n_atoms: int) -> None:
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
