"""K-SAD: orthonormal atoms on virtual samples, discriminative codes, k-NN."""

from __future__ import annotations

import time
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..backend.arrays import as_like, move_like, namespace, row_norms, to_numpy
from ..backend.estimator import Estimator
from ..backend.products import matmul
from ..backend.random import generator
from ..core import Array, Kernel
from ..dictionaries import ExplicitDictionary, KernelDictionary
from ..kernels import resolve
from ..kernels.samples import check_samples, describe_input
from ..learners.checkpoint import Checkpoint
from ..learners.loop import Monitor
from ..learners.start import start_atoms
from ..maps import NystroemMap
from ..updates.orthogonal import nearest_orthonormal, procrustes
from .labels import checked_labels
from .neighbors import count_votes
from .scatter import Scatter, fisher_directions
from .turns import Turns, soft

POSITIVE = Interval(Integral, 1, None, closed="left")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")


class KSADClassifier(ClassifierMixin, Estimator):
    """Kernelised simultaneous approximation and discrimination, with a better variant.

    Virtual samples Φ by `NystroemMap`; then codes Q and orthonormal atoms Z that
    minimise, K-SAD eq. (5),

        ‖Φ − QZ‖² + beta1 ‖Q‖₁ + beta2 G(Q),    G = tr S_w / tr S_b,

    by turns: Q = T(ΦZᵀ − ½ beta2 ∇G(Q)) with the soft threshold T at ½ beta1, and Z by
    an orthogonal Procrustes problem, eq. (6). Labels are those of the nearest training
    codes.

    Parameters
    ----------
    kernel : str, Kernel or callable
        The paper's polynomial of degree 8 expects samples of unit norm.
    dictionary : {"orthogonal", "fisher"}
        Whose codes are compared: those of the orthonormal atoms above, as published;
        or those of the atoms for which the paper's criterion tr(S_w⁻¹S_b) itself is
        largest, one less than there are classes, by the angle between codes.
    n_components : int, optional
        Length of the virtual samples, which is also the number of "orthogonal" atoms.
        Default: as many as the landmarks give.
    landmarks, n_landmarks
        As in `NystroemMap`. Default count: twice `n_components`, else that of the map.
    beta1, beta2 : float
        Weights of sparsity and of the Fisher ratio, of "orthogonal".
    max_iter : int
        Iterations, of "orthogonal".
    n_neighbors : int
        How many of the nearest training codes vote.
    shrinkage : float
        Of "fisher": the share of the mean eigenvalue of S_w that is added to all.
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    classes_ : array of labels
    map_ : NystroemMap
    dictionary_ : ExplicitDictionary
        The atoms, in the space of the virtual samples.
    kernel_dictionary_ : KernelDictionary
        The same atoms in feature space; its `preimages` show what they look like.
    codes_ : array (n, m)
        Training codes.
    code_classes_ : array (n,)
        Places of their labels in `classes_`.
    history_ : dict with ``objective`` and ``seconds`` of each iteration
        Of "fisher" there is one: the value is 1/tr(S_w⁻¹S_b).
    n_iter_ : int

    Notes
    -----
    Distances between ΦZᵀ are distances between Φ for every square orthonormal Z. So in
    the published classifier the dictionary has no say in the labels, except through the
    threshold, which only takes information away: it is k-NN in feature space, and with
    a kernel that grows with xᵀy, on samples of unit norm, k-NN on the samples. With
    ``dictionary="fisher"`` the atoms decide.

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
        "dictionary": [StrOptions({"orthogonal", "fisher"})],
        "n_components": [POSITIVE, None],
        "landmarks": [str, callable, "array-like"],
        "n_landmarks": [POSITIVE, Interval(Real, 0, 1, closed="right"), None],
        "beta1": [NOT_NEGATIVE],
        "beta2": [NOT_NEGATIVE],
        "max_iter": [POSITIVE],
        "n_neighbors": [POSITIVE],
        "shrinkage": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        kernel: str | Kernel | Callable[..., Any] = "poly:8,coef0=1",
        dictionary: Literal["orthogonal", "fisher"] = "orthogonal",
        n_components: int | None = None,
        landmarks: Any = "kmeans",
        n_landmarks: int | float | None = None,
        beta1: float = 0.1,
        beta2: float = 0.01,
        max_iter: int = 20,
        n_neighbors: int = 1,
        shrinkage: float = 0.01,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.dictionary = dictionary
        self.n_components = n_components
        self.landmarks = landmarks
        self.n_landmarks = n_landmarks
        self.beta1 = beta1
        self.beta2 = beta2
        self.max_iter = max_iter
        self.n_neighbors = n_neighbors
        self.shrinkage = shrinkage
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> KSADClassifier:
        """Map the samples, learn the atoms, keep the codes."""
        self._validate_params()
        kernel = resolve(self.kernel)
        X = check_samples(
            self, X, kernel, reset=True, ensure_min_samples=2, whole=True
        )
        labels = checked_labels(self, y, X.shape[0])
        self._check_neighbors(X.shape[0])
        self.classes_, labels = np.unique(labels, return_inverse=True)
        rng = generator(self.random_state)
        self.map_ = self._feature_map(X.shape[0], int(rng.integers(2**31)))
        return self._learn(self.map_.fit_transform(X), labels, rng)

    def _learn(
        self, F: Array, labels: np.ndarray, rng: np.random.Generator
    ) -> KSADClassifier:
        """Learn from virtual samples, which a search shares among classifiers."""
        learn = self._orthogonal if self.dictionary == "orthogonal" else self._fisher
        atoms, self.codes_ = learn(F, labels, rng)
        self.dictionary_ = ExplicitDictionary(atoms)
        self.code_classes_ = labels
        self.n_iter_ = len(self.history_["objective"])
        return self

    def _check_neighbors(self, n_samples: int) -> None:
        if self.n_neighbors > n_samples:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} is more than the {n_samples} samples: "
                "lower it"
            )

    def _feature_map(self, n_samples: int, seed: int) -> NystroemMap:
        count, size = self.n_landmarks, self.n_components
        is_drawn = isinstance(self.landmarks, str) or callable(self.landmarks)
        if count is None and size is not None and is_drawn:
            count = min(n_samples, max(2 * size, 100))
        return NystroemMap(self.kernel, self.landmarks, count, size, random_state=seed)

    def _orthogonal(
        self, F: Array, labels: np.ndarray, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Atoms and codes by turns, K-SAD Algorithm 1, stage 2."""
        monitor = Monitor(self.max_iter)
        start = start_atoms("samples", F, F.shape[1], rng)
        atoms = as_like(nearest_orthonormal(start), F)
        turns = Turns(F, labels, self.beta1, self.beta2)
        checkpoint = Checkpoint.of(self, samples=F, labels=labels, start=atoms)
        if checkpoint.state is not None:
            atoms, scatter = turns.resume(checkpoint.state)
            monitor.resume(checkpoint.state["history"])
        else:
            scatter = turns.code(atoms, None).scatter
        for iteration in range(monitor.n_iter, self.max_iter):
            coded = turns.code(atoms, scatter)
            atoms, scatter = procrustes(coded.cross, atoms), coded.scatter
            monitor(iteration, atoms, turns.objective(coded, atoms))
            state = turns.state(atoms, scatter)
            is_last = iteration + 1 == self.max_iter
            checkpoint.keep(done=is_last, history=monitor.history, **state)
        self.history_ = monitor.history
        turns.code(atoms, scatter)
        return atoms, turns.codes

    def _fisher(
        self, F: Array, labels: np.ndarray, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """The atoms that tell classes apart best, and directions of codes over them."""
        n_classes = int(labels.max()) + 1
        began, scatter = time.perf_counter(), Scatter.of(F, labels, n_classes)
        # in the middle of the class means: a large class must not sit at the centre
        self.centre_ = as_like(namespace(F).mean(scatter.means, axis=0), F)
        atoms, criterion = fisher_directions(F, scatter, self.shrinkage)
        seconds = time.perf_counter() - began
        self.history_ = {"objective": [1 / criterion], "seconds": [seconds]}
        return atoms, directions(matmul(F - self.centre_, atoms.T))

    def codes(self, X: Any) -> Array:  # (n, m)
        """Codes of new samples, as they are compared with those of the training set."""
        check_is_fitted(self)
        atoms = self.dictionary_.atoms
        X = check_samples(self, X, resolve(self.kernel), like=atoms)
        return self._codes(self.map_.transform(X))

    def _codes(self, F: Array) -> Array:  # (n, k) -> (n, m)
        """Codes of virtual samples."""
        atoms = self.dictionary_.atoms
        if self.dictionary == "orthogonal":
            return soft(matmul(F, atoms.T), self.beta1 / 2)
        return directions(matmul(F - self.centre_, atoms.T))

    def predict_proba(self, X: Any) -> Array:  # (n, n_classes)
        """The shares of the votes."""
        codes = self.codes(X)
        votes = count_votes(codes, self.codes_, self.code_classes_, self.n_neighbors)
        return votes / self.n_neighbors

    def predict(self, X: Any) -> Array:  # (n,)
        """The label with most votes among the nearest training codes."""
        best = to_numpy(self.predict_proba(X)).argmax(axis=1)
        labels = self.classes_[best]
        return move_like(labels, X) if labels.dtype.kind in "iufb" else labels

    @property
    def kernel_dictionary_(self) -> KernelDictionary:
        """The atoms in feature space."""
        check_is_fitted(self)
        return KernelDictionary.behind(self.map_, self.dictionary_)

    def __sklearn_tags__(self) -> Any:
        return describe_input(super().__sklearn_tags__(), resolve(self.kernel))


def directions(rows: Array) -> Array:
    """Rows of unit norm. Zero rows stay, and so do numbers, which have a sign only."""
    if rows.shape[1] == 1:
        return rows
    xp, squares = namespace(rows), row_norms(rows)
    return rows / xp.sqrt(xp.where(squares > 0, squares, 1.0))[:, None]
