"""`ReducedKernelDL` learns atoms over a few anchors, and the anchors.

This module has the estimator and the first atoms, and `anchors.py` the first anchors;
`updates/reduced.py` updates the atoms and `updates/descent.py` the anchors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..base.constraints import (
    AT_LEAST_1,
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
)
from ..dictionaries import AnchoredDictionary, KernelDictionary
from ..kernels import Kernel, resolve
from ..kernels.complete import completed_rows
from ..kernels.indefinite import check_kernel
from ..kernels.samples import takes_missing
from ..numerics.arrays import (
    as_like,
    eps,
    index_like,
    namespace,
    or_wider,
    row_norms,
    to_numpy,
)
from ..numerics.random import generator
from ..updates import AnchorDescent, AnchoredUpdate, KSVDUpdate
from .anchors import Anchors, as_anchors, as_descent, count_usable
from .code_and_update import BatchLearner
from .initial_atoms import check_row_numbers, count_row_numbers
from .kernel_atoms import KernelAtoms
from .ksvd import KSVD
from .schedule import Schedule


class ReducedKernelDL(KernelAtoms, BatchLearner):
    """A kernel dictionary whose atoms are combinations of a few, learned φ(anchors).

    Minimises ‖φ(Y) − Γ A φ(D)‖² + linear_weight · ‖Y − X D‖² over sparse codes Γ,
    coefficients A and, with ``Anchors(descent=True)``, the anchors D: RKDL-D, ORKDL-D
    and MORKDL-D, eqs. (3) and (8) of "Reduced Kernel Dictionary Learning". Time and
    memory grow with the number of samples, not with its square. `rkdl_d`, `orkdl_d`
    and `morkdl_d` build the methods with the settings of the paper.

    Parameters
    ----------
    kernel : str, Kernel or callable
        A kernel on rows of numbers; it must be differentiable if the anchors move.
    n_components, n_nonzero_coefs, coder, max_iter
        As in `KSVD`.
    init : {"samples", "anchors", "normal", "mean"} or array of row numbers
        The first atoms: training samples projected on the span of the anchors, some of
        the anchors themselves, or random combinations of all of them; with "mean" the
        first of these is the mean of the samples.
    anchors : int, str, Anchors, linear learner or array (n, p)
        The number of anchors; or the first ones: "dictionary", "kmeans" or "samples",
        also with their number (``"kmeans:60"``), a learner or points. `Anchors` says
        as well whether and how they move: ``Anchors(60, descent=True)``.
    schedule, random_state, sparse_output
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
    >>> learner = ReducedKernelDL("poly:2", 30, anchors=60, random_state=0)
    >>> learner.fit(digits.X_train).transform(digits.X_train[:5]).shape
    (5, 30)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BatchLearner._parameter_constraints,
        "kernel": [str, Kernel, callable],
        "init": [StrOptions({"samples", "anchors", "normal", "mean"}), "array-like"],
        "anchors": [str, AT_LEAST_1, Anchors, TRANSFORMER, "array-like"],
    }

    _follows = ("tol",)

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
        self.anchors = anchors
        self.schedule = schedule
        self.random_state = random_state
        self.sparse_output = sparse_output

    @classmethod
    def rkdl_d(
        cls,
        kernel: Any = "rbf",
        n_anchors: int = 50,
        n_nonzero_linear: int = 5,
        *,
        start: Any = None,
        descent: bool | AnchorDescent = False,
        linear_weight: float = 0.0,
        restrict: bool = False,
        redraw: bool = True,
        **params: Any,
    ) -> ReducedKernelDL:
        """RKDL-D as published, section III-A: anchors by linear K-SVD, then fixed.

        20 atoms, 4 non-zeros, 50 anchors learned with 5 non-zeros. Where the text is
        silent it follows the authors' program. Anchors start at random directions.
        Atoms start at random combinations of all anchors, of unit norm, and at the
        mean: the program's first pass codes over atoms whose norms in feature space
        are not 1 as if they were, so that one of them is fitted to all samples and the
        others are drawn again. Atoms that no sample uses are drawn again in each pass,
        and codes become dense. ``restrict=True`` keeps the constraint of eq. (3), which
        is worse than exact learning. Other parameters are those of `Anchors`, and
        `params` those of the constructor.
        """
        unused_anew = KSVDUpdate(min_uses=1, redraw=True)
        if start is None:
            start = KSVD(n_anchors, n_nonzero_linear, init="normal", update=unused_anew)
        anchors = Anchors(
            start=start,
            descent=descent,
            linear_weight=linear_weight,
            restrict=restrict,
            redraw=redraw,
        )
        sizes = {"n_components": 20, "n_nonzero_coefs": 4, "init": "mean"}
        return cls(kernel, anchors=anchors, **{**sizes, **params})

    @classmethod
    def orkdl_d(
        cls, kernel: Any = "rbf", rate: float = 5e-4, **params: Any
    ) -> ReducedKernelDL:
        """ORKDL-D as published, section III-B: `rkdl_d` and 3 gradient steps on D.

        The printed derivative is half of the gradient, and anchors move one by one.
        """
        descent = AnchorDescent(n_steps=3, rate=rate / 2, one_by_one=True)
        return cls.rkdl_d(kernel, **{"descent": descent, **params})

    @classmethod
    def morkdl_d(
        cls, kernel: Any = "rbf", rate: float = 5e-4, **params: Any
    ) -> ReducedKernelDL:
        """MORKDL-D as published, section III-C: `orkdl_d` with a linear term, λ = 1.

        The step is that printed, half of the gradient of eq. (8). The authors' program
        calls it without the linear term, and then it is `orkdl_d`.
        """
        return cls.orkdl_d(kernel, rate, **{"linear_weight": 1.0, **params})

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ReducedKernelDL:
        """Learn anchors and a dictionary for φ of the rows of X; y is ignored.

        A row of `sample_weight` w counts as w rows, as in `KSVD`.
        """
        self._validate_params()
        kernel = resolve(self.kernel)
        self._check_kernel(kernel)
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

    def _validate_params(self) -> None:
        super()._validate_params()
        as_anchors(self.anchors).check()

    def _check_kernel(self, kernel: Kernel) -> None:
        if kernel.by_index:
            raise ValueError(
                "kernel='precomputed' has no sample vectors to learn anchors from: "
                "use KernelKSVD"
            )
        if as_anchors(self.anchors).descent and not kernel.differentiable:
            raise ValueError(
                f"descent of anchors needs a differentiable kernel, and {kernel!r} is "
                "not: set descent=False or use e.g. RBF or Polynomial"
            )

    def _first_dictionary(
        self, X: Array, rng: np.random.Generator, weights: Weights = None
    ) -> AnchoredDictionary:
        energies = map_rows(self.kernel_.diag, X, X.shape[1] * X.dtype.itemsize)
        n_usable = count_usable(weights, to_numpy(energies > 0))
        n_atoms = self._clip_n_atoms(n_usable, X.shape[1])
        anchors = as_anchors(self.anchors).first(
            self.kernel_, X, n_atoms, self.max_iter, rng, weights
        )
        coefs = as_like(self._first_coefs(n_atoms, len(anchors), rng), anchors)
        start = AnchoredDictionary.over_anchors(
            self.kernel_, X, energies, anchors, coefs
        )
        if isinstance(self.init, str) and self.init == "mean":
            start = start.with_weights(_with_first(start, weights))
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
        if init_name in ("normal", "mean"):
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
            names = "'samples', 'anchors', 'normal', 'mean'"
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

    def _atom_update(self) -> AtomUpdate:
        anchors = as_anchors(self.anchors)
        n_nonzero = getattr(anchors.start, "n_nonzero_coefs", None)
        return AnchoredUpdate(
            anchors.restrict,
            as_descent(anchors.descent),
            linear_weight=anchors.linear_weight,
            linear_coder=None if n_nonzero is None else OMP(n_nonzero),
            min_uses=1 if anchors.redraw else 4,
            redraw=anchors.redraw,
        )

    def _record_mixed(self, dictionary: AnchoredDictionary, weights: Weights) -> None:
        """Add the objective of eq. (8) to the history, if there is a linear term."""
        linear_weight = as_anchors(self.anchors).linear_weight
        if not linear_weight:
            return
        n = len(dictionary.features) if weights is None else weights.sum()
        pairs = zip(self.history_["objective"], dictionary.linear_errors, strict=True)
        self.history_["mixed"] = [
            error + linear_weight / n * linear for error, linear in pairs
        ]

    def _warn_of_collisions(self, basis: Array) -> None:  # (r, rank)
        """Warn if there are too many anchors and the user chose their number."""
        (n_anchors, rank), anchors = basis.shape, as_anchors(self.anchors)
        is_default = anchors.n_anchors is None and isinstance(anchors.start, str)
        if rank < n_anchors and not is_default:
            warnings.warn(
                f"φ of the {n_anchors} anchors spans {rank} dimensions only, up to "
                "rounding: anchors coincide, or there are more than the kernel can "
                "distinguish. The rest is dropped; lower n_anchors"
                + or_wider(basis.dtype, " or pass float64"),
                stacklevel=3,
            )


def _with_first(start: AnchoredDictionary, weights: Weights) -> Array:  # (m, r)
    """Return the atoms with the mean of the samples, in the span, as the first."""
    xp = namespace(start.features)
    mean = xp.mean(start.features, axis=0)
    if weights is not None:
        share = as_like(weights / weights.sum(), start.features)
        mean = share @ start.features
    return xp.concat([mean[None, :], start.atoms[1:]])
