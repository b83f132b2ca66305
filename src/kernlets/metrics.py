"""Measures of maps and dictionaries.

The error of a feature map is here: how well it approximates its kernel. Whether a
dictionary contains that of another is in `matching`. Errors of learned dictionaries are
methods of the learners.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .contracts import Array
from .kernels import Kernel, resolve
from .matching import (
    Match,
    Recovery,
    code_correlation,
    match_atoms,
    recovery,
    stability,
)
from .numerics.arrays import double, index_like, is_array, row_norms, to_numpy
from .numerics.random import generator

__all__ = [
    "KernelError",
    "Match",
    "Recovery",
    "code_correlation",
    "kernel_error",
    "match_atoms",
    "recovery",
    "stability",
]

GROUPS = 20  # groups of rows, left out in turn to estimate standard errors


@dataclass(frozen=True)
class KernelError:
    """Errors of F Fᵀ against K, with standard errors if rows were sampled.

    Parameters
    ----------
    frobenius : float
        ‖K − F Fᵀ‖_F / ‖K‖_F, LKDL equation (29).
    trace : float
        Σ(κ(x, x) − ‖f(x)‖²) / Σκ(x, x).
    frobenius_std, trace_std : float
        Standard errors of both; 0 if all rows were used.
    n_rows : int
        Number of rows that were used.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import metrics
    >>> X = np.eye(3)
    >>> round(metrics.kernel_error(X[:, :2], X, kernel="linear").trace, 4)
    0.3333
    """

    frobenius: float
    trace: float
    frobenius_std: float
    trace_std: float
    n_rows: int


def kernel_error(
    virtual: Any,
    X: Array,
    kernel: Kernel | str | None = None,
    n_max: int = 2000,
    random_state: Any = None,
) -> KernelError:
    """Error of the kernel matrix of X when virtual samples approximate it.

    Parameters
    ----------
    virtual : fitted map, or array (n, k)
        An object with `transform`, or the virtual samples of X.
    X : array (n, p)
        The samples; for a precomputed kernel the square kernel matrix.
    kernel : Kernel or str, optional
        The kernel to compare with. Default: that of the map.
    n_max : int
        If X has at most `n_max` rows, the errors are exact. Otherwise they are
        estimated from `n_max` random rows, and the standard errors come from a
        jackknife over 20 groups of rows.
    random_state : int, RandomState, Generator or None
        Seed of the random rows.

    Returns
    -------
    KernelError
        Relative Frobenius and trace errors.

    Examples
    --------
    >>> from kernlets import NystroemMap, datasets, metrics
    >>> X = datasets.load("digits").X_train
    >>> rough = NystroemMap("poly:2", n_landmarks=50, random_state=0).fit(X)
    >>> fine = NystroemMap("poly:2", n_landmarks=500, random_state=0).fit(X)
    >>> errors = [metrics.kernel_error(m, X).frobenius for m in (rough, fine)]
    >>> errors[0] > 3 * errors[1]
    True
    """
    if n_max < 2:
        raise ValueError(
            f"n_max={n_max} must be at least 2, because errors need pairs of rows"
        )
    kernel = _kernel_of(virtual, X, kernel)
    n = X.shape[0]
    rows = np.arange(n)
    if n > n_max:
        rows = generator(random_state).choice(n, n_max, replace=False)
    indices = index_like(rows, X)
    F = virtual[indices] if is_array(virtual) else virtual.transform(X[indices])
    sums = _group_sums(kernel, X, rows, F)
    if not sums.energy.any():
        raise ValueError(
            "kernel is zero on X, so a relative error is not defined: check X"
        )
    std = _jackknife(sums, n) if len(rows) < n else (0.0, 0.0)
    return KernelError(*_errors(sums, n), *std, len(rows))


class _Sums(NamedTuple):
    """Sums over pairs of rows (g, g) and over single rows (g,), per group of rows."""

    kernel_pairs: np.ndarray  # Σ κ(x, y)², x ≠ y
    error_pairs: np.ndarray  # Σ (κ(x, y) − ⟨f(x), f(y)⟩)², x ≠ y
    kernel_diagonal: np.ndarray  # Σ κ(x, x)²
    error_diagonal: np.ndarray
    energy: np.ndarray  # Σ κ(x, x)
    energy_error: np.ndarray  # Σ κ(x, x) − ‖f(x)‖²
    size: np.ndarray

    def without(self, group: int) -> _Sums:
        """The sums with one group of rows left out."""
        is_other = np.arange(len(self.size)) != group
        return _Sums(
            *(s[is_other][:, is_other] if s.ndim == 2 else s[is_other] for s in self)
        )


def _group_sums(kernel: Kernel, X: Array, rows: np.ndarray, F: Array) -> _Sums:
    groups = np.array_split(np.arange(len(rows)), min(GROUPS, len(rows)))
    starts = [group[0] for group in groups]
    columns = kernel.take(X, index_like(rows, X))
    F = to_numpy(double(F))
    energy = to_numpy(double(kernel.diag(X)))[rows]
    energy_errors = energy - row_norms(F)
    pairs = []
    for group in groups:
        K = to_numpy(kernel(X[index_like(rows[group], X)], columns)).astype(np.float64)
        for values in (K, K - F[group] @ F.T):
            values[np.arange(len(group)), group] = 0.0
            pairs.append(np.add.reduceat((values**2).sum(axis=0), starts))
    return _Sums(
        kernel_pairs=np.array(pairs[::2]),
        error_pairs=np.array(pairs[1::2]),
        kernel_diagonal=np.add.reduceat(energy**2, starts),
        error_diagonal=np.add.reduceat(energy_errors**2, starts),
        energy=np.add.reduceat(energy, starts),
        energy_error=np.add.reduceat(energy_errors, starts),
        size=np.array([len(group) for group in groups]),
    )


def _errors(sums: _Sums, n: int) -> tuple[float, float]:
    """Both errors, extrapolated from the rows in the sums to all n rows."""
    s = int(sums.size.sum())
    pairs = n * (n - 1) / max(s * (s - 1), 1)
    error = pairs * sums.error_pairs.sum() + n / s * sums.error_diagonal.sum()
    total = pairs * sums.kernel_pairs.sum() + n / s * sums.kernel_diagonal.sum()
    return (
        float(np.sqrt(error / total)),
        float(sums.energy_error.sum() / sums.energy.sum()),
    )


def _jackknife(sums: _Sums, n: int) -> tuple[float, float]:
    """Standard errors of both errors, estimated by leaving out each group in turn."""
    g = len(sums.size)
    errors = np.array([_errors(sums.without(group), n) for group in range(g)])
    sampled_share = sums.size.sum() / n  # with all rows there is no error
    frobenius, trace = np.sqrt((g - 1) * (1 - sampled_share)) * errors.std(axis=0)
    return float(frobenius), float(trace)


def _kernel_of(virtual: Any, X: Array, kernel: Kernel | str | None) -> Kernel:
    if kernel is not None:
        return resolve(kernel).bound(X)
    if not hasattr(virtual, "kernel_"):
        raise ValueError(
            "kernel=None: pass the kernel that the virtual samples approximate"
        )
    return virtual.kernel_
