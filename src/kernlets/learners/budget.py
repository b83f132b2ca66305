"""`BudgetKernelDL` learns a kernel dictionary with few anchors from a stream.

`updates/budget_rules.py` has the rules, and `budget_anchors.py` has the anchors and a
pass over samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import numpy as np

from ..base.constraints import AT_LEAST_1, SAMPLES, StrOptions, clipped
from ..coders import OMP, Lasso
from ..contracts import Array, SparseCoder
from ..data.missing import all_in_memory
from ..data.rows import map_rows, row_batches, shuffled_batches
from ..data.stream import is_blocks
from ..data.weights import check_weights, repeat_by_weight
from ..dictionaries import KernelDictionary
from ..io.checkpoint import Checkpoint
from ..kernels import Kernel, kernel_or_class, resolve
from ..kernels.complete import completed_rows
from ..kernels.indefinite import check_kernel
from ..kernels.samples import check_samples, describe_input, takes_missing
from ..numerics.arrays import index_like, to_numpy
from ..numerics.random import generator
from ..schema import Declared, Part, Whole
from ..updates.budget_rules import Budget, as_budget
from .base import DictionaryLearner
from .budget_anchors import BLOCK, AnchorStock, BudgetPasses, complete_first_samples
from .kernel_atoms import KernelAtoms
from .loop import Monitor, iterate
from .schedule import Schedule

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
        X = complete_first_samples(X)
        self.kernel_ = kernel.bound(X)
        check_kernel(self.kernel_, X)
        start = self._initial_coefs(n_atoms, rng)
        self.coder_ = self._coder(start.shape[1], X.shape[-1])
        self.stock_ = AnchorStock.empty(self.kernel_, X, start)
        self.n_samples_seen_ = 0

    def _initial_coefs(
        self, n_atoms: int | None, rng: np.random.Generator
    ) -> np.ndarray:  # (s, m)
        """Return the coefficients of the first anchors."""
        budget = as_budget(self.budget)
        if isinstance(self.init, str):
            shape = budget.n_first, n_atoms or N_ATOMS
            return COEFS_SCALE * rng.standard_normal(shape)
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
        """Run passes over samples; each pass is an iteration of the history.

        If the samples raise an error, the learner is unchanged.
        """
        alternation = BudgetPasses(
            self.stock_,
            self.n_samples_seen_,
            self.kernel_,
            self.coder_,
            as_budget(self.budget),
            passes,
            rng,
        )
        history, n_iter = iterate(alternation, Monitor.of(self, n_passes), checkpoint)
        self.dictionary_ = alternation.dictionary
        self.history_, self.n_iter_ = history, n_iter
        self.stock_ = alternation.stock
        self.n_samples_seen_ = alternation.n_samples_seen

    def _coder(self, n_atoms: int, n_features: int) -> SparseCoder:
        if self.coder is None and self.n_nonzero_coefs is None:
            return Lasso(PENALTY)
        coder = super()._coder(n_atoms, n_features)
        if not isinstance(coder, (Lasso, OMP)):
            raise ValueError(f"coder={self.coder!r} must be 'lasso' or 'omp'")
        if isinstance(coder, Lasso) and coder.l1_ratio != 1:
            raise ValueError(
                f"coder={self.coder!r}: on a budget codes are penalised by the l1 norm "
                "alone: set l1_ratio=1"
            )
        return coder

    def _check_new_samples(self, X: Any) -> Array:
        like = self._model_array
        return check_samples(
            self, X, self.kernel_, containers="disk", like=like, allow_nan=True
        )

    def __sklearn_tags__(self) -> Any:
        kernel = kernel_or_class(self.kernel)
        return describe_input(super().__sklearn_tags__(), kernel, allow_nan=True)
