"""`KernelMOD` learns atoms in the feature space of a kernel by least squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..contracts import AtomUpdate, SparseCoder
from ..kernels import Kernel
from ..updates import MODUpdate
from .kernel_learner import KernelLearner


class KernelMOD(KernelLearner):
    """Kernel method of optimal directions: A = (ΓᵀΓ)⁺Γᵀ, LKDL section III-B.

    Parameters
    ----------
    kernel, n_components, init
        As in `KernelKSVD`.
    n_nonzero_coefs, coder, max_iter, random_state, verbose, callback, sparse_output
        As in `KSVD`.
    warm_up, exchange, tol, n_init, steady
        As in `KSVD`.

    Attributes
    ----------
    anchors_, coefs_, dictionary_, kernel_, coder_, history_, n_iter_
        As in `KernelKSVD`.

    Examples
    --------
    >>> from kernlets import KernelMOD, datasets
    >>> digits = datasets.load("digits")
    >>> learner = KernelMOD("poly:2", 30, n_nonzero_coefs=3, random_state=0)
    >>> learner.fit(digits.X_train[:200]).transform(digits.X_test[:5]).shape
    (5, 30)
    """

    def __init__(
        self,
        kernel: str | Kernel | Callable[..., Any] = "rbf",
        n_components: int | None = None,
        *,
        n_nonzero_coefs: int | None = None,
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
        self.kernel = kernel
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
