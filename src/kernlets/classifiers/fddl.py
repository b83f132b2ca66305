"""`FDDLClassifier`: Fisher discrimination dictionary learning.

`LocalScheme` and `GlobalScheme` compare a new sample with the classes.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import block_diag
from sklearn.utils.validation import check_is_fitted

from ..base.constraints import AT_LEAST_1, NOT_NEGATIVE, Interval
from ..base.estimator import NAMED
from ..base.names import build
from ..coders import Lasso
from ..contracts import Array
from ..data.rows import map_rows
from ..dictionaries import ExplicitDictionary
from ..numerics.arrays import as_like, empty, index_like, namespace, row_norms, to_numpy
from ..numerics.random import generator
from ..numerics.scaling import quiet
from ..schema import Conditions, Declared, Floats
from ..sklearn_base import BaseEstimator
from .base import (
    CodingClassifier,
    ResidualVoting,
    class_residuals,
    prior_residuals,
)
from .class_learners import class_atoms, class_sizes, cluster_atoms
from .fddl_codes import FisherProblems, fisher_problems, minimise
from .fddl_objective import ClassLayout, Penalties, consecutive_slices
from .labels import complete_samples

MAX_PASSES = 100_000  # of the lasso of new samples: atoms of a class are much alike


class LocalScheme(BaseEstimator):
    """Code a sample over the atoms of each class separately.

    Compared are min over γ of ‖x − γD_c‖² + lambda1 ‖γ‖₁ + gamma ‖γ − μ_c^c‖², with the
    mean code μ_c^c of class c over its own atoms.

    Parameters
    ----------
    gamma : float
        Weight of the distance from the mean code of a class.

    Examples
    --------
    >>> from kernlets import FDDLClassifier
    >>> model = FDDLClassifier(20, scheme="local:0.01")
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"gamma": [NOT_NEGATIVE]}

    def __init__(self, gamma: float = 0.005) -> None:
        self.gamma = gamma

    def residuals(self, model: Any) -> Callable[[Array], Array]:
        """Return a function of rows (n, p) to residuals (n, C).

        Each is a lasso: its last term adds gamma I to the Gram matrix, gamma μ to corr.
        """
        gamma = self.gamma
        class_columns = consecutive_slices(np.bincount(model.atom_classes_))

        def compare(X: Array) -> Array:
            xp = namespace(X)
            lambda1 = min(float(model.lambda1), float(xp.finfo(X.dtype).max))
            residuals = empty((X.shape[0], len(model.classes_)), like=X)
            for c, columns in enumerate(class_columns):
                atoms, mean = model.components_[columns], model.class_means_[c, columns]
                gram = atoms @ atoms.T + as_like(gamma * np.eye(len(atoms)), atoms)
                energy = row_norms(X) + gamma * (mean @ mean)
                codes = model.coder_.solve(gram, X @ atoms.T + gamma * mean, energy)
                # Sums of `codes.values` are rounded otherwise where other rows are
                # wider.
                l1_norms = xp.abs(codes.toarray()).sum(1)
                residuals[:, c] = codes.residual + lambda1 * l1_norms
            return residuals

        return compare


class GlobalScheme(BaseEstimator):
    """Code a sample over all atoms at once.

    Compared are ‖x − γ^c D_c‖² + gamma ‖γ − μ_c‖², with the part γ^c of the code over
    the atoms of class c, and its mean code μ_c.

    Parameters
    ----------
    gamma : float
        Weight of the distance from the mean code of a class.

    Examples
    --------
    >>> from kernlets import FDDLClassifier
    >>> model = FDDLClassifier(20, scheme="global:0.1")
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"gamma": [NOT_NEGATIVE]}

    def __init__(self, gamma: float = 0.5) -> None:
        self.gamma = gamma

    def residuals(self, model: Any) -> Callable[[Array], Array]:
        """Return a function of rows (n, p) to residuals (n, C)."""
        dictionary, means = model.dictionary_, ExplicitDictionary(model.class_means_)
        gram = dictionary.gram()

        def compare(X: Array) -> Array:
            with quiet():  # the coder refuses values that overflow
                corr, energy = dictionary.correlate(X), dictionary.energy(X)
            codes = model.coder_.solve(gram, corr, energy)
            dense = codes.toarray()
            mean_distances = means.energy(dense)[:, None] - 2 * means.correlate(dense)
            mean_distances = mean_distances + row_norms(model.class_means_)
            squared_errors = class_residuals(
                codes, gram, corr, energy, model.atom_classes_, len(model.classes_)
            )
            return squared_errors + self.gamma * mean_distances

        return compare


SCHEMES = {"local": LocalScheme, "global": GlobalScheme}


def resolve_scheme(spec: Any) -> LocalScheme | GlobalScheme:
    """Return the scheme that a name such as ``"local:0.01"`` describes, or `spec`."""
    scheme = build("scheme", spec, SCHEMES) if isinstance(spec, str) else spec
    if not isinstance(scheme, LocalScheme | GlobalScheme):
        raise TypeError(
            f"scheme is a {type(spec).__name__}: give 'local', 'global', or an object "
            "of one of these classes"
        )
    scheme._validate_params()
    return scheme


NAMED["scheme"] = resolve_scheme


class FDDLClassifier(ResidualVoting, CodingClassifier):
    """Fisher discrimination dictionary learning: separate atoms for each class.

    With D_j the atoms of class j and Γ_i^j the codes of the samples of class i over
    them, it minimises LKDL eq. (7),

        Σ_i [‖X_i − Γ_i D‖² + ‖X_i − Γ_i^i D_i‖² + Σ_{j≠i} ‖Γ_i^j D_j‖²]
            + lambda1 ‖Γ‖₁ + lambda2 [tr(S_W − S_B) + eta ‖Γ‖²]

    in turn: accelerated proximal steps over all codes at once, then the best value of
    each atom, class by class. The objective never rises. For the kernel version, put a
    feature map in front: ``make_pipeline(NystroemMap("poly:2"), FDDLClassifier(300))``.

    Parameters
    ----------
    n_atoms_per_class : int, optional
        Number of atoms of each class; a class with fewer samples gets one per sample,
        with a warning. Default: half the number of its samples, at most 100.
    lambda1, lambda2 : float
        Weights of sparsity and of the Fisher criterion. The defaults are the paper's,
        for samples of unit norm.
    eta : float
        Weight of ‖Γ‖² in the Fisher criterion; at least 1, which makes it convex.
    simplified : bool
        Whether to keep the codes of each class zero outside its own atoms. The
        objective then splits into one small problem per class, which is much faster;
        the published numbers on USPS were obtained this way.
    scheme : str, LocalScheme or GlobalScheme
        How a new sample is compared with the classes: coded over the atoms of each
        class separately, or over all atoms at once. The weight `gamma` of the distance
        from the mean code of a class is part of it: "local:0.01", "global:0.1".
    max_iter : int
        Number of iterations over codes and atoms.
    random_state : int, RandomState, Generator or None
        Seed of the k-means clusters that give the first atoms.
    verbose : bool
        Whether to print a line for each iteration.
    callback : callable, optional
        Called after each iteration, as that of `Schedule`; a true result stops the fit.

    Attributes
    ----------
    classes_ : array (n_classes,)
        The labels.
    components_ : array (m, p)
        The atoms of all classes, one per row, with unit norm.
    dictionary_ : ExplicitDictionary
        The atoms as a dictionary.
    coder_ : Lasso
        Pursuit of new samples: argmin ‖x − γD‖² + lambda1 ‖γ‖₁.
    atom_classes_ : array (m,)
        Index in `classes_` of the class of each atom.
    class_count_ : array (C,)
        Number of samples of each class.
    class_means_ : array (C, m)
        Mean training codes μ_c.
    history_ : dict
        ``objective`` (mean over samples) and ``seconds`` of each iteration.
    n_iter_ : int
        Number of iterations.

    Notes
    -----
    A step over the codes of n samples takes about 4nmp operations for m atoms of p
    features, plus 2nm²/C for C classes; training holds five arrays of n · m numbers.
    With ``simplified=True`` both are smaller by a factor C.

    Examples
    --------
    >>> from kernlets import FDDLClassifier, datasets
    >>> digits = datasets.load("digits")
    >>> X, y = datasets.unit_norm(digits.X_train), digits.y_train
    >>> model = FDDLClassifier(20, simplified=True, random_state=0).fit(X, y)
    >>> model.score(datasets.unit_norm(digits.X_test), digits.y_test) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_atoms_per_class": [AT_LEAST_1, None],
        "lambda1": [NOT_NEGATIVE],
        "lambda2": [NOT_NEGATIVE],
        "eta": [Interval(Real, 1, None, closed="left")],
        "simplified": ["boolean"],
        "scheme": [str, LocalScheme, GlobalScheme],
        "max_iter": [AT_LEAST_1],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "callback": [Callable, None],
    }

    _declared: ClassVar[Declared] = {"class_means_": Floats("C", "m")}
    _conditions: ClassVar[Conditions] = {
        "atom_classes_ must have all classes, in order": lambda self: (
            np.array_equal(np.unique(self.atom_classes_), range(len(self.classes_)))
            and bool((np.diff(self.atom_classes_) >= 0).all())
        ),
    }

    _acts_at_once = frozenset({"scheme"})

    def __init__(
        self,
        n_atoms_per_class: int | None = None,
        lambda1: float = 0.1,
        *,
        lambda2: float = 0.001,
        eta: float = 1.0,
        simplified: bool = False,
        scheme: str | LocalScheme | GlobalScheme = "local",
        max_iter: int = 5,
        random_state: Any = None,
        verbose: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self.n_atoms_per_class = n_atoms_per_class
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.eta = eta
        self.simplified = simplified
        self.scheme = scheme
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FDDLClassifier:
        """Learn the atoms of all classes from labelled rows.

        A row is repeated as often as `sample_weight`, a whole number, says.
        """
        self._validate_params()
        resolve_scheme(self.scheme)  # raises if a parameter of it is wrong
        X = self._training_rows(X)
        samples = complete_samples(self, X, y, sample_weight)
        self.classes_ = samples.classes
        order = np.argsort(samples.class_indices, kind="stable")
        X, labels = samples.X[index_like(order, X)], samples.class_indices[order]
        self.class_count_ = counts = np.bincount(labels)

        # Atoms D_j of each class from k-means clusters
        n_atoms = self.n_atoms_per_class
        sizes = class_sizes(n_atoms, half_of_samples, X, labels, self.classes_)
        self.atom_classes_ = np.repeat(np.arange(len(sizes)), sizes)
        rng = generator(self.random_state)
        first_atoms = class_atoms(X, labels, sizes, rng, cluster_atoms)

        # Codes Γ and atoms D that minimise eq. (7) in turn
        penalties = Penalties(self.lambda1, self.lambda2, self.eta, X.shape[0])
        layout = ClassLayout.of(counts, sizes)
        problems = fisher_problems(X, first_atoms, layout, penalties, self.simplified)
        self.history_, self.n_iter_ = minimise(problems, self)
        self.dictionary_ = FisherProblems(problems).current()

        # Means μ_c, and the coder of new samples, whose squared error is halved
        means = [to_numpy(problem.means) for problem in problems]
        self.class_means_ = as_like(block_diag(*means), X)
        self.coder_ = Lasso(self.lambda1 / 2, max_iter=MAX_PASSES)
        return self

    def residuals(self, X: Any) -> Array:  # (n, C)
        """Compute the residual of each sample for each class, by the `scheme`."""
        check_is_fitted(self)
        compare = resolve_scheme(self.scheme).residuals(self)

        def block(rows: Array) -> Array:
            residuals = compare(self._fill_missing(rows))
            return prior_residuals(residuals, rows, self.class_count_)

        return map_rows(block, self._new_rows(X), 3 * self.dictionary_.row_bytes)


def half_of_samples(usable: np.ndarray) -> np.ndarray:  # (C,)
    """Return the default number of atoms of each class."""
    return np.clip(usable // 2, 1, 100)
