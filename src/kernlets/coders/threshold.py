"""Codes by thresholding the correlations, which is exact for orthonormal atoms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

from sklearn.base import clone

from ..base.constraints import AT_LEAST_1, NOT_NEGATIVE, StrOptions
from ..contracts import Array, SparseCoder, SparseCodes
from ..loops.codes import pack, refuse_unbounded, squared_residual
from ..numerics.arrays import namespace


class Threshold(SparseCoder):
    """Codes from thresholded correlations: soft, hard or the k largest.

    For orthonormal atoms ``"soft"`` minimises ½‖x − Dγ‖² + alpha‖γ‖₁, ``"hard"``
    minimises ½‖x − Dγ‖² + ½ alpha²‖γ‖₀, and ``"top-k"`` gives the best code with k
    non-zeros.

    Parameters
    ----------
    alpha : float, default=0.1
        The threshold of "soft" and "hard".
    kind : {"soft", "hard", "top-k"}, default="soft"
        Shrink correlations by the threshold, drop those below it, or keep the largest.
    n_nonzero_coefs : int, optional
        Number of coefficients that "top-k" keeps.
    positive : bool, default=False
        Whether codes must be non-negative: negative correlations count as zero. For
        orthonormal atoms the codes are the best non-negative ones.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import Threshold
    >>> gram, corr = np.eye(3), np.array([[3.0, -1.0, 0.2]])
    >>> energy = (corr**2).sum(1)
    >>> Threshold(0.5).solve(gram, corr, energy).toarray().tolist()
    [[2.5, -0.5, 0.0]]
    >>> largest = Threshold(kind="top-k", n_nonzero_coefs=1)
    >>> largest.solve(gram, corr, energy).toarray().tolist()
    [[3.0, 0.0, 0.0]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [NOT_NEGATIVE],
        "kind": [StrOptions({"soft", "hard", "top-k"})],
        "n_nonzero_coefs": [AT_LEAST_1, None],
        "positive": ["boolean"],
    }

    def __init__(
        self,
        alpha: float = 0.1,
        kind: Literal["soft", "hard", "top-k"] = "soft",
        *,
        n_nonzero_coefs: int | None = None,
        positive: bool = False,
    ) -> None:
        self.alpha = alpha
        self.kind = kind
        self.n_nonzero_coefs = n_nonzero_coefs
        self.positive = positive

    def solve(self, gram: Array, corr: Array, energy: Array) -> SparseCodes:
        codes = self._shrink(corr)
        residual = squared_residual(gram, corr, energy, codes)
        return refuse_unbounded(pack(codes, residual))

    def restricted_threshold(self, share: float) -> Callable[[Array], Array]:
        """Return the threshold for a row of which a share of the features was observed.

        The squared error is then a share of that of all features: alpha‖γ‖₁ counts as
        much less, and ½ alpha²‖γ‖₀ likewise.
        """
        power = {"soft": 1.0, "hard": 0.5}.get(self.kind, 0.0)
        return clone(self).set_params(alpha=self.alpha * share**power)._shrink

    def _shrink(self, corr: Array) -> Array:
        xp = namespace(corr)
        if self.positive:
            corr = xp.clip(corr, 0, None)
        magnitudes, zero = xp.abs(corr), xp.zeros_like(corr)
        if self.kind == "top-k":
            order = xp.argsort(magnitudes, axis=1, descending=True, stable=True)
            ranks = xp.argsort(order, axis=1, stable=True)
            return xp.where(ranks < self._count(corr.shape[1]), corr, zero)
        self._check_threshold()
        if self.kind == "soft":
            return xp.sign(corr) * xp.clip(magnitudes - float(self.alpha), 0, None)
        return xp.where(magnitudes > float(self.alpha), corr, zero)

    def _check_threshold(self) -> None:
        if self.kind not in ("soft", "hard"):
            raise ValueError(f"kind={self.kind!r} must be 'soft', 'hard' or 'top-k'")
        if self.n_nonzero_coefs is not None:
            raise ValueError(
                f"n_nonzero_coefs={self.n_nonzero_coefs!r} means nothing to "
                f"kind={self.kind!r}: set kind='top-k', or leave n_nonzero_coefs out"
            )
        if not self.alpha >= 0:
            raise ValueError(f"alpha={self.alpha!r} must be at least 0")

    def _count(self, n_atoms: int) -> int:
        """Return the number of coefficients that "top-k" keeps."""
        count = self.n_nonzero_coefs
        if count is None or not 1 <= count <= n_atoms:
            raise ValueError(
                f"n_nonzero_coefs={count!r} is the number of coefficients that "
                f"kind='top-k' keeps: set it between 1 and the number of atoms, "
                f"{n_atoms}"
            )
        return int(count)
