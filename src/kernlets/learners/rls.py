"""`RLSDictionary` learns atoms from a stream by recursive least squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..coders import encode
from ..coders.coded_sums import CodeSummary, fill_by_codes, summarize_codes
from ..contracts import Array, SparseCoder
from ..data.block_loop import apply_rows
from ..data.missing import has_missing, split_mask
from ..data.weights import Weights
from ..numerics.scaling import power_of_two, typical_length
from ..schema import Declared, Floats, Number
from .forgetting import Forgetting
from .rls_state import Recursion
from .stream_learner import StreamLearner


class RLSDictionary(StreamLearner):
    """RLS-DLA: every sample updates all atoms by recursive least squares.

    Skretting and Engan (2010): with the code γ of a sample x, C = (Σ λ… γγᵀ)⁻¹ and the
    residual r = x − Dᵀγ, the atoms change by Cγrᵀ/(λ + γᵀCγ), and C by a rank-one
    update. All samples of a mini-batch are coded with the same atoms; their updates,
    which follow one another, are computed by matrix products (as in LKDL, section
    IV-E). With ``batch_size=1`` this is the published algorithm.

    With λ = 1 and given codes the atoms are the least-squares solution over all samples
    seen, with the first atoms as a prior that weighs as much as one sample (of the
    first mini-batch, to a factor of two).

    Parameters
    ----------
    n_components : int, optional
        Number of atoms. Default: as in `KSVD`.
    n_nonzero_coefs, coder
        As in `KSVD`.
    batch_size : int
        Number of rows that are coded with the same atoms. They are taken in the order
        of X, so shuffle rows that are sorted.
    forgetting : float or Forgetting
        Factor λ for each sample, or a schedule such as
        ``Forgetting(0.99, "linear", horizon=50_000)`` from 0.99 up to 1. Each atom
        should be used many times within 1 / (1 − λ) samples. An atom that is not used
        does not change.
    max_iter : int
        Number of passes over X.
    init : {"samples", "kmeans", "svd", "normal"} or array of shape (m, p)
        The first atoms.
    random_state, verbose, callback, sparse_output
        As in `KSVD`; an iteration is a pass over X.

    Attributes
    ----------
    components_ : array (m, p)
        The atoms, one per row, with unit norm.
    dictionary_ : ExplicitDictionary
        The atoms as a dictionary.
    coder_ : SparseCoder
        The pursuit in use.
    covariance_ : array (m, m), float64
        The matrix C.
    prior_ : float
        The diagonal entry of C for an atom that no sample has used yet.
    n_samples_seen_ : int
        Number of samples learned from, in all calls.
    uses_ : array (m,)
        Number of recent samples that use each atom, to find unused atoms.
    history_, n_iter_
        As in `OnlineDictionary`.

    Examples
    --------
    >>> from kernlets import NystroemMap, RLSDictionary, datasets
    >>> X = datasets.load("digits").X_train
    >>> virtual = NystroemMap("poly:2", n_landmarks=100, random_state=0).fit(X)
    >>> learner = RLSDictionary(50, 4, random_state=0)
    >>> for start in range(0, 800, 200):
    ...     learner = learner.partial_fit(virtual.transform(X[start : start + 200]))
    >>> learner.n_samples_seen_
    800
    """

    _declared: ClassVar[Declared] = {
        "covariance_": Floats("m", "m", like="float64"),
        "prior_": Number(least=np.finfo(float).tiny),
    }
    prior_: float

    def __init__(
        self,
        n_components: int | None = None,
        n_nonzero_coefs: int | None = None,
        *,
        coder: str | SparseCoder | None = None,
        batch_size: int = 256,
        forgetting: float | Forgetting = 1.0,
        max_iter: int = 10,
        init: Any = "samples",
        random_state: Any = None,
        verbose: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        sparse_output: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_nonzero_coefs = n_nonzero_coefs
        self.coder = coder
        self.batch_size = batch_size
        self.forgetting = forgetting
        self.max_iter = max_iter
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.sparse_output = sparse_output

    def _works_from_sums(self) -> bool:
        return False  # rows must be read in their order

    def _begin(self) -> None:
        self._set_state(Recursion.start(self.dictionary_.atoms))

    def _learn_batch(
        self, batch: Array, factors: np.ndarray, weights: Weights = None
    ) -> CodeSummary:
        def learn(X: Array) -> CodeSummary:
            if self.n_samples_seen_ == 0:
                observed = split_mask(X).rows if has_missing(X) else X
                prior = _prior(observed, weights)
                self._set_state(Recursion.start(self.dictionary_.atoms, prior))
            codes = encode(self.dictionary_, self.coder_, X)
            X = fill_by_codes(self.dictionary_, codes, X)
            state = self._state().update(X, codes, factors, weights)
            self._set_state(state.with_unit_atoms(self.dictionary_.atoms))
            summary = summarize_codes(X, codes, weights)
            return summary._replace(uses=np.floor(summary.uses).astype(np.int64))

        return apply_rows(learn, batch, slice(0, batch.shape[0]))

    def _replace_atoms(self, indices: Array, atoms: Array) -> None:
        self._set_state(self._state().with_new_atoms(indices, atoms))

    def _state(self) -> Recursion:
        return Recursion(self.dictionary_.atoms, self.covariance_, self.prior_)

    def _set_state(self, state: Recursion) -> None:
        self.dictionary_ = self.dictionary_.with_weights(state.atoms)
        self.covariance_ = state.covariance
        self.prior_ = state.prior


def _prior(X: Array, weights: Weights) -> float:
    """Return 1 over the energy of a typical sample, up to a factor below 2.

    It is a power of two, so that atoms learned from 2X are the same, bit by bit.
    """
    typical_norm = typical_length(X, weights)
    return float(power_of_two(np.float64(typical_norm) * 2**0.5)) ** -2
