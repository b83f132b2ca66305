"""The lasso as a pursuit."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from ..backend import ops
from ..core import Array, SparseCoder, SparseCodes
from .encode import pack, refuse_unbounded, squared_residual


class Lasso(SparseCoder):
    """Codes that minimise ½‖x − Dγ‖² + alpha‖γ‖₁, by coordinate descent.

    Parameters
    ----------
    alpha : float
        Weight of the l1 norm. scikit-learn's `Lasso` divides the squared error by the
        number of features: its alpha is this one divided by that number.
    positive : bool
        Allow non-negative codes only.
    max_iter : int
        Passes over the atoms.
    tol : float
        Stop when no code moved by more than tol times the largest correlation.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "positive": ["boolean"],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "tol": [Real],
    }

    def __init__(
        self,
        alpha: float = 0.1,
        positive: bool = False,
        max_iter: int = 1000,
        tol: float = 1e-6,
    ) -> None:
        self.alpha = alpha
        self.positive = positive
        self.max_iter = max_iter
        self.tol = tol

    def solve(self, gram: Array, corr: Array, energy: Array) -> SparseCodes:
        if not self.alpha >= 0:
            raise ValueError(f"alpha={self.alpha!r} must be at least 0")
        codes = ops.lasso(
            gram, corr, self.alpha, self.positive, self.max_iter, self.tol
        )
        residual = squared_residual(gram, corr, energy, codes)
        return refuse_unbounded(pack(codes, residual))
