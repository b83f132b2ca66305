"""Non-negative orthogonal matching pursuit in plain NumPy: the specification.

Its twins are `numba_positive` and `torch_positive`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from .reference import UNUSED, _is_dependent, _solve, stop_level

TRIES = 3  # atoms that may be taken for each non-zero: some leave again


@np.errstate(all="ignore")
def positive_omp(
    gram: np.ndarray,  # (m, m) unit diagonal
    corr: np.ndarray,  # (n, m)
    energy: np.ndarray,  # (n,)
    width: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes γ ≥ 0 that are least squares on their supports, sample by sample.

    Each step takes the atom with the largest positive correlation. Least squares on the
    support then starts at the current code and goes towards the unconstrained solution
    until a coefficient is zero; atoms at zero leave the support (the active
    set of Lawson and Hanson, 1974). The error falls with each step. The search ends
    with `width` atoms, at the error asked for, or where no correlation is positive: the
    code is then the best of all non-negative ones.

    Returns indices, values and squared residuals as `reference.omp` does.
    """
    pursue = partial(_pursue_sample, gram)
    return sample_by_sample(pursue, corr, energy, width, tol)


def sample_by_sample(
    pursue: Callable[..., tuple[list[int], np.ndarray, float]],
    samples: np.ndarray,  # (n, ·)
    energy: np.ndarray,  # (n,)
    width: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pursue each sample: indices, values and squared residuals, NaN if not finite."""
    n, eps = len(samples), np.finfo(samples.dtype).eps
    indices = np.full((n, width), UNUSED, dtype=np.int32)
    values = np.zeros((n, width), dtype=samples.dtype)
    residual = np.full(n, np.nan, dtype=samples.dtype)
    for i in range(n):
        if not (np.isfinite(samples[i]).all() and np.isfinite(energy[i])):
            continue
        stop = stop_level(energy[i], tol, eps)
        support, coefs, error = pursue(samples[i], energy[i], width, stop)
        if np.isfinite(error) and np.isfinite(coefs).all():
            indices[i, : len(support)] = support
            values[i, : len(support)] = coefs
            residual[i] = error
    return indices, values, residual


def _pursue_sample(
    gram: np.ndarray, corr: np.ndarray, energy: float, width: int, stop: float
) -> tuple[list[int], np.ndarray, float]:
    """Support, coefficients and squared error of one sample."""
    support: list[int] = []
    coefs, error, eps = corr[:0], energy, np.finfo(corr.dtype).eps
    for _ in range(TRIES * width):
        if len(support) == width or not error > stop:
            break
        corr_residual = corr - coefs @ gram[support]
        corr_residual[support] = 0
        k = int(np.argmax(corr_residual))
        if corr_residual[k] <= 0 or _is_dependent(gram, support, k, eps):
            break
        support, coefs = _solve_feasible(gram, corr, [*support, k], np.append(coefs, 0))
        explained = coefs @ corr[support]
        error = max(energy - explained, 0) if np.isfinite(explained) else np.nan
    return support, coefs, error


def _solve_feasible(
    gram: np.ndarray, corr: np.ndarray, support: list[int], coefs: np.ndarray
) -> tuple[list[int], np.ndarray]:
    """Least squares on those atoms of the support that keep a positive coefficient."""
    while support:
        solution = _solve(gram[np.ix_(support, support)], corr[support])
        is_low = solution <= 0
        if not is_low.any():
            return support, solution
        steps = np.full(len(support), np.inf, corr.dtype)
        steps[is_low] = coefs[is_low] / (coefs[is_low] - solution[is_low])
        first_zero = int(np.argmin(steps))
        coefs = coefs + steps[first_zero] * (solution - coefs)
        is_positive = coefs > 0
        is_positive[first_zero] = False
        support = [
            atom for atom, stays in zip(support, is_positive, strict=True) if stays
        ]
        coefs = coefs[is_positive]
    return support, coefs
