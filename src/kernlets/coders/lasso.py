"""The lasso as a pursuit."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from ..base.constraints import AT_LEAST_0, NOT_NEGATIVE, Interval
from ..contracts import Array, SparseCoder, SparseCodes
from ..loops.codes import refuse_unbounded, unexplained
from ..loops.table import lasso
from ..numerics.arrays import as_like, namespace
from ..numerics.convergence import warn_unfinished


class Lasso(SparseCoder):
    """Codes by the lasso or the elastic net.

    They minimise ½‖x − Dγ‖² + alpha (l1_ratio ‖γ‖₁ + ½ (1 − l1_ratio) ‖γ‖²).

    Parameters
    ----------
    alpha : float, default=0.1
        Weight of the penalty. scikit-learn's `Lasso` and `ElasticNet` divide the
        squared error by the number of features, so their alpha is this value divided by
        that number.
    positive : bool, default=False
        Whether codes must be non-negative.
    l1_ratio : float, default=1.0
        Share of the l1 norm in the penalty, above 0 and at most 1. Below 1, which is
        the elastic net, atoms that are much alike share their coefficients. `Ridge`
        has no l1 norm.
    max_iter : int, default=10000
        Largest number of passes over the atoms. A ConvergenceWarning tells if it was
        too small for some samples.
    tol : float, default=1e-6
        A code counts as found when the inner products of the atoms with what it leaves
        of the sample are what those of the best code are, up to tol times alpha; its
        objective is then within 2 tol of the least one, relatively. An alpha below a
        thousandth of the largest correlation counts as that here, and float32 resolves
        8e-6 of it.

    Notes
    -----
    Samples are coded on their own, by Newton steps on the atoms in use, which become
    more where the optimality conditions are violated most. This is several times faster
    than coordinate descent, which remains for samples that use more than 512 atoms, or
    atoms that are too much alike for Newton steps. Samples of float32 for which its
    rounding errors are too large are coded in float64 before. On a GPU, coordinate
    descent codes all samples of a block in step.

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
        "l1_ratio": [Interval(Real, 0, 1, closed="right")],
        "max_iter": [AT_LEAST_0],
        "tol": [Real],
    }

    def __init__(
        self,
        alpha: float = 0.1,
        positive: bool = False,
        *,
        l1_ratio: float = 1.0,
        max_iter: int = 10_000,
        tol: float = 1e-6,
    ) -> None:
        self.alpha = alpha
        self.positive = positive
        self.l1_ratio = l1_ratio
        self.max_iter = max_iter
        self.tol = tol

    def solve(self, gram: Array, corr: Array, energy: Array) -> SparseCodes:
        if not self.alpha >= 0:
            raise ValueError(f"alpha={self.alpha!r} must be at least 0")
        if not 0 < self.l1_ratio <= 1:
            raise ValueError(
                f"l1_ratio={self.l1_ratio!r} must be above 0 and at most 1: use Ridge "
                "for codes without an l1 norm"
            )
        largest = float(namespace(corr).finfo(corr.dtype).max)
        # a larger weight gives the same codes, all zero
        l1 = min(float(self.alpha) * float(self.l1_ratio), largest)
        l2 = float(self.alpha) * (1 - float(self.l1_ratio))
        if l2 > 0:
            ridge = l2 * namespace(gram).eye(gram.shape[0], dtype=gram.dtype)
            gram = gram + as_like(ridge, gram)
        problem = gram, corr, l1, self.positive, self.max_iter, float(self.tol)
        indices, values, explained, converged = lasso(*problem)
        if not bool(converged.all()):
            warn_unfinished(unfinished_message(self))
        if l2 > 0:  # γᵀ(G + l2 I)γ was subtracted from what they explain
            explained = explained + l2 * namespace(values).sum(values**2, axis=1)
        residual = unexplained(energy, explained)
        return refuse_unbounded(SparseCodes(indices, values, gram.shape[0], residual))


def unfinished_message(coder: Lasso) -> str:
    """Return the warning for codes that have not converged."""
    return (
        f"Lasso: codes of some samples are not optimal up to tol={coder.tol:g} after "
        f"max_iter={coder.max_iter} passes: raise max_iter or tol of the coder"
    )
