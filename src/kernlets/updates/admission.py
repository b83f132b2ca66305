"""Further criteria of admission: distance, Babel measure, linear dependence.

The paper on budgets names these criteria in section III-A as alternatives; those that
it uses are in `budget_rules.py`. None of these admits the same sample twice.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..base.constraints import AT_LEAST_1, NOT_NEGATIVE
from .budget_rules import Admission, Coherence, ReconstructionCost


class ThresholdAdmission(Admission):
    """A criterion with a threshold; a subclass says which of `loops.budget.Rules`."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_first": [AT_LEAST_1],
        "threshold": [NOT_NEGATIVE],
    }
    threshold: float
    entry: ClassVar[str]
    power: ClassVar[int] = 1

    def rules(self) -> dict[str, Any]:
        return {**super().rules(), self.entry: float(self.threshold) ** self.power}


class FeatureDistance(ThresholdAdmission):
    """Admit x if ‖φ(x) − φ(z)‖ > threshold for all anchors z.

    Parameters
    ----------
    threshold : float
        The distance; with κ(x, x) = 1 a coherence of γ is one of √(2 − 2γ).
    n_first : int
        Number of first samples that are always admitted.

    Examples
    --------
    >>> from kernlets import BudgetKernelDL, FeatureDistance, datasets
    >>> X = datasets.load("digits").X_train
    >>> rule = FeatureDistance(0.9, n_first=5)
    >>> learner = BudgetKernelDL("rbf", 10, admission=rule, max_iter=1, random_state=0)
    >>> learner.fit(X[:100]).anchors_.shape[1]
    64
    """

    entry = "distance"
    power = 2

    def __init__(self, threshold: float = 0.6, n_first: int = 20) -> None:
        self.threshold = threshold
        self.n_first = n_first


class BabelMeasure(ThresholdAdmission):
    """Admit x if Σ |κ(x, z)| / √(κ(x, x) κ(z, z)) < threshold, over all anchors z.

    Parameters
    ----------
    threshold : float
        The bound of the sum, which grows with the number of anchors.
    n_first : int
        Number of first samples that are always admitted.

    Examples
    --------
    >>> from kernlets import BabelMeasure, BudgetKernelDL, datasets
    >>> X = datasets.load("digits").X_train
    >>> rule = BabelMeasure(3.0, n_first=5)
    >>> learner = BudgetKernelDL("rbf", 10, admission=rule, max_iter=1, random_state=0)
    >>> learner.fit(X[:100]).anchors_.shape[1]
    64
    """

    entry = "babel"

    def __init__(self, threshold: float = 10.0, n_first: int = 20) -> None:
        self.threshold = threshold
        self.n_first = n_first


class LinearDependence(ThresholdAdmission):
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
    >>> from kernlets import BudgetKernelDL, LinearDependence, datasets
    >>> X = datasets.load("digits").X_train
    >>> rule = LinearDependence(0.5, n_first=5)
    >>> learner = BudgetKernelDL("rbf", 10, admission=rule, max_iter=1, random_state=0)
    >>> learner.fit(X[:100]).anchors_.shape[1]
    64
    """

    entry = "dependence"

    def __init__(self, threshold: float = 0.1, n_first: int = 20) -> None:
        self.threshold = threshold
        self.n_first = n_first


ADMISSIONS = {
    "all": Admission,
    "coherence": Coherence,
    "cost": ReconstructionCost,
    "distance": FeatureDistance,
    "babel": BabelMeasure,
    "dependence": LinearDependence,
}
