"""`ReducedKernelDL` learns atoms over a few anchors, and the anchors.

This module has the estimator, the first anchors and the first atoms;
`updates/anchored.py` updates the atoms and `updates/anchors.py` the anchors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..base.constraints import (
    AT_LEAST_1,
    NOT_NEGATIVE,
    SAMPLES,
    TRANSFORMER,
    StrOptions,
    clipped,
)
from ..coders import OMP
from ..contracts import Array, AtomUpdate, SparseCoder
from ..data.check import check_rows
from ..data.missing import all_in_memory
from ..data.rows import map_rows
from ..data.weights import (
    Weights,
    check_weights,
    draw_rows,
    drop_zero_weights,
    n_drawable,
    weights_as_counts,
    weights_of_rows,
)
from ..dictionaries import AnchoredDictionary, KernelDictionary
from ..kernels import Kernel, resolve
from ..kernels.complete import completed_rows
from ..kernels.indefinite import check_kernel
from ..kernels.samples import takes_missing
from ..numerics.arrays import (
    as_like,
    check_points,
    eps,
    index_like,
    namespace,
    or_wider,
    row_norms,
    to_numpy,
)
from ..numerics.random import generator
from ..numerics.scaling import typical_length, unit_rows
from ..preimage import clip_to_domain
from ..updates import AnchorDescent, AnchoredUpdate
from .batch_learner import BatchLearner
from .initial_atoms import STARTS, check_row_numbers, count_row_numbers, nonzero_rows
from .kernel_learner import KernelAtoms
from .ksvd import KSVD
from .schedule import Schedule

ANCHOR_STARTS = ("kmeans", "samples")  # names of `STARTS` that serve as anchors


class ReducedKernelDL(KernelAtoms, BatchLearner):
    """A kernel dictionary whose atoms are combinations of a few, learned φ(anchors).

    Minimises ‖φ(Y) − Γ A φ(D)‖² + linear_weight · ‖Y − X D‖² over sparse codes Γ,
    coefficients A and, with `optimize_anchors`, the anchors D: RKDL-D, ORKDL-D and
    MORKDL-D, eqs. (3) and (8) of "Reduced Kernel Dictionary Learning". Time and
    memory grow with the number of samples, not with its square. `rkdl_d`, `orkdl_d`
    and `morkdl_d` build the methods with the settings of the paper.

    Parameters
    ----------
    kernel : str, Kernel or callable
        A kernel on rows of numbers; it must be differentiable if the anchors move.
    n_components, n_nonzero_coefs, coder, max_iter
        As in `KSVD`.
    init : {"samples", "anchors", "normal"} or array of row numbers
        The first atoms: training samples projected on the span of the anchors, some of
        the anchors themselves, or random combinations of all of them.
    anchors : {"dictionary", "kmeans", "samples"}, linear learner or array (n, p)
        The first anchors. "dictionary" takes atoms of `KSVD`, scales them to the
        typical norm of the samples and flips them towards their mean, where κ is
        larger. Atoms of a learner given as an object are used unchanged.
    n_anchors : int, optional
        Number of anchors. Default: twice the number of atoms, but at least 50 and at
        most one per sample. An array, or a learner that starts at random
        (``KSVD(n, init="normal")``, as in `rkdl_d`), may give more than one per sample.
    optimize_anchors : bool or AnchorDescent
        Whether to move the anchors after each update of the atoms: True for three steps
        of L-BFGS, ``AnchorDescent(n_steps=3, rate=5e-4)`` for plain steps as published;
        there are also a guard against steps that diverge, and anchors of norm 1.
    linear_weight : float
        Weight λ of the linear term, which keeps the anchors a dictionary of the
        samples. Its codes have as many non-zeros as those of the learner in `anchors`,
        otherwise up to 5.
    restrict : bool
        Whether to keep at most `n_nonzero_coefs` non-zeros while atoms are updated. The
        authors' program does not: the errors in their Table I (and in `history_` with
        False) are those of codes that have become dense.
    schedule, random_state, verbose, sparse_output
        As in `KSVD`.

    Attributes
    ----------
    anchors_ : array (n, p)
        The anchors.
    coefs_ : array (m, n)
        Coefficients of the atoms over the anchors.
    dictionary_ : KernelDictionary
        The atoms as a dictionary.
    kernel_ : Kernel
        The kernel with all parameters set.
    coder_ : SparseCoder
        The pursuit in use.
    history_ : dict
        ``objective`` (mean squared error in feature space) and ``seconds``; if
        `linear_weight` is not 0 also ``mixed``, the objective of eq. (8) per sample.
    n_iter_ : int
        Number of iterations.

    Examples
    --------
    >>> from kernlets import ReducedKernelDL, datasets
    >>> digits = datasets.load("digits")
    >>> learner = ReducedKernelDL("poly:2", 30, n_anchors=60, random_state=0)
    >>> learner.fit(digits.X_train).transform(digits.X_train[:5]).shape
    (5, 30)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BatchLearner._parameter_constraints,
        "kernel": [str, Kernel, callable],
        "init": [StrOptions({"samples", "anchors", "normal"}), "array-like"],
        "anchors": [
            StrOptions({"dictionary", *ANCHOR_STARTS}),
            TRANSFORMER,
            "array-like",
        ],
        "n_anchors": [AT_LEAST_1, None],
        "optimize_anchors": ["boolean", AnchorDescent],
        "linear_weight": [NOT_NEGATIVE],
        "restrict": ["boolean"],
    }

    _follows = ("tol", "callback")

    def __init__(
        self,
        kernel: str | Kernel | Callable[..., Any] = "rbf",
        n_components: int | None = None,
        *,
        n_nonzero_coefs: int | None = None,
        coder: str | SparseCoder | None = None,
        max_iter: int = 10,
        init: Any = "samples",
        anchors: Any = "dictionary",
        n_anchors: int | None = None,
        optimize_anchors: bool | AnchorDescent = False,
        linear_weight: float = 0.0,
        restrict: bool = True,
        schedule: str | Schedule | None = None,
        random_state: Any = None,
        verbose: bool = False,
        sparse_output: bool = False,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.n_nonzero_coefs = n_nonzero_coefs
        self.coder = coder
        self.max_iter = max_iter
        self.init = init
        self.anchors = anchors
        self.n_anchors = n_anchors
        self.optimize_anchors = optimize_anchors
        self.linear_weight = linear_weight
        self.restrict = restrict
        self.schedule = schedule
        self.random_state = random_state
        self.verbose = verbose
        self.sparse_output = sparse_output

    @classmethod
    def rkdl_d(
        cls,
        kernel: Any = "rbf",
        n_anchors: int = 50,
        n_nonzero_linear: int = 5,
        **params: Any,
    ) -> ReducedKernelDL:
        """RKDL-D as published, section III-A: anchors by linear K-SVD, then fixed.

        20 atoms, 4 non-zeros, 50 anchors learned with 5 non-zeros from a random start,
        some of them as first atoms; `params` are those of the constructor.
        """
        linear = KSVD(n_anchors, n_nonzero_linear, init="normal")
        sizes = {"n_components": 20, "n_nonzero_coefs": 4}
        return cls(kernel, **{**sizes, "init": "anchors", "anchors": linear, **params})

    @classmethod
    def orkdl_d(
        cls, kernel: Any = "rbf", rate: float = 5e-4, **params: Any
    ) -> ReducedKernelDL:
        """ORKDL-D as published, section III-B: `rkdl_d` and 3 gradient steps on D."""
        defaults = {"optimize_anchors": AnchorDescent(n_steps=3, rate=rate)}
        return cls.rkdl_d(kernel, **{**defaults, **params})

    @classmethod
    def morkdl_d(
        cls,
        kernel: Any = "rbf",
        rate: float = 5e-4,
        linear_rate: float | None = None,
        **params: Any,
    ) -> ReducedKernelDL:
        """MORKDL-D as published, section III-C: `orkdl_d` with a linear term, λ = 1.

        The step is that printed, g − (Y − DX)Xᵀ. It is half as long in the linear term
        as the gradient of eq. (8), which is ``linear_rate=rate``.
        """
        linear_rate = rate / 2 if linear_rate is None else linear_rate
        descent = AnchorDescent(n_steps=3, rate=rate, linear_rate=linear_rate)
        defaults = {"linear_weight": 1.0, "optimize_anchors": descent}
        return cls.rkdl_d(kernel, **{**defaults, **params})

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ReducedKernelDL:
        """Learn anchors and a dictionary for φ of the rows of X; y is ignored.

        A row of `sample_weight` w counts as w rows, as in `KSVD`.
        """
        self._validate_params()
        kernel = resolve(self.kernel)
        self._check_combinations(kernel)
        allow_missing = takes_missing(kernel) and all_in_memory(X)
        X = check_rows(
            self, X, reset=True, containers="memory", allow_nan=allow_missing
        )
        weights = weights_as_counts(check_weights(sample_weight, X))
        X, weights = drop_zero_weights(X, weights)
        X = completed_rows(X, weights)
        self.kernel_ = kernel.bound(X, weights)
        check_kernel(self.kernel_, X)
        rng = generator(self.random_state)
        start = self._first_dictionary(X, rng, weights)
        self.coder_ = self._coder(start.n_atoms, X.shape[1])
        rows = index_like(np.arange(X.shape[0]), X)
        dictionary = self._learn([(start, rng)], rows, weights)
        self._record_mixed(dictionary, weights)
        self._warn_of_collisions(dictionary.basis)
        self.dictionary_ = KernelDictionary(
            self.kernel_,
            dictionary.anchors,
            dictionary.coefs,
            known_gram=dictionary.gram(),
        )
        return self

    def _check_combinations(self, kernel: Kernel) -> None:
        """Refuse parameters that exclude each other."""
        if kernel.by_index:
            raise ValueError(
                "kernel='precomputed' has no sample vectors to learn anchors from: "
                "use KernelKSVD"
            )
        if self.optimize_anchors and not kernel.differentiable:
            raise ValueError(
                f"optimize_anchors needs a differentiable kernel, and {kernel!r} "
                "is not: set optimize_anchors=False or use e.g. RBF or Polynomial"
            )
        if self.linear_weight and not self.optimize_anchors:
            raise ValueError(
                f"linear_weight={self.linear_weight} acts only on anchors that move: "
                "set optimize_anchors=True"
            )
        descent = self._descent()
        if descent is None:
            return
        descent.check()
        if descent.linear_rate is not None and not self.linear_weight:
            raise ValueError(
                f"linear_rate={descent.linear_rate} is that of the linear term, and "
                "there is none: set linear_weight, or leave linear_rate out"
            )

    def _descent(self) -> AnchorDescent | None:
        """Return the steps that move the anchors; None if they are fixed."""
        if isinstance(self.optimize_anchors, AnchorDescent):
            return self.optimize_anchors
        return AnchorDescent() if self.optimize_anchors else None

    def _first_dictionary(
        self, X: Array, rng: np.random.Generator, weights: Weights = None
    ) -> AnchoredDictionary:
        energies = map_rows(self.kernel_.diag, X, X.shape[1] * X.dtype.itemsize)
        n_usable = _n_usable(weights, to_numpy(energies > 0))
        n_atoms = self._clip_n_atoms(n_usable, X.shape[1])
        anchors = self._first_anchors(X, n_atoms, rng, weights)
        if getattr(self._descent(), "unit_norm", False):
            anchors = unit_rows(anchors)
        coefs = as_like(self._first_coefs(n_atoms, len(anchors), rng), anchors)
        start = AnchoredDictionary.over_anchors(
            self.kernel_, X, energies, anchors, coefs
        )
        if len(coefs) == 0:
            rows = self._first_rows(start, n_atoms, rng, weights)
            start = start.with_weights(start.features[index_like(rows, X)])
        return start.with_unit_atoms()

    def _clip_n_atoms(self, n_usable: int, n_features: int) -> int:
        if self.n_components is None and not isinstance(self.init, str):
            return count_row_numbers(self.init)
        n_atoms = self._n_atoms(n_usable, n_features)
        return clipped("n_components", n_atoms, n_usable, SAMPLES)

    def _first_coefs(
        self, n_atoms: int, n_anchors: int, rng: np.random.Generator
    ) -> np.ndarray:  # (m, n)
        """Return the coefficients of the first atoms; none if these are samples."""
        init_name = self.init if isinstance(self.init, str) else ""
        if init_name == "normal":
            return rng.standard_normal((n_atoms, n_anchors))
        if init_name != "anchors":
            return np.empty((0, n_anchors))
        source = "anchors, which init='anchors' starts from"
        n_atoms = clipped("n_components", n_atoms, n_anchors, source)
        return np.eye(n_anchors)[rng.choice(n_anchors, n_atoms, replace=False)]

    def _first_rows(
        self,
        start: AnchoredDictionary,
        n_atoms: int,
        rng: np.random.Generator,
        weights: Weights,
    ) -> np.ndarray:  # (m,)
        """Return the row numbers of the samples whose projections are first atoms."""
        if not isinstance(self.init, str):
            n_samples = len(start.features)
            names = "'samples', 'anchors', 'normal'"
            return check_row_numbers(self.init, n_atoms, n_samples, names)
        span_energies = to_numpy(row_norms(start.features))
        rounding = 10 * eps(start.features) * to_numpy(start.energies)
        usable = np.flatnonzero(span_energies > rounding)
        usable_weights = None if weights is None else weights[usable]
        n_max = len(usable) if usable_weights is None else n_drawable(usable_weights)
        source = "samples with a part in the span of φ(anchors)"
        if not n_max:
            raise ValueError(
                f"there are no {source}: raise n_anchors, use a wider kernel or scale "
                "the samples, e.g. with StandardScaler"
            )
        n_atoms = clipped("n_components", n_atoms, n_max, source)
        return usable[draw_rows(len(usable), n_atoms, rng, usable_weights)]

    def _first_anchors(
        self, X: Array, n_atoms: int, rng: np.random.Generator, weights: Weights
    ) -> Array:  # (n, p)
        if isinstance(self.anchors, BaseEstimator):
            anchors = self._fit_linear_learner(
                clone(self.anchors), X, rng, weights
            ).components_
        elif isinstance(self.anchors, str):
            return self._named_anchors(X, n_atoms, rng, weights)
        else:
            anchors = check_points(self.anchors, X, "anchors")
        if self.n_anchors not in (None, len(anchors)):
            raise ValueError(
                f"n_anchors={self.n_anchors} but anchors has {len(anchors)}: leave "
                "n_anchors out"
            )
        return anchors

    def _named_anchors(
        self, X: Array, n_atoms: int, rng: np.random.Generator, weights: Weights
    ) -> Array:  # (n, p)
        n_usable = _n_usable(weights, nonzero_rows(X))
        if n_usable == 0:
            raise ValueError(
                "X has no non-zero row to take anchors from (squares of tiny ones "
                "vanish: scale them); give anchors as an array of points"
            )
        n_anchors = self._n_anchors(n_usable, n_atoms)
        if self.anchors in ANCHOR_STARTS:
            return STARTS[self.anchors](X, n_anchors, rng, weights)
        learner = KSVD(n_anchors, max_iter=self.max_iter)
        fitted_learner = self._fit_linear_learner(learner, X, rng, weights)
        atoms = orient_atoms(fitted_learner.components_, X, weights)
        # some kernels refuse negative entries
        return clip_to_domain(self.kernel_, atoms)

    def _n_anchors(self, n_usable: int, n_atoms: int) -> int:
        if self.n_anchors is None:
            return min(n_usable, max(50, 2 * n_atoms))
        return clipped("n_anchors", self.n_anchors, n_usable, "non-zero samples")

    def _fit_linear_learner(
        self, learner: Any, X: Array, rng: np.random.Generator, weights: Weights
    ) -> Any:
        if getattr(learner, "random_state", 0) is None:
            learner.set_params(random_state=int(rng.integers(2**31)))
        learner.fit(X) if weights is None else learner.fit(X, None, weights)
        if not hasattr(learner, "components_"):
            raise ValueError(
                f"anchors={learner!r} learns no rows of numbers: pass a linear learner "
                "such as KSVD"
            )
        return learner

    def _atom_update(self) -> AtomUpdate:
        n_nonzero = getattr(self.anchors, "n_nonzero_coefs", None)
        coder = None if n_nonzero is None else OMP(n_nonzero)
        return AnchoredUpdate(
            self.restrict,
            self._descent(),
            linear_weight=self.linear_weight,
            linear_coder=coder,
        )

    def _record_mixed(self, dictionary: AnchoredDictionary, weights: Weights) -> None:
        if not self.linear_weight:
            return
        n = len(dictionary.features) if weights is None else weights.sum()
        weight = self.linear_weight / n
        pairs = zip(self.history_["objective"], dictionary.linear_errors, strict=True)
        self.history_["mixed"] = [error + weight * linear for error, linear in pairs]

    def _warn_of_collisions(self, basis: Array) -> None:  # (r, rank)
        """Warn if there are too many anchors and the user chose their number."""
        n_anchors, rank = basis.shape
        is_chosen_by_user = self.n_anchors is not None or not isinstance(
            self.anchors, str
        )
        if is_chosen_by_user and rank < n_anchors:
            warnings.warn(
                f"φ of the {n_anchors} anchors spans {rank} dimensions only, up to "
                "rounding: anchors coincide, or there are more than the kernel can "
                "distinguish. The rest is dropped; lower n_anchors"
                + or_wider(basis.dtype, " or pass float64"),
                stacklevel=3,
            )


def _n_usable(weights: Weights, usable: np.ndarray) -> int:
    """Return the number of samples that a mask or row numbers select, with weights."""
    if weights is not None:
        return int(weights[usable].sum())
    return int(usable.sum()) if usable.dtype == bool else len(usable)


def orient_atoms(
    atoms: Array,  # (n, p), unit norm
    X: Array,  # (N, p)
    weights: Weights = None,
) -> Array:  # (n, p)
    """Scale atoms to the samples' typical norm and flip them towards their mean.

    A linear dictionary depends on neither length nor sign of its atoms, but a kernel
    does: the φ of an RBF anchor opposite to the samples is far from all of theirs.
    """
    xp = namespace(X)
    row_weights = weights_of_rows(weights, 0, X.shape[0], X)
    # only the direction of the mean matters
    mean = xp.mean(X, axis=0) if row_weights is None else row_weights @ X
    signs = xp.where(atoms @ mean < 0, -1.0, 1.0)
    return as_like(signs * typical_length(X, weights), atoms)[:, None] * atoms
