"""The pace of a fit: sparsity that grows, atoms that are exchanged, a stop at rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from ..backend.constraints import AT_LEAST_0, AT_LEAST_1, NOT_NEGATIVE
from ..core import SparseCoder
from ..pursuits import Lasso

#: Constraints on the parameters of learners that warm up and stop.
PACE: dict[str, list[Any]] = {
    "warm_up": [AT_LEAST_0],
    "exchange": [AT_LEAST_0],
    "tol": [NOT_NEGATIVE],
    "n_init": [AT_LEAST_1],
    "steady": ["boolean"],
}
EVERY = 5  # iterations from one exchange of atoms to the next
EXCHANGING = 0.7  # of all iterations: new atoms need time to settle
STRICT = 10.0  # times the penalty of Lasso in the first iteration of a warm-up
WINDOW = 3  # iterations in which the error must fall, for a fit to go on


@dataclass(frozen=True)
class Pace:
    """What changes from one iteration to the next."""

    max_iter: int = 1
    warm_up: int = 0
    exchange: int = 0

    @classmethod
    def of(cls, learner: Any) -> Pace:
        given = (getattr(learner, name, 0) for name in ("warm_up", "exchange"))
        return cls(learner.max_iter, *given)

    def exchanges(self, iteration: int) -> bool:
        """Whether some atoms are exchanged after this iteration."""
        return self.exchange > 0 and exchanges(iteration, self.max_iter)


def grown(coder: SparseCoder, iteration: int, warm_up: int) -> SparseCoder:
    """The coder of an iteration: codes grow denser in `warm_up` iterations.

    Non-zeros grow from 1 to all; the penalty of `Lasso` falls from `STRICT` times its
    value. With one non-zero learning is a kind of clustering, which has few bad ends.
    """
    if iteration >= warm_up:
        return coder
    if isinstance(coder, Lasso):
        factor = STRICT ** (1 - iteration / warm_up)
        return clone(coder).set_params(alpha=coder.alpha * factor)
    width = getattr(coder, "n_nonzero_coefs", None)
    if width is None:
        raise ValueError(
            f"warm_up={warm_up} needs a coder with a number of non-zeros, such as "
            f"OMP(5), or Lasso, not {coder!r}: give it one, or leave warm_up out"
        )
    now = 1 + (width - 1) * iteration // warm_up
    return clone(coder).set_params(n_nonzero_coefs=now)


def exchanges(iteration: int, max_iter: int) -> bool:
    """Whether atoms are exchanged after this iteration."""
    return iteration % EVERY == EVERY - 1 and iteration < EXCHANGING * max_iter


def at_rest(objective: list[float], tol: float, warm_up: int) -> bool:
    """Whether the least error fell by at most `tol`, relatively, in `WINDOW` steps.

    Single steps may go up, because greedy codes need not be better than the last ones.
    """
    settled = objective[warm_up:]
    if tol == 0 or len(settled) <= WINDOW:
        return False
    before, now = min(settled[:-WINDOW]), min(settled[-WINDOW:])
    return before - now <= tol * before
