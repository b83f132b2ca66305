"""K-SAD: orthonormal atoms on virtual samples, discriminative codes, k-NN."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone

from .. import schema
from ..base.constraints import AT_LEAST_1, SHARE, StrOptions
from ..base.estimator import Estimator, check_fitted
from ..contracts import Array, SparseCodes
from ..data.missing import all_in_memory
from ..data.rows import apply_to_rows, evenly_spaced_rows, load_values
from ..dictionaries import ExplicitDictionary, KernelDictionary
from ..kernels import Kernel, kernel_or_class, resolve
from ..kernels.samples import check_samples, describe_input
from ..loops.codes import pack
from ..maps import NystroemMap
from ..numerics.arrays import index_like, to_numpy
from ..numerics.random import generator
from ..sklearn_base import ClassifierMixin
from .base import labels_like
from .ksad_atoms import (
    FisherAtoms,
    OrthogonalAtoms,
    class_distances,
    codes_of_blocks,
    count_energies,
    count_votes,
    distances_from_energies,
    resolve_atoms,
)
from .labels import CompleteSamples, complete_samples
from .temperature import (
    MOST_ROWS,
    UNKNOWN_TEMPERATURE,
    HeldOut,
    class_probabilities,
    temperature_of_parts,
)

#: A κ(x, x) above this multiple of the median outweighs all other samples.
MAX_ENERGY_RATIO = 1e4


class KSADClassifier(ClassifierMixin, Estimator):
    """Kernelised simultaneous approximation and discrimination, with a better variant.

    `NystroemMap` gives virtual samples Φ. Then codes Q and orthonormal atoms Z minimise
    K-SAD eq. (5),

        ‖Φ − QZ‖² + beta1 ‖Q‖₁ + beta2 G(Q),    G = tr S_w / S_b,

    in turn: Q = T(ΦZᵀ − ½ beta2 ∇G(Q)) with the soft threshold T at ½ beta1, and Z
    solves an orthogonal Procrustes problem, eq. (6). A new sample gets the label of
    the nearest training codes, or that of the nearest atoms (`OrthogonalAtoms`).

    Parameters
    ----------
    kernel : str, Kernel or callable
        The default, the paper's polynomial of degree 8, expects samples of unit norm:
        κ(x, x) grows with the 16th power of the norm, and on columns of unit variance
        a few long rows decide. A warning says so.
    dictionary : str, OrthogonalAtoms or FisherAtoms
        The atoms whose codes are compared, with their parameters. "orthogonal": the
        orthonormal atoms above, as published, e.g. "orthogonal:beta1=0.2". "fisher":
        the atoms that maximise the paper's criterion tr(S_w⁻¹S_b) itself, one fewer
        than there are classes, e.g. "fisher:shrinkage=0.1"; their codes are compared by
        angle.
    n_components : int, optional
        Length of the virtual samples, which is also the number of "orthogonal" atoms.
        Default: as many as the landmarks give.
    landmarks, n_landmarks
        As in `NystroemMap`. Default number: twice `n_components` if that is given,
        otherwise that of the map.
    eigen_solver : {"auto", "full", "randomized"}
        As in `NystroemMap`: "randomized" is the block Krylov (block Lanczos) method
        of the paper, and needs `n_components`.
    n_neighbors : int
        Number of nearest training codes, or atoms, that vote.
    random_state : int, RandomState, Generator or None
        Seed of the landmarks and of the first atoms.

    Attributes
    ----------
    classes_ : array (n_classes,)
        The labels.
    map_ : NystroemMap
        The map to virtual samples.
    dictionary_ : ExplicitDictionary
        The atoms, in the space of the virtual samples.
    kernel_dictionary_ : KernelDictionary
        The same atoms in feature space; its `preimages` show what they look like.
    centre_ : array (k,)
        Mean of the class means of the virtual samples (only with "fisher").
    codes_ : array (n, m)
        Training codes; with ``OrthogonalAtoms(compare="atoms")`` or "energy" those of
        the atoms.
    code_rows_ : array (n,)
        The training row of each code, or the one from which the atom started; rows are
        repeated by their weights.
    code_classes_ : array (n,)
        Index in `classes_` of the class of each code.
    history_ : dict
        ``objective`` and ``seconds`` of each iteration. With "fisher" there is one
        iteration, whose objective is 1/tr(S_w⁻¹S_b).
    n_iter_ : int
        Number of iterations.
    temperature_ : float
        Temperature of `predict_proba`, which has the least log-loss on samples that are
        left out of the map, the atoms and the codes: up to 500 samples once each, or a
        third of 1000.

    Notes
    -----
    For every square orthonormal Z, distances between rows of ΦZᵀ equal those between
    rows of Φ. So where training codes are compared the dictionary influences the labels
    only through the threshold, which removes information. It is k-NN in feature space,
    and with a kernel that grows with xᵀy, on samples of unit norm, k-NN on the samples.
    Lines 16 to 18 of Algorithm 1 compare with Z, which is atoms with labels:
    ``OrthogonalAtoms(compare="atoms", threshold_new=False)``.
    As printed, codes that are thresholded are compared with codes that are not; with
    the trace the gradient of G is in the units of Q, with the norm it is not.
    With ``dictionary="fisher"`` the atoms do influence the labels.

    Examples
    --------
    >>> from kernlets import KSADClassifier, datasets
    >>> digits = datasets.load("digits")
    >>> X, y = datasets.unit_norm(digits.X_train), digits.y_train
    >>> model = KSADClassifier(dictionary="fisher", random_state=0).fit(X, y)
    >>> model.score(datasets.unit_norm(digits.X_test), digits.y_test) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, Kernel, callable],
        "dictionary": [str, OrthogonalAtoms, FisherAtoms],
        "n_components": [AT_LEAST_1, None],
        "landmarks": [str, callable, "array-like"],
        "n_landmarks": [AT_LEAST_1, SHARE, None],
        "eigen_solver": [StrOptions({"auto", "full", "randomized"})],
        "n_neighbors": [AT_LEAST_1],
        "random_state": ["random_state", np.random.Generator],
    }

    _declared: ClassVar[schema.Declared] = {
        "n_features_in_": schema.Size("p"),
        "classes_": schema.Labels("C"),
        "map_": schema.Part(NystroemMap, p="p", k="k"),
        "dictionary_": schema.Part(ExplicitDictionary, m="m", p="k"),
        "codes_": schema.Floats("n", "m"),
        "code_classes_": schema.Indices("n", below="C"),
        "code_rows_": schema.Maybe(schema.Indices("n")),  # earlier files have none
        "centre_": schema.Maybe(schema.Floats("k")),
        "history_": schema.History(),
        "n_iter_": schema.Whole(),
        "temperature_": schema.Number(least=0),
    }
    _conditions: ClassVar[schema.Conditions] = {
        "centre_ must be there with dictionary='fisher'": lambda self: (
            hasattr(self, "centre_")
            == isinstance(resolve_atoms(self.dictionary), FisherAtoms)
        ),
        "n_neighbors is more than the samples": lambda self: (
            self.n_neighbors <= len(self.codes_)
        ),
    }

    _acts_at_once = frozenset({"n_neighbors"})

    def __init__(
        self,
        kernel: str | Kernel | Callable[..., Any] = "poly:8,coef0=1",
        dictionary: str | OrthogonalAtoms | FisherAtoms = "orthogonal",
        *,
        n_components: int | None = None,
        landmarks: Any = "kmeans",
        n_landmarks: int | float | None = None,
        eigen_solver: Literal["auto", "full", "randomized"] = "auto",
        n_neighbors: int = 1,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.dictionary = dictionary
        self.n_components = n_components
        self.landmarks = landmarks
        self.n_landmarks = n_landmarks
        self.eigen_solver = eigen_solver
        self.n_neighbors = n_neighbors
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KSADClassifier:
        """Learn atoms and codes from labelled rows.

        A row is repeated as often as `sample_weight`, a whole number, says.
        """
        self._validate_params()
        resolve_atoms(self.dictionary)  # raises if a parameter of them is wrong
        kernel = resolve(self.kernel)
        allow_nan = all_in_memory(X)
        X = check_samples(
            self,
            X,
            kernel,
            reset=True,
            ensure_min_samples=2,
            containers="memory",
            allow_nan=allow_nan,
        )
        samples = complete_samples(self, X, y, sample_weight, kernel)
        X, labels = samples.X, samples.class_indices
        self.classes_ = samples.classes
        self._check_neighbors(X.shape[0])
        rng = generator(self.random_state)

        # Stage 1, lines 2 to 8 of Algorithm 1: virtual samples Φ, eq. (9)
        self.map_ = self._feature_map(X.shape[0], int(rng.integers(2**31)))
        F = self.map_.fit_transform(X)
        _warn_of_uneven_energies(to_numpy(self.map_.kernel_.diag(X)))

        # Stage 2, lines 9 to 14: atoms Z, and the codes Q of stage 3
        self.code_rows_ = samples.row_numbers[self._learn(F, labels, rng)]
        self._check_neighbors(len(self.code_rows_))
        self.temperature_ = self._held_out_temperature(samples, kernel)
        return self

    def _held_out_temperature(self, samples: CompleteSamples, kernel: Kernel) -> float:
        """Fit the temperature to some samples, left out of the map, atoms and codes."""
        rows = evenly_spaced_rows(len(samples.class_indices), MOST_ROWS)
        kind = clone(resolve_atoms(self.dictionary))
        if hasattr(kind, "max_iter"):
            kind.set_params(max_iter=1)

        def distances_of_part(part: HeldOut) -> Array:
            model = copy(self)
            model.dictionary = kind
            part_map = self._feature_map(len(part.y), seed=0)
            F = part_map.fit_transform(part.X)
            model._learn(F, part.y, np.random.default_rng(0))
            codes = model._codes(part_map.transform(part.X_valid))
            n_neighbors = min(self.n_neighbors, len(model.codes_))
            compare = distances_from_energies if self._has_energies else class_distances
            return compare(codes, model.codes_, model.code_classes_, n_neighbors)

        temperature = temperature_of_parts(
            samples.X[index_like(rows, samples.X)],
            samples.class_indices[rows],
            kernel,
            distances_of_part,
        )
        return UNKNOWN_TEMPERATURE if temperature is None else temperature

    def _learn(
        self, F: Array, labels: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Learn from virtual samples, which a search shares among classifiers.

        Return the row of the sample behind each of `codes_`.
        """
        kind = resolve_atoms(self.dictionary)
        learned = kind.learn(F, labels, rng, self)
        self.dictionary_ = ExplicitDictionary(learned.atoms)
        self.codes_, self.code_classes_ = learned.codes, labels[learned.rows]
        vars(self).pop("centre_", None)
        if learned.centre is not None:
            self.centre_ = learned.centre
        self.history_ = learned.history
        self.n_iter_ = len(self.history_["objective"])
        return learned.rows

    @property
    def _n_tasks(self) -> int:
        return getattr(resolve_atoms(self.dictionary), "max_iter", 1)

    @property
    def _has_energies(self) -> bool:
        return getattr(resolve_atoms(self.dictionary), "compare", "") == "energy"

    def _check_neighbors(self, n_codes: int) -> None:
        if self.n_neighbors > n_codes:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} is more than the {n_codes} samples or "
                "atoms with labels: lower it"
            )

    def _feature_map(self, n_samples: int, seed: int) -> NystroemMap:
        n_landmarks, n_components = self.n_landmarks, self.n_components
        is_sampled = isinstance(self.landmarks, str) or callable(self.landmarks)
        if n_landmarks is None and n_components is not None and is_sampled:
            n_landmarks = min(n_samples, max(2 * n_components, 100))
        return NystroemMap(
            self.kernel,
            self.landmarks,
            n_landmarks=n_landmarks,
            n_components=n_components,
            eigen_solver=self.eigen_solver,
            random_state=seed,
        )

    def encode(self, X: Any) -> SparseCodes:
        """Compute codes of new samples, as they are compared with training codes."""
        return pack(load_values(self._new_codes(X)), None)

    def _new_codes(self, X: Any) -> Any:  # (n, m)
        check_fitted(self)
        like, kernel = self.dictionary_.atoms, self.map_.kernel_
        X = check_samples(self, X, kernel, containers="disk", like=like, allow_nan=True)
        return self._codes(self.map_.transform(X))

    def _codes(self, F: Any) -> Any:  # (n, k) -> (n, m)
        """Compute codes of virtual samples."""
        kind, centre = resolve_atoms(self.dictionary), getattr(self, "centre_", None)
        return codes_of_blocks(kind, F, self.dictionary_.atoms, centre)

    def predict_proba(self, X: Any) -> Array:  # (n, n_classes)
        """Return the probability of each class, from ratios of distances of codes.

        p_c ∝ (d_c / max d + 0.001)^(−1/T) with T = `temperature_`, where d_c is the
        squared distance from the ⌈n_neighbors/2⌉-th nearest training code of class c.
        If another class has more votes, the two exchange their probabilities.
        """
        compare = distances_from_energies if self._has_energies else class_distances
        distances = self._compared(compare, X)
        compute = partial(class_probabilities, self.temperature_)
        return load_values(apply_to_rows(compute, distances))

    def predict(self, X: Any) -> Array:  # (n,)
        """Return the label with the most votes among the nearest codes."""
        compare = count_energies if self._has_energies else count_votes
        votes = load_values(self._compared(compare, X))
        return labels_like(self.classes_[to_numpy(votes).argmax(axis=1)], X)

    def _compared(self, compare: Callable[..., Any], X: Any) -> Any:
        """Compare codes of new samples with those that have labels."""
        codes = self._new_codes(X)
        self._check_neighbors(self.codes_.shape[0])
        return compare(codes, self.codes_, self.code_classes_, self.n_neighbors)

    @property
    def kernel_dictionary_(self) -> KernelDictionary:
        """The atoms in feature space."""
        check_fitted(self)
        return KernelDictionary.behind(self.map_, self.dictionary_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        return describe_input(tags, kernel_or_class(self.kernel), allow_nan=True)


def _warn_of_uneven_energies(energies: np.ndarray) -> None:  # (n,)
    """Warn if a few samples are so long that the others have no influence."""
    ratio = float(energies.max()) / max(float(np.median(energies)), 1e-300)
    if ratio > MAX_ENERGY_RATIO:
        warnings.warn(
            f"κ(x, x) of some samples is {ratio:.1g} times that of a typical one, so "
            "that these alone decide: bring the rows to unit norm (UnitNorm), or use "
            "a kernel of distances such as RBF or Laplacian",
            stacklevel=3,
        )
