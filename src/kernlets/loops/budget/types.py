"""The arguments and results of `budget_stream`: tuples of arrays and of numbers.

Caches of compiled loops refer to this module by its name.
"""

from __future__ import annotations

from typing import Any, NamedTuple

ROW_NORM, ERROR, MERGE = range(3)  # rules that choose the anchor to remove
SPOILED = 1e-3  # relative error above which the inverse is computed again


class Stock(NamedTuple):
    """Anchors and atoms D = Φ(anchors) Ω, changed in place; rows past `size` are 0."""

    matrix: Any  # (c, c) kernel matrix of the anchors, c above their largest number
    coefs: Any  # (c, m) Ω
    products: Any  # (c, m) matrix · Ω
    gram: Any  # (m, m) Ωᵀ · matrix · Ω
    inverse: Any  # (c, c) float64, of the matrix; (0, 0) if no rule needs it
    slots: Any  # (c,) column of each anchor in the block's kernel rows
    start: Any  # (s, m) rows of Ω for the first s anchors
    idle: Any  # (m,) samples since an atom was last used


class Rules(NamedTuple):
    """Parameters of admission, gradient step and pruning."""

    budget: int  # most anchors
    feature_space: bool  # eq. (15), otherwise eqs. (19)-(20)
    penalty: float  # μ
    reach: float  # longest step, relative to the minimiser of the sample's cost
    guard: bool  # shorten longer steps
    learn_rejected: bool
    patience: int  # atoms idle for longer become an anchor; negative: never
    coherence: float  # γ of eq. (21)
    cost: float  # ε of eq. (22), negative for none
    babel: float  # sum of the coherences, infinite for no bound
    distance: float  # squared distance from the nearest anchor, negative for none
    dependence: float  # squared distance from the anchors' span, negative for none
    repeats: bool  # a sample may become an anchor again
    pruning: int  # ROW_NORM, ERROR or MERGE
    unit: bool  # keep atoms at unit norm
    tiny: float  # 1 − coherence below which two samples count as equal
    jitter: float  # relative addition to the diagonal of the inverted matrix


class BudgetPursuit(NamedTuple):
    """Parameters of the coder: `omp` if `width` is not 0, else `lasso`."""

    width: int
    alpha: float
    positive: bool
    max_iter: int
    tol: float


class BudgetOutcome(NamedTuple):
    """The size of the stock after a block of samples, and their errors and costs."""

    size: int  # number of anchors
    n_admitted: int
    n_unstable: int  # steps the guard has shortened, or should have
    errors: Any  # (n,) ‖φ(x) − Dα‖² before the step
    costs: Any  # (n,) ½ error + λ‖α‖₁ + ½ μ‖D‖² before the step
    converged: Any  # (n,) 1 where the code was found to its tolerance, else 0
