"""`OnlineDictionary` learns atoms from running sums over the samples of a stream."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..coders.encoding import code_and_sum, finite_sums, without_atoms
from ..contracts import Array, AtomUpdate, SparseCoder, Statistics
from ..data.weights import Weights, check_weights
from ..numerics.arrays import namespace
from ..schema import Conditions, Declared, Either, Nothing, Part
from ..updates import resolve_update
from .schedule import Schedule
from .stream_learner import StreamLearner


class OnlineDictionary(StreamLearner):
    """Online dictionary learning from running sums, after Mairal et al. (2009).

    Of each mini-batch it keeps only A = ΓᵀΓ and B = ΓᵀX, which are added to the earlier
    sums, reduced by forgetting. One sweep of block coordinate descent (or a
    least-squares solution) then computes the atoms from these sums. Codes may be l0
    (`n_nonzero_coefs`, `OMP`) or l1 (``coder=Lasso(alpha)``).

    The sums are a `Statistics` object, and sums of the parts of a batch can be added
    wherever the parts are stored. One batch with all rows, in one pass, is one
    iteration of the update.

    Parameters
    ----------
    n_components : int, optional
        Number of atoms. Default: as in `KSVD`.
    n_nonzero_coefs, coder
        As in `KSVD`.
    max_iter : int
        Number of passes over X.
    init : {"samples", "kmeans", "svd", "normal"} or array of shape (m, p)
        The first atoms.
    update : str or AtomUpdate
        The rule that computes atoms from the sums, and needs nothing else:
        "coordinate", "mod" or "ksvd-parallel".
    schedule : str or Schedule, optional
        The size of mini-batches and the forgetting of earlier ones; e.g.
        ``"batch_size=100,forgetting=0.999"``. See `Schedule`.
    random_state, sparse_output
        As in `KSVD`; an iteration is a pass over X.

    Attributes
    ----------
    components_ : array (m, p)
        The atoms, one per row, with unit norm.
    dictionary_ : ExplicitDictionary
        The atoms as a dictionary.
    coder_ : SparseCoder
        The pursuit in use.
    statistics_ : Statistics
        The running sums.
    n_samples_seen_ : int
        Number of samples learned from, in all calls.
    uses_ : array (m,)
        Number of recent samples that use each atom, to find unused atoms.
    history_ : dict
        Per pass: ``objective`` (mean squared error of each sample before the atoms
        learned from it) and ``seconds``.
    n_iter_ : int
        Number of passes.

    Examples
    --------
    >>> from kernlets import OnlineDictionary, datasets
    >>> X = datasets.load("digits").X_train
    >>> learner = OnlineDictionary(50, 4, schedule="batch_size=100", random_state=0)
    >>> for start in range(0, 800, 200):
    ...     learner = learner.partial_fit(X[start : start + 200])
    >>> learner.n_samples_seen_, learner.components_.shape
    (800, (50, 64))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StreamLearner._parameter_constraints,
        "update": [str, AtomUpdate],
    }

    _declared: ClassVar[Declared] = {
        "statistics_": Either(Nothing(), Part(Statistics, m="m", r="p", p="p")),
    }
    _conditions: ClassVar[Conditions] = {
        "update needs all codes at once": lambda self: (
            self._atom_update().needs == "statistics"
        ),
    }

    def __init__(
        self,
        n_components: int | None = None,
        n_nonzero_coefs: int | None = None,
        *,
        coder: str | SparseCoder | None = None,
        max_iter: int = 10,
        init: Any = "samples",
        update: str | AtomUpdate = "coordinate",
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

    def statistics(self, X: Any, sample_weight: Any = None) -> Statistics:
        """Sums over the rows of X, coded with the present atoms.

        The sums of several parts may be added and passed to `absorb`, if a mini-batch
        is spread over files or machines.
        """
        check_is_fitted(self)
        X = self._check_new_samples(X)
        return self._statistics(X, check_weights(sample_weight, X))

    def absorb(self, batch: Statistics) -> OnlineDictionary:
        """Learn from the sums of one mini-batch, as `partial_fit` does from its rows.

        The sums must have been computed with the present atoms.
        """
        check_is_fitted(self)
        self._record_batch(self._learn_sums(batch, self._factors(int(batch.n_samples))))
        return self

    def _atom_update(self) -> AtomUpdate:
        return resolve_update(self.update)

    def _begin(self) -> None:
        if self._atom_update().needs != "statistics":
            raise ValueError(
                f"update={self.update!r} needs all codes at once, but only sums of a "
                "stream are kept: use 'coordinate', 'mod' or 'ksvd-parallel'"
            )
        self.statistics_: Any = None

    def _learn_batch(
        self, batch: Array, factors: np.ndarray, weights: Weights = None
    ) -> Statistics:
        return self._learn_sums(self._statistics(batch, weights), factors)

    def _statistics(self, X: Array, weights: Weights = None) -> Statistics:
        return code_and_sum(self.dictionary_, self.coder_, X, weights)

    def _learn_sums(self, batch: Statistics, factors: np.ndarray) -> Statistics:
        sums = batch.fade(1.0)
        if self.statistics_ is not None:
            faded = self.statistics_.fade(float(factors.prod()))
            sums = finite_sums(faded + sums)
        self.statistics_ = sums
        rng = np.random.default_rng(self.n_samples_seen_)
        step = self._atom_update().step(self.dictionary_, sums, rng)
        self.dictionary_ = step.dictionary
        return batch

    def _replace_atoms(self, indices: Array, atoms: Array) -> None:
        self.statistics_ = without_atoms(self.statistics_, self.dictionary_, indices)
        all_atoms = namespace(atoms).asarray(self.dictionary_.atoms, copy=True)
        all_atoms[indices] = atoms
        self.dictionary_ = self.dictionary_.with_weights(all_atoms)
