"""`OnlineDictionary` learns atoms from running sums over the samples of a stream."""

from __future__ import annotations

from math import exp, sqrt
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..coders.encoding import code_and_sum, finite_sums, without_atoms
from ..contracts import Array, AtomUpdate, SparseCoder, Statistics
from ..data.weights import Weights, check_weights
from ..dictionaries import ExplicitDictionary
from ..numerics.arrays import namespace, row_norms
from ..schema import Conditions, Declared, Either, Nothing, Part
from ..updates import CoordinateUpdate, resolve_update
from ..updates.coordinate import coordinate_sweep
from .schedule import Schedule, resolve_schedule
from .stream_learner import StreamLearner

MEMORY = 12.0  # after u uses of the mean atom the sums remember √(MEMORY · u) of them
MEAN_POWER = 4  # the mean of the atoms is over about the last quarter of the samples


class OnlineDictionary(StreamLearner):
    """Online dictionary learning from running sums, after Mairal et al. (2009).

    Of each mini-batch it keeps only A = ΓᵀΓ and B = ΓᵀX, which are added to the earlier
    sums, reduced by forgetting. One sweep of block coordinate descent (or a
    least-squares solution) then computes the atoms from these sums. Codes may be l0
    (`n_nonzero_coefs`, `OMP`) or l1 (``coder=Lasso(alpha)``).

    Codes of early samples are those of bad atoms. So unless the schedule says how to
    forget, the sums remember about √(12u) uses of an atom once the mean atom has been
    used u times. Atoms from so few samples are noisy, but follow new codes quickly;
    `components_` is their weighted mean over the last mini-batches (Polyak and
    Juditsky, 1992), those of about the last quarter of all samples.

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
        ``"batch_size=100,forgetting=0.999"``. With a forgetting factor of the schedule
        `components_` are the atoms after the last mini-batch, not a mean: use it for
        data that change. With 1 all samples have the same weight. See `Schedule`.
    random_state, sparse_output
        As in `KSVD`; an iteration is a pass over X.

    Attributes
    ----------
    components_ : array (m, p)
        The atoms, one per row, with unit norm.
    dictionary_ : ExplicitDictionary
        The atoms as a dictionary.
    latest_ : ExplicitDictionary
        The atoms after the last mini-batch, with which the next one is coded.
    coder_ : SparseCoder
        The pursuit in use.
    statistics_ : Statistics
        The running sums.
    n_samples_seen_ : int
        Number of samples learned from, in all calls.
    uses_ : array (m,)
        Number of recent samples that use each atom, to find unused atoms.
    history_ : dict
        Per pass: ``objective`` (mean squared error of each sample over `latest_` before
        the atoms learned from it) and ``seconds``.
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
        "latest_": Part(ExplicitDictionary, m="m", p="p"),
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
        """Sums over the rows of X, coded with the atoms of `latest_`.

        The sums of several parts may be added and passed to `absorb`, if a mini-batch
        is spread over files or machines.
        """
        check_is_fitted(self)
        X = self._check_new_samples(X)
        return self._statistics(X, check_weights(sample_weight, X))

    def absorb(self, batch: Statistics) -> OnlineDictionary:
        """Learn from the sums of one mini-batch, as `partial_fit` does from its rows.

        The sums must have been computed with the present `latest_`.
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
        self.latest_ = self.dictionary_

    def _learn_batch(
        self, batch: Array, factors: np.ndarray, weights: Weights = None
    ) -> Statistics:
        return self._learn_sums(self._statistics(batch, weights), factors)

    def _statistics(self, X: Array, weights: Weights = None) -> Statistics:
        return code_and_sum(self.latest_, self.coder_, X, weights)

    def _learn_sums(self, batch: Statistics, factors: np.ndarray) -> Statistics:
        """A ← λA + ΓᵀΓ, B ← λB + ΓᵀX, then the atoms and their mean."""
        sums = batch.fade(1.0)
        if self.statistics_ is not None:
            factor = float(factors.prod())
            if self._forgets_by_uses:
                factor = _factor_by_uses(self.statistics_.uses, batch.uses)
            sums = finite_sums(self.statistics_.fade(factor) + sums)
        self.statistics_ = sums
        self.latest_ = self._updated_atoms(sums, batch)
        self.dictionary_ = self._mean_with_latest(batch.n_samples)
        return batch

    def _updated_atoms(self, sums: Statistics, batch: Statistics) -> Any:
        """Return the dictionary after one update from the sums.

        Coordinate descent visits the atoms that the mini-batch used: the sums of others
        are as they were, but for a factor.
        """
        update = self._atom_update()
        if isinstance(update, CoordinateUpdate):
            used_atoms = np.flatnonzero(batch.uses)
            atoms = self.latest_.atoms
            atoms, _ = coordinate_sweep(sums.codes_gram, sums.cross, atoms, used_atoms)
            return self.latest_.with_weights(atoms)
        rng = np.random.default_rng(self.n_samples_seen_)
        return update.step(self.latest_, sums, rng).dictionary

    @property
    def _forgets_by_uses(self) -> bool:
        return resolve_schedule(self.schedule).forgetting is None

    def _mean_with_latest(self, n_samples: float) -> ExplicitDictionary:
        """Return the mean atoms with weights (i/n)³ of the i-th of n samples."""
        weight = 1 - (1 - n_samples / (self.n_samples_seen_ + n_samples)) ** MEAN_POWER
        if weight == 1 or not self._forgets_by_uses:
            return self.latest_
        mean, latest = self.dictionary_.atoms, self.latest_.atoms
        xp = namespace(mean)
        atoms = mean + weight * (latest - mean)
        norms = xp.sqrt(row_norms(atoms))[:, None]
        atoms = xp.where(norms > 0, atoms / xp.where(norms > 0, norms, 1.0), latest)
        return self.latest_.with_weights(atoms)

    def _replace_atoms(self, indices: Array, atoms: Array) -> None:
        self.statistics_ = without_atoms(self.statistics_, self.latest_, indices)
        self.latest_ = _with_new_atoms(self.latest_, indices, atoms)
        self.dictionary_ = _with_new_atoms(self.dictionary_, indices, atoms)


def _factor_by_uses(uses: np.ndarray, batch_uses: np.ndarray) -> float:
    """Return the factor of earlier sums that leaves them about √(MEMORY · uses) uses.

    With u(t) uses of the mean atom it is exp(−∫ du / √(MEMORY · u)) over the batch.
    """
    n_uses, n_new = float(uses.mean()), float(batch_uses.mean())
    return exp(2 * (sqrt(n_uses) - sqrt(n_uses + n_new)) / sqrt(MEMORY))


def _with_new_atoms(
    dictionary: ExplicitDictionary, indices: Array, atoms: Array
) -> ExplicitDictionary:
    all_atoms = namespace(atoms).asarray(dictionary.atoms, copy=True)
    all_atoms[indices] = atoms
    return dictionary.with_weights(all_atoms)
