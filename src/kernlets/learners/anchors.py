"""`Anchors` has the anchors of `ReducedKernelDL`: the first ones, and how they move."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from ..base.constraints import (
    AT_LEAST_1,
    NOT_NEGATIVE,
    TRANSFORMER,
    StrOptions,
    clipped,
)
from ..base.estimator import NAMED
from ..base.names import parse
from ..contracts import Array
from ..data.weights import Weights, weights_of_rows
from ..kernels import Kernel
from ..numerics.arrays import as_like, check_points, namespace
from ..numerics.scaling import typical_length, unit_rows
from ..preimage import clip_to_domain
from ..sklearn_base import BaseEstimator
from ..updates import AnchorDescent
from .initial_atoms import STARTS, nonzero_rows
from .ksvd import KSVD

NAMES = ("dictionary", "kmeans", "samples")  # of first anchors
LEAST_DEFAULT = 50  # anchors, if there are so many samples


class Anchors(BaseEstimator):
    """The anchors of `ReducedKernelDL`: their number, the first ones, how they move.

    A learner takes it as an object, as a number of anchors, or as a text such as
    ``"kmeans:60"`` or ``"dictionary:60,descent=True"``.

    Parameters
    ----------
    n_anchors : int, optional
        Number of anchors. Default: twice the number of atoms, but at least 50 and at
        most one per sample. An array, or a learner that starts at random
        (``KSVD(n, init="normal")``, as in `ReducedKernelDL.rkdl_d`), may give more than
        one per sample.
    start : {"dictionary", "kmeans", "samples"}, linear learner or array (n, p)
        The first anchors. "dictionary" takes atoms of `KSVD`, scales them to the
        typical norm of the samples and flips them towards their mean, where κ is
        larger. Atoms of a learner given as an object are used unchanged. "kmeans" are
        centres after 20 steps of Lloyd's algorithm, fewer if centres rest.
    descent : bool or AnchorDescent
        Whether to move the anchors after each update of the atoms: True for three steps
        of L-BFGS, ``AnchorDescent(n_steps=3, rate=5e-4)`` for plain steps as published;
        there are also a guard against steps that diverge, and anchors of norm 1.
    linear_weight : float
        Weight λ of the linear term, which keeps anchors that move a dictionary of the
        samples. Its codes have as many non-zeros as those of the learner in `start`,
        otherwise up to 5.
    restrict : bool
        Whether codes keep at most `n_nonzero_coefs` non-zeros while the atoms over the
        anchors are updated. The authors' program does not restrict them: the errors in
        their Table I (and in `history_` with False) are those of codes that have become
        dense.
    redraw : bool
        Whether atoms over the anchors that no sample uses are drawn at random, as in
        the authors' program. Otherwise atoms with few uses, and copies of others, are
        replaced by samples.

    Examples
    --------
    >>> from kernlets import Anchors, ReducedKernelDL, datasets
    >>> X = datasets.load("digits").X_train[:200]
    >>> anchors = Anchors(20, "kmeans", descent=True)
    >>> learner = ReducedKernelDL("poly:2", 10, anchors=anchors, random_state=0)
    >>> learner.fit(X).anchors_.shape
    (20, 64)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_anchors": [AT_LEAST_1, None],
        "start": [StrOptions(set(NAMES)), TRANSFORMER, "array-like"],
        "descent": ["boolean", AnchorDescent],
        "linear_weight": [NOT_NEGATIVE],
        "restrict": ["boolean"],
        "redraw": ["boolean"],
    }

    def __init__(
        self,
        n_anchors: int | None = None,
        start: Any = "dictionary",
        *,
        descent: bool | AnchorDescent = False,
        linear_weight: float = 0.0,
        restrict: bool = True,
        redraw: bool = False,
    ) -> None:
        self.n_anchors = n_anchors
        self.start = start
        self.descent = descent
        self.linear_weight = linear_weight
        self.restrict = restrict
        self.redraw = redraw

    def check(self) -> None:
        """Refuse bad values, and parameters that exclude each other."""
        self._validate_params()
        if self.linear_weight and not self.descent:
            raise ValueError(
                f"linear_weight={self.linear_weight} acts only on anchors that move: "
                "set descent=True"
            )
        descent = as_descent(self.descent)
        if descent is None:
            return
        descent.check()
        if descent.linear_rate is not None and not self.linear_weight:
            raise ValueError(
                f"linear_rate={descent.linear_rate} is that of the linear term, and "
                "there is none: set linear_weight, or leave linear_rate out"
            )

    def first(
        self,
        kernel: Kernel,
        X: Array,  # (N, p)
        n_atoms: int,
        max_iter: int,  # of K-SVD
        rng: np.random.Generator,
        weights: Weights = None,
    ) -> Array:  # (n, p)
        """Return the anchors before the first iteration."""
        if isinstance(self.start, str):
            anchors = self._named_anchors(kernel, X, n_atoms, max_iter, rng, weights)
        elif hasattr(self.start, "fit"):
            anchors = _learned_atoms(clone(self.start), X, rng, weights)
        else:
            anchors = check_points(self.start, X, "anchors")
        is_named, n = isinstance(self.start, str), len(anchors)
        if not is_named and self.n_anchors not in (None, n):
            raise ValueError(
                f"n_anchors={self.n_anchors} but there are {n} anchors: leave "
                "n_anchors out"
            )
        descent = as_descent(self.descent)
        has_unit_norm = descent is not None and descent.unit_norm
        return unit_rows(anchors) if has_unit_norm else anchors

    def _named_anchors(
        self,
        kernel: Kernel,
        X: Array,
        n_atoms: int,
        max_iter: int,
        rng: np.random.Generator,
        weights: Weights,
    ) -> Array:  # (n, p)
        n_usable = count_usable(weights, nonzero_rows(X))
        if n_usable == 0:
            raise ValueError(
                "X has no non-zero row to take anchors from (squares of tiny ones "
                "vanish: scale them); give anchors as an array of points"
            )
        if self.n_anchors is None:
            n_anchors = min(n_usable, max(LEAST_DEFAULT, 2 * n_atoms))
        else:
            n_anchors = clipped(
                "n_anchors", self.n_anchors, n_usable, "non-zero samples"
            )
        if self.start != "dictionary":
            return STARTS[self.start](X, n_anchors, rng, weights)
        atoms = _learned_atoms(KSVD(n_anchors, max_iter=max_iter), X, rng, weights)
        # some kernels refuse negative entries
        return clip_to_domain(kernel, orient_atoms(atoms, X, weights))


def as_anchors(value: Any) -> Anchors:
    """Return the anchors that a number, a text, a learner or an array means."""
    if isinstance(value, Anchors):
        return value
    if isinstance(value, str):
        kind, params = parse("anchors", value, dict.fromkeys(NAMES, Anchors))
        return kind(**{"start": value.partition(":")[0].strip().lower(), **params})
    return Anchors(int(value)) if isinstance(value, Integral) else Anchors(start=value)


NAMED["anchors"] = as_anchors


def as_descent(value: bool | AnchorDescent) -> AnchorDescent | None:
    """Return the steps that move anchors; None if these are fixed."""
    if isinstance(value, AnchorDescent):
        return value
    return AnchorDescent() if value else None


def _learned_atoms(
    learner: Any, X: Array, rng: np.random.Generator, weights: Weights
) -> Array:  # (n, p)
    if getattr(learner, "random_state", 0) is None:
        learner.set_params(random_state=int(rng.integers(2**31)))
    learner.fit(X) if weights is None else learner.fit(X, None, weights)
    if not hasattr(learner, "components_"):
        raise ValueError(
            f"anchors={learner!r} learns no rows of numbers: pass a linear learner "
            "such as KSVD"
        )
    return learner.components_


def count_usable(weights: Weights, usable: np.ndarray) -> int:
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
