"""Rules of a dictionary on a budget: step sizes, admission, pruning, gradient steps.

Rules hold no data. The hot operation `budget_stream` applies them to samples;
`learners/budget_anchors.py` stores the anchors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from ..base.constraints import (
    AT_LEAST_1,
    NOT_NEGATIVE,
    POSITIVE,
    Interval,
    StrOptions,
)
from ..coders import OMP
from ..contracts import Array
from ..loops.budget.types import BudgetPursuit
from ..loops.lasso.reference import lasso_tol
from ..numerics.arrays import eps
from ..sklearn_base import BaseEstimator

# as numbered in `loops.budget`
PRUNINGS = {"row-norm": 0, "error": 1, "merge": 2}

# Length of a guarded step; the minimum of the sample's cost along it is at 1. Steps
# past the minimum learn faster, but from 2 on the cost would not fall.
REACH = 1.8


class StepSize(BaseEstimator, ABC):
    """ρ of the n-th sample of a stream, n = 1, 2, ..."""

    @abstractmethod
    def __call__(self, n: np.ndarray) -> np.ndarray:
        """The step sizes of the samples with these numbers."""


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
    >>> from kernlets import BudgetKernelDL, StochasticGradient, datasets
    >>> X = datasets.load("digits").X_train
    >>> update = StochasticGradient("feature", step=0.05)
    >>> learner = BudgetKernelDL("rbf", 10, budget=20, update=update, random_state=0)
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

    def rules(self) -> dict[str, Any]:
        """The entries of `loops.budget.Rules` that this rule sets."""
        self._validate_params()
        return {
            "feature_space": self.space == "feature",
            "penalty": float(self.penalty),
            "reach": REACH,
            "guard": bool(self.guard),
            "learn_rejected": self.on_reject == "update",
            "patience": -1 if self.patience is None else int(self.patience),
        }

    def steps(self, n_seen: int, count: int) -> np.ndarray:  # (count,)
        """ρ of the next samples."""
        if isinstance(self.step, Real):
            return np.full(count, float(self.step))
        schedule: Any = DecayingStep() if self.step is None else self.step
        return schedule(np.arange(n_seen + 1, n_seen + count + 1))


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

    def rules(self) -> dict[str, Any]:
        """The entries of `loops.budget.Rules` that this rule sets."""
        self._validate_params()
        repeats = bool(self.repeats)
        return {
            "coherence": np.inf if repeats else 1.0,
            "cost": -1.0,
            "babel": np.inf,
            "distance": -np.inf,
            "dependence": -1.0,
            "repeats": repeats,
        }


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
    >>> from kernlets import BudgetKernelDL, Coherence, datasets
    >>> X = datasets.load("digits").X_train
    >>> rule = Coherence(0.5, n_first=5)
    >>> learner = BudgetKernelDL("rbf", 10, admission=rule, max_iter=1, random_state=0)
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

    def rules(self) -> dict[str, Any]:
        return {**super().rules(), "coherence": float(self.threshold)}


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
    >>> from kernlets import BudgetKernelDL, ReconstructionCost, datasets
    >>> X = datasets.load("digits").X_train
    >>> rule = ReconstructionCost(0.9, n_first=5)
    >>> learner = BudgetKernelDL("rbf", 10, admission=rule, max_iter=1, random_state=0)
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

    def rules(self) -> dict[str, Any]:
        return {**super().rules(), "cost": float(self.threshold) * (1 + self.half)}


def pursuit_of(coder: Any, like: Array) -> BudgetPursuit:
    """Convert a coder for the hot operation; `like` has one column per atom."""
    if isinstance(coder, OMP):
        n_nonzero, tol = coder.width(like.shape[1]), float(coder.tol or 0)
        return BudgetPursuit(n_nonzero, 0.0, False, 0, tol)
    tol = lasso_tol(float(coder.tol), like)
    return BudgetPursuit(
        0, float(coder.alpha), bool(coder.positive), int(coder.max_iter), tol
    )


def tolerances(like: Array) -> dict[str, Any]:
    """The coherence above which two samples are equal, and a bound for inverses."""
    return {"tiny": 100 * eps(like), "jitter": eps(like) ** 0.5}
