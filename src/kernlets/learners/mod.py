"""`MOD` learns atoms by least squares on the codes (method of optimal directions)."""

from __future__ import annotations

from ..contracts import AtomUpdate
from ..updates import MODUpdate
from .linear_learner import LinearLearner


class MOD(LinearLearner):
    """Method of optimal directions: least squares for all atoms at once, LKDL eq. (4).

    It needs only sums over blocks of samples, so X may be a memory map.

    Parameters
    ----------
    n_components, n_nonzero_coefs, coder, max_iter, init
        As in `KSVD`.
    schedule, random_state, sparse_output
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

    _follows = ("warm_up", "exchange", "tol", "n_init", "steady")

    def _atom_update(self) -> AtomUpdate:
        return MODUpdate()
