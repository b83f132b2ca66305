"""Learners that use all samples in every iteration: the template, KSVD and MOD."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ..backend.masks import has_missing
from ..backend.weights import Weights, weights_for_digest
from ..core import Array, AtomUpdate, Dictionary, SparseCoder
from ..dictionaries import ExplicitDictionary
from ..persistence.checkpoint import Checkpoint
from ..pursuits import resolve_coder
from ..updates import MODUpdate, resolve_update
from ..updates.sweeps import clip_negative
from .base import DictionaryLearner
from .iterate import CodeAndUpdate, Monitor, iterate
from .linear_atoms import LinearAtoms
from .race import Race
from .steady import SteadyCodeAndUpdate
from .warm_up import PACE, Pace


class BatchLearner(DictionaryLearner):
    """A learner that codes all samples and then updates all atoms, in each iteration.

    A subclass defines `fit`, which finds the first dictionary and calls `_learn`, and
    `_atom_update`.
    """

    @abstractmethod
    def _atom_update(self) -> AtomUpdate:
        """The rule that updates the atoms."""

    def _named_part(self, name: str, text: str) -> Any:
        if name == "update":
            positive_atoms = getattr(self, "positive_atoms", False)
            return ksvd_update(text, self.coder, positive_atoms)
        return super()._named_part(name, text)

    def _needs_all_codes(self) -> bool:
        return self._is_steady() or self._atom_update().needs == "codes"

    def _is_steady(self) -> bool:
        """Whether the error may never rise."""
        return bool(getattr(self, "steady", False))

    def _learn(
        self,
        start: Dictionary,
        X: Array,
        n_features: int,
        rng: np.random.Generator,
        weights: Weights = None,
        others: Sequence[tuple[Dictionary, np.random.Generator]] = (),
    ) -> Any:
        """Run the alternation, keep its history, and return the last dictionary.

        If there are other starts, all of them race.
        """
        self.coder_ = self._coder(start.n_atoms, n_features)
        given = {"samples": X, "start": start, **weights_for_digest(weights)}
        checkpoint = Checkpoint.of(self, **given)
        update, pace = self._atom_update(), Pace.of(self)
        kind = CodeAndUpdate
        if self._is_steady():
            kind = SteadyCodeAndUpdate
            refuse_uneven(self.coder_, X)

        def alternation(first: Dictionary, rng: np.random.Generator) -> CodeAndUpdate:
            return kind(first, X, self.coder_, update, rng, pace, weights)

        fits = [alternation(*each) for each in ((start, rng), *others)]
        steps = fits[0] if len(fits) == 1 else Race(fits, self.max_iter)
        self.history_, self.n_iter_ = iterate(steps, Monitor.of(self), checkpoint, X)
        return steps.dictionary


def ksvd_update(
    update: str | AtomUpdate,
    coder: str | SparseCoder | None,
    positive_atoms: bool = False,
) -> AtomUpdate:
    """The update of a name; rank-one fits keep codes non-negative if the coder does.

    An update that is given as such stays as it is.
    """
    found = resolve_update(update)
    if isinstance(update, AtomUpdate):
        return found
    known = found.get_params()
    if positive_atoms and "positive_atoms" not in known:
        raise ValueError(
            f"update={update!r} does not keep atoms non-negative: use 'ksvd' or "
            "'ksvd-parallel', or leave positive_atoms out"
        )
    coder = resolve_coder(coder) if isinstance(coder, str) else coder
    positive = bool(getattr(coder, "positive", False))
    wanted = {"positive": positive, "positive_atoms": positive_atoms}
    return found.set_params(**{k: v for k, v in wanted.items() if k in known})


def refuse_uneven(coder: SparseCoder, X: Array) -> None:
    """Refuse what a steady fit cannot compare by errors of whole samples."""
    if has_missing(X):
        raise ValueError(
            "steady=True needs rows without missing values: fill them in, e.g. with "
            "kernlets.DictionaryImputer, or leave steady out"
        )
    if getattr(coder, "n_nonzero_coefs", None) is None:
        raise ValueError(
            f"steady=True compares errors of codes with a number of non-zeros, such as "
            f"those of OMP(5), and {coder!r} has none: leave steady out"
        )


class LinearLearner(BatchLearner, LinearAtoms):
    """A batch learner whose atoms are rows of a matrix; it lacks the atom update."""

    def _check_blocks(self) -> None:
        if self._needs_all_codes():
            update = getattr(self, "update", None)
            raise ValueError(
                f"{type(self).__name__} with update={update!r} and steady="
                f"{self._is_steady()} needs all codes at once and cannot learn from "
                "blocks: set update='ksvd-parallel' or use MOD, without steady"
            )


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
        Number of starts. They race: in equal parts of the iterations the better half
        goes on, until one is left. With an array as `init` there is one start.
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
        **PACE,
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


class MOD(LinearLearner):
    """Method of optimal directions: least squares for all atoms at once, LKDL eq. (4).

    It needs only sums over blocks of samples, so X may be a memory map.

    Parameters
    ----------
    n_components, n_nonzero_coefs, coder, max_iter, init
        As in `KSVD`.
    random_state, verbose, callback, sparse_output
        As in `KSVD`.
    warm_up, exchange, tol, n_init, steady
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
        *,
        coder: str | SparseCoder | None = None,
        max_iter: int = 10,
        init: Any = "samples",
        random_state: Any = None,
        verbose: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        sparse_output: bool = False,
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
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.sparse_output = sparse_output
        self.warm_up = warm_up
        self.exchange = exchange
        self.tol = tol
        self.n_init = n_init
        self.steady = steady

    def _atom_update(self) -> AtomUpdate:
        return MODUpdate()
