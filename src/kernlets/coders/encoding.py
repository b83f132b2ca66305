"""Sparse codes of many samples, computed block by block."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..contracts import Array, Dictionary, SparseCoder, SparseCodes
from ..data.block_loop import map_blocks
from ..data.limits import at_work
from ..data.missing import has_missing, incomplete_rows, replace_incomplete_rows
from ..dictionaries import ExplicitDictionary
from ..numerics.arrays import as_float, as_like, index_like, is_array
from .codes import concatenate, replace_rows
from .masked import incomplete_codes, refuse_incomplete_groups
from .omp import OMP


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
    atoms = dictionary.linear_atoms
    return isinstance(coder, OMP) and atoms is not None and coder.needs_rows(atoms)


def encode_block(
    dictionary: Dictionary, coder: SparseCoder, X: Array, gram: Array | None = None
) -> SparseCodes:
    """Return sparse codes of one block of checked rows, for functions that get blocks.

    `gram` are the inner products of the atoms, if the caller has them.
    """
    if not has_missing(X):
        return _encode_complete(dictionary, coder, X, gram)
    refuse_incomplete_groups(coder)
    rows = incomplete_rows(X)
    incomplete = incomplete_codes(dictionary, coder, X[index_like(rows, X)])
    if len(rows) == X.shape[0]:
        return incomplete
    complete_rows = replace_incomplete_rows(X, rows)
    codes = _encode_complete(dictionary, coder, complete_rows, gram)
    return replace_rows(codes, rows, incomplete)


def _encode_complete(
    dictionary: Dictionary, coder: SparseCoder, X: Array, gram: Array | None
) -> SparseCodes:
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
