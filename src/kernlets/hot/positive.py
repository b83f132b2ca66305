"""Non-negative orthogonal matching pursuit in plain NumPy: the specification.

Its twins are `numba_positive` and `torch_positive`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from .reference import UNUSED, _dependent, _solved, stop_level

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
    support then starts at the code so far and goes towards the solution without signs,
    as far as no coefficient is negative; atoms at zero leave the support (the active
    set of Lawson and Hanson, 1974). The error falls with each step. The search ends
    with `width` atoms, at the error asked for, or where no correlation is positive: the
    code is then the best of all non-negative ones.

    Returns indices, values and squared residuals as `reference.omp` does.
    """
    pursue = partial(_pursued, gram)
    return sample_by_sample(pursue, corr, energy, width, tol)


def sample_by_sample(
    pursue: Callable[..., tuple[list[int], np.ndarray, float]],
    samples: np.ndarray,  # (n, ·)
    energy: np.ndarray,  # (n,)
    width: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Indices, values and squared residuals; NaN for what is not finite."""
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


def _pursued(
    gram: np.ndarray, corr: np.ndarray, energy: float, width: int, stop: float
) -> tuple[list[int], np.ndarray, float]:
    """Support, coefficients and squared error of one sample."""
    support: list[int] = []
    coefs, error, eps = corr[:0], energy, np.finfo(corr.dtype).eps
    for _ in range(TRIES * width):
        if len(support) == width or not error > stop:
            break
        left = corr - coefs @ gram[support]
        left[support] = 0
        best = int(np.argmax(left))
        if left[best] <= 0 or _dependent(gram, support, best, eps):
            break
        support, coefs = _feasible(gram, corr, [*support, best], np.append(coefs, 0))
        fit = coefs @ corr[support]
        error = max(energy - fit, 0) if np.isfinite(fit) else np.nan
    return support, coefs, error


def _feasible(
    gram: np.ndarray, corr: np.ndarray, support: list[int], coefs: np.ndarray
) -> tuple[list[int], np.ndarray]:
    """Least squares on those atoms of the support that keep a positive coefficient."""
    while support:
        wanted = _solved(gram[np.ix_(support, support)], corr[support])
        low = wanted <= 0
        if not low.any():
            return support, wanted
        shares = np.full(len(support), np.inf, corr.dtype)
        shares[low] = coefs[low] / (coefs[low] - wanted[low])
        out = int(np.argmin(shares))
        coefs = coefs + shares[out] * (wanted - coefs)
        kept = coefs > 0
        kept[out] = False
        support = [atom for atom, keep in zip(support, kept, strict=True) if keep]
        coefs = coefs[kept]
    return support, coefs
