"""Sparse codes of many samples, computed block by block, and sums over them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..contracts import Array, Dictionary, SparseCoder, SparseCodes, Statistics
from ..data.block_loop import apply_rows, map_blocks
from ..data.limits import at_work
from ..data.missing import (
    fill_missing,
    has_missing,
    incomplete_rows,
    replace_incomplete_rows,
    split_mask,
)
from ..data.rows import sum_rows
from ..dictionaries import ExplicitDictionary
from ..loops.codes import (
    codes_gram,
    concatenate,
    replace_rows,
    summable,
    times_rows,
    weighted_uses,
)
from ..loops.table import subtract_codes
from ..numerics.arrays import (
    as_float,
    as_like,
    index_like,
    is_array,
    namespace,
    scalers_for,
    to_numpy,
)
from ..numerics.scaling import all_finite, quiet
from ..numerics.threads import parallel
from .masked import incomplete_codes, refuse_incomplete_groups
from .omp import OMP

PIECE_ROWS = 128  # rows of a mini-batch that one thread codes at once


def encode(dictionary: Dictionary | Array, coder: SparseCoder, X: Array) -> SparseCodes:
    """Return sparse codes of the rows of X over the atoms of a dictionary.

    Parameters
    ----------
    dictionary : Dictionary or array (m, p)
        A dictionary, such as the `dictionary_` of a learner, or the atoms as rows of an
        array. Libraries that keep atoms as columns have its transpose. Pursuits expect
        atoms of unit norm, because they compare inner products with them.
    coder : SparseCoder
        The pursuit, such as ``OMP(4)``.
    X : array (n, p)
        The samples, one per row, with NaN where an entry is missing.

    Returns
    -------
    SparseCodes
        Indices and values of the non-zeros of each sample, and its squared residual;
        ``toarray()`` and ``tocsr()`` give the codes as a matrix (n, m).

    Notes
    -----
    Correlations are held for one block at a time. The block is small enough to stay in
    cache between the matrix product and the pursuit. Rows without NaN have the codes
    that they would have if no other row had one.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets.coders import OMP, encode
    >>> encode(np.eye(2, 3), OMP(1), np.array([[5.0, 6.0, 7.0]])).toarray().tolist()
    [[0.0, 6.0]]
    """
    if not isinstance(dictionary, Dictionary):
        dictionary, X = _with_atoms_as_rows(dictionary, X)
    if dictionary.linear_atoms is not None:
        _check_fit(dictionary.linear_atoms, X)
    # BLAS threads started for the Gram matrix would compete with those of the blocks
    with at_work():
        gram = None if _needs_rows(dictionary, coder) else dictionary.gram()
        code = partial(encode_block, dictionary, coder, gram=gram)
        blocks = map_blocks(code, X, dictionary.row_bytes, coder.group_size)
    return concatenate(blocks)


def _needs_rows(dictionary: Dictionary, coder: SparseCoder) -> bool:
    """Whether codes are computed from the rows themselves, without a Gram matrix."""
    if not isinstance(coder, OMP) or dictionary.linear_atoms is None:
        return False
    return coder.needs_rows(dictionary.linear_atoms)


def encode_block(
    dictionary: Dictionary, coder: SparseCoder, X: Array, gram: Array | None = None
) -> SparseCodes:
    """Return sparse codes of one block of checked rows, for functions that get blocks.

    `gram` are the inner products of the atoms, if the caller has them.
    """
    if not has_missing(X):
        return encode_complete(dictionary, coder, X, gram)
    refuse_incomplete_groups(coder)
    rows = incomplete_rows(X)
    incomplete = incomplete_codes(dictionary, coder, X[index_like(rows, X)])
    if len(rows) == X.shape[0]:
        return incomplete
    complete_rows = replace_incomplete_rows(X, rows)
    codes = encode_complete(dictionary, coder, complete_rows, gram)
    return replace_rows(codes, rows, incomplete)


def encode_on_threads(
    dictionary: Dictionary, coder: SparseCoder, X: Array
) -> SparseCodes:
    """Return what `encode_block` does, computed by several threads.

    A mini-batch is often no larger than one block. It is cut into pieces that do not
    depend on the number of threads.
    """
    n, group_size = X.shape[0], coder.group_size
    n_piece = group_size * max(1, PIECE_ROWS // group_size)
    if n <= n_piece or not isinstance(X, np.ndarray):
        return encode_block(dictionary, coder, X)
    gram = None if _needs_rows(dictionary, coder) else dictionary.gram()
    pieces = [X[begin : begin + n_piece] for begin in range(0, n, n_piece)]
    return concatenate(
        parallel(partial(encode_block, dictionary, coder, gram=gram), pieces)
    )


def encode_complete(
    dictionary: Dictionary, coder: SparseCoder, X: Array, gram: Array | None = None
) -> SparseCodes:
    """Return sparse codes of one block of rows without missing entries."""
    energy = dictionary.energy(X)
    if isinstance(coder, OMP) and _needs_rows(dictionary, coder):
        return coder.solve_rows(dictionary.linear_atoms, X, energy)
    gram = dictionary.gram() if gram is None else gram
    return coder.solve(gram, dictionary.correlate(X), energy)


def _with_atoms_as_rows(atoms: Any, X: Any) -> tuple[Dictionary, Array]:
    """Return a dictionary of these atoms, and samples of the same type."""
    X = as_float(X if is_array(X) else np.asarray(X))
    atoms = np.asarray(atoms) if isinstance(atoms, (list, tuple)) else atoms
    if not is_array(atoms) or atoms.ndim != 2:
        raise TypeError(
            "dictionary must be a Dictionary or an array (n_atoms, n_features) with "
            f"the atoms as rows, not {type(atoms).__name__}"
            + (f" of shape {tuple(atoms.shape)}" if is_array(atoms) else "")
        )
    _check_fit(atoms, X)
    return ExplicitDictionary(as_like(atoms, X)), X


def _check_fit(atoms: Array, X: Array) -> None:
    """Raise if the samples have another number of features than the atoms."""
    if X.ndim == 2 and X.shape[1] == atoms.shape[1]:
        return
    has_columns = X.ndim == 2 and X.shape[1] == atoms.shape[0]
    remedy = "transpose the atoms, which are columns here (dictionary.T)"
    raise ValueError(
        f"atoms have {atoms.shape[1]} features, but X has shape {tuple(X.shape)}: "
        + (remedy if has_columns else "pass an array (n_samples, n_features) that fits")
    )


class CodeSummary(NamedTuple):
    """Counts, errors and worst samples of a block of coded samples."""

    uses: np.ndarray  # (m,)
    error: float  # Σ squared residuals
    n_samples: float
    worst: Array  # (w, p) the worst represented samples, worst first
    worst_error: np.ndarray  # (w,)


def worst_rows(
    errors: np.ndarray,  # (n,)
    count: int,
    weights: np.ndarray | None = None,  # (n,)
) -> np.ndarray:
    """Return rows by their errors, largest first, repeated by their weights."""
    if weights is None:
        return np.argsort(-errors, kind="stable")[:count]
    order = np.argsort(-np.where(weights > 0, errors, -1), kind="stable")[:count]
    repeats = np.where(weights > 0, np.maximum(weights, 1), 0)[order]
    return np.repeat(order, np.minimum(repeats, count).astype(np.intp))[:count]


def summarize_codes(
    X: Array, codes: SparseCodes, weights: np.ndarray | None = None
) -> CodeSummary:
    """Return uses, error and the worst samples of a block, one for each atom."""
    errors = to_numpy(codes.residual)
    worst = worst_rows(errors, codes.n_atoms, weights)
    weighted_errors = errors if weights is None else weights * errors
    return CodeSummary(
        uses=weighted_uses(codes, weights),
        error=float(weighted_errors.sum(dtype=np.float64)),
        n_samples=len(codes) if weights is None else float(weights.sum()),
        worst=X[index_like(worst, X)],
        worst_error=errors[worst],
    )


def fill_by_codes(
    dictionary: Dictionary, codes: SparseCodes, X: Array
) -> Array:  # (n, p)
    """Return rows whose missing entries are filled in by their codes, for any update.

    With x̂ = x where observed and γD elsewhere, Σ‖x̂ − γD'‖² is an upper bound of the
    error of atoms D' over the observed entries, and equal to it at D' = D. So an update
    that lowers the bound lowers this error.
    """
    if not has_missing(X):
        return X
    rows, atoms = split_mask(X).rows, dictionary.weights
    residual = subtract_codes(rows, codes.indices, codes.values, atoms)
    return fill_missing(X, rows - residual)


def statistics(
    dictionary: Dictionary,
    X: Array,
    codes: SparseCodes,
    weights: np.ndarray | None = None,  # (n,)
) -> Statistics:
    """Return ΓᵀΓ, Γᵀ·coordinates(X), uses, error and the worst samples of one block.

    With weights W they are ΓᵀWΓ and ΓᵀW·coordinates(X).
    """
    factors = None if weights is None else as_like(weights, codes.values)
    root_weights = None if factors is None else namespace(factors).sqrt(factors)
    return Statistics(
        codes_gram=codes_gram(times_rows(codes, root_weights)),
        cross=dictionary.cross(times_rows(codes, factors), X),
        **summarize_codes(X, codes, weights)._asdict(),
    )


def code_and_sum(
    dictionary: Dictionary,
    coder: SparseCoder,
    X: Any,
    weights: np.ndarray | None = None,  # (n,)
) -> Statistics:
    """Code the rows of X, in memory or elsewhere, and sum their `statistics`.

    Sums of NumPy arrays are computed in float64 and rounded once, so that the result
    does not depend on the blocks and chunks of the rows.
    """

    def block_sums(block: Array, first: int = 0) -> Statistics:
        codes = encode_on_threads(dictionary, coder, block)
        block, codes = fill_by_codes(dictionary, codes, block), summable(codes)
        block_weights = None if weights is None else weights[first : first + len(codes)]
        return statistics(dictionary, block, codes, block_weights)

    m, r = dictionary.weights.shape
    if type(X) is np.ndarray and len(X) == 1:  # one block, in streams of single rows
        total = apply_rows(block_sums, X, slice(0, 1))
    else:
        total = sum_rows(
            block_sums,
            X,
            row_bytes=4 * dictionary.row_bytes,
            numbered=weights is not None,
            result_bytes=8 * m * (m + 2 * r),  # the sums, and the worst samples
            group_size=coder.group_size,
        )
    if weights is not None:  # model files hold whole counts
        total = replace(total, uses=np.floor(total.uses).astype(np.int64))
    astype, dtype = namespace(total.cross).astype, dictionary.weights.dtype
    with quiet():
        codes_gram = astype(total.codes_gram, dtype, copy=False)
        cross = astype(total.cross, dtype, copy=False)
    return finite_sums(replace(total, codes_gram=codes_gram, cross=cross))


def finite_sums(total: Statistics) -> Statistics:
    """Return the sums, or an error if they overflow."""
    if not (all_finite(total.codes_gram) and all_finite(total.cross)):
        dtype = total.cross.dtype
        raise ValueError(
            f"sums over the samples overflow in {dtype}: scale the samples, e.g. with "
            f"{scalers_for(dtype)}"
        )
    return total


def without_atoms(
    sums: Statistics, dictionary: Dictionary, atom_numbers: Array
) -> Statistics:
    """Return the sums as if the samples had no part along the atoms in `atom_numbers`.

    These atoms can then be replaced: the sums no longer pull towards the old ones, and
    the other atoms do not take over the samples that they represented.
    """
    xp = namespace(sums.cross)
    codes_gram = xp.asarray(sums.codes_gram, copy=True)
    cross = sums.cross - codes_gram[:, atom_numbers] @ dictionary.weights[atom_numbers]
    codes_gram[atom_numbers, :] = 0.0
    codes_gram[:, atom_numbers] = 0.0
    cross[atom_numbers] = 0.0
    return replace(sums, codes_gram=codes_gram, cross=cross)
