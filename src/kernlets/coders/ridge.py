"""Ridge regression as a pursuit: codes over all atoms."""

from __future__ import annotations

from typing import Any, ClassVar

from ..base.constraints import POSITIVE
from ..contracts import Array, SparseCoder, SparseCodes
from ..loops.codes import pack, refuse_unbounded, squared_residual
from ..numerics.arrays import as_like, diagonal, namespace


class Ridge(SparseCoder):
    """Codes that minimise ‖x − Dγ‖² + alpha‖γ‖²: γ = (G + alpha I)⁻¹ Dᵀx, not sparse.

    With `SRCClassifier` this is the collaborative representation of a sample: all
    training samples take part, and the class whose share comes nearest to it wins. It
    is often as accurate as codes by the lasso, and much faster.

    Parameters
    ----------
    alpha : float, default=0.1
        Weight of the squared norm, in units of that of an atom. What is below the
        rounding of the Gram matrix counts as that.

    Notes
    -----
    L. Zhang, M. Yang, X. Feng, Sparse representation or collaborative representation:
    which helps face recognition?, ICCV 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import Ridge
    >>> gram, corr = np.eye(3), np.array([[3.0, -1.0, 0.5]])
    >>> Ridge(alpha=1.0).solve(gram, corr, (corr**2).sum(1)).toarray().tolist()
    [[1.5, -0.5, 0.25]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"alpha": [POSITIVE]}

    def __init__(self, alpha: float = 0.1) -> None:
        self.alpha = alpha

    def solve(self, gram: Array, corr: Array, energy: Array) -> SparseCodes:
        if not self.alpha > 0:
            raise ValueError(f"alpha={self.alpha!r} must be above 0")
        xp, m = namespace(gram), gram.shape[0]
        rounding = m * float(xp.finfo(gram.dtype).eps) * float(xp.max(diagonal(gram)))
        ridge = max(float(self.alpha), rounding) * xp.eye(m, dtype=gram.dtype)
        codes = xp.linalg.solve(gram + as_like(ridge, gram), corr.T).T
        residual = squared_residual(gram, corr, energy, codes)
        return refuse_unbounded(pack(codes, residual))
