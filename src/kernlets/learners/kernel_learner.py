"""`KernelAtoms` and `KernelLearner` are base classes of learners in feature spaces.

The atoms of `KernelAtoms` are sums over φ(anchors). The anchors of a `KernelLearner`
are all training samples: their kernel matrix is computed once and held in memory. If it
does not fit, use `NystroemMap` followed by a linear learner.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..base.constraints import SAMPLES, StrOptions, clipped
from ..contracts import Array, SparseCoder
from ..data.block_loop import stacked_rows
from ..data.limits import OverMemory, memory_limit
from ..data.missing import all_in_memory
from ..data.rows import refuse_nan_on_disk
from ..data.samples import is_objects
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
from ..kernels.indefinite import check_matrix, refuse_negative_energy
from ..kernels.samples import check_samples, describe_input, takes_rows
from ..loops.codes import decode
from ..numerics.arrays import as_like, diagonal, index_like, namespace, to_numpy
from ..numerics.random import generator
from ..numerics.text import size_text
from ..preimage import preimages
from ..schema import Conditions, Declared, Part
from .base import map_codes
from .batch_learner import BatchLearner
from .code_and_update import start_generators
from .initial_atoms import check_row_numbers, count_row_numbers
from .schedule import Schedule

if TYPE_CHECKING:
    from typing_extensions import Self


class KernelAtoms:
    """Has the anchors and coefficients of the dictionary, and `inverse_transform`."""

    _declared: ClassVar[Declared] = {
        "kernel_": Part(Kernel),
        "dictionary_": Part(KernelDictionary, m="m", p="p"),
    }
    _conditions: ClassVar[Conditions] = {
        "anchors_ are row numbers beyond the training samples": lambda self: (
            anchors_exist(self.dictionary_.anchors, self.n_features_in_)
        ),
    }

    dictionary_: KernelDictionary

    @property
    def anchors_(self) -> Array:  # (r, p)
        """The points zᵢ whose φ(zᵢ) the atoms combine."""
        check_is_fitted(self)
        return self.dictionary_.anchors

    @property
    def coefs_(self) -> Array:  # (m, r)
        """Atom j is Σᵢ coefs_[j, i] φ(anchors_[i])."""
        check_is_fitted(self)
        return self.dictionary_.coefs

    def inverse_transform(self, codes: Any) -> Array:  # (n, p)
        """Points whose φ is near the element Σⱼ codes[·, j] · atomⱼ of feature space.

        Pre-images are approximate; `preimage.preimages` reports their distances.
        """
        points = partial(_find_preimages, self.dictionary_.kernel, self.anchors_)
        return map_codes(points, codes, self.coefs_)


def _find_preimages(kernel: Kernel, anchors: Array, coefs: Array, codes: Any) -> Array:
    return preimages(kernel, anchors, decode(coefs, codes)).points


def anchors_exist(anchors: Array, n_samples: int) -> bool:
    """Whether anchors of a precomputed kernel, which are row numbers, exist."""
    if anchors.ndim > 1 or is_objects(anchors):
        return True
    return int(anchors.max()) < n_samples


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


def _random_dictionary(
    matrix: Array, n_atoms: int, rng: np.random.Generator, weights: Weights
) -> GramDictionary:
    """Draw combinations of all samples; a weight w multiplies coefficients by √w."""
    coefs = rng.standard_normal((n_atoms, matrix.shape[0]))
    if weights is not None:
        coefs = coefs * np.sqrt(weights)
    return GramDictionary.of_coefs(matrix, as_like(coefs, matrix))


def kernel_matrix(kernel: Kernel, X: Array, estimator_name: str) -> Array:  # (N, N)
    """Compute K(X, X) by blocks; OverMemory if it exceeds the memory option."""
    n = X.shape[0]
    itemsize = X.dtype.itemsize if X.dtype.itemsize in (4, 8) and X.ndim > 1 else 8
    _check_memory(n, itemsize, memory_limit(X), estimator_name)
    if isinstance(kernel, Precomputed):
        refuse_nan_on_disk(X)
        check_matrix(kernel, X)
        return namespace(X).asarray(X, copy=False)
    anchors = kernel.take(X, index_like(np.arange(n), X)) if X.ndim == 1 else X
    matrix = stacked_rows(lambda block: kernel(block, anchors), X, n * itemsize)
    refuse_negative_energy(kernel, diagonal(matrix))
    check_matrix(kernel, matrix)
    return matrix


def _check_memory(n: int, itemsize: int, memory: int, estimator_name: str) -> None:
    n_bytes = 1.3 * itemsize * n * n
    if n_bytes <= memory:
        return
    n_landmarks = min(n, max(100, int(memory / (16 * itemsize * n))))
    raise OverMemory(
        f"{estimator_name} needs about {size_text(n_bytes)} for the kernel matrix of "
        f"{n} samples, over the memory option of {size_text(memory)}",
        f"use make_pipeline(NystroemMap(kernel, n_landmarks={n_landmarks}), "
        "KSVD(...)), pass float32, or raise it with kernlets.options(memory=...)",
        f"use --method lkdl --n-landmarks {n_landmarks}, or raise --memory",
    )
