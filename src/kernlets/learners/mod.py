"""`MOD` learns atoms by least squares on the codes (method of optimal directions)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ..contracts import AtomUpdate, SparseCoder
from ..updates import MODUpdate
from .batch_learner import LinearLearner
from .schedule import SCHEDULE_CONSTRAINTS


class MOD(LinearLearner):
    """Method of optimal directions: least squares for all atoms at once, LKDL eq. (4).

    It needs only sums over blocks of samples, so X may be a memory map.

    Parameters
    ----------
    n_components, n_nonzero_coefs, coder, max_iter, init
        As in `KSVD`.
    random_state, verbose, callback, sparse_output
        As in `KSVD`.
    warm_up, exchange, tol, n_init, steady
        As in `KSVD`.

    Attributes
    ----------
    components_, dictionary_, coder_, history_, n_iter_
        As in `KSVD`.

    Examples
    --------
    >>> from kernlets import MOD, datasets
    >>> X = datasets.load("digits").X_train
    >>> learner = MOD(n_components=50, n_nonzero_coefs=4, random_state=0).fit(X)
    >>> learner.history_["objective"][-1] < learner.history_["objective"][0]
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearLearner._parameter_constraints,
        **SCHEDULE_CONSTRAINTS,
    }

    def __init__(
        self,
        n_components: int | None = None,
        n_nonzero_coefs: int | None = None,
        *,
        coder: str | SparseCoder | None = None,
        max_iter: int = 10,
        init: Any = "samples",
        random_state: Any = None,
        verbose: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        sparse_output: bool = False,
        warm_up: int = 0,
        exchange: int = 0,
        tol: float = 0.0,
        n_init: int = 1,
        steady: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_nonzero_coefs = n_nonzero_coefs
        self.coder = coder
        self.max_iter = max_iter
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.sparse_output = sparse_output
        self.warm_up = warm_up
        self.exchange = exchange
        self.tol = tol
        self.n_init = n_init
        self.steady = steady

    def _atom_update(self) -> AtomUpdate:
        return MODUpdate()
