"""The lasso as a pursuit."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from ..base.constraints import AT_LEAST_0, NOT_NEGATIVE
from ..contracts import Array, SparseCoder, SparseCodes
from ..loops.codes import pack, refuse_unbounded, squared_residual
from ..loops.lasso.reference import lasso_tol
from ..loops.table import lasso
from ..numerics.arrays import namespace
from ..numerics.convergence import warn_unfinished


class Lasso(SparseCoder):
    """Codes that minimise ½‖x − Dγ‖² + alpha‖γ‖₁, by coordinate descent.

    Parameters
    ----------
    alpha : float, default=0.1
        Weight of the l1 norm. scikit-learn's `Lasso` divides the squared error by the
        number of features, so its alpha is this value divided by that number.
    positive : bool, default=False
        Whether codes must be non-negative.
    max_iter : int, default=10000
        Largest number of passes over the atoms. A ConvergenceWarning tells if it was
        too small for some samples.
    tol : float, default=1e-6
        Stop when no coefficient moves by more than tol times the largest correlation,
        or for float32 by more than 8e-6 times.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import Lasso
    >>> gram, corr = np.eye(3), np.array([[3.0, -1.0, 0.2]])
    >>> Lasso(alpha=0.5).solve(gram, corr, (corr**2).sum(1)).toarray().tolist()
    [[2.5, -0.5, 0.0]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [NOT_NEGATIVE],
        "positive": ["boolean"],
        "max_iter": [AT_LEAST_0],
        "tol": [Real],
    }

    def __init__(
        self,
        alpha: float = 0.1,
        positive: bool = False,
        *,
        max_iter: int = 10_000,
        tol: float = 1e-6,
    ) -> None:
        self.alpha = alpha
        self.positive = positive
        self.max_iter = max_iter
        self.tol = tol

    def solve(self, gram: Array, corr: Array, energy: Array) -> SparseCodes:
        if not self.alpha >= 0:
            raise ValueError(f"alpha={self.alpha!r} must be at least 0")
        largest = float(namespace(corr).finfo(corr.dtype).max)
        # a larger weight gives the same codes, all zero
        weight = min(float(self.alpha), largest)
        tol = lasso_tol(self.tol, corr)
        codes, converged = lasso(gram, corr, weight, self.positive, self.max_iter, tol)
        if not bool(converged.all()):
            warn_unfinished(unfinished_message(self))
        residual = squared_residual(gram, corr, energy, codes)
        return refuse_unbounded(pack(codes, residual))


def unfinished_message(coder: Lasso) -> str:
    """Return the warning for codes that have not converged."""
    return (
        f"Lasso: codes of some samples still moved by more than tol={coder.tol:g} "
        f"after max_iter={coder.max_iter} passes: raise max_iter or tol of the coder"
    )
