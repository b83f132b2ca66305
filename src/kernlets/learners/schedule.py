"""The schedule of a fit: when codes grow denser, atoms are exchanged and fits stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from ..base.constraints import AT_LEAST_0, AT_LEAST_1, NOT_NEGATIVE
from ..coders import Lasso
from ..contracts import SparseCoder

#: constraints on the parameters of learners that have a schedule
SCHEDULE_CONSTRAINTS: dict[str, list[Any]] = {
    "warm_up": [AT_LEAST_0],
    "exchange": [AT_LEAST_0],
    "tol": [NOT_NEGATIVE],
    "n_init": [AT_LEAST_1],
    "steady": ["boolean"],
}
EXCHANGE_INTERVAL = 5  # iterations from one exchange of atoms to the next
EXCHANGE_SHARE = 0.7  # exchanges end after this share: new atoms need iterations
PENALTY_FACTOR = 10.0  # raises the penalty of Lasso when a warm-up begins
WINDOW = 3  # iterations within which the error must fall for a fit to go on


@dataclass(frozen=True)
class Schedule:
    """Parameters that make iterations of a fit differ from each other."""

    max_iter: int = 1
    warm_up: int = 0
    exchange: int = 0

    @classmethod
    def of(cls, learner: Any) -> Schedule:
        values = (getattr(learner, name, 0) for name in ("warm_up", "exchange"))
        return cls(learner.max_iter, *values)

    def is_exchange_due(self, iteration: int) -> bool:
        """Whether some atoms are exchanged after this iteration."""
        return self.exchange > 0 and is_exchange_due(iteration, self.max_iter)


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


def is_exchange_due(iteration: int, max_iter: int) -> bool:
    """Whether atoms are exchanged after this iteration."""
    return (
        iteration % EXCHANGE_INTERVAL == EXCHANGE_INTERVAL - 1
        and iteration < EXCHANGE_SHARE * max_iter
    )


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
