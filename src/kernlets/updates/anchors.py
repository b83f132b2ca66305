"""Anchors that move: what they are pulled by, and how they go.

Two objectives with their gradients in all anchors at once, and the descent. The
dictionary whose anchors they are is in `anchored.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator

from ..backend.arrays import (
    as_like,
    double,
    index_like,
    inner,
    namespace,
    row_norms,
    to_numpy,
)
from ..backend.rows import sum_rows
from ..core import Array, Kernel, SparseCoder
from ..dictionaries import ExplicitDictionary
from ..pursuits import encode
from .statistics import statistics


@dataclass(frozen=True)
class Slope:
    """The value of an objective and its gradient in the anchors."""

    value: float
    gradient: Array  # (n, p)

    def __add__(self, other: Slope) -> Slope:
        return Slope(self.value + other.value, self.gradient + other.gradient)


class KernelTerm:
    """f(D) = ‖φ(Y) − Γ A φ(D)‖², coefficients A and codes Γ fixed; RKDL eq. (3).

    With W = ΓA it is Σκ(y, y) − 2⟨W, K(Y, D)⟩ + ⟨WᵀW, K(D, D)⟩. Both kernel matrices
    are pulled for all anchors at once; K(D, D) depends on each anchor through a row
    and a column, hence the factor 2, on the diagonal as well.
    """

    def __init__(
        self,
        kernel: Kernel,
        samples: Array,  # (N, p)
        energies: Array,  # (N,)
        weights: Array,  # (N, n)
    ) -> None:
        self.kernel = kernel
        self.samples = samples
        self.energy = float(double(energies).sum())
        self.weights = weights
        self.spread = weights.T @ weights
        columns = self.samples.shape[1] + 4 * self.weights.shape[1]
        self._row_bytes = columns * self.weights.dtype.itemsize

    def __call__(self, anchors: Array) -> Slope:
        rows = index_like(np.arange(len(self.weights)), anchors)
        data = sum_rows(lambda part: self._data(anchors, part), rows, self._row_bytes)
        own = inner(self.spread, self.kernel(anchors))
        gradient = self.kernel.pull(anchors, anchors, self.spread) - data.gradient
        return Slope(self.energy - 2 * data.value + own, 2 * gradient)

    def _data(self, anchors: Array, rows: Array) -> Slope:
        """⟨W, K(Y, D)⟩ of some rows."""
        samples, weights = self.samples[rows], self.weights[rows]
        value = inner(weights, self.kernel(samples, anchors))
        return Slope(value, self.kernel.pull(anchors, samples, weights.T))


class LinearTerm:
    """weight · ‖Y − X D‖² with sparse codes X of the samples over the anchors, eq. (8).

    The codes are found for anchors of unit norm and scaled back, so that the norms of
    the anchors, which a kernel sees, stay free.
    """

    def __init__(
        self, samples: Array, anchors: Array, coder: SparseCoder, weight: float
    ) -> None:
        xp = namespace(anchors)
        norms = xp.sqrt(row_norms(anchors))
        norms = xp.where(norms > 0, norms, 1.0)[:, None]
        units = ExplicitDictionary(anchors / norms)
        sums = sum_rows(
            lambda block: statistics(units, block, encode(units, coder, block)),
            samples,
            units.row_bytes,
        )
        self.codes_gram = sums.codes_gram / norms / norms.T  # XᵀX
        self.cross = sums.cross / norms  # XᵀY
        self.weight = weight
        self.energy = sums.error
        self.energy -= self._fit(anchors)  # now ‖Y‖²

    def _fit(self, anchors: Array) -> float:
        return inner(self.codes_gram @ anchors - 2 * self.cross, anchors)

    def error(self, anchors: Array) -> float:
        """‖Y − X D‖²."""
        return self.energy + self._fit(anchors)

    def __call__(self, anchors: Array) -> Slope:
        gradient = self.codes_gram @ anchors - self.cross
        return Slope(self.weight * self.error(anchors), 2 * self.weight * gradient)


class AnchorDescent(BaseEstimator):
    """How anchors move after each update of the atoms.

    Parameters
    ----------
    n_steps : int
        Steps per iteration.
    rate : float, optional
        Length γ of plain gradient steps D ← D − γ ∂f/∂D as published. Without it the
        steps are those of L-BFGS with a line search: nothing to tune, and f only falls.
    """

    def __init__(self, n_steps: int = 3, rate: float | None = None) -> None:
        self.n_steps = n_steps
        self.rate = rate

    def run(
        self,
        objective: Callable[[Array], Slope],
        anchors: Array,  # (n, p)
    ) -> Array:  # (n, p)
        """The anchors after `n_steps` steps down the objective."""
        if not self.n_steps >= 1:
            raise ValueError(
                f"AnchorDescent: n_steps={self.n_steps!r} must be 1 or more"
            )
        if self.rate is None:
            return _line_searched(objective, anchors, int(self.n_steps))
        for _ in range(self.n_steps):
            anchors = anchors - float(self.rate) * objective(anchors).gradient
        return anchors


def _line_searched(
    objective: Callable[[Array], Slope], anchors: Array, n_steps: int
) -> Array:
    """L-BFGS in units of the anchors' typical norm, the length of its first trial."""
    unit = float(double(row_norms(anchors)).mean()) ** 0.5 or 1.0

    def evaluate(flat: np.ndarray) -> tuple[float, np.ndarray]:
        slope = objective(_like(flat))
        return slope.value, unit * to_numpy(double(slope.gradient)).ravel()

    def _like(flat: np.ndarray) -> Array:
        return as_like(unit * flat.reshape(anchors.shape), anchors)

    options = {"maxiter": n_steps, "maxfun": 5 * n_steps, "ftol": 0.0, "gtol": 0.0}
    start = to_numpy(double(anchors)).ravel() / unit
    found = minimize(evaluate, start, jac=True, method="L-BFGS-B", options=options)
    return _like(found.x)
