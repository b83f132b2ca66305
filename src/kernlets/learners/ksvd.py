"""`KSVD` learns atoms by rank-one fits to sparse codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..contracts import Array, AtomUpdate, SparseCoder
from ..data.weights import Weights
from ..dictionaries import ExplicitDictionary
from ..updates.sweeps import clip_negative
from .batch_learner import LinearLearner, ksvd_update
from .schedule import SCHEDULE_CONSTRAINTS


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
        The first atoms.
    update : str or AtomUpdate
        "ksvd" updates each atom in turn by one step of alternation, "ksvd:exact=True"
        by a singular value decomposition. "ksvd-parallel" updates all atoms at once,
        which suits a GPU and data on disk. "mod" and "coordinate" are those of `MOD`
        and `OnlineDictionary`; `kernlets list updates` shows all names.
    random_state : int, RandomState, Generator or None
        Seed of the first atoms and of replaced ones.
    verbose : bool
        Whether to print the error of each iteration.
    callback : callable, optional
        Called after each iteration with a dict (``iteration``, ``objective``,
        ``dictionary``); a true result stops the fit.
    sparse_output : bool
        Whether `transform` returns a CSR matrix.
    positive_atoms : bool
        Whether atoms must be non-negative, as those of spectra, counts and images are;
        with ``coder=OMP(5, positive=True)`` the fit is a sparse non-negative matrix
        factorisation. An `update` that is given decides itself.
    warm_up : int
        In so many first iterations the number of non-zeros grows from 1 to that of the
        coder, or the penalty of `Lasso` falls from ten times its value to it. It helps
        to find the true atoms where samples are few for them; give it half of the
        iterations or more.
    exchange : int
        After every fifth of the first 70 % of iterations, so many atoms that explain
        least are replaced by badly represented samples. It finds more of the true atoms
        in fits of 50 iterations or more, if these are used about equally often; 1 or 2
        of 100 atoms are enough.
    tol : float
        Stop when the error has fallen by at most this part in three iterations; 0 means
        never.
    n_init : int
        Number of starts. After each of several equal parts of the iterations the worse
        half is dropped, until one is left. With an array as `init` there is one start.
    steady : bool
        Whether the error may never rise. A pursuit is greedy, and single iterations may
        end higher than the one before; with this the code of a sample is kept where the
        new one is worse, and replaced atoms are taken back if they do not help. The
        codes of all samples are then in memory.

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
        **SCHEDULE_CONSTRAINTS,
        "update": [str, AtomUpdate],
        "positive_atoms": ["boolean"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        n_nonzero_coefs: int | None = None,
        *,
        coder: str | SparseCoder | None = None,
        max_iter: int = 10,
        init: Any = "samples",
        update: str | AtomUpdate = "ksvd",
        random_state: Any = None,
        verbose: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        sparse_output: bool = False,
        positive_atoms: bool = False,
        warm_up: int = 0,
        exchange: int = 0,
        tol: float = 0.0,
        n_init: int = 1,
        steady: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_nonzero_coefs = n_nonzero_coefs
        self.coder = coder
        self.max_iter = max_iter
        self.init = init
        self.update = update
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.sparse_output = sparse_output
        self.positive_atoms = positive_atoms
        self.warm_up = warm_up
        self.exchange = exchange
        self.tol = tol
        self.n_init = n_init
        self.steady = steady

    def _first_dictionary(
        self, X: Array, rng: np.random.Generator, weights: Weights = None
    ) -> ExplicitDictionary:
        start = super()._first_dictionary(X, rng, weights)
        if not self.positive_atoms:
            return start
        return start.with_weights(clip_negative(start.atoms))

    def _atom_update(self) -> AtomUpdate:
        return ksvd_update(self.update, self.coder, self.positive_atoms)
