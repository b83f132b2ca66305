"""`KernelKSVD` and `KernelMOD` learn atoms in the feature space of a kernel.

All training samples are anchors: their kernel matrix is computed once and held in
memory. If it does not fit, use `NystroemMap` followed by a linear learner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base.constraints import SAMPLES, StrOptions, clipped
from ..contracts import Array, AtomUpdate, SparseCoder
from ..data.missing import all_in_memory
from ..data.weights import (
    Weights,
    check_weights,
    draw_rows,
    drop_zero_weights,
    n_drawable,
    n_weighted_samples,
    weights_as_counts,
)
from ..dictionaries import GramDictionary, KernelDictionary
from ..kernels import Kernel, Precomputed, kernel_or_class, resolve
from ..kernels.complete import completed_rows
from ..kernels.samples import check_samples, describe_input, takes_rows
from ..numerics.arrays import as_like, diagonal, index_like, to_numpy
from ..numerics.random import generator
from ..updates import MODUpdate
from .code_and_update import BatchLearner, ksvd_update, start_generators
from .initial_atoms import check_row_numbers, count_row_numbers
from .kernel_atoms import KernelAtoms, kernel_matrix
from .schedule import Schedule

if TYPE_CHECKING:
    from typing_extensions import Self


class KernelLearner(KernelAtoms, BatchLearner):
    """A learner in the feature space of a kernel, with the training set as anchors."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BatchLearner._parameter_constraints,
        "kernel": [str, Kernel, callable],
        "init": [StrOptions({"samples", "normal"}), "array-like"],
    }

    _follows = ("warm_up", "exchange", "tol", "n_init", "steady")

    def __init__(
        self,
        kernel: str | Kernel | Callable[..., Any] = "rbf",
        n_components: int | None = None,
        *,
        n_nonzero_coefs: int | None = None,
        coder: str | SparseCoder | None = None,
        max_iter: int = 10,
        init: Any = "samples",
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
        self.schedule = schedule
        self.random_state = random_state
        self.sparse_output = sparse_output

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn a dictionary for φ of the samples in X; y is ignored.

        A sample of `sample_weight` w counts as w samples, as in `KSVD`.
        """
        self._validate_params()
        kernel = resolve(self.kernel)
        X = check_samples(self, X, kernel, reset=True, allow_nan=all_in_memory(X))
        weights = weights_as_counts(check_weights(sample_weight, X))
        if not isinstance(kernel, Precomputed):  # K(X_new, X) has all columns
            X, weights = drop_zero_weights(X, weights)
        X = completed_rows(X, weights)
        self.kernel_ = kernel.bound(X, weights)
        matrix = kernel_matrix(self.kernel_, X, type(self).__name__)
        starts = [
            (self._first_dictionary(matrix, rng, weights), rng)
            for rng in start_generators(generator(self.random_state), self._n_starts())
        ]
        n_features = X.shape[1] if X.ndim == 2 else X.shape[0]
        self.coder_ = self._coder(starts[0][0].n_atoms, n_features)
        rows = index_like(np.arange(X.shape[0]), matrix)
        dictionary = self._learn(starts, rows, weights)
        self.dictionary_ = KernelDictionary(
            self.kernel_,
            self.kernel_.take(X, rows),
            dictionary.coefs,
            known_gram=dictionary.gram(),
            typical_energy=float(np.average(to_numpy(diagonal(matrix)), 0, weights)),
        )
        return self

    def _first_dictionary(
        self, matrix: Array, rng: np.random.Generator, weights: Weights = None
    ) -> GramDictionary:
        if not isinstance(self.init, str):
            return self._dictionary_of_rows(matrix)
        usable = np.flatnonzero(to_numpy(diagonal(matrix)) > 0)
        usable_weights = None if weights is None else weights[usable]
        n_usable = n_weighted_samples(usable_weights, len(usable))
        n_atoms = self._n_atoms(n_usable, n_usable)
        n_max = len(usable) if usable_weights is None else n_drawable(usable_weights)
        if self.init == "normal":
            clipped("n_components", 1, n_max, SAMPLES)  # refuses 0 samples
            return _random_dictionary(matrix, n_atoms, rng, weights)
        n_atoms = clipped("n_components", n_atoms, n_max, SAMPLES)
        rows = usable[draw_rows(len(usable), n_atoms, rng, usable_weights)]
        return GramDictionary.of_samples(matrix, index_like(rows, matrix))

    def _n_atoms(self, n_usable: int, n_features: int, n_least: int = 0) -> int:
        return super()._n_atoms(n_usable, n_usable, n_least)  # φ has many features

    def _dictionary_of_rows(self, matrix: Array) -> GramDictionary:
        """Return a dictionary of the training samples whose row numbers `init` has."""
        n_atoms = self.n_components or count_row_numbers(self.init)
        rows = check_row_numbers(
            self.init, n_atoms, matrix.shape[0], "'samples', 'normal'"
        )
        return GramDictionary.of_samples(matrix, index_like(rows, matrix))

    def _check_new_samples(self, X: Any) -> Array:
        like = self._model_array
        return check_samples(
            self, X, self.kernel_, containers="dask", like=like, allow_nan=True
        )

    def _new_rows(self, X: Any) -> Any:
        """Return the new samples, checked; a list may be of samples, not of blocks."""
        return (
            super()._new_rows(X)
            if takes_rows(self.kernel_)
            else self._check_new_samples(X)
        )

    def __sklearn_tags__(self) -> Any:
        kernel = kernel_or_class(self.kernel)
        return describe_input(super().__sklearn_tags__(), kernel, allow_nan=True)


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
    n_nonzero_coefs, coder, max_iter, schedule, random_state, sparse_output
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
        schedule: str | Schedule | None = None,
        random_state: Any = None,
        sparse_output: bool = False,
    ) -> None:
        super().__init__(
            kernel,
            n_components,
            n_nonzero_coefs=n_nonzero_coefs,
            coder=coder,
            max_iter=max_iter,
            init=init,
            schedule=schedule,
            random_state=random_state,
            sparse_output=sparse_output,
        )
        self.update = update

    def _atom_update(self) -> AtomUpdate:
        return ksvd_update(self.update, self.coder)


class KernelMOD(KernelLearner):
    """Kernel method of optimal directions: A = (ΓᵀΓ)⁺Γᵀ, LKDL section III-B.

    Parameters
    ----------
    kernel, n_components, init
        As in `KernelKSVD`.
    n_nonzero_coefs, coder, max_iter, schedule, random_state, sparse_output
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

    def _atom_update(self) -> AtomUpdate:
        return MODUpdate()


def _random_dictionary(
    matrix: Array, n_atoms: int, rng: np.random.Generator, weights: Weights
) -> GramDictionary:
    """Draw combinations of all samples; a weight w multiplies coefficients by √w."""
    coefs = rng.standard_normal((n_atoms, matrix.shape[0]))
    if weights is not None:
        coefs = coefs * np.sqrt(weights)
    return GramDictionary.of_coefs(matrix, as_like(coefs, matrix))
