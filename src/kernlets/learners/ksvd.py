"""`KSVD` learns atoms by rank-one fits to sparse codes, `MOD` by least squares."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..contracts import Array, AtomUpdate, SparseCoder
from ..data.weights import Weights
from ..dictionaries import ExplicitDictionary
from ..updates import MODUpdate
from ..updates.ksvd import clip_negative
from .code_and_update import ksvd_update
from .linear_learner import LinearLearner
from .schedule import Schedule


class KSVD(LinearLearner):
    """K-SVD: a pursuit finds sparse codes, rank-one fits find atoms. LKDL eq. (2).

    Minimises Σ‖xᵢ − Σⱼ γᵢⱼ dⱼ‖² with at most `n_nonzero_coefs` non-zeros per sample.

    Parameters
    ----------
    n_components : int, optional
        Number of atoms. Default: twice the number of features, but at most a quarter
        of the samples and at most 500. Atoms drawn from samples are at most as many as
        these; more are clipped with a warning.
    n_nonzero_coefs : int, optional
        Non-zeros per sample of the default coder, `OMP`. Default: 5, but at most a
        quarter of the features. More than there are atoms are clipped with a warning.
    coder : str or SparseCoder, optional
        Another pursuit: `OMP`, `Lasso`, `Ridge` or `Threshold`, or a name with
        parameters such as "lasso:0.1".
    max_iter : int
        Number of iterations, each of coding and of updating the atoms.
    init : {"samples", "kmeans", "svd", "normal"} or array of shape (m, p)
        The first atoms. Those of "kmeans" are centres after 20 steps of Lloyd's
        algorithm from random samples, fewer if centres rest.
    update : str or AtomUpdate
        "ksvd" updates each atom in turn by one step of alternation, "ksvd:exact=True"
        by a singular value decomposition. "ksvd-parallel" updates all atoms at once,
        which suits a GPU and data on disk. Either keeps atoms non-negative, as those
        of spectra, counts and images are, with "ksvd:positive_atoms=True"; with
        ``coder=OMP(5, positive=True)`` the fit is then a sparse non-negative matrix
        factorisation. "mod" and "coordinate" are those of `MOD` and
        `OnlineDictionary`; `kernlets list updates` shows all names.
    schedule : str or Schedule, optional
        How to train: warm-up, exchanges, several starts, a stop at rest or by a
        callback, lines to watch it; e.g. ``"warm_up=5,tol=1e-3,verbose=True"``. See
        `Schedule`.
    random_state : int, RandomState, Generator or None
        Seed of the first atoms and of replaced ones.
    sparse_output : bool
        Whether `transform` returns a CSR matrix.

    Attributes
    ----------
    components_ : array (m, p)
        The atoms, one per row, with unit norm.
    dictionary_ : ExplicitDictionary
        The atoms as a dictionary.
    coder_ : SparseCoder
        The pursuit in use.
    history_ : dict
        ``objective`` (mean squared error after each update) and ``seconds`` since the
        start of the fit.
    n_iter_ : int
        Number of iterations.

    Examples
    --------
    >>> from kernlets import KSVD, datasets
    >>> digits = datasets.load("digits")
    >>> learner = KSVD(n_components=50, n_nonzero_coefs=4, random_state=0)
    >>> learner.fit(digits.X_train).transform(digits.X_test).shape[1]
    50
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearLearner._parameter_constraints,
        "update": [str, AtomUpdate],
    }

    _follows = ("warm_up", "exchange", "tol", "n_init", "steady")

    def __init__(
        self,
        n_components: int | None = None,
        n_nonzero_coefs: int | None = None,
        *,
        coder: str | SparseCoder | None = None,
        max_iter: int = 10,
        init: Any = "samples",
        update: str | AtomUpdate = "ksvd",
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
        self.update = update

    def _first_dictionary(
        self, X: Array, rng: np.random.Generator, weights: Weights = None
    ) -> ExplicitDictionary:
        start = super()._first_dictionary(X, rng, weights)
        if not getattr(self._atom_update(), "positive_atoms", False):
            return start
        return start.with_weights(clip_negative(start.atoms))

    def _atom_update(self) -> AtomUpdate:
        return ksvd_update(self.update, self.coder)


class MOD(LinearLearner):
    """Method of optimal directions: least squares for all atoms at once, LKDL eq. (4).

    It needs only sums over blocks of samples, so X may be a memory map.

    Parameters
    ----------
    n_components, n_nonzero_coefs, coder, max_iter, init
        As in `KSVD`.
    schedule, random_state, sparse_output
        As in `KSVD`.

    Attributes
    ----------
    components_, dictionary_, coder_, history_, n_iter_
        As in `KSVD`.

    Examples
    --------
    >>> from kernlets import MOD, datasets
    >>> X = datasets.load("digits").X_train
    >>> learner = MOD(n_components=50, n_nonzero_coefs=4, random_state=0).fit(X)
    >>> learner.history_["objective"][-1] < learner.history_["objective"][0]
    True
    """

    _follows = ("warm_up", "exchange", "tol", "n_init", "steady")

    def _atom_update(self) -> AtomUpdate:
        return MODUpdate()
