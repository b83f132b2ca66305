"""The local alignment kernel of strings: all ways to align parts of two strings."""

from __future__ import annotations

from math import exp
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from ..base.constraints import NOT_NEGATIVE, POSITIVE
from ..loops import ops
from ..loops.ops import Series
from ..numerics.threads import parallel
from .family import positive
from .series import normalized_logs, slice_series
from .strings import code_points
from .structured import Structured

MOST = 200.0  # β times a score, so that sums of a row are finite


class LocalAlignment(Structured):
    """Σ over local alignments π of exp(β score(π)), divided by √(κ(x, x) κ(y, y)).

    The score of an alignment is the sum over aligned characters of `match` or
    `mismatch`, less `gap_open` and `gap_extend` for each gap. Where the Smith-Waterman
    algorithm takes the best alignment, all of them are added, so that the kernel is
    positive semi-definite.

    Parameters
    ----------
    beta : float, default=0.5
        Factor β of scores; the best alignment outweighs the others if it is large.
    match, mismatch : float, default=2 and -1
        Scores of equal and of different characters; `mismatch` is at most `match`.
    gap_open, gap_extend : float, default=3 and 1
        Costs of the first character and of each further one of a gap.

    Notes
    -----
    J.-P. Vert, H. Saigo and T. Akutsu, Local alignment kernels for biological
    sequences, 2004. Two empty strings have κ = 1: one alignment, of nothing.

    Examples
    --------
    >>> from kernlets import LocalAlignment
    >>> LocalAlignment()(["banana", "ananas", "kiwi"]).round(3).tolist()
    [[1.0, 0.473, 0.058], [0.473, 1.0, 0.058], [0.058, 0.058, 1.0]]
    """

    takes: ClassVar[str] = "strings"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "beta": [POSITIVE],
        "match": [Real],
        "mismatch": [Real],
        "gap_open": [NOT_NEGATIVE],
        "gap_extend": [NOT_NEGATIVE],
    }

    def __init__(
        self,
        beta: float = 0.5,
        *,
        match: float = 2.0,
        mismatch: float = -1.0,
        gap_open: float = 3.0,
        gap_extend: float = 1.0,
    ) -> None:
        self.beta = beta
        self.match = match
        self.mismatch = mismatch
        self.gap_open = gap_open
        self.gap_extend = gap_extend

    def prepare(self, samples: np.ndarray) -> Series:
        codes = [code_points(sample)[:, None] for sample in samples]
        return Series.of(codes)

    def tile(
        self, left: Series, right: Series, rows: slice, columns: slice
    ) -> np.ndarray:
        """The logarithms of Σ, which `finish` normalises."""
        return ops.log_local(
            slice_series(left, rows), slice_series(right, columns), *self._weights()
        )

    def finish(self, K: np.ndarray, left: Series, right: Series) -> np.ndarray:
        left_logs = np.diagonal(K).copy() if right is left else self._own_logs(left)
        right_logs = left_logs if right is left else self._own_logs(right)
        K = normalized_logs(K, left_logs, right_logs)
        return np.exp(np.minimum(K, 0.0, out=K), out=K)  # above 0 by rounding only

    def energies(self, prepared: Series) -> np.ndarray:  # (n,)
        return np.ones(len(prepared.lengths))

    def _own_logs(self, strings: Series) -> np.ndarray:  # (n,)
        def log_of(i: int) -> float:
            one = slice_series(strings, slice(i, i + 1))
            return float(ops.log_local(one, one, *self._weights())[0, 0])

        return np.array(parallel(log_of, range(len(strings.lengths))))

    def _weights(self) -> tuple[float, float, float, float]:
        """exp(β score) of a match, a mismatch, a new gap and a longer one."""
        beta = positive(self, "beta")
        if not self.mismatch <= self.match:
            raise ValueError(
                f"LocalAlignment: mismatch={self.mismatch!r} must be at most "
                f"match={self.match!r}, or κ is not positive semi-definite"
            )
        scores = self.match, self.mismatch, -self.gap_open, -self.gap_extend
        if beta * max(map(abs, scores)) > MOST:
            raise ValueError(
                f"LocalAlignment: exp(β score) overflows: lower beta={self.beta!r}, or "
                "the scores"
            )
        return tuple(exp(beta * score) for score in scores)  # type: ignore
