"""LC-KSVD and D-KSVD, which learn a dictionary and a linear classifier together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..base.constraints import (
    AT_LEAST_1,
    NOT_NEGATIVE,
    POSITIVE,
    Options,
    clipped,
)
from ..coders import OMP, encode
from ..coders.encoding import encode_block, statistics
from ..contracts import Array, Statistics
from ..data.rows import map_rows
from ..data.weights import Weights
from ..dictionaries import ExplicitDictionary
from ..io.checkpoint import Checkpoint
from ..learners import KSVD
from ..learners.code_and_update import CodeAndUpdate
from ..learners.loop import Monitor, iterate
from ..numerics.arrays import (
    as_like,
    diagonal,
    double,
    eps,
    index_like,
    namespace,
    or_wider,
    row_norms,
)
from ..numerics.random import generator
from ..numerics.scaling import least_energy, lengths
from ..schema import Declared, Floats
from ..updates import KSVDUpdate
from .base import CodingClassifier, ScoreVoting, prior_residuals
from .class_learners import class_atoms, class_sizes
from .labels import weighted_samples

if TYPE_CHECKING:
    from typing_extensions import Self

START_ITERATIONS = 20  # of K-SVD on each class before the joint training


class JointKSVD(ScoreVoting, CodingClassifier, ABC):
    """K-SVD on samples to which their labels are appended as features.

    Subclasses define the weight of the labels and the final classifier.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_atoms_per_class": [AT_LEAST_1, None],
        "n_nonzero_coefs": [AT_LEAST_1, None],
        "beta": [NOT_NEGATIVE],
        "tau": [POSITIVE],
        "max_iter": [AT_LEAST_1],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "callback": [Callable, None],
    }

    _declared: ClassVar[Declared] = {
        "classifier_": Floats("m", "C"),
        "label_map_": Floats("m", "C"),
    }

    def __init__(
        self,
        n_atoms_per_class: int | None = None,
        n_nonzero_coefs: int | None = None,
        *,
        beta: float = 1e-2,
        tau: float = 1.0,
        max_iter: int = 10,
        random_state: Any = None,
        verbose: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self.n_atoms_per_class = n_atoms_per_class
        self.n_nonzero_coefs = n_nonzero_coefs
        self.beta = beta
        self.tau = tau
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @abstractmethod
    def _label_weights(self, sizes: np.ndarray) -> np.ndarray:  # (C,)
        """Weights w_c of ‖h − γΘ‖² for classes with `sizes` atoms."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn atoms and classifier from labelled rows.

        A row of `sample_weight` w counts as w rows.
        """
        self._validate_params()
        samples = weighted_samples(self, self._training_rows(X), y, sample_weight)
        X, labels, weights = samples.X, samples.class_indices, samples.weights
        self.classes_, self.class_count_ = samples.classes, samples.counts
        rng = generator(self.random_state)

        # First atoms D from the samples of each class, and the pursuit
        sizes = class_sizes(
            self.n_atoms_per_class, equal_shares, X, labels, self.classes_, weights
        )
        self.atom_classes_ = np.repeat(np.arange(len(sizes)), sizes)
        self.coder_ = OMP(self._n_nonzeros(X.shape[1]))
        atoms = self._first_atoms(X, labels, sizes, rng, weights)

        # Atoms and classifier together, LKDL eq. (10)
        self._learn(X, one_hot(labels, len(sizes), X), atoms, sizes, rng, weights)
        return self

    def _n_nonzeros(self, n_features: int) -> int:
        n_atoms, n_nonzeros = len(self.atom_classes_), self.n_nonzero_coefs
        if n_nonzeros is None:
            return min(30, max(1, n_features // 4), n_atoms)
        return clipped("n_nonzero_coefs", n_nonzeros, n_atoms, "atoms of all classes")

    def _first_atoms(
        self,
        X: Array,
        labels: np.ndarray,
        sizes: np.ndarray,
        rng: np.random.Generator,
        weights: Weights = None,
    ) -> Array:  # (m, p)
        """Run K-SVD on each class separately."""

        def learn_class(rows: Array, size: int, seed: int, weights: Weights) -> Array:
            n_nonzeros = min(self.coder_.n_nonzero_coefs, size)
            learner = KSVD(
                size, n_nonzeros, max_iter=START_ITERATIONS, random_state=seed
            )
            return learner.fit(rows, sample_weight=weights).components_

        return class_atoms(X, labels, sizes, rng, learn_class, weights)

    def _learn(
        self,
        X: Array,
        H: Array,  # (n, C)
        atoms: Array,  # (m, p)
        sizes: np.ndarray,
        rng: np.random.Generator,
        weights: Weights = None,
    ) -> None:
        """Run K-SVD on (x, √w h), LKDL eq. (10), and normalise the atoms."""
        root_weights = np.sqrt(self._label_weights(sizes))
        if np.max(root_weights) > np.sqrt(float(namespace(X).finfo(X.dtype).max)):
            raise ValueError(
                f"the weights of the labels are too large for {X.dtype}: lower them"
                + or_wider(X.dtype)
            )
        root_weights = as_like(root_weights, X)

        # Start: Θ by ridge regression on the codes over the first atoms
        Theta = ridge(ExplicitDictionary(atoms), self.coder_, X, H, self.tau, weights)
        joint_atoms = join_columns(atoms, Theta * root_weights)
        norms = namespace(joint_atoms).sqrt(row_norms(joint_atoms))[:, None]
        start = ExplicitDictionary(joint_atoms / norms)

        # K-SVD on the samples and their weighted labels
        rows = join_columns(X, H * root_weights)
        alternation = CodeAndUpdate(
            start, rows, self.coder_, KSVDUpdate(), rng, weights=weights
        )
        checkpoint = Checkpoint.of(self, samples=rows, start=start, weights=weights)
        self.history_, self.n_iter_ = iterate(
            alternation, Monitor.of(self), checkpoint, rows
        )

        # Atoms of unit norm, and Θ of the same scale
        joint_atoms = alternation.dictionary.weights
        atoms, weighted_Theta = split_joint_atoms(joint_atoms, X.shape[1])
        self.dictionary_ = ExplicitDictionary(atoms)
        has_weights = bool((root_weights > 0).all())
        Theta = weighted_Theta / root_weights if has_weights else None
        self._set_classifier(Theta, X, H, weights)

    def _set_classifier(
        self, Theta: Array | None, X: Array, H: Array, weights: Weights
    ) -> None:
        """Set the final classifier; Θ is None if labels had no weight in training."""
        if Theta is None:
            raise ValueError(
                "the labels have no weight in training: raise beta above 0"
            )
        self.classifier_ = self.label_map_ = Theta

    def _scores(self, X: Any) -> Array:  # (n, C)
        """Compute γΘ by blocks of rows."""
        check_is_fitted(self)

        def block(rows: Array) -> Array:
            codes = encode_block(self.dictionary_, self.coder_, rows)
            scores = codes.toarray() @ self.classifier_
            return -prior_residuals(-scores, rows, self.class_count_)

        return map_rows(block, self._new_rows(X), 2 * self.dictionary_.row_bytes)


class LCKSVDClassifier(JointKSVD):
    """Label-consistent K-SVD: atoms, ideal codes and classifier learned together.

    Over D, Γ, T and Θ it minimises LKDL eq. (8) (variant 1) or (9) (variant 2),

        ‖X − ΓD‖² + alpha ‖Q − ΓT‖² [+ beta ‖H − ΓΘ‖²],   ‖γ‖₀ ≤ n_nonzero_coefs,

    by K-SVD on the rows (x, √alpha q, √beta h), where h marks the class of a sample and
    q the atoms of that class. A new sample is coded over D and gets the class with the
    largest entry of γΘ. For the kernel version, put a feature map in front::

        make_pipeline(NystroemMap(RBF(2)), LCKSVDClassifier(15, 30))

    Parameters
    ----------
    n_atoms_per_class : int, optional
        Number of atoms assigned to each class; a class with fewer samples gets one per
        sample, with a warning. Default: the same for all classes, half as many atoms as
        samples in total but at most 600, and at most the size of the smallest class.
    n_nonzero_coefs : int, optional
        Non-zeros of a code. Default: 30, but at most a quarter of the features.
    variant : {1, 2}
        1: fit Θ by ridge regression on the codes after training. 2: train Θ jointly.
    alpha, beta : float
        Weights of label consistency and (variant 2) of classification, relative to the
        squared error. They scale with the squared norm of the samples; the defaults are
        for unit norm.
    tau : float
        Ridge of the first Θ, and with variant 1 of the last. The paper's value 1 is
        large for codes of unit-norm samples; try 0.1.
    max_iter : int
        Number of iterations, after 20 of K-SVD on each class. The paper uses 50, which
        was never better than 10 on its data.
    random_state : int, RandomState, Generator or None
        Seed of the first atoms.
    verbose : bool
        Whether to print a line for each iteration.
    callback : callable, optional
        Called after each iteration, as that of `Schedule`; a true result stops the fit.

    Attributes
    ----------
    classes_ : array (n_classes,)
        The labels.
    components_ : array (m, p)
        The atoms, one per row, with unit norm.
    dictionary_ : ExplicitDictionary
        The atoms as a dictionary.
    coder_ : OMP
        The pursuit in use.
    atom_classes_ : array (m,)
        Index in `classes_` of the class that each atom was assigned to.
    class_count_ : array (C,)
        Number of samples of each class.
    classifier_ : array (m, C)
        The matrix Θ.
    label_map_ : array (m, C)
        The columns of T, one for each class; see Notes.
    consistency_ : array (m, m)
        The matrix T.
    history_ : dict
        ``objective`` (mean over samples) and ``seconds`` of each iteration.
    n_iter_ : int
        Number of iterations.

    Notes
    -----
    All entries of q that belong to one class are equal and remain equal in T, so T has
    one distinct column per class. Hence q and h together act like h alone with weight
    alpha m_c + beta, where m_c is the number of atoms of its class. K-SVD takes exactly
    the same steps, and only one column per class is appended to the samples. With equal
    m_c, variant 2 is `DKSVDClassifier` with beta + alpha m_c.

    Examples
    --------
    >>> from kernlets import LCKSVDClassifier, datasets
    >>> digits = datasets.load("digits")
    >>> X, y = datasets.unit_norm(digits.X_train), digits.y_train
    >>> model = LCKSVDClassifier(15, 8, max_iter=5, random_state=0).fit(X, y)
    >>> model.score(datasets.unit_norm(digits.X_test), digits.y_test) > 0.85
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **JointKSVD._parameter_constraints,
        "variant": [Options(Integral, {1, 2})],
        "alpha": [NOT_NEGATIVE],
    }

    def __init__(
        self,
        n_atoms_per_class: int | None = None,
        n_nonzero_coefs: int | None = None,
        *,
        variant: Literal[1, 2] = 2,
        alpha: float = 1e-3,
        beta: float = 1e-3,
        tau: float = 1.0,
        max_iter: int = 10,
        random_state: Any = None,
        verbose: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        super().__init__(
            n_atoms_per_class,
            n_nonzero_coefs,
            beta=beta,
            tau=tau,
            max_iter=max_iter,
            random_state=random_state,
            verbose=verbose,
            callback=callback,
        )
        self.variant = variant
        self.alpha = alpha

    def _label_weights(self, sizes: np.ndarray) -> np.ndarray:
        beta = self.beta if self.variant == 2 else 0.0
        return float(self.alpha) * sizes + float(beta)

    def _set_classifier(
        self, Theta: Array | None, X: Array, H: Array, weights: Weights
    ) -> None:
        if self.variant == 2:
            super()._set_classifier(Theta, X, H, weights)
            return
        self.classifier_ = ridge(self.dictionary_, self.coder_, X, H, self.tau, weights)
        self.label_map_ = self.classifier_ if Theta is None else Theta

    @property
    def consistency_(self) -> Array:  # (m, m)
        """T, which maps codes to ideal codes: 1 at the atoms of the sample's class."""
        check_is_fitted(self)
        return self.label_map_[:, index_like(self.atom_classes_, self.label_map_)]


class DKSVDClassifier(JointKSVD):
    """Discriminative K-SVD: atoms and a linear classifier learned together.

    This is `LCKSVDClassifier` without ideal codes, LKDL eq. (9) with alpha = 0. It
    minimises

        ‖X − ΓD‖² + beta ‖H − ΓΘ‖²,   ‖γ‖₀ ≤ n_nonzero_coefs.

    Parameters
    ----------
    n_atoms_per_class, n_nonzero_coefs
        As in `LCKSVDClassifier`.
    beta : float
        Weight of classification relative to the squared error, for samples of unit
        norm.
    tau : float
        Ridge of the first Θ.
    max_iter, random_state, verbose, callback
        As in `LCKSVDClassifier`.

    Attributes
    ----------
    classes_, class_count_, components_, dictionary_, coder_, atom_classes_
        As in `LCKSVDClassifier`.
    history_, n_iter_
        As in `LCKSVDClassifier`.
    classifier_, label_map_ : array (m, C)
        The matrix Θ.

    Examples
    --------
    >>> from kernlets import DKSVDClassifier, datasets
    >>> digits = datasets.load("digits")
    >>> X, y = datasets.unit_norm(digits.X_train), digits.y_train
    >>> model = DKSVDClassifier(15, 8, max_iter=5, random_state=0).fit(X, y)
    >>> model.score(datasets.unit_norm(digits.X_test), digits.y_test) > 0.85
    True
    """

    def _label_weights(self, sizes: np.ndarray) -> np.ndarray:
        return np.full(len(sizes), float(self.beta))


def equal_shares(usable: np.ndarray) -> np.ndarray:  # (C,)
    """Return the default number of atoms, which is equal for all classes."""
    n_classes = len(usable)
    share = max(1, min(int(usable.sum()) // 2, 600) // n_classes)
    return np.full(n_classes, min(usable.min(), share))


def one_hot(labels: np.ndarray, n_classes: int, like: Array) -> Array:  # (n, C)
    """Return H, which has a 1 at the class of each sample."""
    return as_like(np.eye(n_classes)[labels], like)


def join_columns(A: Array, B: Array) -> Array:
    """Join the columns of two matrices."""
    return namespace(A).concat([A, B], axis=1)


def ridge(
    dictionary: ExplicitDictionary,
    coder: OMP,
    X: Array,  # (n, p)
    H: Array,  # (n, C)
    tau: float,
    weights: Weights = None,
) -> Array:  # (m, C)
    """Θ = (ΓᵀΓ + tau I)⁻¹ ΓᵀH with the codes Γ of X, solved in float64."""
    codes = encode(dictionary, coder, X)
    sums: Statistics = statistics(ExplicitDictionary(H), H, codes, weights)
    gram = double(sums.codes_gram)
    # If the codes are large, rounding would cancel a smaller ridge.
    tau = max(tau, gram.shape[0] * eps(gram) * float(diagonal(gram).max()))
    gram = gram + as_like(tau * np.eye(gram.shape[0]), gram)
    return as_like(namespace(gram).linalg.solve(gram, double(sums.cross)), X)


def split_joint_atoms(
    joint: Array,  # (m, p + C)
    n_features: int,
) -> tuple[Array, Array]:  # (m, p), (m, C)
    """Split joint atoms into atoms of unit norm and label parts of the same scale.

    This leaves every γΘ unchanged for codes over the atoms alone. An atom that is zero
    in all features is useless for new samples and becomes zero.
    """
    xp, atoms = namespace(joint), joint[:, :n_features]
    norms = lengths(atoms)
    is_nonzero = norms > least_energy(atoms)  # smaller ones are rounding errors
    scale = xp.where(is_nonzero, 1 / xp.where(is_nonzero, norms, 1.0), 0.0)[:, None]
    return atoms * scale, joint[:, n_features:] * scale
