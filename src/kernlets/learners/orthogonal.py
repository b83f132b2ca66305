"""`OrthogonalDictionary` learns orthonormal atoms by two closed-form steps."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..base.constraints import NOT_NEGATIVE, clipped
from ..coders import Threshold
from ..contracts import Array, AtomUpdate, SparseCoder
from ..data.weights import Weights
from ..dictionaries import ExplicitDictionary
from ..numerics.arrays import as_like
from ..updates.orthogonal import OrthogonalUpdate, nearest_orthonormal
from .linear_learner import LinearLearner
from .schedule import Schedule


class OrthogonalDictionary(LinearLearner):
    """Orthonormal atoms Z for sparse codes Γ; K-SAD eqs. (5) and (6) without labels.

    Minimises ½‖X − ΓZ‖² + alpha‖Γ‖₁, or ‖X − ΓZ‖² with `n_nonzero_coefs` non-zeros per
    sample, subject to ZZᵀ = I. Both steps have closed-form solutions: codes are
    thresholded correlations, and atoms solve a Procrustes problem (`OrthogonalUpdate`).
    It needs only sums over blocks of samples, so X may be a memory map.

    Parameters
    ----------
    n_components : int, optional
        Number of atoms, at most the number of features. Default: the number of
        features, but at most the number of samples and at most 500.
    n_nonzero_coefs : int, optional
        Number of the largest correlations to keep for each sample. This gives the best
        code of that size, because the atoms are orthonormal.
    coder : str or SparseCoder, optional
        Another pursuit, as in `KSVD`.
    alpha : float
        Soft threshold of the correlations if neither `n_nonzero_coefs` nor `coder` is
        given.
    max_iter, init, schedule, random_state, sparse_output
        As in `KSVD`. The first atoms are made orthonormal.

    Attributes
    ----------
    components_ : array (m, p)
        The atoms, one per row.
    dictionary_, coder_, history_, n_iter_
        As in `KSVD`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import OrthogonalDictionary, datasets
    >>> X = datasets.load("digits").X_train
    >>> atoms = OrthogonalDictionary(20, random_state=0).fit(X).components_
    >>> bool(np.allclose(atoms @ atoms.T, np.eye(20), atol=1e-5))
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearLearner._parameter_constraints,
        "alpha": [NOT_NEGATIVE],
    }

    _follows = ("tol",)

    def __init__(
        self,
        n_components: int | None = None,
        n_nonzero_coefs: int | None = None,
        *,
        coder: str | SparseCoder | None = None,
        alpha: float = 0.1,
        max_iter: int = 20,
        init: Any = "samples",
        schedule: str | Schedule | None = None,
        random_state: Any = None,
        sparse_output: bool = False,
    ) -> None:
        super().__init__(
            n_components,
            n_nonzero_coefs,
            coder=coder,
            max_iter=max_iter,
            init=init,
            schedule=schedule,
            random_state=random_state,
            sparse_output=sparse_output,
        )
        self.alpha = alpha

    def _class_defaults(self, *ignored: Any) -> dict[str, int]:
        return {}

    def _n_atoms(self, n_usable: int, n_features: int, n_least: int = 0) -> int:
        if self.n_components is None:
            return max(1, min(n_features, n_usable, 500))
        return clipped("n_components", self.n_components, n_features, "features")

    def _first_dictionary(
        self, X: Array, rng: np.random.Generator, weights: Weights = None
    ) -> ExplicitDictionary:
        start = super()._first_dictionary(X, rng, weights)
        m, p = start.atoms.shape
        if m > p:
            raise ValueError(
                f"n_components={m} atoms cannot be orthonormal in {p} dimensions: "
                f"lower n_components to at most {p}, or put a feature map such as "
                "NystroemMap in front"
            )
        atoms = nearest_orthonormal(start.atoms)
        return start.with_weights(as_like(atoms, start.atoms))

    def _coder(self, n_atoms: int, n_features: int) -> SparseCoder:
        if self.coder is None and self.n_nonzero_coefs is None:
            return Threshold(self.alpha)
        coder: Any = super()._coder(n_atoms, n_features)
        if self.n_nonzero_coefs is None:
            return coder
        return Threshold(kind="top-k", n_nonzero_coefs=coder.n_nonzero_coefs)

    def _atom_update(self) -> AtomUpdate:
        return OrthogonalUpdate()
