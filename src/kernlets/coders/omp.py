"""Orthogonal matching pursuit."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..base.constraints import AT_LEAST_1, NOT_NEGATIVE
from ..contracts import Array, SparseCoder, SparseCodes
from ..data.sparse_rows import as_dense
from ..loops import table
from ..loops.codes import refuse_unbounded


class OMP(SparseCoder):
    """Greedy codes: argmin ‖x − Dγ‖² with at most `n_nonzero_coefs` non-zeros.

    This is eq. (1) of LKDL. With a kernel dictionary the same routine is the kernel
    OMP of its Table I, because it uses only inner products.

    Parameters
    ----------
    n_nonzero_coefs : int, optional
        Largest number of non-zeros. Default: no limit if `tol` is given, otherwise a
        tenth of the number of atoms, at least 1.
    tol : float, optional
        Stop as soon as the squared residual of a sample is at most `tol`.
    positive : bool, default=False
        Whether codes must be non-negative. Coefficients are then least squares among
        the non-negative ones of their support: an atom whose coefficient would become
        negative leaves the support. Fewer non-zeros are used where no further atom
        has a positive correlation with the residual. It suits counts, intensities and
        everything else whose parts only add up.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import OMP
    >>> gram, corr = np.eye(3), np.array([[3.0, -1.0, 0.2]])
    >>> codes = OMP(n_nonzero_coefs=2).solve(gram, corr, (corr**2).sum(1))
    >>> codes.toarray().tolist(), codes.residual.round(2).tolist()
    ([[3.0, -1.0, 0.0]], [0.04])
    >>> coder = OMP(n_nonzero_coefs=2, positive=True)
    >>> coder.solve(gram, corr, (corr**2).sum(1)).toarray().tolist()
    [[3.0, 0.0, 0.2]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_nonzero_coefs": [AT_LEAST_1, None],
        "tol": [NOT_NEGATIVE, None],
        "positive": ["boolean"],
    }

    def __init__(
        self,
        n_nonzero_coefs: int | None = None,
        tol: float | None = None,
        *,
        positive: bool = False,
    ) -> None:
        self.n_nonzero_coefs = n_nonzero_coefs
        self.tol = tol
        self.positive = positive

    def solve(self, gram: Array, corr: Array, energy: Array) -> SparseCodes:
        m, tol = gram.shape[0], self.tol or 0.0
        pursue = table.positive_omp if self.positive else table.omp
        indices, values, residual = pursue(gram, corr, energy, self.width(m), tol)
        return refuse_unbounded(SparseCodes(indices, values, m, residual))

    def needs_rows(self, atoms: Array) -> bool:  # (m, p)
        """Whether `solve_rows` is faster, or a Gram matrix too large."""
        m = atoms.shape[0]
        if isinstance(atoms, np.ndarray):
            return m > table.MANY_ATOMS
        return table.needs_rows(m, self.width(m), atoms)

    def solve_rows(self, atoms: Array, X: Array, energy: Array) -> SparseCodes:
        """Return the codes that `solve` finds, from samples and explicit atoms."""
        m, tol, X = atoms.shape[0], self.tol or 0.0, as_dense(X)
        pursue = table.positive_rows_omp if self.positive else table.rows_omp
        indices, values, residual = pursue(atoms, X, energy, self.width(m), tol)
        return refuse_unbounded(SparseCodes(indices, values, m, residual))

    def width(self, n_atoms: int) -> int:
        """Return the number of non-zeros per sample for so many atoms."""
        if self.tol is not None and not self.tol >= 0:
            raise ValueError(f"tol={self.tol!r} must be at least 0")
        if self.n_nonzero_coefs is None:
            return n_atoms if self.tol is not None else max(1, n_atoms // 10)
        if not 1 <= self.n_nonzero_coefs <= n_atoms:
            raise ValueError(
                f"n_nonzero_coefs={self.n_nonzero_coefs!r} must be between 1 and the "
                f"number of atoms, {n_atoms}: lower it or raise n_components"
            )
        return int(self.n_nonzero_coefs)
