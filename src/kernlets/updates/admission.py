"""Criteria of admission: which samples become anchors of a dictionary on a budget.

`Coherence` and `ReconstructionCost` are those that the paper uses. It names the others
in section III-A as alternatives; none of these admits the same sample twice.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np

from ..base.constraints import AT_LEAST_1, NOT_NEGATIVE, Interval
from ..base.names import build
from ..loops.budget.types import Rules
from ..sklearn_base import BaseEstimator

THRESHOLD: dict[str, list[Any]] = {"n_first": [AT_LEAST_1], "threshold": [NOT_NEGATIVE]}


class Admission(BaseEstimator):
    """Every sample that is not an anchor yet becomes one; pruning removes anchors.

    Parameters
    ----------
    n_first : int
        Number of first samples that are always admitted; the first atoms are random
        combinations of them.
    repeats : bool
        Whether a sample that is an anchor already becomes one again, as in Table I of
        the paper, read literally, with a criterion that does not prevent it.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_first": [AT_LEAST_1],
        "repeats": ["boolean"],
    }
    repeats: bool = False  # of criteria that never admit a sample again

    def __init__(self, n_first: int = 20, repeats: bool = False) -> None:
        self.n_first = n_first
        self.repeats = repeats

    def restrict(self, rules: Rules) -> Rules:
        """Return the rules of the loop over samples with this criterion."""
        return rules._replace(coherence=np.inf, repeats=True) if self.repeats else rules


class Coherence(Admission):
    """Admit x if |κ(x, z)| / √(κ(x, x) κ(z, z)) < threshold for all anchors z, (21).

    Parameters
    ----------
    threshold : float
        γ, from 0 (no further anchors) to 1 (every sample is new).
    n_first : int
        Number of first samples that are always admitted.

    Examples
    --------
    >>> from kernlets import Budget, BudgetKernelDL, Coherence, datasets
    >>> X = datasets.load("digits").X_train
    >>> rule = Coherence(0.5, n_first=5)
    >>> budget = Budget(admission=rule)
    >>> learner = BudgetKernelDL("rbf", 10, budget=budget, max_iter=1, random_state=0)
    >>> learner.fit(X[:100]).anchors_.shape[1]
    64
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_first": [AT_LEAST_1],
        "threshold": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(self, threshold: float = 0.8, n_first: int = 20) -> None:
        self.threshold = threshold
        self.n_first = n_first

    def restrict(self, rules: Rules) -> Rules:
        return super().restrict(rules)._replace(coherence=float(self.threshold))


class ReconstructionCost(Admission):
    """Admit x if ‖φ(x) − Dα‖² > threshold, eq. (22).

    Parameters
    ----------
    threshold : float
        ε.
    half : bool
        Whether to compare ½‖φ(x) − Dα‖², the cost in eq. (16), instead. It is nearer to
        the published numbers of anchors, which also depend on the scale of the pixels:
        the paper does not state it, and they change several times as fast.
    n_first : int
        Number of first samples that are always admitted.
    repeats : bool
        As in `Admission`: eq. (22) alone does not prevent it.

    Examples
    --------
    >>> from kernlets import Budget, BudgetKernelDL, ReconstructionCost, datasets
    >>> X = datasets.load("digits").X_train
    >>> rule = ReconstructionCost(0.9, n_first=5)
    >>> budget = Budget(admission=rule)
    >>> learner = BudgetKernelDL("rbf", 10, budget=budget, max_iter=1, random_state=0)
    >>> learner.fit(X[:100]).anchors_.shape[1]
    64
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Admission._parameter_constraints,
        "threshold": [NOT_NEGATIVE],
        "half": ["boolean"],
    }

    def __init__(
        self,
        threshold: float = 1.2,
        half: bool = False,
        *,
        n_first: int = 20,
        repeats: bool = False,
    ) -> None:
        self.threshold = threshold
        self.half = half
        self.n_first = n_first
        self.repeats = repeats

    def restrict(self, rules: Rules) -> Rules:
        cost = float(self.threshold) * (1 + self.half)
        return super().restrict(rules)._replace(cost=cost)


class FeatureDistance(Admission):
    """Admit x if ‖φ(x) − φ(z)‖ > threshold for all anchors z.

    Parameters
    ----------
    threshold : float
        The distance; with κ(x, x) = 1 a coherence of γ is one of √(2 − 2γ).
    n_first : int
        Number of first samples that are always admitted.

    Examples
    --------
    >>> from kernlets import Budget, BudgetKernelDL, FeatureDistance, datasets
    >>> X = datasets.load("digits").X_train
    >>> rule = FeatureDistance(0.9, n_first=5)
    >>> budget = Budget(admission=rule)
    >>> learner = BudgetKernelDL("rbf", 10, budget=budget, max_iter=1, random_state=0)
    >>> learner.fit(X[:100]).anchors_.shape[1]
    64
    """

    _parameter_constraints = THRESHOLD

    def __init__(self, threshold: float = 0.6, n_first: int = 20) -> None:
        self.threshold = threshold
        self.n_first = n_first

    def restrict(self, rules: Rules) -> Rules:
        return rules._replace(distance=float(self.threshold) ** 2)


class BabelMeasure(Admission):
    """Admit x if Σ |κ(x, z)| / √(κ(x, x) κ(z, z)) < threshold, over all anchors z.

    Parameters
    ----------
    threshold : float
        The bound of the sum, which grows with the number of anchors.
    n_first : int
        Number of first samples that are always admitted.

    Examples
    --------
    >>> from kernlets import BabelMeasure, Budget, BudgetKernelDL, datasets
    >>> X = datasets.load("digits").X_train
    >>> rule = BabelMeasure(3.0, n_first=5)
    >>> budget = Budget(admission=rule)
    >>> learner = BudgetKernelDL("rbf", 10, budget=budget, max_iter=1, random_state=0)
    >>> learner.fit(X[:100]).anchors_.shape[1]
    64
    """

    _parameter_constraints = THRESHOLD

    def __init__(self, threshold: float = 10.0, n_first: int = 20) -> None:
        self.threshold = threshold
        self.n_first = n_first

    def restrict(self, rules: Rules) -> Rules:
        return rules._replace(babel=float(self.threshold))


class LinearDependence(Admission):
    """Admit x if min ‖φ(x) − Σ ξ φ(z)‖² > threshold: approximate linear dependence.

    The minimum is over all combinations of the anchors z: the distance from their span.

    Parameters
    ----------
    threshold : float
        The squared distance from the span.
    n_first : int
        Number of first samples that are always admitted.

    Examples
    --------
    >>> from kernlets import Budget, BudgetKernelDL, LinearDependence, datasets
    >>> X = datasets.load("digits").X_train
    >>> rule = LinearDependence(0.5, n_first=5)
    >>> budget = Budget(admission=rule)
    >>> learner = BudgetKernelDL("rbf", 10, budget=budget, max_iter=1, random_state=0)
    >>> learner.fit(X[:100]).anchors_.shape[1]
    64
    """

    _parameter_constraints = THRESHOLD

    def __init__(self, threshold: float = 0.1, n_first: int = 20) -> None:
        self.threshold = threshold
        self.n_first = n_first

    def restrict(self, rules: Rules) -> Rules:
        return rules._replace(dependence=float(self.threshold))


ADMISSIONS = {
    "all": Admission,
    "coherence": Coherence,
    "cost": ReconstructionCost,
    "distance": FeatureDistance,
    "babel": BabelMeasure,
    "dependence": LinearDependence,
}


def as_admission(value: str | Admission) -> Admission:
    """Return the criterion of a name such as "coherence:0.5", or the given one."""
    return build("admission", value, ADMISSIONS) if isinstance(value, str) else value
