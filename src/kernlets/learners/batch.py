"""Linear dictionary learners that use all samples in every iteration: KSVD, MOD."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ..backend.arrays import to_device
from ..core import Array, AtomUpdate, SparseCoder
from ..dictionaries import ExplicitDictionary
from ..fields import Declared, Part
from ..updates import MODUpdate
from ..updates.sweeps import nonnegative
from .base import (
    KSVD_UPDATES,
    DictionaryLearner,
    dense_codes,
    ksvd_update,
    over_codes,
)
from .start import STARTS, Usable, start_atoms
from .warm_up import PACE


class LinearLearner(DictionaryLearner):
    """A learner whose atoms are rows of a matrix in the space of the samples."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DictionaryLearner._parameter_constraints,
        "init": [StrOptions(set(STARTS)), "array-like"],
    }

    _declared: ClassVar[Declared] = {
        "dictionary_": Part(ExplicitDictionary, m="m", p="p"),
    }

    def _first_dictionary(
        self, X: Array, rng: np.random.Generator
    ) -> ExplicitDictionary:
        if self.n_components is None and not isinstance(self.init, str):
            n_atoms = len(self.init)
        else:
            # count the usable rows, which is a pass over X, only if it is needed
            count = self.n_components is None
            n_usable = len(Usable.of(X)) if count else X.shape[0]
            n_atoms = self._n_atoms(n_usable, X.shape[1])
        # rows of a memory map are still on the host here
        return ExplicitDictionary(to_device(start_atoms(self.init, X, n_atoms, rng)))

    @property
    def components_(self) -> Array:  # (m, p)
        """The atoms, one per row, with unit norm."""
        check_is_fitted(self)
        return self.dictionary_.atoms

    def inverse_transform(self, codes: Any) -> Array:  # (n, p)
        """Reconstruct samples from codes: codes · atoms."""
        return over_codes(_reconstructed, codes, self.components_)


def _reconstructed(atoms: Array, codes: Any) -> Array:  # (m, p), (n, m) -> (n, p)
    return dense_codes(codes, atoms) @ atoms


class KSVD(LinearLearner):
    """K-SVD: a pursuit finds sparse codes, rank-one fits find atoms. LKDL eq. (2).

    Minimises Σ‖xᵢ − Σⱼ γᵢⱼ dⱼ‖² with at most `n_nonzero_coefs` non-zeros per sample.

    Parameters
    ----------
    n_components : int, optional
        Number of atoms. Default: twice the number of features, but at most a quarter
        of the samples and at most 500.
    n_nonzero_coefs : int, optional
        Non-zeros per sample of the default coder, `OMP`. Default: 5, but at most a
        quarter of the features.
    coder : SparseCoder, optional
        Another pursuit: `OMP`, `Lasso` or `Threshold`.
    max_iter : int
        Number of iterations, each of coding and of updating the atoms.
    init : {"samples", "kmeans", "svd", "normal"} or array of shape (m, p)
        The first atoms.
    update : {"approximate", "exact", "parallel"} or AtomUpdate
        Update each atom in turn, by one step of alternation or by a singular value
        decomposition; or update all atoms at once, which suits a GPU and data on disk.
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
        coder. It helps to find the true atoms where samples are few for them; give it
        half of the iterations or more.
    exchange : int
        After every fifth of the first 70 % of iterations, so many atoms that explain
        least are replaced by badly represented samples. It finds more of the true atoms
        in fits of 50 iterations or more, if these are used about equally often; 1 or 2
        of 100 atoms are enough.
    tol : float
        Stop when the error has fallen by at most this part in three iterations; 0 means
        never.

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
        **PACE,
        "update": KSVD_UPDATES,
        "positive_atoms": ["boolean"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        n_nonzero_coefs: int | None = None,
        coder: SparseCoder | None = None,
        max_iter: int = 10,
        init: Any = "samples",
        update: str | AtomUpdate = "approximate",
        random_state: Any = None,
        verbose: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        sparse_output: bool = False,
        positive_atoms: bool = False,
        warm_up: int = 0,
        exchange: int = 0,
        tol: float = 0.0,
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

    def _first_dictionary(
        self, X: Array, rng: np.random.Generator
    ) -> ExplicitDictionary:
        start = super()._first_dictionary(X, rng)
        if not self.positive_atoms:
            return start
        return start.with_weights(nonnegative(start.atoms))

    def _atom_update(self) -> AtomUpdate:
        return ksvd_update(self.update, self.coder, self.positive_atoms)


class MOD(LinearLearner):
    """Method of optimal directions: least squares for all atoms at once, LKDL eq. (4).

    It needs only sums over blocks of samples, so X may be a memory map.

    Parameters
    ----------
    n_components, n_nonzero_coefs, coder, max_iter, init
        As in `KSVD`.
    random_state, verbose, callback, sparse_output, warm_up, exchange, tol
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearLearner._parameter_constraints,
        **PACE,
    }

    def __init__(
        self,
        n_components: int | None = None,
        n_nonzero_coefs: int | None = None,
        coder: SparseCoder | None = None,
        max_iter: int = 10,
        init: Any = "samples",
        random_state: Any = None,
        verbose: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        sparse_output: bool = False,
        warm_up: int = 0,
        exchange: int = 0,
        tol: float = 0.0,
    ) -> None:
        self.n_components = n_components
        self.n_nonzero_coefs = n_nonzero_coefs
        self.coder = coder
        self.max_iter = max_iter
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.sparse_output = sparse_output
        self.warm_up = warm_up
        self.exchange = exchange
        self.tol = tol

    def _atom_update(self) -> AtomUpdate:
        return MODUpdate()
