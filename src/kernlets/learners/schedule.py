"""`Schedule` and `Forgetting` say how a learner trains."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from ..base.constraints import AT_LEAST_0, AT_LEAST_1, NOT_NEGATIVE, SHARE
from ..base.estimator import NAMED
from ..base.names import build_from_params
from ..coders import Lasso
from ..contracts import SparseCoder
from ..schema import Declared, Either, Nothing, Number, Text, Whole
from ..sklearn_base import BaseEstimator

EXCHANGE_INTERVAL = 5  # iterations from one exchange of atoms to the next
EXCHANGE_SHARE = 0.7  # exchanges end after this share: new atoms need iterations
PENALTY_FACTOR = 10.0  # raises the penalty of Lasso when a warm-up begins
WATCHED_BY = ("verbose", "callback")  # parameters that all learners follow
WINDOW = 3  # iterations within which the error must fall for a fit to go on

#: curve -> the remaining share of 1 − start after t horizons
CURVES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "constant": np.ones_like,
    "linear": lambda t: np.clip(1 - t, 0, None),
    "quadratic": lambda t: np.clip(1 - t, 0, None) ** 2,
    "cubic": lambda t: np.clip(1 - t, 0, None) ** 3,
    "exponential": lambda t: 0.5**t,
    "hyperbolic": lambda t: 1 / (1 + t),
}


@dataclass(frozen=True)
class Forgetting:
    """A forgetting factor λ for each sample of a stream, which may rise to 1.

    λᵢ = 1 − (1 − start) g(i / horizon) for the sample that follows i others, with
    g(t) = 1 (``"constant"``), max(1 − t, 0) to the power 1, 2, 3 (``"linear"``,
    ``"quadratic"``, ``"cubic"``), 2⁻ᵗ (``"exponential"``) or 1 / (1 + t)
    (``"hyperbolic"``): the curves of RLS-DLA (Skretting and Engan, 2010).
    A rising λ forgets the first dictionary quickly and lets learning settle later. With
    a constant λ the learner remembers about 1 / (1 − λ) samples.

    Parameters
    ----------
    start : float, default=0.99
        The first factor, above 0 and at most 1.
    curve : {"constant", "linear", "quadratic", "cubic", "exponential", "hyperbolic"}
        The function g, by which λ rises.
    horizon : int, optional
        Number of samples until λ is 1 (linear, quadratic, cubic), or until half of
        1 − start is left. Every curve except the constant one needs it.

    Examples
    --------
    >>> from kernlets import Forgetting
    >>> Forgetting(0.9, "linear", horizon=4).factors(0, 6).round(3).tolist()
    [0.9, 0.925, 0.95, 0.975, 1.0, 1.0]
    """

    _declared: ClassVar[Declared] = {
        "start": Number(least=0),
        "curve": Text(*CURVES),
        "horizon": Either(Nothing(), Whole(1)),
    }

    start: float = 0.99
    curve: str = "constant"
    horizon: int | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.start, Real) and 0 < self.start <= 1):
            raise ValueError(f"start={self.start!r} must be above 0 and at most 1")
        if self.curve not in CURVES:
            raise ValueError(f"curve={self.curve!r} must be one of {', '.join(CURVES)}")
        if self.curve == "constant":
            return
        if self.horizon is None or not self.horizon > 0:
            raise ValueError(
                f"curve={self.curve!r} with horizon={self.horizon!r}: set the "
                "number of samples after which forgetting ends, e.g. the length of the "
                "stream"
            )

    def factors(
        self, seen: int, count: int, weights: np.ndarray | None = None
    ) -> np.ndarray:  # (count,)
        """Return λ of the `count` samples that follow `seen` others.

        The factor of a sample of weight w is λʷ.
        """
        positions: np.ndarray = np.arange(seen, seen + count)
        if weights is not None:
            positions = seen + np.cumsum(weights) - weights
        time = positions / (self.horizon or 1)
        single_factors = 1 - (1 - self.start) * CURVES[self.curve](time)
        return single_factors if weights is None else single_factors**weights


def total_weights(factors: np.ndarray, weights: np.ndarray) -> np.ndarray:  # (n,)
    """Return the weights of samples in the sums, after their own forgetting λʷ.

    Of w equal samples in a row the last counts 1, the one before λ, and so on:
    (1 − λʷ)/(1 − λ) in all.
    """
    single_factors = factors ** (1 / np.where(weights > 0, weights, 1))
    is_forgetting = single_factors < 1
    geometric_sums = (1 - factors) / np.where(is_forgetting, 1 - single_factors, 1)
    return np.where(is_forgetting, geometric_sums, weights)


class Schedule(BaseEstimator):
    """How a learner trains: when codes grow denser, atoms are exchanged, fits stop.

    A learner takes it as an object or as a text, e.g. ``Schedule(warm_up=5, tol=1e-3)``
    or ``"warm_up=5,tol=1e-3"``, and grid searches reach its parameters by names such as
    ``schedule__warm_up``. A learner refuses parameters that it cannot follow.

    Parameters
    ----------
    warm_up : int
        In so many first iterations the number of non-zeros grows from 1 to that of the
        coder, or the penalty of `Lasso` falls from ten times its value to it. It helps
        to find the true atoms where samples are few for them; give it half of the
        iterations or more.
    exchange : int
        After every fifth of the first 70 % of iterations, so many atoms that explain
        least are replaced by badly represented samples. It finds more of the true atoms
        in fits of 50 iterations or more, if these are used about equally often; 1 or 2
        of 100 atoms are enough.
    tol : float
        Stop when the error has fallen by at most this part in three iterations; 0 means
        never.
    n_init : int
        Number of starts. After each of several equal parts of the iterations the worse
        half is dropped, until one is left. With an array as `init` there is one start.
    steady : bool
        Whether the error may never rise. A pursuit is greedy, and single iterations may
        end higher than the one before; with this a sample keeps its code where the new
        one is worse, and replaced atoms are taken back if they do not help. The codes
        of all samples are then in memory.
    batch_size : int
        Number of rows that a stream learner codes with the same atoms. They are taken
        in the order of X, so shuffle rows that are sorted.
    forgetting : float or Forgetting, optional
        Factor λ by which each new sample of a stream multiplies the weight of all
        earlier ones; or `Forgetting`, a factor that rises to 1. Default: the rule of
        `OnlineDictionary`, and 1, all samples alike, for `RLSDictionary`.
    verbose : bool
        Whether to print the error of each iteration.
    callback : callable, optional
        Called after each iteration with a dict (``iteration``, ``objective``,
        ``dictionary``); a true result stops the fit.

    Notes
    -----
    `KSVD`, `MOD`, `KernelKSVD` and `KernelMOD` follow `warm_up`, `exchange`, `tol`,
    `n_init` and `steady`; `OnlineDictionary` and `RLSDictionary` follow `batch_size`
    and `forgetting`; `OrthogonalDictionary` and `ReducedKernelDL` follow `tol`. All
    learners follow `verbose` and `callback`.

    Examples
    --------
    >>> from kernlets import KSVD, Schedule, datasets
    >>> X = datasets.load("digits").X_train
    >>> schedule = Schedule(warm_up=5, n_init=2)
    >>> learner = KSVD(30, 4, max_iter=8, schedule=schedule, random_state=0).fit(X)
    >>> learner.set_params(schedule__warm_up=3).schedule
    Schedule(n_init=2, warm_up=3)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "warm_up": [AT_LEAST_0],
        "exchange": [AT_LEAST_0],
        "tol": [NOT_NEGATIVE],
        "n_init": [AT_LEAST_1],
        "steady": ["boolean"],
        "batch_size": [AT_LEAST_1],
        "forgetting": [SHARE, Forgetting, None],
        "verbose": ["verbose"],
        "callback": [Callable, None],
    }

    def __init__(
        self,
        warm_up: int = 0,
        exchange: int = 0,
        *,
        tol: float = 0.0,
        n_init: int = 1,
        steady: bool = False,
        batch_size: int = 256,
        forgetting: float | Forgetting | None = None,
        verbose: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self.warm_up = warm_up
        self.exchange = exchange
        self.tol = tol
        self.n_init = n_init
        self.steady = steady
        self.batch_size = batch_size
        self.forgetting = forgetting
        self.verbose = verbose
        self.callback = callback

    def check(self, learner: Any, followed: Collection[str]) -> None:
        """Refuse bad values, and parameters that are not among those `followed`."""
        self._validate_params()
        defaults, followed = Schedule(), (*followed, *WATCHED_BY)
        for name in self._get_param_names():
            value = getattr(self, name)
            if name not in followed and value != getattr(defaults, name):
                raise ValueError(
                    f"{type(learner).__name__} cannot follow {name}={value!r} of its "
                    f"schedule: leave it out; it follows {', '.join(followed)}"
                )

    def is_exchange_due(self, iteration: int, max_iter: int) -> bool:
        """Whether some atoms are exchanged after this iteration."""
        return (
            self.exchange > 0
            and iteration % EXCHANGE_INTERVAL == EXCHANGE_INTERVAL - 1
            and iteration < EXCHANGE_SHARE * max_iter
        )


def resolve_schedule(spec: str | Schedule | None) -> Schedule:
    """Return the schedule of a text such as ``"warm_up=5,tol=1e-3"``; None is plain."""
    if isinstance(spec, str):
        return build_from_params("schedule", Schedule, spec)
    return Schedule() if spec is None else spec


NAMED["schedule"] = resolve_schedule


def warm_up_coder(coder: SparseCoder, iteration: int, warm_up: int) -> SparseCoder:
    """Return the coder of an iteration: codes grow denser in `warm_up` iterations.

    The number of non-zeros grows from 1; the penalty of `Lasso` falls from
    `PENALTY_FACTOR` times its value. With one non-zero learning is a kind of
    clustering, which has few bad local minima.
    """
    if iteration >= warm_up:
        return coder
    if isinstance(coder, Lasso):
        factor = PENALTY_FACTOR ** (1 - iteration / warm_up)
        return clone(coder).set_params(alpha=coder.alpha * factor)
    n_nonzero = getattr(coder, "n_nonzero_coefs", None)
    if n_nonzero is None:
        raise ValueError(
            f"warm_up={warm_up} needs a coder with a number of non-zeros, such as "
            f"OMP(5), or Lasso, not {coder!r}: give it one, or leave warm_up out"
        )
    n_allowed = 1 + (n_nonzero - 1) * iteration // warm_up
    return clone(coder).set_params(n_nonzero_coefs=n_allowed)


def has_settled(objective: list[float], tol: float, warm_up: int) -> bool:
    """Whether the least error fell by at most the share `tol` in `WINDOW` iterations.

    Errors of single iterations may rise, because greedy codes may be worse than the
    former ones.
    """
    after_warm_up = objective[warm_up:]
    if tol == 0 or len(after_warm_up) <= WINDOW:
        return False
    former, recent = min(after_warm_up[:-WINDOW]), min(after_warm_up[-WINDOW:])
    return former - recent <= tol * former
