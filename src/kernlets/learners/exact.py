"""Exact kernel dictionary learning: atoms are combinations of all training samples.

The kernel matrix of the training samples is computed once and held in memory. If it
does not fit, use `NystroemMap` followed by a linear learner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..backend.arrays import as_like, diagonal, index_like, namespace, to_numpy
from ..backend.block_loop import stacked_rows
from ..backend.clipping import SAMPLES, clipped
from ..backend.constraints import StrOptions
from ..backend.memory_limits import OverMemory, memory_limit
from ..backend.missing_rows import all_in_memory
from ..backend.random import generator
from ..backend.rows import refuse_nan_on_disk
from ..backend.text import size_text
from ..backend.weights import (
    Weights,
    check_weights,
    draw_rows,
    drop_zero_weights,
    n_drawable,
    n_weighted_samples,
    weights_as_counts,
)
from ..core import Array, AtomUpdate, Kernel, SparseCoder
from ..dictionaries import GramDictionary, KernelDictionary
from ..kernels import Precomputed, resolve
from ..kernels.check_samples import check_samples, describe_input, takes_rows
from ..kernels.complete import completed_rows
from ..kernels.definite import check_matrix, refuse_negative_energy
from ..updates import MODUpdate
from .batch import BatchLearner, ksvd_update
from .first_atoms import given_rows, n_given
from .kernel_atoms import KernelAtoms
from .race import starting_points
from .warm_up import PACE

if TYPE_CHECKING:
    from typing_extensions import Self


class KernelLearner(KernelAtoms, BatchLearner):
    """A learner in the feature space of a kernel, with the training set as anchors."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BatchLearner._parameter_constraints,
        "kernel": [str, Kernel, callable],
        **PACE,
        "init": [StrOptions({"samples", "normal"}), "array-like"],
    }

    kernel: Any
    init: Any

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn a dictionary for φ of the samples in X; y is ignored.

        A sample of `sample_weight` w counts as w samples, as in `KSVD`.
        """
        self._validate_params()
        kernel = resolve(self.kernel)
        X = check_samples(self, X, kernel, reset=True, allow_nan=all_in_memory(X))
        weights = weights_as_counts(check_weights(sample_weight, X))
        if not isinstance(kernel, Precomputed):  # new samples need all of its columns
            X, weights = drop_zero_weights(X, weights)
        X = completed_rows(X, weights)
        self.kernel_ = kernel.bound(X, weights)
        matrix = kernel_matrix(self.kernel_, X, type(self).__name__)
        rng = generator(self.random_state)
        start, *others = [
            (self._first_dictionary(matrix, each, weights), each)
            for each in starting_points(rng, self._n_starts())
        ]
        rows = index_like(np.arange(X.shape[0]), matrix)
        n_features = X.shape[1] if X.ndim == 2 else X.shape[0]
        trained = self._learn(start[0], rows, n_features, rng, weights, others)
        self.dictionary_ = KernelDictionary(
            self.kernel_,
            self.kernel_.take(X, rows),
            trained.coefs,
            known_gram=trained.gram(),
            typical_energy=float(np.average(to_numpy(diagonal(matrix)), 0, weights)),
        )
        return self

    def _first_dictionary(
        self, matrix: Array, rng: np.random.Generator, weights: Weights = None
    ) -> GramDictionary:
        if not isinstance(self.init, str):
            return self._given_dictionary(matrix)
        usable = np.flatnonzero(to_numpy(diagonal(matrix)) > 0)
        often = None if weights is None else weights[usable]
        n_usable = n_weighted_samples(often, len(usable))
        n_atoms = self._n_atoms(n_usable, n_usable)
        most = len(usable) if often is None else n_drawable(often)
        if self.init == "normal":
            clipped("n_components", 1, most, SAMPLES)  # is there a sample at all?
            return _mixed_dictionary(matrix, n_atoms, rng, weights)
        n_atoms = clipped("n_components", n_atoms, most, SAMPLES)
        chosen = usable[draw_rows(len(usable), n_atoms, rng, often)]
        return GramDictionary.of_samples(matrix, index_like(chosen, matrix))

    def _n_atoms(self, n_usable: int, n_features: int, few: int = 0) -> int:
        return super()._n_atoms(n_usable, n_usable, few)  # φ has many features

    def _given_dictionary(self, matrix: Array) -> GramDictionary:
        """Atoms from `init`, given as row numbers of training samples."""
        wanted = self.n_components or n_given(self.init)
        rows = given_rows(self.init, wanted, matrix.shape[0], "'samples', 'normal'")
        return GramDictionary.of_samples(matrix, index_like(rows, matrix))

    def _checked(self, X: Any) -> Array:
        like = self._model_array
        return check_samples(
            self, X, self.kernel_, lazy=True, like=like, allow_nan=True
        )

    def _new_rows(self, X: Any) -> Any:
        """Samples that are arrays themselves are no blocks of rows."""
        return super()._new_rows(X) if takes_rows(self.kernel_) else self._checked(X)

    def __sklearn_tags__(self) -> Any:
        kernel = resolve(self.kernel)
        return describe_input(super().__sklearn_tags__(), kernel, allow_nan=True)


def _mixed_dictionary(
    matrix: Array, n_atoms: int, rng: np.random.Generator, weights: Weights
) -> GramDictionary:
    """Random combinations of all samples; w equal ones add up to √w times one."""
    coefs = rng.standard_normal((n_atoms, matrix.shape[0]))
    if weights is not None:
        coefs = coefs * np.sqrt(weights)
    return GramDictionary.of_coefs(matrix, as_like(coefs, matrix))


def kernel_matrix(kernel: Kernel, X: Array, who: str) -> Array:  # (N, N)
    """K(X, X), block by block, if it fits into the memory option."""
    n = X.shape[0]
    itemsize = X.dtype.itemsize if X.dtype.itemsize in (4, 8) and X.ndim > 1 else 8
    _refuse_large(n, itemsize, memory_limit(X), who)
    if isinstance(kernel, Precomputed):
        refuse_nan_on_disk(X)
        check_matrix(kernel, X)
        return namespace(X).asarray(X, copy=False)
    Y = kernel.take(X, index_like(np.arange(n), X)) if X.ndim == 1 else X
    matrix = stacked_rows(lambda block: kernel(block, Y), X, n * itemsize)
    refuse_negative_energy(kernel, diagonal(matrix))
    check_matrix(kernel, matrix)
    return matrix


def _refuse_large(n: int, itemsize: int, memory: int, who: str) -> None:
    need = 1.3 * itemsize * n * n
    if need <= memory:
        return
    advised = min(n, max(100, int(memory / (16 * itemsize * n))))
    raise OverMemory(
        f"{who} needs about {size_text(need)} for the kernel matrix of {n} samples, "
        f"over the memory option of {size_text(memory)}",
        f"use make_pipeline(NystroemMap(kernel, n_landmarks={advised}), KSVD(...)), "
        "pass float32, or raise it with kernlets.options(memory=...)",
        f"use --method lkdl --n-landmarks {advised}, or raise --memory",
    )


class KernelKSVD(KernelLearner):
    """Kernel K-SVD: minimises Σ‖φ(xᵢ) − Φ(X)Aᵀγᵢ‖² with sparse γᵢ. LKDL eq. (14).

    The products of atoms and samples, K·A, are updated atom by atom, so that one
    iteration costs about m·N·(m + q) operations instead of m·N².

    Parameters
    ----------
    kernel : str, Kernel or callable
        E.g. ``"poly:2"``, ``RBF(sigma=2)``, ``"precomputed"`` (fit on K(X, X),
        transform on K(X_new, X)) or a function of two blocks of samples. With a
        function the samples may be strings, graphs or matrices.
    n_components : int, optional
        Number of atoms. Default: a quarter of the samples, at most 500.
    n_nonzero_coefs, coder, max_iter, random_state, verbose, callback, sparse_output
        As in `KSVD`.
    warm_up, exchange, tol, n_init, steady
        As in `KSVD`.
    init : {"samples", "normal"} or array of row numbers
        The training samples that serve as first atoms: random ones, or those given;
        with "normal" the first atoms are random combinations of all samples, as
        coefficients drawn from a normal distribution give them.
    update : str or AtomUpdate
        As in `KSVD`.

    Attributes
    ----------
    anchors_ : array (N, p)
        The training samples (row numbers if the kernel is precomputed).
    coefs_ : array (m, N)
        Coefficients of the atoms over the training samples.
    dictionary_ : KernelDictionary
        The atoms as a dictionary.
    kernel_ : Kernel
        The kernel with all parameters set.
    coder_, history_, n_iter_
        As in `KSVD`.

    Examples
    --------
    >>> from kernlets import KernelKSVD, datasets
    >>> digits = datasets.load("digits")
    >>> learner = KernelKSVD("poly:2", 30, n_nonzero_coefs=3, random_state=0)
    >>> learner.fit(digits.X_train[:200]).transform(digits.X_test[:5]).shape
    (5, 30)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelLearner._parameter_constraints,
        "update": [str, AtomUpdate],
    }

    def __init__(
        self,
        kernel: str | Kernel | Callable[..., Any] = "rbf",
        n_components: int | None = None,
        *,
        n_nonzero_coefs: int | None = None,
        coder: str | SparseCoder | None = None,
        max_iter: int = 10,
        init: Any = "samples",
        update: str | AtomUpdate = "ksvd",
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
        self.kernel = kernel
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
        self.warm_up = warm_up
        self.exchange = exchange
        self.tol = tol
        self.n_init = n_init
        self.steady = steady

    def _atom_update(self) -> AtomUpdate:
        return ksvd_update(self.update, self.coder)


class KernelMOD(KernelLearner):
    """Kernel method of optimal directions: A = (ΓᵀΓ)⁺Γᵀ, LKDL section III-B.

    Parameters
    ----------
    kernel, n_components, init
        As in `KernelKSVD`.
    n_nonzero_coefs, coder, max_iter, random_state, verbose, callback, sparse_output
        As in `KSVD`.
    warm_up, exchange, tol, n_init, steady
        As in `KSVD`.

    Attributes
    ----------
    anchors_, coefs_, dictionary_, kernel_, coder_, history_, n_iter_
        As in `KernelKSVD`.

    Examples
    --------
    >>> from kernlets import KernelMOD, datasets
    >>> digits = datasets.load("digits")
    >>> learner = KernelMOD("poly:2", 30, n_nonzero_coefs=3, random_state=0)
    >>> learner.fit(digits.X_train[:200]).transform(digits.X_test[:5]).shape
    (5, 30)
    """

    def __init__(
        self,
        kernel: str | Kernel | Callable[..., Any] = "rbf",
        n_components: int | None = None,
        *,
        n_nonzero_coefs: int | None = None,
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
        self.kernel = kernel
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
