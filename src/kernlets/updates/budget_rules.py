"""`Budget` has the rules of a dictionary on a budget; they hold no data.

The hot operation `budget_stream` applies them to samples;
`learners/budget_anchors.py` stores the anchors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from ..base.constraints import AT_LEAST_1, NOT_NEGATIVE, POSITIVE, StrOptions
from ..base.estimator import NAMED, NamedParts
from ..coders import OMP
from ..contracts import Array
from ..loops.budget.types import BudgetPursuit, Rules
from ..numerics.arrays import eps
from ..sklearn_base import BaseEstimator
from .admission import Admission, as_admission

# as numbered in `loops.budget.types`
PRUNINGS = {"row-norm": 0, "error": 1, "merge": 2}

# Length of a guarded step; the minimum of the sample's cost along it is at 1. Steps
# past the minimum learn faster, but from 2 on the cost would not fall.
REACH = 1.8


class StepSize(BaseEstimator, ABC):
    """ρ of the n-th sample of a stream, n = 1, 2, ..."""

    @abstractmethod
    def __call__(self, n: np.ndarray) -> np.ndarray:
        """Return the step sizes of the samples with these numbers."""


class DecayingStep(StepSize):
    """ρ = first / (1 + n / decay) up to sample `hold`, constant from there on.

    The defaults are the schedule of "Online Kernel Dictionary Learning on a Budget",
    section IV; without `hold` the step decays like 1/n forever.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "first": [POSITIVE],
        "decay": [POSITIVE],
        "hold": [AT_LEAST_1, None],
    }

    def __init__(
        self, first: float = 0.01, decay: float = 1000.0, *, hold: int | None = 2000
    ) -> None:
        self.first = first
        self.decay = decay
        self.hold = hold

    def __call__(self, n: np.ndarray) -> np.ndarray:
        self._validate_params()
        largest = np.inf if self.hold is None else self.hold
        return self.first / (1 + np.minimum(n, largest) / self.decay)


class RootStep(StepSize):
    """ρ = first / √(1 + n / decay), which tends to 0 more slowly than 1/n."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "first": [POSITIVE],
        "decay": [POSITIVE],
    }

    def __init__(self, first: float = 0.01, decay: float = 1000.0) -> None:
        self.first = first
        self.decay = decay

    def __call__(self, n: np.ndarray) -> np.ndarray:
        self._validate_params()
        return self.first / np.sqrt(1 + n / self.decay)


class StochasticGradient(BaseEstimator):
    """One step on ½‖φ(x) − Dα‖² + λ‖α‖₁ + ½μ‖D‖² per sample, D = Φ(anchors) Ω.

    In the space of the parameters, eqs. (19) and (20), with K = K(anchors, anchors):
    Ω ← Ω − ρ(KΩ(ααᵀ + μI) − κ(anchors, x)αᵀ). In the feature space, eq. (15):
    D ← (1 − μρ)D + ρ(φ(x) − Dα)αᵀ.

    Parameters
    ----------
    space : {"parameter", "feature"}
        The space of the step.
    step : float or StepSize
        ρ: a constant or a schedule. Default: `DecayingStep`, that of the paper.
    penalty : float
        μ, which keeps atoms from growing.
    guard : bool
        Whether to shorten a step along G that would not lower the cost of its own
        sample, to ρ = 1.8 ‖G‖² / cost″(G); at 2 the cost would not change. At large
        budgets ρ(μ + ‖α‖²)λ_max(K) is far above 2 with the published step sizes, and
        coefficients diverge. Without the guard there is a warning.
    on_reject : {"update", "skip"}
        Whether to learn from a sample that is not admitted as an anchor. In feature
        space φ(x) is then projected on the span of the anchors. "skip" follows Table I
        of the paper literally.
    patience : int, optional
        An atom that this many consecutive samples have not used becomes the next
        anchor. Use it for data that change, where atoms would die out. Default: never.

    Examples
    --------
    >>> from kernlets import Budget, BudgetKernelDL, StochasticGradient, datasets
    >>> X = datasets.load("digits").X_train
    >>> update = StochasticGradient("feature", step=0.05)
    >>> budget = Budget(20, update=update)
    >>> learner = BudgetKernelDL("rbf", 10, budget=budget, random_state=0)
    >>> learner.fit(X[:100]).coefs_.shape
    (10, 20)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "space": [StrOptions({"parameter", "feature"})],
        "step": [POSITIVE, StepSize, None],
        "penalty": [NOT_NEGATIVE],
        "guard": ["boolean"],
        "on_reject": [StrOptions({"update", "skip"})],
        "patience": [AT_LEAST_1, None],
    }

    def __init__(
        self,
        space: str = "parameter",
        step: float | StepSize | None = None,
        *,
        penalty: float = 0.1,
        guard: bool = True,
        on_reject: str = "update",
        patience: int | None = None,
    ) -> None:
        self.space = space
        self.step = step
        self.penalty = penalty
        self.guard = guard
        self.on_reject = on_reject
        self.patience = patience

    def steps(self, n_seen: int, count: int) -> np.ndarray:  # (count,)
        """Return ρ of the next samples."""
        if isinstance(self.step, Real):
            return np.full(count, float(self.step))
        schedule: Any = DecayingStep() if self.step is None else self.step
        return schedule(np.arange(n_seen + 1, n_seen + count + 1))


def pursuit_of(coder: Any, like: Array) -> BudgetPursuit:
    """Convert a coder for the hot operation; `like` has one column per atom."""
    if isinstance(coder, OMP):
        n_nonzero, tol = coder.width(like.shape[1]), float(coder.tol or 0)
        return BudgetPursuit(n_nonzero, 0.0, False, 0, tol)
    tol = float(coder.tol)
    return BudgetPursuit(
        0, float(coder.alpha), bool(coder.positive), int(coder.max_iter), tol
    )


class Budget(NamedParts):
    """The rules of `BudgetKernelDL`: which samples become anchors, and which go.

    Parameters
    ----------
    n_anchors : int
        Largest number of anchors.
    admission : str or rule
        Which samples may become anchors: "all", "coherence", "cost", "distance",
        "babel" or "dependence", with parameters such as "coherence:0.5", or an object:
        ``Coherence(0.8)``, ``ReconstructionCost(1.2)``, ``FeatureDistance(0.6)``,
        ``BabelMeasure(10)``, ``LinearDependence(0.1)``. A sample is not stored twice,
        unless "all" or "cost" is given with ``repeats=True``.
    update : {"parameter", "feature"} or StochasticGradient
        The space of the gradient step; an object also sets its length and more.
    pruning : {"row-norm", "error", "merge"}
        Remove the anchor with the smallest row of Ω, eq. (23); or the anchor whose
        projection on all others changes D least, and add its part to them; or the
        anchor that a single other anchor replaces best.

    Examples
    --------
    >>> from kernlets import Budget, BudgetKernelDL, datasets
    >>> X = datasets.load("digits").X_train
    >>> budget = Budget(40, "coherence:0.9", pruning="error")
    >>> learner = BudgetKernelDL("poly:2", 20, budget=budget, random_state=0).fit(X)
    >>> learner.coefs_.shape
    (20, 40)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_anchors": [AT_LEAST_1],
        "admission": [str, Admission],
        "update": [StrOptions({"parameter", "feature"}), StochasticGradient],
        "pruning": [StrOptions(set(PRUNINGS))],
    }

    def __init__(
        self,
        n_anchors: int = 100,
        admission: str | Admission = "all",
        *,
        update: str | StochasticGradient = "parameter",
        pruning: str = "row-norm",
    ) -> None:
        self.n_anchors = n_anchors
        self.admission = admission
        self.update = update
        self.pruning = pruning

    def _named_part(self, name: str, value: Any) -> Any:
        if name == "update":
            return as_gradient_step(value)
        return as_admission(value) if name == "admission" else None

    @property
    def n_first(self) -> int:
        """The number of first anchors, to which no criterion is applied."""
        return min(as_admission(self.admission).n_first, self.n_anchors)

    def check(self) -> None:
        """Refuse bad values, also of the rules."""
        for rule in (self, as_admission(self.admission), as_gradient_step(self.update)):
            rule._validate_params()

    def rules(self, has_unit_atoms: bool, like: Array) -> Rules:
        """Return the numbers that the loop over samples of the type of `like` needs."""
        update = as_gradient_step(self.update)
        rules = Rules(
            budget=self.n_anchors,
            feature_space=update.space == "feature",
            penalty=0.0 if has_unit_atoms else float(update.penalty),
            reach=REACH,
            guard=bool(update.guard),
            learn_rejected=update.on_reject == "update",
            patience=-1 if update.patience is None else int(update.patience),
            coherence=1.0,
            cost=-1.0,
            babel=np.inf,
            distance=-np.inf,
            dependence=-1.0,
            repeats=False,
            pruning=PRUNINGS[self.pruning],
            unit=has_unit_atoms,
            tiny=100 * eps(like),
            jitter=eps(like) ** 0.5,
        )
        return as_admission(self.admission).restrict(rules)


def as_budget(value: int | Budget) -> Budget:
    """Return the budget that a number of anchors means, or the given one."""
    return value if isinstance(value, Budget) else Budget(value)


def as_gradient_step(value: str | StochasticGradient) -> StochasticGradient:
    """Return the step in the space that a name means, or the given one."""
    return StochasticGradient(value) if isinstance(value, str) else value


NAMED["budget"] = as_budget
