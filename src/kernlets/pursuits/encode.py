"""Sparse codes of many samples, computed block by block."""

from __future__ import annotations

from ..backend.arrays import index_like
from ..backend.block_loop import map_blocks, whole_groups
from ..backend.convergence import warned_once
from ..backend.masks import has_gaps, incomplete_rows, without_incomplete
from ..backend.scale import quiet
from ..backend.threads import serial_blas
from ..core import Array, Dictionary, SparseCoder, SparseCodes
from .bookkeeping import concatenate, replaced
from .masked import incomplete_codes, refuse_incomplete_groups
from .omp import OMP


def encode(dictionary: Dictionary, coder: SparseCoder, X: Array) -> SparseCodes:
    """Sparse codes of the rows of X.

    Correlations are held for one block at a time. The block is small enough to stay in
    cache between the matrix product and the pursuit. Rows without NaN have the codes
    that they would have if no other row had one.
    """

    atoms = dictionary.linear_atoms
    by_rows = isinstance(coder, OMP) and atoms is not None and coder.needs_rows(atoms)

    def code(block: Array) -> SparseCodes:
        if not has_gaps(block):
            return code_complete(block)
        refuse_incomplete_groups(coder)
        rows = incomplete_rows(block)
        others = incomplete_codes(dictionary, coder, block[index_like(rows, block)])
        if len(rows) == block.shape[0]:
            return others
        return replaced(code_complete(without_incomplete(block, rows)), rows, others)

    def code_complete(block: Array) -> SparseCodes:
        with quiet():  # what overflows has a residual that the coder refuses
            if by_rows:
                return coder.solve_rows(atoms, block, dictionary.energy(block))
            corr, energy = dictionary.correlate(block), dictionary.energy(block)
            return coder.solve(gram, corr, energy)

    # BLAS threads started for the Gram matrix would compete with those of the blocks
    with warned_once(), serial_blas, whole_groups(coder):
        gram = None if by_rows else dictionary.gram()
        return concatenate(map_blocks(code, X, dictionary.row_bytes))
