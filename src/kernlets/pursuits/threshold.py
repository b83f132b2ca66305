"""Codes by thresholding the correlations, which is exact for orthonormal atoms."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal

from sklearn.utils._param_validation import Interval, StrOptions

from ..backend.arrays import namespace
from ..core import Array, SparseCoder, SparseCodes
from .bookkeeping import pack, refuse_unbounded, squared_residual


class Threshold(SparseCoder):
    """Codes from thresholded correlations: soft, hard or the k largest.

    For orthonormal atoms ``"soft"`` minimises ½‖x − Dγ‖² + alpha‖γ‖₁, ``"hard"``
    minimises ½‖x − Dγ‖² + ½ alpha²‖γ‖₀, and ``"top-k"`` gives the best code with k
    non-zeros.

    Parameters
    ----------
    alpha : float, default=0.1
        Threshold; with ``kind="top-k"`` the number of coefficients to keep.
    kind : {"soft", "hard", "top-k"}, default="soft"
        Shrink correlations by the threshold, drop those below it, or keep the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import Threshold
    >>> gram, corr = np.eye(3), np.array([[3.0, -1.0, 0.2]])
    >>> energy = (corr**2).sum(1)
    >>> Threshold(0.5).solve(gram, corr, energy).toarray().tolist()
    [[2.5, -0.5, 0.0]]
    >>> Threshold(1, kind="top-k").solve(gram, corr, energy).toarray().tolist()
    [[3.0, 0.0, 0.0]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "kind": [StrOptions({"soft", "hard", "top-k"})],
    }

    def __init__(
        self, alpha: float = 0.1, kind: Literal["soft", "hard", "top-k"] = "soft"
    ) -> None:
        self.alpha = alpha
        self.kind = kind

    def solve(self, gram: Array, corr: Array, energy: Array) -> SparseCodes:
        codes = self._shrunk(corr)
        residual = squared_residual(gram, corr, energy, codes)
        return refuse_unbounded(pack(codes, residual))

    def restricted(self, share: float) -> Callable[[Array], Array]:
        """The threshold where a share of the features was observed.

        The squared error is then a share of that of all features: alpha‖γ‖₁ counts as
        much less, and ½ alpha²‖γ‖₀.
        """
        power = {"soft": 1.0, "hard": 0.5}.get(self.kind, 0.0)
        return Threshold(self.alpha * share**power, self.kind)._shrunk

    def _shrunk(self, corr: Array) -> Array:
        xp = namespace(corr)
        size = xp.abs(corr)
        if not self.alpha >= 0:
            raise ValueError(f"alpha={self.alpha!r} must be at least 0")
        if self.kind == "soft":
            return xp.sign(corr) * xp.clip(size - self.alpha, 0, None)
        zero = xp.zeros_like(corr)
        if self.kind == "hard":
            return xp.where(size > self.alpha, corr, zero)
        if self.kind != "top-k":
            raise ValueError(f"kind={self.kind!r} must be 'soft', 'hard' or 'top-k'")
        return self._largest(corr, size)

    def _largest(self, corr: Array, size: Array) -> Array:
        if not 1 <= self.alpha <= corr.shape[1]:
            raise ValueError(
                f"alpha={self.alpha!r} is the number of coefficients to keep with "
                f"kind='top-k': it must be between 1 and {corr.shape[1]}, the number "
                "of atoms"
            )
        xp = namespace(corr)
        order = xp.argsort(size, axis=1, descending=True, stable=True)
        ranks = xp.argsort(order, axis=1, stable=True)
        return xp.where(ranks < self.alpha, corr, xp.zeros_like(corr))
