"""`KernelKSVD` learns atoms in the feature space of a kernel by rank-one fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ..contracts import AtomUpdate, SparseCoder
from ..kernels import Kernel
from .batch_learner import ksvd_update
from .kernel_learner import KernelLearner
from .schedule import Schedule


class KernelKSVD(KernelLearner):
    """Kernel K-SVD: minimises Σ‖φ(xᵢ) − Φ(X)Aᵀγᵢ‖² with sparse γᵢ. LKDL eq. (14).

    The products of atoms and samples, K·A, are updated atom by atom, so that one
    iteration costs about m·N·(m + q) operations instead of m·N².

    Parameters
    ----------
    kernel : str, Kernel or callable
        E.g. ``"poly:2"``, ``RBF(sigma=2)``, ``"precomputed"`` (fit on K(X, X),
        transform on K(X_new, X)) or a function of two blocks of samples. With a
        function the samples may be strings, graphs or matrices.
    n_components : int, optional
        Number of atoms. Default: a quarter of the samples, at most 500.
    n_nonzero_coefs, coder, max_iter, schedule, random_state, sparse_output
        As in `KSVD`.
    init : {"samples", "normal"} or array of row numbers
        The training samples that serve as first atoms: random ones, or those given;
        with "normal" the first atoms are random combinations of all samples, as
        coefficients drawn from a normal distribution give them.
    update : str or AtomUpdate
        As in `KSVD`.

    Attributes
    ----------
    anchors_ : array (N, p)
        The training samples (row numbers if the kernel is precomputed).
    coefs_ : array (m, N)
        Coefficients of the atoms over the training samples.
    dictionary_ : KernelDictionary
        The atoms as a dictionary.
    kernel_ : Kernel
        The kernel with all parameters set.
    coder_, history_, n_iter_
        As in `KSVD`.

    Examples
    --------
    >>> from kernlets import KernelKSVD, datasets
    >>> digits = datasets.load("digits")
    >>> learner = KernelKSVD("poly:2", 30, n_nonzero_coefs=3, random_state=0)
    >>> learner.fit(digits.X_train[:200]).transform(digits.X_test[:5]).shape
    (5, 30)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelLearner._parameter_constraints,
        "update": [str, AtomUpdate],
    }

    def __init__(
        self,
        kernel: str | Kernel | Callable[..., Any] = "rbf",
        n_components: int | None = None,
        *,
        n_nonzero_coefs: int | None = None,
        coder: str | SparseCoder | None = None,
        max_iter: int = 10,
        init: Any = "samples",
        update: str | AtomUpdate = "ksvd",
        schedule: str | Schedule | None = None,
        random_state: Any = None,
        sparse_output: bool = False,
    ) -> None:
        super().__init__(
            kernel,
            n_components,
            n_nonzero_coefs=n_nonzero_coefs,
            coder=coder,
            max_iter=max_iter,
            init=init,
            schedule=schedule,
            random_state=random_state,
            sparse_output=sparse_output,
        )
        self.update = update

    def _atom_update(self) -> AtomUpdate:
        return ksvd_update(self.update, self.coder)
