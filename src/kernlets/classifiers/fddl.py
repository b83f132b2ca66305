"""`FDDLClassifier`: Fisher discrimination dictionary learning."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..backend.arrays import as_like, empty, index_like, namespace, row_norms
from ..backend.constraints import AT_LEAST_1, NOT_NEGATIVE, Interval, StrOptions
from ..backend.convergence import warn_unfinished
from ..backend.masks import has_gaps
from ..backend.random import generator
from ..backend.rows import map_rows
from ..backend.scale import quiet
from ..backend.threads import parallel
from ..backend.weights import Weights
from ..core import Array
from ..dictionaries import ExplicitDictionary
from ..fields import Conditions, Declared, Floats
from ..kernels.complete import completed_rows
from ..learners.first_atoms import start_atoms
from ..learners.iterate import Monitor, iterate
from ..persistence.checkpoint import Checkpoint
from ..pursuits import Lasso, encode
from ..pursuits.coded_sums import completed
from .allocation import class_atoms, class_sizes
from .coding import CodingClassifier
from .fisher import Layout, Penalties, bounds, zeros
from .fisher_codes import FisherProblem, FisherProblems
from .labels import (
    ResidualVoting,
    checked_labels,
    class_residuals,
    repeated_samples,
)

NEARNESS = {"local": 0.005, "global": 0.5}  # default weight of the class means
MOST_PASSES = 100_000  # of the lasso of new samples: atoms of a class are much alike


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
    gamma : float, optional
        Weight of the distance from the mean code of a class in classification.
        Default: 0.005 with the local scheme, 0.5 with the global one.
    simplified : bool
        Whether to keep the codes of each class zero outside its own atoms. The
        objective then splits into one small problem per class, which is much faster;
        the published numbers on USPS were obtained this way.
    scheme : {"local", "global"}
        Code a new sample over the atoms of each class separately, and compare
        ‖x − γD_c‖² + lambda1 ‖γ‖₁ + gamma ‖γ − μ_c^c‖²; or over all atoms at once,
        and compare ‖x − γ^c D_c‖² + gamma ‖γ − μ_c‖².
    max_iter : int
        Number of iterations over codes and atoms.
    random_state : int, RandomState, Generator or None
        Seed of the k-means clusters that give the first atoms.
    verbose, callback
        As in `KSVD`.

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
        "gamma": [NOT_NEGATIVE, None],
        "simplified": ["boolean"],
        "scheme": [StrOptions({"local", "global"})],
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

    _acts_at_once = frozenset({"scheme", "gamma"})

    def __init__(
        self,
        n_atoms_per_class: int | None = None,
        lambda1: float = 0.1,
        *,
        lambda2: float = 0.001,
        eta: float = 1.0,
        gamma: float | None = None,
        simplified: bool = False,
        scheme: Literal["local", "global"] = "local",
        max_iter: int = 5,
        random_state: Any = None,
        verbose: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self.n_atoms_per_class = n_atoms_per_class
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.eta = eta
        self.gamma = gamma
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
        X = self._training_rows(X)
        X, y, _ = repeated_samples(self, X, y, sample_weight)
        X = completed_rows(X)
        labels = checked_labels(self, y, X.shape[0])
        self.classes_, labels = np.unique(labels, return_inverse=True)
        self.class_count_ = np.bincount(labels)
        order = np.argsort(labels, kind="stable")
        X, labels = X[index_like(order, X)], labels[order]
        given = self.n_atoms_per_class, half_of_samples, X, labels, self.classes_
        sizes = class_sizes(*given)
        self.atom_classes_ = np.repeat(np.arange(len(sizes)), sizes)
        rng = generator(self.random_state)
        first = class_atoms(X, labels, sizes, rng, cluster_atoms)
        parts = self._parts(X, np.bincount(labels), sizes, first)
        self._alternate(parts)
        half = self.lambda1 / 2  # the squared error of the coder is halved
        self.coder_ = Lasso(half, max_iter=MOST_PASSES)
        self.class_means_ = _side_by_side([part.means for part in parts])
        return self

    def _parts(
        self, X: Array, counts: np.ndarray, sizes: np.ndarray, atoms: Array
    ) -> list[FisherProblem]:
        """One problem per class, or one for all, started from the codes of the former.

        In the end few codes use atoms of other classes, and the small problems are
        fast.
        """
        penalties = Penalties(self.lambda1, self.lambda2, self.eta, X.shape[0])
        largest = float(namespace(X).finfo(X.dtype).max) ** 0.5
        if not self.lambda2 * (1 + self.eta) <= largest:
            raise ValueError(
                f"lambda2={self.lambda2:g}, eta={self.eta:g} are too large for numbers "
                f"of {X.dtype}: the weights of the paper are below 1"
            )
        layout = Layout.of(counts, sizes)
        places = list(zip(layout.rows, layout.columns, strict=True))
        alone = [
            FisherProblem(X[rows], atoms[columns], Layout.of([n], [size]), penalties)
            for (rows, columns), n, size in zip(places, counts, sizes, strict=True)
        ]
        if self.simplified:
            return alone
        parallel(FisherProblem.code, alone)
        codes = zeros(layout.shape, X)
        for part, place in zip(alone, places, strict=True):
            codes[place] = part.codes
        return [FisherProblem(X, atoms, layout, penalties, codes)]

    def _alternate(self, parts: list[FisherProblem]) -> None:
        steps = FisherProblems(parts)
        monitor = Monitor.of(self, measure="mean objective")
        self.history_, self.n_iter_ = iterate(steps, monitor, self._checkpoint(parts))
        self.dictionary_ = steps.current()
        last = parallel(FisherProblem.code, parts)
        if not all(descent.converged for descent in last):  # earlier ones go on in it
            warn_unfinished(
                f"{type(self).__name__}: codes of the training samples still moved "
                f"after max_iter={self.max_iter} iterations: raise max_iter"
            )

    def _checkpoint(self, parts: list[FisherProblem]) -> Checkpoint:
        return Checkpoint.of(
            self,
            samples=[part.X for part in parts],
            labels=np.concatenate([part.layout.counts for part in parts]),
            start=[part.atoms for part in parts],
        )

    def residuals(self, X: Any) -> Array:  # (n, C)
        """Residual of each sample for each class, by the chosen `scheme`."""
        check_is_fitted(self)
        residuals = self._local if self.scheme == "local" else self._global()

        def block(rows: Array) -> Array:
            return self._known_by_prior(residuals(self._filled_in(rows)), rows)

        return map_rows(block, self._new_rows(X), 3 * self.dictionary_.row_bytes)

    def _filled_in(self, X: Array) -> Array:
        """Rows whose gaps hold what their codes over all atoms say."""
        if not has_gaps(X):
            return X
        codes = encode(self.dictionary_, self.coder_, X)
        return completed(self.dictionary_, codes, X)

    @property
    def _nearness(self) -> float:
        return NEARNESS[self.scheme] if self.gamma is None else self.gamma

    def _local(self, X: Array) -> Array:  # (n, C)
        """min over γ of ‖x − γD_c‖² + lambda1 ‖γ‖₁ + gamma ‖γ − μ_c^c‖², for each c."""
        out = empty((X.shape[0], len(self.classes_)), like=X)
        for c, columns in enumerate(bounds(np.bincount(self.atom_classes_))):
            atoms, mean = self.components_[columns], self.class_means_[c, columns]
            out[:, c] = self._local_residuals(X, atoms, mean)
        return out

    def _local_residuals(self, X: Array, atoms: Array, mean: Array) -> Array:  # (n,)
        """A lasso: the last term adds gamma I to the Gram matrix, gamma μ to corr."""
        gamma = self._nearness
        gram = atoms @ atoms.T + as_like(gamma * np.eye(len(atoms)), atoms)
        energy = row_norms(X) + gamma * (mean @ mean)
        codes = self.coder_.solve(gram, X @ atoms.T + gamma * mean, energy)
        xp = namespace(codes.values)
        weight = min(float(self.lambda1), float(xp.finfo(X.dtype).max))
        return codes.residual + weight * xp.abs(codes.values).sum(1)

    def _global(self) -> Callable[[Array], Array]:
        """‖x − γ^c D_c‖² + gamma ‖γ − μ_c‖², with codes over all atoms."""
        dictionary, gram = self.dictionary_, self.dictionary_.gram()
        places, gamma = self.atom_classes_, self._nearness
        means = ExplicitDictionary(self.class_means_)

        def block(X: Array) -> Array:
            with quiet():  # the coder refuses what overflows
                corr, energy = dictionary.correlate(X), dictionary.energy(X)
            codes = self.coder_.solve(gram, corr, energy)
            dense = codes.toarray()
            apart = means.energy(dense)[:, None] - 2 * means.correlate(dense)
            apart = apart + row_norms(self.class_means_)
            own = class_residuals(codes, gram, corr, energy, places, len(self.classes_))
            return own + gamma * apart

        return block


def half_of_samples(usable: np.ndarray) -> np.ndarray:  # (C,)
    """Default number of atoms of each class."""
    return np.clip(usable // 2, 1, 100)


def cluster_atoms(
    rows: Array, size: int, seed: int, weights: Weights = None
) -> Array:  # (m, p)
    """The first atoms of a class: centres of k-means clusters."""
    return start_atoms("kmeans", rows, size, np.random.default_rng(seed), weights)


def _side_by_side(parts: list[Array]) -> Array:  # (C, m)
    """One matrix unchanged, or several of one row each as a block diagonal."""
    if len(parts) == 1:
        return parts[0]
    sizes = bounds([part.shape[1] for part in parts])
    whole = zeros((len(parts), sizes[-1].stop), parts[0])
    for row, (part, columns) in enumerate(zip(parts, sizes, strict=True)):
        whole[row, columns] = part[0]
    return whole
