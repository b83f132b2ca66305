"""`KernelMOD` learns atoms in the feature space of a kernel by least squares."""

from __future__ import annotations

from ..contracts import AtomUpdate
from ..updates import MODUpdate
from .kernel_learner import KernelLearner


class KernelMOD(KernelLearner):
    """Kernel method of optimal directions: A = (ΓᵀΓ)⁺Γᵀ, LKDL section III-B.

    Parameters
    ----------
    kernel, n_components, init
        As in `KernelKSVD`.
    n_nonzero_coefs, coder, max_iter, schedule, random_state, sparse_output
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

    def _atom_update(self) -> AtomUpdate:
        return MODUpdate()
