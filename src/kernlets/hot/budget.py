"""The arguments and results of `budget_stream`: tuples of arrays and of numbers.

Caches of compiled loops name this module, so that it keeps its name.
"""

from __future__ import annotations

from typing import Any, NamedTuple

ROW_NORM, ERROR, MERGE = range(3)  # how the anchor to remove is chosen
SPOILED = 1e-3  # relative error above which the inverse is computed again


class Stock(NamedTuple):
    """Anchors and atoms D = Φ(anchors) Ω, changed in place; rows past `size` are 0."""

    matrix: Any  # (c, c) kernel matrix of the anchors, c above the budget or the need
    coefs: Any  # (c, m) Ω
    products: Any  # (c, m) matrix · Ω
    gram: Any  # (m, m) Ωᵀ · matrix · Ω
    inverse: Any  # (c, c) float64, of the matrix; (0, 0) if no rule needs it
    slots: Any  # (c,) which column of the block's kernel rows an anchor has
    start: Any  # (s, m) rows of Ω for the first s anchors
    idle: Any  # (m,) samples since an atom was last used


class Rules(NamedTuple):
    """What is done with a sample."""

    budget: int  # most anchors
    feature_space: bool  # eq. (15), otherwise eqs. (19)-(20)
    penalty: float  # μ
    reach: float  # longest step, over that to the minimum of the sample's cost
    guard: bool  # shorten longer ones
    learn_rejected: bool
    patience: int  # atoms idle for longer than this start again; negative: never
    coherence: float  # γ of eq. (21)
    cost: float  # ε of eq. (22), negative for none
    babel: float  # sum of the coherences, infinite for no bound
    distance: float  # squared distance from the nearest anchor, negative for none
    dependence: float  # squared distance from the anchors' span, negative for none
    repeats: bool  # a sample may become an anchor again
    pruning: int  # ROW_NORM, ERROR or MERGE
    unit: bool  # keep atoms at unit norm
    tiny: float  # 1 − coherence at which two samples are one
    jitter: float  # relative, on the diagonal of the matrix that is inverted


class Pursuit(NamedTuple):
    """How a sample is coded: by `omp` if `width` is not 0, else by `lasso`."""

    width: int
    alpha: float
    positive: bool
    max_iter: int
    tol: float


class Outcome(NamedTuple):
    """What happened to the samples of the block."""

    size: int  # anchors now
    n_admitted: int
    n_unstable: int  # steps the guard has shortened, or should have
    errors: Any  # (n,) ‖φ(x) − Dα‖² before the step
    costs: Any  # (n,) ½ error + λ‖α‖₁ + ½ μ‖D‖² before the step
    converged: Any  # (n,) 1 where the code was found to its tolerance, else 0
