"""`SRCClassifier`: sparse representation over all training samples as atoms."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..base.constraints import AT_LEAST_1
from ..base.estimator import check_fitted
from ..coders import BOTH, OMP, at_most_all, encode, resolve_coder
from ..coders.masked import (
    AllFeatures,
    refuse_incomplete_groups,
    restricted_products,
    restricted_solve,
)
from ..contracts import Array, SparseCoder, SparseCodes
from ..data.missing import (
    all_in_memory,
    apply_by_completeness,
    group_by_mask,
    split_mask,
)
from ..data.rows import evenly_spaced_rows, map_rows
from ..dictionaries import KernelDictionary
from ..kernels import Kernel, kernel_or_class, resolve
from ..kernels.samples import check_samples, describe_input
from ..learners.kernel_atoms import anchors_exist, kernel_matrix
from ..numerics.arrays import as_like, index_like, namespace, to_numpy, zeros
from ..schema import Conditions, Declared, Indices, Part
from .base import ResidualProbabilities, class_residuals, prior_residuals
from .labels import CompleteSamples, complete_samples
from .temperature import MOST_ROWS, UNKNOWN_TEMPERATURE, HeldOut, temperature_of_parts


class SRCClassifier(ResidualProbabilities):
    """Code a sample over all training samples and pick the class that explains most.

    The atoms are φ(xᵢ)/‖φ(xᵢ)‖ for all training samples. With the codes γ of a sample,
    r_c = ‖φ(x) − Σ_{i in c} γᵢ dᵢ‖², and the smallest r_c wins. There is no training,
    but the kernel matrix of the training samples must fit in memory.

    Parameters
    ----------
    kernel : str, Kernel or callable
        The kernel; the default is linear.
    n_nonzero_coefs : int, optional
        Non-zeros of the default coder `OMP`. Default: 30, but at most half of the
        training samples.
    coder : str or SparseCoder, optional
        Another pursuit, e.g. "lasso:0.01" as in the original method, or "ridge:0.1",
        the collaborative representation: all samples take part, and it is faster.

    Attributes
    ----------
    classes_ : array (n_classes,)
        The labels.
    dictionary_ : KernelDictionary
        The training samples as atoms.
    atom_rows_ : array (m,)
        The training row of each atom; rows without energy are left out.
    atom_classes_ : array (m,)
        Index in `classes_` of the class of each atom.
    kernel_ : Kernel
        The kernel with all parameters set.
    coder_ : SparseCoder
        The pursuit in use.
    temperature_ : float
        Temperature of `predict_proba`, which has the least log-loss on samples that are
        coded without them as atoms: up to 500 samples once each, or a third of 1000.

    Examples
    --------
    >>> from kernlets import SRCClassifier, datasets
    >>> digits = datasets.load("digits")
    >>> model = SRCClassifier("poly:2", n_nonzero_coefs=5)
    >>> model = model.fit(digits.X_train[:300], digits.y_train[:300])
    >>> model.score(digits.X_test[:200], digits.y_test[:200]) > 0.85
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, Kernel, callable],
        "n_nonzero_coefs": [AT_LEAST_1, None],
        "coder": [str, SparseCoder, None],
    }

    _declared: ClassVar[Declared] = {
        "kernel_": Part(Kernel),
        "dictionary_": Part(KernelDictionary, m="m", p="p"),
        "atom_classes_": Indices("m", below="C"),
        "atom_rows_": Indices("m"),
        "coder_": Part(SparseCoder),
    }
    _conditions: ClassVar[Conditions] = {
        "anchors are row numbers beyond the training samples": lambda self: (
            anchors_exist(self.dictionary_.anchors, self.n_features_in_)
        ),
    }

    def __init__(
        self,
        kernel: Any = "linear",
        n_nonzero_coefs: int | None = None,
        *,
        coder: str | SparseCoder | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_nonzero_coefs = n_nonzero_coefs
        self.coder = coder

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SRCClassifier:
        """Store the training samples as atoms of unit norm.

        A row is repeated as often as `sample_weight`, a whole number, says.
        """
        self._validate_params()
        kernel = resolve(self.kernel)
        allow_nan = all_in_memory(X)
        X = check_samples(
            self, X, kernel, reset=True, ensure_min_samples=2, allow_nan=allow_nan
        )
        samples = complete_samples(self, X, y, sample_weight, kernel)
        self.classes_, self.kernel_ = samples.classes, kernel.bound(samples.X)
        self._keep_samples(samples)
        self.temperature_ = self._held_out_temperature(samples)
        return self

    def _keep_samples(self, samples: CompleteSamples) -> None:
        """Set the atoms and their classes."""
        X = samples.X
        matrix = kernel_matrix(self.kernel_, X, type(self).__name__)
        energy = to_numpy(self.kernel_.diag(X))
        usable = np.flatnonzero(energy > 0)
        if len(usable) == 0:
            raise ValueError(
                "X has no sample other than zero (in feature space) to serve as an atom"
            )
        self._set_dictionary(X, matrix, usable, energy[usable])
        self.atom_rows_ = samples.row_numbers[usable]
        self.atom_classes_ = samples.class_indices[usable]
        self.coder_ = self._choose_coder(len(usable))

    def _held_out_temperature(self, samples: CompleteSamples) -> float:
        """Fit the temperature to some samples, coded without them as atoms."""
        n = len(samples.class_indices)
        rows = evenly_spaced_rows(n, MOST_ROWS)

        def residuals_of_part(part: HeldOut) -> Array:
            model = copy(self)
            model.temperature_ = UNKNOWN_TEMPERATURE
            numbers = np.arange(len(part.y))
            model._keep_samples(CompleteSamples(part.X, part.y, self.classes_, numbers))
            return model._residuals(part.X_valid)

        temperature = temperature_of_parts(
            samples.X[index_like(rows, samples.X)],
            samples.class_indices[rows],
            self.kernel_,
            residuals_of_part,
        )
        return UNKNOWN_TEMPERATURE if temperature is None else temperature

    def _set_dictionary(
        self, X: Array, matrix: Array, usable: np.ndarray, energy: np.ndarray
    ) -> None:
        """Set the atoms φ(xᵢ)/‖φ(xᵢ)‖ of the usable samples."""
        rows = index_like(usable, X)
        scale = as_like(1 / np.sqrt(energy), matrix)
        coefs = as_like(namespace(matrix).eye(len(usable), dtype=matrix.dtype), matrix)
        self.dictionary_ = KernelDictionary(
            self.kernel_,
            self.kernel_.take(X, rows),
            coefs * scale,
            known_gram=matrix[rows[:, None], rows] * scale * scale[:, None],
            typical_energy=float(energy.mean()),
        )

    def _choose_coder(self, n_atoms: int) -> SparseCoder:
        n_nonzeros = self.n_nonzero_coefs
        if self.coder is None:
            default = min(30, max(1, n_atoms // 2))
            return at_most_all(
                OMP(default if n_nonzeros is None else n_nonzeros), n_atoms
            )
        if n_nonzeros is not None:
            raise ValueError(BOTH)
        return at_most_all(resolve_coder(self.coder), n_atoms)

    def encode(self, X: Any) -> SparseCodes:
        """Compute sparse codes of the rows of X over the training samples."""
        check_fitted(self)
        like = self.dictionary_.coefs
        X = check_samples(self, X, self.kernel_, like=like, allow_nan=True)
        return encode(self.dictionary_, self.coder_, X)

    def residuals(self, X: Any) -> Array:  # (n, n_classes)
        """Compute the squared residual of each sample with the codes of each class."""
        check_fitted(self)
        like = self.dictionary_.coefs
        X = check_samples(
            self, X, self.kernel_, containers="disk", like=like, allow_nan=True
        )
        return self._residuals(X)

    def _residuals(self, X: Any) -> Array:  # (n, n_classes)
        dictionary, gram = self.dictionary_, self.dictionary_.gram()

        def complete_residuals(rows: Array) -> Array:
            corr, energy = dictionary.correlate(rows), dictionary.energy(rows)
            codes = self.coder_.solve(gram, corr, energy)
            return self._class_residuals(codes, gram, corr, energy)

        functions = complete_residuals, self._incomplete_residuals
        residuals_of_block = partial(apply_by_completeness, *functions)
        row_bytes, group_size = 3 * dictionary.row_bytes, self.coder_.group_size
        return map_rows(residuals_of_block, X, row_bytes, group_size)

    def _incomplete_residuals(self, X: Array) -> Array:  # (n, n_classes)
        """Compute residuals over the observed features of each row."""
        refuse_incomplete_groups(self.coder_)
        (rows, is_observed), all_features = split_mask(X), AllFeatures(self.dictionary_)
        residuals = zeros((X.shape[0], len(self.classes_)), X)
        for pattern in group_by_mask(to_numpy(is_observed)):
            if len(pattern.features):
                problem = restricted_products(all_features, rows, pattern)
                codes = restricted_solve(self.coder_, problem)
                products = problem.gram, problem.corr, problem.energy
                pattern_rows = index_like(pattern.rows, X)
                residuals[pattern_rows] = self._class_residuals(codes, *products)
        counts = np.bincount(self.atom_classes_, minlength=len(self.classes_))
        return prior_residuals(residuals, X, counts, self.temperature_)

    def _class_residuals(
        self, codes: SparseCodes, gram: Array, corr: Array, energy: Array
    ) -> Array:  # (n, n_classes)
        classes = self.atom_classes_, len(self.classes_)
        return class_residuals(codes, gram, corr, energy, *classes)

    def __sklearn_tags__(self) -> Any:
        kernel = kernel_or_class(self.kernel)
        return describe_input(super().__sklearn_tags__(), kernel, allow_nan=True)
