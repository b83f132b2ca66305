"""Moving anchors: the objectives that depend on them, and their descent.

The module has two objectives with their gradients in all anchors at once, and the
descent. `reduced.py` has the dictionary that the anchors belong to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize

from ..base.constraints import AT_LEAST_1, NOT_NEGATIVE
from ..coders.encoding import code_and_sum
from ..contracts import Array, SparseCoder
from ..data.rows import sum_rows
from ..dictionaries import ExplicitDictionary
from ..kernels import Kernel
from ..numerics.arrays import (
    as_like,
    double,
    index_like,
    inner,
    namespace,
    to_numpy,
)
from ..numerics.scaling import lengths, power_of_two, typical_length, unit_rows
from ..sklearn_base import BaseEstimator

HALVINGS = 30  # largest number of halvings of a guarded step; then anchors stay


class Objective(ABC):
    """A function of the anchors that falls as they improve."""

    least: float | None = None
    """No entry of an anchor may be below this."""

    @abstractmethod
    def value(self, anchors: Array) -> float:
        """Return f(D)."""

    @abstractmethod
    def gradient(self, anchors: Array) -> Array:  # (n, p)
        """Return ∂f/∂D."""

    def gradient_of_one(self, anchors: Array, i: int) -> Array:  # (p,)
        """Return row i of the gradient."""
        return self.gradient(anchors)[i]


class KernelTerm(Objective):
    """f(D) = ‖φ(Y) − Γ A φ(D)‖², coefficients A and codes Γ fixed; RKDL eq. (3).

    With W = ΓA it is Σκ(y, y) − 2⟨W, K(Y, D)⟩ + ⟨WᵀW, K(D, D)⟩, where each sample may
    count more than once. The gradients of both matrices are computed for all anchors at
    once; K(D, D) depends on each anchor through a row and a column, hence the factor 2,
    on the diagonal as well.
    """

    def __init__(
        self,
        kernel: Kernel,
        samples: Array,  # (N, p)
        energies: Array,  # (N,)
        weights: Array,  # (N, n)
        counts: np.ndarray | None = None,  # (N,) how often each sample counts
    ) -> None:
        self.kernel = kernel
        self.least = 0.0 if kernel.non_negative else None
        self.samples = samples
        counts_like = None if counts is None else as_like(counts, weights)
        self.energy = float(double(_times_counts(energies, counts_like)).sum())
        self.weights = _times_counts(weights, counts_like)
        self.weights_gram = weights.T @ self.weights

    def value(self, anchors: Array) -> float:
        def product(samples: Array, weights: Array) -> float:
            return inner(weights, self.kernel(samples, anchors))

        anchor_term = inner(self.weights_gram, self.kernel(anchors))
        return self.energy - 2 * self._sum_blocks(product) + anchor_term

    def gradient(self, anchors: Array) -> Array:
        def pull(samples: Array, weights: Array) -> Array:
            return self.kernel.pull(anchors, samples, weights.T)

        anchor_term = self.kernel.pull(anchors, anchors, self.weights_gram)
        return 2 * (anchor_term - self._sum_blocks(pull))

    def gradient_of_one(self, anchors: Array, i: int) -> Array:
        anchor = anchors[i : i + 1]

        def pull(samples: Array, weights: Array) -> Array:
            return self.kernel.pull(anchor, samples, weights[:, i : i + 1].T)

        own_weights = self.weights_gram[i : i + 1]
        anchor_term = self.kernel.pull(anchor, anchors, own_weights)
        return 2 * (anchor_term - self._sum_blocks(pull))[0]

    def _sum_blocks(self, f: Callable[[Array, Array], Any]) -> Any:
        """Return Σ f(samples, weights) over blocks of rows."""
        n_samples, n_anchors = self.weights.shape
        columns = self.samples.shape[1] + 4 * n_anchors
        rows = index_like(np.arange(n_samples), self.weights)
        return sum_rows(
            lambda block: f(self.samples[block], self.weights[block]),
            rows,
            columns * self.weights.dtype.itemsize,
        )


def _times_counts(rows: Array, counts: Array | None) -> Array:
    """Multiply rows, or numbers, by their counts."""
    if counts is None:
        return rows
    return rows * (counts if rows.ndim == 1 else counts[:, None])


class LinearTerm(Objective):
    """weight · ‖Y − X D‖² with sparse codes X of the samples over the anchors, eq. (8).

    The codes are found for anchors of unit norm and scaled back, so that the norms of
    the anchors, which a kernel sees, stay free.
    """

    def __init__(
        self,
        samples: Array,
        anchors: Array,
        coder: SparseCoder,
        weight: float,
        counts: np.ndarray | None = None,
    ) -> None:
        norms = _norms(anchors)
        units = ExplicitDictionary(anchors / norms)
        sums = code_and_sum(units, coder, samples, counts)
        self.codes_gram = sums.codes_gram / norms / norms.T  # XᵀX
        self.cross = sums.cross / norms  # XᵀY
        self.weight = weight
        self.energy = sums.error - self._fit(anchors)  # ‖Y‖²

    def _fit(self, anchors: Array) -> float:
        return inner(self.codes_gram @ anchors - 2 * self.cross, anchors)

    def error(self, anchors: Array) -> float:
        """Return ‖Y − X D‖²."""
        return self.energy + self._fit(anchors)

    def value(self, anchors: Array) -> float:
        return self.weight * self.error(anchors)

    def gradient(self, anchors: Array) -> Array:
        return 2 * self.weight * (self.codes_gram @ anchors - self.cross)

    def gradient_of_one(self, anchors: Array, i: int) -> Array:
        return 2 * self.weight * (self.codes_gram[i] @ anchors - self.cross[i])


class ObjectiveSum(Objective):
    """The sum of two objectives."""

    def __init__(self, first: Objective, second: Objective) -> None:
        self.first = first
        self.second = second
        self.least = first.least

    def value(self, anchors: Array) -> float:
        return self.first.value(anchors) + self.second.value(anchors)

    def gradient(self, anchors: Array) -> Array:
        return self.first.gradient(anchors) + self.second.gradient(anchors)

    def gradient_of_one(self, anchors: Array, i: int) -> Array:
        first, second = self.first, self.second
        return first.gradient_of_one(anchors, i) + second.gradient_of_one(anchors, i)


class AnchorDescent(BaseEstimator):
    """Settings of the descent of the anchors after each update of the atoms.

    Parameters
    ----------
    n_steps : int
        Steps per iteration.
    rate : float, optional
        Length γ of plain gradient steps D ← D − γ ∂f/∂D as published. Without it the
        steps are those of L-BFGS with a line search, so f never rises.
    linear_rate : float, optional
        Length of the plain steps along the gradient of the linear term, λ‖Y − X D‖² of
        RKDL eq. (8). By default it is `rate`, and the steps are those of the gradient
        of (8). The steps as printed, and those of the authors' program, are half of
        that gradient: `ReducedKernelDL.morkdl_d` halves the rate.
    guard : bool
        Whether a plain step that would raise f is halved until it does not. Published
        steps have no guard, and diverge if the rate is too large for the data.
    unit_norm : bool
        Whether the anchors keep norm 1, as (8) asks: plain steps are followed by a
        projection, and a line search moves on the spheres.
    one_by_one : bool
        Whether plain steps move one anchor after the other, with kernels computed anew,
        as the paper and its program do; all at once take about a tenth of the time.

    Examples
    --------
    >>> from kernlets import AnchorDescent, Anchors, ReducedKernelDL, datasets
    >>> X = datasets.load("digits").X_train[:200]
    >>> anchors = Anchors(20, descent=AnchorDescent(n_steps=2))
    >>> learner = ReducedKernelDL("poly:2", 10, anchors=anchors, random_state=0)
    >>> learner.fit(X).anchors_.shape
    (20, 64)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_steps": [AT_LEAST_1],
        "rate": [Real, None],
        "linear_rate": [NOT_NEGATIVE, None],
        "guard": ["boolean"],
        "unit_norm": ["boolean"],
        "one_by_one": ["boolean"],
    }

    def __init__(
        self,
        n_steps: int = 3,
        rate: float | None = None,
        *,
        linear_rate: float | None = None,
        guard: bool = False,
        unit_norm: bool = False,
        one_by_one: bool = False,
    ) -> None:
        self.n_steps = n_steps
        self.rate = rate
        self.linear_rate = linear_rate
        self.guard = guard
        self.unit_norm = unit_norm
        self.one_by_one = one_by_one

    @property
    def linear_share(self) -> float:
        """The factor of the linear term in the function that descends."""
        self.check()
        if self.linear_rate is None or self.rate is None:
            return 1.0
        return float(self.linear_rate) / float(self.rate)

    def run(self, objective: Objective, anchors: Array) -> Array:  # (n, p)
        """Return the anchors after `n_steps` descent steps."""
        self.check()
        if self.rate is None:
            return self._line_search(objective, anchors)
        step = self._steps_of_each if self.one_by_one else self._plain_step
        for _ in range(self.n_steps):
            anchors = step(objective, anchors, float(self.rate))
        return anchors

    def check(self) -> None:
        """Refuse parameters that exclude each other."""
        if not self.n_steps >= 1:
            raise ValueError(
                f"AnchorDescent: n_steps={self.n_steps!r} must be 1 or more"
            )
        if self.guard and self.one_by_one:
            raise ValueError(
                "AnchorDescent: guard=True compares whole steps: leave one_by_one out"
            )
        plain = {
            "linear_rate": self.linear_rate,
            "guard": self.guard,
            "one_by_one": self.one_by_one,
        }
        if self.rate is None and (names := [k for k, v in plain.items() if v]):
            raise ValueError(
                f"AnchorDescent: {names[0]} is about plain steps and needs a rate: set "
                f"rate, or leave {names[0]} out, since a line search needs none"
            )
        if self.linear_rate is not None and not (self.rate or 0) > 0:
            raise ValueError(
                f"AnchorDescent: linear_rate needs a positive rate, not {self.rate!r}"
            )

    def _line_search(self, objective: Objective, anchors: Array) -> Array:
        objective = OnSpheres(objective) if self.unit_norm else objective
        moved = _run_lbfgs(objective, anchors, int(self.n_steps))
        return unit_rows(moved) if self.unit_norm else moved

    def _steps_of_each(
        self, objective: Objective, anchors: Array, rate: float
    ) -> Array:
        """Move one anchor after the other, each along the gradient where it stands."""
        anchors = namespace(anchors).asarray(anchors, copy=True)
        for i in range(len(anchors)):
            anchors[i] -= rate * objective.gradient_of_one(anchors, i)
            anchors[i : i + 1] = self._constrain(anchors[i : i + 1], objective.least)
        return anchors

    def _plain_step(self, objective: Objective, anchors: Array, rate: float) -> Array:
        gradient = objective.gradient(anchors)
        moved = self._constrain(anchors - rate * gradient, objective.least)
        if not self.guard:
            return moved
        start_value = objective.value(anchors)
        for _ in range(HALVINGS):
            if objective.value(moved) <= start_value:  # false for NaN
                return moved
            rate /= 2
            moved = self._constrain(anchors - rate * gradient, objective.least)
        return anchors

    def _constrain(self, anchors: Array, least: float | None) -> Array:
        """Clip anchors at the least value, and scale them to unit norm if asked."""
        if least is not None:
            anchors = namespace(anchors).clip(anchors, least, None)
        return unit_rows(anchors) if self.unit_norm else anchors


class OnSpheres(Objective):
    """f of the anchors divided by their norms: its gradient is tangent to spheres."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.least = objective.least

    def value(self, anchors: Array) -> float:
        return self.objective.value(unit_rows(anchors))

    def gradient(self, anchors: Array) -> Array:
        unit_anchors = unit_rows(anchors)
        gradient = self.objective.gradient(unit_anchors)
        radial = (gradient * unit_anchors).sum(axis=1)[:, None]
        return (gradient - radial * unit_anchors) / _norms(anchors)


def _norms(anchors: Array) -> Array:  # (n, 1)
    """Return norms of the rows, 1 for those that are zero."""
    norms = lengths(anchors)
    return namespace(anchors).where(norms > 0, norms, 1.0)[:, None]


def _run_lbfgs(objective: Objective, anchors: Array, n_steps: int) -> Array:
    """L-BFGS in units of the anchors' typical norm, the length of its first trial.

    The objective is divided by a power of two near its first value, because L-BFGS
    bounds the length of its steps.
    """
    anchor_norm, value_scale = typical_length(anchors) or 1.0, 0.0

    def points(flat: np.ndarray) -> Array:
        return as_like(anchor_norm * flat.reshape(anchors.shape), anchors)

    def value(flat: np.ndarray) -> float:
        nonlocal value_scale
        f = objective.value(points(flat))
        value_scale = value_scale or float(power_of_two(np.float64(abs(f))))
        return f / value_scale

    def gradient(flat: np.ndarray) -> np.ndarray:
        df = to_numpy(double(objective.gradient(points(flat)))).ravel()
        return anchor_norm / value_scale * df

    options = {"maxiter": n_steps, "maxfun": 5 * n_steps, "ftol": 0.0, "gtol": 0.0}
    start, least = to_numpy(double(anchors)).ravel() / anchor_norm, objective.least
    result = minimize(
        value,
        start,
        jac=gradient,
        method="L-BFGS-B",
        bounds=None if least is None else [(least, None)] * len(start),
        options=options,
    )
    return points(result.x)
