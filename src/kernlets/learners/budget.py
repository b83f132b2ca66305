"""`BudgetKernelDL` learns a kernel dictionary with few anchors from a stream.

`updates/budget_rules.py` has the rules, and `budget_anchors.py` has the anchors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, cast

import numpy as np

from ..base.constraints import AT_LEAST_1, SAMPLES, StrOptions, clipped
from ..coders import OMP, Lasso
from ..coders.lasso import unfinished_message
from ..contracts import Array, SparseCoder
from ..data.missing import all_in_memory, any_missing, drop_empty_rows, has_missing
from ..data.rows import map_rows, row_batches, shuffled_batches, take_rows
from ..data.stream import is_blocks
from ..data.weights import check_weights, repeat_by_weight
from ..dictionaries import KernelDictionary
from ..io.checkpoint import Checkpoint, fitting
from ..kernels import Kernel, kernel_or_class, resolve
from ..kernels.complete import completed_rows, filled_over
from ..kernels.indefinite import check_kernel
from ..kernels.samples import check_samples, describe_input, takes_missing
from ..numerics.arrays import diagonal, index_like, namespace, to_numpy
from ..numerics.convergence import warn_unfinished
from ..numerics.random import generator
from ..numerics.scaling import all_finite
from ..schema import Declared, Part, Whole, check
from ..updates.admission import as_admission
from ..updates.budget_rules import Budget, as_budget, as_gradient_step, pursuit_of
from .base import DictionaryLearner
from .budget_anchors import GIANT, AnchorStock
from .kernel_atoms import KernelAtoms
from .loop import Alternation, Monitor, iterate
from .schedule import Schedule, resolve_schedule

BLOCK = 64  # samples whose kernel rows are evaluated together
N_FIRST_INCOMPLETE = 4 * BLOCK  # first samples with missing values, if X has any
NORM_TOLERANCE = 1e-4  # deviation of squared norms from 1 that rounding explains
N_ATOMS = 50  # default number of atoms
PENALTY = 0.05  # λ of the default coder
COEFS_SCALE = 0.1  # of first coefficients; with 1 first anchors are never pruned


class BudgetKernelDL(KernelAtoms, DictionaryLearner):
    """Online kernel dictionary learning with at most `budget` anchors.

    Atoms are D = Φ(anchors) Ω. Each sample is coded, min ½‖φ(x) − Dα‖² + λ‖α‖₁, may
    become an anchor, and changes Ω by a gradient step. If there are then more anchors
    than the budget allows, the least important one is removed. This is Table I of
    "Online Kernel Dictionary Learning on a Budget". Time and memory per sample are
    constant.

    Parameters
    ----------
    kernel : str, Kernel or callable
        Any kernel except a precomputed one.
    n_components : int, optional
        Number of atoms; it may exceed the budget. Default: 50, in `fit` at most a
        quarter of the samples.
    n_nonzero_coefs : int, optional
        Number of non-zeros per code, found by `OMP`. Atoms then keep unit norm, eq.
        (3), instead of being penalised, because codes without a penalty could grow
        while atoms shrink.
    coder : Lasso, OMP or the name of either, optional
        Default: ``Lasso(0.05)``.
    max_iter : int
        Number of passes over X in `fit`, each in a new random order.
    init : "normal" or array (n_first, n_components)
        Coefficients of the first anchors: 0.1 times standard normal, or the given ones.
    budget : int or Budget
        Largest number of anchors, or also the rules of admission, update and pruning:
        ``Budget(40, "coherence", pruning="error")``.
    schedule, random_state, sparse_output
        As in `KSVD`; an iteration is a pass over X.

    Attributes
    ----------
    anchors_ : array (r, p)
        The anchors.
    coefs_ : array (m, r)
        Coefficients Ωᵀ of the atoms over the anchors.
    dictionary_ : KernelDictionary
        The atoms as a dictionary.
    stock_ : AnchorStock
        The state from which `partial_fit` continues.
    kernel_ : Kernel
        The kernel with all parameters set.
    coder_ : SparseCoder
        The pursuit in use.
    n_samples_seen_ : int
        Number of samples learned from, in all calls.
    history_ : dict
        Per pass (of the last call, for `partial_fit`): ``objective``, the mean squared
        error of each sample before the atoms learned from it; ``cost``, the mean of
        ½‖φ(x) − Dα‖² + λ‖α‖₁ + ½μ‖D‖²; and ``seconds``.
    n_iter_ : int
        Number of passes.

    Examples
    --------
    >>> from kernlets import BudgetKernelDL, datasets
    >>> X = datasets.load("digits").X_train
    >>> learner = BudgetKernelDL("poly:2", 20, budget=40, random_state=0)
    >>> for block in (X[:500], X[500:]):
    ...     learner = learner.partial_fit(block)
    >>> learner.coefs_.shape
    (20, 40)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DictionaryLearner._parameter_constraints,
        "kernel": [str, Kernel, callable],
        "coder": [str, Lasso, OMP, None],
        "init": [StrOptions({"normal"}), "array-like"],
        "budget": [AT_LEAST_1, Budget],
    }

    _declared: ClassVar[Declared] = {
        "coder_": Part(Lasso, OMP),
        "stock_": Part(AnchorStock, m="m", p="p", r="r"),
        "dictionary_": Part(KernelDictionary, m="m", p="p", r="r"),
        "n_samples_seen_": Whole(),
    }

    def __init__(
        self,
        kernel: str | Kernel | Callable[..., Any] = "rbf",
        n_components: int | None = None,
        *,
        n_nonzero_coefs: int | None = None,
        coder: str | SparseCoder | None = None,
        max_iter: int = 10,
        init: Any = "normal",
        budget: int | Budget = 100,
        schedule: str | Schedule | None = None,
        random_state: Any = None,
        sparse_output: bool = False,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.n_nonzero_coefs = n_nonzero_coefs
        self.coder = coder
        self.max_iter = max_iter
        self.init = init
        self.budget = budget
        self.schedule = schedule
        self.random_state = random_state
        self.sparse_output = sparse_output

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BudgetKernelDL:
        """Learn from `max_iter` passes over the samples in X; y is ignored.

        X may be a list of row blocks or `Blocks`; blocks are read in their own order.
        A sample is repeated as often as `sample_weight`, a whole number, says.
        """
        self._validate_params()
        kernel = self._resolve_kernel()
        if is_blocks(X):
            X, first_rows = self._check_blocks(X)
        else:
            X = check_samples(self, X, kernel, reset=True, allow_nan=all_in_memory(X))
            first_rows = X
        if sample_weight is not None:
            X = first_rows = self._repeat_samples(X, sample_weight)
        n_atoms = self.n_components
        if first_rows is X:  # X is no stream of blocks
            X = first_rows = completed_rows(X)
            n_atoms = self._clip_n_atoms(kernel.bound(X), X)
        rng = generator(self.random_state)
        self._begin(kernel, first_rows, n_atoms, rng)
        checkpoint = Checkpoint.of(self, samples=X, start=self.stock_.start)
        passes = (shuffled_batches(X, BLOCK, rng) for _ in range(self.max_iter))
        self._run(passes, self.max_iter, checkpoint, rng)
        return self

    @property
    def _streams_missing(self) -> bool:
        return takes_missing(kernel_or_class(self.kernel))

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> BudgetKernelDL:
        """Learn from the next samples of a stream, one or many; y is ignored.

        A sample is repeated as often as `sample_weight`, a whole number, says. Missing
        values (NaN) are filled in from the present anchors; those of the first 64
        samples are filled in from each other.
        """
        self._validate_params()
        has_started = hasattr(self, "stock_")
        kernel = self.kernel_ if has_started else self._resolve_kernel()
        like = self.stock_.coefs if has_started else None
        X = check_samples(
            self,
            X,
            kernel,
            reset=not has_started,
            like=like,
            allow_nan=self._streams_missing,
        )
        X = self._repeat_samples(X, sample_weight)
        if not has_started:
            rng = generator(self.random_state)
            self._begin(kernel, X, self.n_components, rng)
        self._run(iter([row_batches(X, BLOCK)]), 1)
        return self

    def _repeat_samples(self, X: Array, sample_weight: Any) -> Array:
        """Repeat each sample as often as its weight says, in the order of X."""
        weights = check_weights(sample_weight, X)
        rows = repeat_by_weight(X.shape[0], weights, type(self).__name__)
        return X if rows is None else X[index_like(rows, X)]

    def _validate_params(self) -> None:
        super()._validate_params()
        as_budget(self.budget).check()

    def _resolve_kernel(self) -> Kernel:
        kernel = resolve(self.kernel)
        if kernel.by_index:
            raise ValueError(
                "kernel='precomputed' knows only the samples of one matrix and cannot "
                "learn from a stream: use KernelKSVD"
            )
        return kernel

    def _class_defaults(self, *ignored: Any) -> dict[str, int]:
        return {}

    def _clip_n_atoms(self, kernel: Kernel, X: Array) -> int | None:
        """Return `n_components`, at most the number of samples to learn from."""
        energies = map_rows(kernel.diag, X, row_bytes=8 * X.shape[-1])
        n_usable = int((to_numpy(energies) > 0).sum())
        n_atoms = self.n_components
        if n_atoms is None and isinstance(self.init, str):
            n_atoms = max(1, min(N_ATOMS, n_usable // 4))
        n_clipped = clipped("n_components", n_atoms or 1, n_usable, SAMPLES)
        return n_atoms and n_clipped

    def _begin(
        self, kernel: Kernel, X: Array, n_atoms: int | None, rng: np.random.Generator
    ) -> None:
        """Set the state before the first sample."""
        X = self._complete_first_samples(X)
        kernel = kernel.bound(X)
        check_kernel(kernel, X)
        start = self._initial_coefs(n_atoms, rng)
        self.kernel_ = kernel
        self.coder_ = self._coder(start.shape[1], X.shape[-1])
        self.stock_ = AnchorStock.empty(kernel, X, start)
        self.n_samples_seen_ = 0

    def _complete_first_samples(self, X: Array) -> Array:
        """Return X, or, if values are missing, its first samples, completed."""
        if not any_missing(X):
            return X
        if not all_in_memory(X):
            X = take_rows(X, np.arange(min(X.shape[0], 16 * N_FIRST_INCOMPLETE)))
        observed = drop_empty_rows(X)[:N_FIRST_INCOMPLETE]
        if observed.shape[0] == 0:
            raise ValueError(
                "X has no sample of which anything is known to begin with: pass "
                "samples with at least one entry that is not NaN"
            )
        return completed_rows(observed)

    def _initial_coefs(
        self, n_atoms: int | None, rng: np.random.Generator
    ) -> np.ndarray:  # (s, m)
        """Return the coefficients of the first anchors."""
        budget = as_budget(self.budget)
        if isinstance(self.init, str):
            n_first = min(as_admission(budget.admission).n_first, budget.n_anchors)
            return COEFS_SCALE * rng.standard_normal((n_first, n_atoms or N_ATOMS))
        try:
            start = np.asarray(self.init, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(
                "init must be numbers, one row for each of the first anchors, not "
                f"{type(self.init).__name__}: pass an array, or leave init out"
            ) from error
        n_columns = n_atoms or (start.shape[1] if start.ndim == 2 else 1)
        has_columns = start.ndim == 2 and start.shape[1] == n_columns
        if not has_columns or not 0 < len(start) <= budget.n_anchors:
            raise ValueError(
                f"init of shape {start.shape} must have a row for each of the first "
                f"anchors, at most budget={budget.n_anchors}, and {n_columns} columns"
            )
        return start

    def _run(
        self,
        passes: Iterator[Iterable[Array]],
        n_passes: int,
        checkpoint: Checkpoint | None = None,
        rng: np.random.Generator | None = None,  # that orders the samples of a pass
    ) -> None:
        """Run passes over samples; each pass is an iteration of the history."""
        monitor = Monitor.of(self, n_passes, schedule=resolve_schedule(self.schedule))
        alternation = BudgetPasses(self, passes, rng)
        self.history_, self.n_iter_ = iterate(alternation, monitor, checkpoint)

    def _resume(self, state: dict[str, Any]) -> None:
        """Continue from the state of a checkpoint."""
        stock, (_, p) = AnchorStock(**state["stock"]), self.stock_.anchors.shape
        fitting(stock.start, self.stock_.start)
        if check(stock)["p"] != p:
            raise ValueError(f"it has anchors of other samples than those with {p}")
        self.stock_ = stock
        self.n_samples_seen_ = state["n_samples_seen"]
        self._set_dictionary()

    def _learn_pass(self, batches: Iterable[Array]) -> tuple[float, float]:
        """Learn from one pass; return the mean squared error and the mean cost.

        If the samples raise an error, the learner is unchanged.
        """
        stock, n_seen = self.stock_, self.n_samples_seen_
        budget = as_budget(self.budget)
        update = as_gradient_step(budget.update)
        rules = budget.rules(isinstance(self.coder_, OMP), stock.start)
        pursuit = pursuit_of(self.coder_, stock.start)
        n_learned, n_unstable, sums, converged = 0, 0, np.zeros(2), True
        for batch in batches:
            samples = _complete_batch(stock, batch)
            steps = update.steps(n_seen, samples.shape[0])
            stock, outcome = stock.learn(self.kernel_, samples, steps, rules, pursuit)
            n_seen += samples.shape[0]
            n_learned += len(outcome.errors)
            n_unstable += outcome.n_unstable
            converged = converged and bool(outcome.converged.all())
            sums += [float(outcome.errors.sum()), float(outcome.costs.sum())]
        self._check_outcome(stock, sums, n_unstable, update.guard)
        if not converged:
            warn_unfinished(unfinished_message(cast(Lasso, self.coder_)))
        self._warn_of_giants(n_seen - self.n_samples_seen_ - n_learned)
        self.stock_, self.n_samples_seen_ = stock, n_seen
        self._set_dictionary()
        return float(sums[0]) / max(n_learned, 1), float(sums[1]) / max(n_learned, 1)

    def _warn_of_giants(self, n_skipped: int) -> None:
        if n_skipped:
            warnings.warn(
                f"{n_skipped} samples were not learned from: their κ(x, x) is over "
                f"{GIANT:g} times that of any anchor, and they would outweigh all "
                "others for good. Scale the samples, e.g. with UnitNorm; if the stream "
                "has changed its scale, fit a new learner",
                stacklevel=8,
            )

    def _check_outcome(
        self, stock: AnchorStock, sums: np.ndarray, n_unstable: int, guard: bool
    ) -> None:
        arrays = sums, stock.coefs, stock.gram()
        if not all(all_finite(array) for array in arrays):
            raise ValueError(
                "the coefficients have grown without bound: scale the samples, e.g. "
                "with UnitNorm, set guard=True in the update of the budget, or a "
                "smaller step"
            )
        if n_unstable and not guard:
            warnings.warn(
                f"{n_unstable} steps were too long to lower the cost of their sample, "
                "and the coefficients may grow without bound: set guard=True or a "
                "smaller step in update",
                stacklevel=8,
            )

    def _set_dictionary(self) -> None:
        """Set `dictionary_` from the stock of anchors."""
        stock = self.stock_
        if len(stock) == 0:
            raise ValueError(
                "X has no non-zero samples (in feature space) to begin with"
            )
        coefs = namespace(stock.coefs).asarray(stock.coefs.T, copy=True)
        gram = stock.gram()
        if isinstance(self.coder_, OMP):
            coefs, gram = _rescale_atoms(coefs, gram, diagonal(stock.matrix))
        self.dictionary_ = KernelDictionary(
            self.kernel_, stock.anchors, coefs, known_gram=gram
        )

    def _coder(self, n_atoms: int, n_features: int) -> SparseCoder:
        if self.coder is None and self.n_nonzero_coefs is None:
            return Lasso(PENALTY)
        coder = super()._coder(n_atoms, n_features)
        if not isinstance(coder, (Lasso, OMP)):
            raise ValueError(f"coder={self.coder!r} must be 'lasso' or 'omp'")
        return coder

    def _check_new_samples(self, X: Any) -> Array:
        like = self._model_array
        return check_samples(
            self, X, self.kernel_, containers="disk", like=like, allow_nan=True
        )

    def __sklearn_tags__(self) -> Any:
        kernel = kernel_or_class(self.kernel)
        return describe_input(super().__sklearn_tags__(), kernel, allow_nan=True)


class BudgetPasses(Alternation):
    """The alternation whose step is a pass over samples; the stock is its state."""

    def __init__(
        self,
        learner: BudgetKernelDL,
        passes: Iterator[Iterable[Array]],
        rng: np.random.Generator | None,
    ) -> None:
        self.learner, self.passes, self.rng = learner, passes, rng

    def current(self) -> KernelDictionary:
        return self.learner.dictionary_

    def step(self, keep: Callable[[], None]) -> dict[str, float]:
        error, cost = self.learner._learn_pass(next(self.passes))
        return {"objective": error, "cost": cost}

    def state(self) -> dict[str, Any]:
        stock, n_seen = vars(self.learner.stock_), self.learner.n_samples_seen_
        return {"stock": stock, "n_samples_seen": n_seen, "rng": self.rng}

    def resume(self, state: dict[str, Any]) -> None:
        if self.rng is not None:
            self.rng.bit_generator.state = state["rng"].bit_generator.state
        self.learner._resume(state)


def _complete_batch(stock: AnchorStock, batch: Array) -> Array:
    """Complete missing values of a batch; rows with nothing observed are left out."""
    if not has_missing(batch):
        return batch
    observed = drop_empty_rows(batch)
    return (
        filled_over(observed, stock.anchors) if len(stock) else completed_rows(observed)
    )


def _rescale_atoms(
    coefs: Array,  # (m, r)
    gram: Array,  # (m, m)
    energies: Array,  # (r,) of the anchors
) -> tuple[Array, Array | None]:
    """Scale atoms to unit norm if rounding or pruning has changed their norm.

    An atom that lost all its anchors is replaced by φ of one of the anchors.
    """
    squared_norms = to_numpy(diagonal(gram)).astype(np.float64)
    deviating = np.flatnonzero(~(np.abs(squared_norms - 1) <= NORM_TOLERANCE))
    if len(deviating) == 0:
        return coefs, gram
    for j in deviating:
        if not squared_norms[j] > 0:
            anchor = int(j) % coefs.shape[1]
            coefs[j], coefs[j, anchor] = 0, 1
            squared_norms[j] = float(energies[anchor])
        coefs[j] /= float(np.sqrt(squared_norms[j]))
    return coefs, None
