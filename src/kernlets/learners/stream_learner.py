"""`StreamLearner` is the base class of learners from mini-batches of a stream.

`online.py` and `rls.py` update the atoms by a mini-batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..coders.encoding import CodeSummary
from ..contracts import Array, Statistics
from ..data.check import Containers, check_rows
from ..data.rows import read_rows, row_batches
from ..data.weights import (
    Weights,
    check_weights,
    drop_zero_weights,
)
from ..dictionaries import ExplicitDictionary
from ..io.checkpoint import Checkpoint, fitted_attributes, fitting
from ..numerics.arrays import namespace
from ..numerics.random import generator
from ..schema import Declared, Floats, Indices, Maybe, Whole, check, declared_of
from ..updates.replace import replacements
from .linear_learner import LinearAtoms
from .loop import Alternation, Monitor, iterate
from .schedule import Forgetting, resolve_schedule

if TYPE_CHECKING:
    from typing_extensions import Self

PATIENCE = 30  # mean number of uses per atom after which unused atoms are replaced
MAX_COHERENCE = 0.99


@dataclass
class PassSums:
    """The progress of a pass over the rows."""

    n_batches: int = 0
    n_samples: float = 0
    error: float = 0.0  # Σ squared residuals before the atoms learned from the samples


class StreamLearner(LinearAtoms):
    """Codes a mini-batch, learns from it, and continues with the next.

    A subclass defines `_begin`, `_learn_batch` and `_replace_atoms`. Memory does not
    grow with the number of samples.
    """

    _follows = ("batch_size", "forgetting")

    _declared: ClassVar[Declared] = {
        "n_samples_seen_": Whole(),
        "uses_": Indices("m"),
        "pending_": Maybe(Floats("n", "p", finite=False)),
        "pending_weights_": Maybe(Floats("n")),
    }
    # attributes before there are enough rows for the first atoms
    _early = ("n_features_in_", "pending_", "pending_weights_")

    @abstractmethod
    def _begin(self) -> None:
        """Set the state before the first sample, for the first `dictionary_`."""

    @abstractmethod
    def _learn_batch(
        self, batch: Array, factors: np.ndarray, weights: Weights = None
    ) -> CodeSummary | Statistics:
        """Learn from a few samples, each with its forgetting factor and weight."""

    @abstractmethod
    def _replace_atoms(self, indices: Array, atoms: Array) -> None:
        """Replace the atoms at these indices, in the dictionary and in the state."""

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from the next rows of a stream, one or many; y is ignored.

        The first atoms come from the first rows. With ``init="samples"`` rows are kept
        until there are `n_components` of them, and until then the learner is not
        fitted. `history_` describes the last call. A row of `sample_weight` w counts
        as w rows.
        """
        if not self.__sklearn_is_fitted__():  # as in scikit-learn, since rows are many
            self._validate_params()
        is_first_call = not hasattr(self, "n_features_in_")
        X = check_rows(
            self,
            X,
            reset=is_first_call,
            like=self._stream_array,
            allow_nan=self._learns_missing,
        )
        X, weights = drop_zero_weights(X, check_weights(sample_weight, X))
        if not self.__sklearn_is_fitted__():
            X, weights = self._with_pending(X, weights)
            if self._must_wait(X):
                self._keep_pending(X, weights)
                return self
            rng = generator(self.random_state)
            self._start(self._first_dictionary(X, rng, weights))
        self._run(X, passes=1, weights=weights)
        return self

    def _with_pending(self, X: Array, weights: Weights) -> tuple[Array, Weights]:
        """Return the pending rows and the new ones, and their weights."""
        if not hasattr(self, "pending_"):
            return X, weights
        pending_weights = getattr(self, "pending_weights_", None)
        if pending_weights is not None or weights is not None:
            blocks = (self.pending_, pending_weights), (X, weights)
            weights = np.concatenate([_all_weights(*block) for block in blocks])
        return namespace(X).concat([self.pending_, _in_memory(X)]), weights

    def _keep_pending(self, X: Array, weights: Weights) -> None:
        self.pending_: Array = _in_memory(X)
        if weights is not None:
            self.pending_weights_: np.ndarray = weights

    @property
    def _stream_array(self) -> Array | None:
        """An array whose type the next rows get; None before the first rows."""
        is_fitted = self.__sklearn_is_fitted__()
        return self._model_array if is_fitted else getattr(self, "pending_", None)

    def _must_wait(self, X: Array) -> bool:
        """Whether there are too few rows to draw the first atoms from."""
        is_drawn = isinstance(self.init, str) and self.init in ("samples", "kmeans")
        return is_drawn and X.shape[0] < (self.n_components or 1)

    @property
    def _containers(self) -> Containers:
        return "dask"

    def _learn(
        self,
        starts: Sequence[tuple[ExplicitDictionary, np.random.Generator]],
        X: Any,
        weights: Weights = None,
    ) -> ExplicitDictionary:
        start, _ = starts[0]  # there is one
        checkpoint = Checkpoint.of(self, samples=X, start=start, weights=weights)
        self._start(start)
        self._run(X, self.max_iter, checkpoint, weights)
        return self.dictionary_

    def _start(self, dictionary: ExplicitDictionary) -> None:
        self.coder_ = self._coder(*dictionary.atoms.shape)
        self.dictionary_ = dictionary
        self.n_samples_seen_ = 0
        self.uses_ = np.zeros(dictionary.n_atoms, dtype=np.int64)
        for name in ("pending_", "pending_weights_"):
            self.__dict__.pop(name, None)
        self._begin()

    def _run(
        self,
        X: Any,
        passes: int,
        checkpoint: Checkpoint | None = None,
        weights: Weights = None,
    ) -> None:
        """Run passes over the rows; each pass is an iteration of the history."""
        monitor = Monitor.of(self, passes)
        alternation = StreamPasses(self, X, weights)
        self.history_, self.n_iter_ = iterate(alternation, monitor, checkpoint, X)

    def _learn_pass(
        self, X: Any, sums: PassSums, weights: Weights = None
    ) -> Iterator[None]:
        """Learn from the batches of a pass that `sums` does not have yet."""
        batch_size = resolve_schedule(self.schedule).batch_size
        for batch in islice(row_batches(X, batch_size), sums.n_batches, None):
            n, first_row = batch.shape[0], sums.n_batches * batch_size
            batch_weights = (
                None if weights is None else weights[first_row : first_row + n]
            )
            factors = self._factors(n, batch_weights)
            sums.error += self._record_batch(
                self._learn_batch(batch, factors, batch_weights)
            )
            sums.n_samples += n if batch_weights is None else float(batch_weights.sum())
            sums.n_batches += 1
            yield

    def _check_attributes(self, attributes: dict[str, Any]) -> None:
        """Raise an error if these are not fitted attributes of this learner."""
        if not attributes.keys() <= declared_of(type(self)).keys():
            raise ValueError("it has attributes of something else")
        trial, history = copy(self), {"objective": [0.0], "seconds": [0.0]}
        trial.__dict__.update({**attributes, "history_": history, "n_iter_": 0})
        check(trial)
        fitting(trial.dictionary_, self.dictionary_)

    def _record_batch(self, summary: CodeSummary | Statistics) -> float:
        """Count samples and uses, replace unused atoms, and return the error."""
        self.n_samples_seen_ += int(summary.n_samples)
        self.uses_ = self.uses_ + summary.uses
        if self.uses_.mean() >= PATIENCE:
            self._refresh(summary)
        return summary.error

    def _factors(
        self, n_samples: int, weights: Weights = None
    ) -> np.ndarray:  # (n_samples,)
        """Return the forgetting factors of the next samples."""
        forgetting = resolve_schedule(self.schedule).forgetting
        if not isinstance(forgetting, Forgetting):
            forgetting = Forgetting(1.0 if forgetting is None else forgetting)
        return forgetting.factors(self.n_samples_seen_, n_samples, weights)

    def _refresh(self, summary: CodeSummary | Statistics) -> None:
        """Replace unused and duplicate atoms, and reset the counts."""
        use_and_worst = self.uses_, summary.worst, summary.worst_error
        indices, atoms = replacements(
            self.dictionary_, *use_and_worst, 1, MAX_COHERENCE
        )
        if len(indices):
            self._replace_atoms(indices, atoms)
        self.uses_ = np.zeros_like(self.uses_)


class StreamPasses(Alternation):
    """The alternation whose step is a pass over the rows.

    Its state has the attributes of the learner. A pass can be resumed after a batch.
    """

    def __init__(self, learner: StreamLearner, X: Any, weights: Weights = None) -> None:
        self.learner, self.X, self.weights = learner, X, weights
        self.sums = PassSums()

    def current(self) -> ExplicitDictionary:
        return self.learner.dictionary_

    def step(self, keep: Callable[[], None]) -> dict[str, float]:
        for _ in self.learner._learn_pass(self.X, self.sums, self.weights):
            keep()
        error = self.sums.error / self.sums.n_samples
        self.sums = PassSums()
        return {"objective": error}

    def state(self) -> dict[str, Any]:
        return {"learned": fitted_attributes(self.learner), "begun": vars(self.sums)}

    def resume(self, state: dict[str, Any]) -> None:
        self.learner._check_attributes(state["learned"])
        self.learner.__dict__.update(state["learned"])
        self.sums = PassSums(**state["begun"])


def _all_weights(X: Array, weights: Weights) -> np.ndarray:  # (n,)
    return np.ones(X.shape[0]) if weights is None else weights


def _in_memory(X: Array) -> Array:
    """Copy the rows, because a caller may overwrite or close X."""
    rows = read_rows(X, slice(0, X.shape[0]))
    return namespace(rows).asarray(rows, copy=True)
