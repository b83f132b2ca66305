"""Kernels of symmetric positive definite matrices, such as covariance matrices.

Samples are an array (n, d, d) or a list of matrices; `datasets.covariances` makes them
of multichannel signals. Only the log-Euclidean kernel is positive definite for every
width; the others say for which parameters they are.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..base.constraints import POSITIVE
from ..data.rows import evenly_spaced_rows
from ..loops.kernels.layout import LANES
from ..loops.table import stein
from ..numerics.scaling import power_of_two, quiet
from .base import positive
from .distance import squared_distances
from .structured import Structured, median_positive

SOME_MATRICES = 100  # number of matrices whose distances set gamma or theta
ROUNDING = 1e-14  # squared distances below this share of the traces are set to 0
SINGULAR = 1e-12  # least eigenvalue that a matrix may have, as a share of the largest


@dataclass(frozen=True)
class Matrices:
    """Matrices with quantities that are computed once for each matrix."""

    matrices: np.ndarray  # (n, d, d) float64
    roots: np.ndarray  # (n, d, d) logarithms, Cholesky factors or roots, by kernel
    numbers: np.ndarray  # (n,) determinants or traces
    lanes: np.ndarray | None = None  # (groups, d, d, LANES)


class _Dissimilarity(Structured):
    """κ = exp(-γ s) for a squared distance or divergence s of matrices."""

    takes: ClassVar[str] = "matrices"

    @abstractmethod
    def squares(
        self, left: Matrices, right: Matrices, rows: slice, columns: slice
    ) -> np.ndarray:
        """Compute s of the matrices left[rows] and right[columns]."""

    @property
    @abstractmethod
    def _rate(self) -> float:
        """γ."""

    def tile(
        self, left: Matrices, right: Matrices, rows: slice, columns: slice
    ) -> np.ndarray:
        sizes = left.matrices.shape[1], right.matrices.shape[1]
        if sizes[0] != sizes[1]:
            raise ValueError(
                f"matrices of sizes {sizes[0]} and {sizes[1]} do not compare"
            )
        with quiet():  # exp(-∞) = 0 is intended
            return np.exp(-self._rate * self._exact_squares(left, right, rows, columns))

    def _exact_squares(
        self, left: Matrices, right: Matrices, rows: slice, columns: slice
    ) -> np.ndarray:
        """Compute s ≥ 0, which is exactly 0 for matrices that agree."""
        squares = np.maximum(self.squares(left, right, rows, columns), 0.0)
        A, B = left.matrices[rows], right.matrices[columns]
        is_equal = A[:, :1, 0] == B[:, 0, 0]
        for i in np.flatnonzero(is_equal.any(axis=1)):
            is_equal[i, is_equal[i]] = (B[is_equal[i]] == A[i]).all(axis=(1, 2))
        squares[is_equal] = 0.0
        return squares

    def energies(self, prepared: Matrices) -> np.ndarray:  # (n,)
        return np.ones(len(prepared.matrices))

    def _typical_square(self, samples: np.ndarray, default: float) -> float:
        """Return the median of s among up to SOME_MATRICES samples."""
        sample = self.prepare(samples[evenly_spaced_rows(len(samples), SOME_MATRICES)])
        all_matrices = slice(0, len(sample.matrices))
        squares = self._exact_squares(sample, sample, all_matrices, all_matrices)
        return median_positive(squares, default)


class _Distance(_Dissimilarity):
    """κ = exp(-γ d²) for a distance d of matrices."""

    set_from_data = ("gamma",)
    _parameter_constraints = {"gamma": [POSITIVE, None]}

    def __init__(self, gamma: float | None = None) -> None:
        self.gamma = gamma

    def defaults(self, samples: np.ndarray) -> dict[str, Any]:
        return {"gamma": 1.0 / self._typical_square(samples, 1.0)}

    @property
    def _rate(self) -> float:
        return positive(self, "gamma", default=1.0)


class LogEuclidean(_Distance):
    """κ(A, B) = exp(-γ ‖log A - log B‖²), definite for every γ.

    Matrices are compared by the logarithms of their eigenvalues and by their
    eigenvectors: a Gaussian kernel in a flat space.

    Parameters
    ----------
    gamma : float, default=None
        Factor γ. None sets it to 1 over the median squared distance of training
        matrices.

    Notes
    -----
    S. Jayasumana et al., Kernel methods on the Riemannian manifold of symmetric
    positive definite matrices, CVPR 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import LogEuclidean
    >>> LogEuclidean(1.0)([np.eye(2)], [np.diag([np.e, 1.0])]).round(4).tolist()
    [[0.3679]]
    """

    def prepare(self, samples: np.ndarray) -> Matrices:
        matrices = _stack(samples)
        values, vectors = np.linalg.eigh(matrices)
        singular = np.flatnonzero(values[:, 0] <= SINGULAR * np.abs(values[:, -1]))
        if len(singular):
            raise _not_definite(self, int(singular[0]), "singular or negative")
        logs = (vectors * np.log(values)[:, None, :]) @ vectors.swapaxes(1, 2)
        return Matrices(matrices, logs, np.empty(0))

    def squares(
        self, left: Matrices, right: Matrices, rows: slice, columns: slice
    ) -> np.ndarray:
        left_logs, right_logs = left.roots[rows], right.roots[columns]
        size = left_logs.shape[1] ** 2
        return squared_distances(
            left_logs.reshape(-1, size), right_logs.reshape(-1, size)
        )


class Stein(_Dissimilarity):
    """κ(A, B) = exp(-θ S(A, B)), S = log det((A + B)/2) - ½ log det(AB).

    For d × d matrices it is positive definite if 2θ is a whole number, or if
    θ > (d - 1)/2 (Sra's theorem); for other θ there are matrices for which it is not.
    It does not change if all matrices become MAMᵀ, and needs no eigenvalues.

    Parameters
    ----------
    theta : float, default=None
        Exponent θ. None sets it to 1 over the median divergence S of training matrices,
        rounded to the nearest half, at least ½, so that κ is definite.

    Notes
    -----
    S. Sra, Positive definite matrices and the S-divergence, Proc. AMS 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import Stein
    >>> Stein(0.5)([np.eye(2)], [np.eye(2), 4 * np.eye(2)]).round(4).tolist()
    [[1.0, 0.8]]
    """

    set_from_data = ("theta",)
    _parameter_constraints = {"theta": [POSITIVE, None]}

    def __init__(self, theta: float | None = None) -> None:
        self.theta = theta

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """Whether κ is positive definite for matrices of every size."""
        return self.theta is None or float(2 * self.theta).is_integer()

    @property
    def _rate(self) -> float:
        return positive(self, "theta", default=0.5)

    def defaults(self, samples: np.ndarray) -> dict[str, Any]:
        theta = 1.0 / self._typical_square(samples, default=2.0)
        return {"theta": max(1, round(2 * theta)) / 2}

    def prepare(self, samples: np.ndarray) -> Matrices:
        matrices = _stack(samples)
        factors = _cholesky(self, matrices)
        pivots = np.diagonal(factors, axis1=1, axis2=2)
        logs = 2 * np.log(pivots).sum(axis=1)
        n, d = matrices.shape[:2]
        padded = np.empty((-(-n // LANES) * LANES, d, d))
        padded[:n], padded[n:] = matrices, np.eye(d)  # fills up the last group
        lanes = padded.reshape(-1, LANES, d, d).transpose(0, 2, 3, 1)
        return Matrices(matrices, factors, logs, np.ascontiguousarray(lanes))

    def squares(
        self, left: Matrices, right: Matrices, rows: slice, columns: slice
    ) -> np.ndarray:
        ends = columns.start, columns.stop
        S = stein(left.matrices[rows], right.lanes, *ends)
        left_logs, right_logs = left.numbers[rows, None], right.numbers[columns]
        S -= left_logs / 2
        S -= right_logs / 2
        rounding = 16 * left.matrices.shape[-1] * np.finfo(np.float64).eps
        is_significant = rounding * (1 + np.abs(left_logs) + np.abs(right_logs)) < S
        return np.where(is_significant, S, 0.0)  # S of equal matrices must be exactly 0


class AffineInvariant(_Distance):
    """κ(A, B) = exp(-γ ‖log(A^(-½) B A^(-½))‖²), the geodesic distance of matrices.

    It does not change if all matrices become MAMᵀ. The space is curved, so that for
    d > 1 there is no γ for which the kernel is positive definite on all sets of
    matrices (A. Feragen et al., CVPR 2015); on a given set it is for large γ. Use
    `Stein` or `LogEuclidean` where it must be, or ``Clipped(AffineInvariant())``.

    Parameters
    ----------
    gamma : float, default=None
        Factor γ. None sets it to 1 over the median squared distance of training
        matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import AffineInvariant
    >>> AffineInvariant(1.0)([np.eye(2)], [np.diag([np.e, 1.0])]).round(4).tolist()
    [[0.3679]]
    """

    psd: ClassVar[bool] = False

    def prepare(self, samples: np.ndarray) -> Matrices:
        matrices = _stack(samples)
        inverses = np.linalg.inv(_cholesky(self, matrices))
        return Matrices(matrices, inverses, np.empty(0))

    def squares(
        self, left: Matrices, right: Matrices, rows: slice, columns: slice
    ) -> np.ndarray:
        """Compute Σ log² λ of the eigenvalues λ of L⁻¹ B L⁻ᵀ, with A = L Lᵀ."""
        values = _eigenvalues(left.roots[rows], right.matrices[columns])
        logs = np.log(np.maximum(values, np.finfo(np.float64).tiny))
        return (logs**2).sum(axis=2)


class Bures(_Distance):
    """κ(A, B) = exp(-γ d²), d² = tr A + tr B - 2 tr (A^½ B A^½)^½.

    d is the Bures or Wasserstein distance of normal distributions with covariances A
    and B; matrices may be singular. The space is curved, so that the kernel is not
    positive definite on all sets of matrices for any γ if d > 1.

    Parameters
    ----------
    gamma : float, default=None
        Factor γ. None sets it to 1 over the median squared distance of training
        matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import Bures
    >>> Bures(1.0)([np.eye(2)], [np.eye(2), np.diag([4.0, 1.0])]).round(4).tolist()
    [[1.0, 0.3679]]
    """

    psd: ClassVar[bool] = False

    def prepare(self, samples: np.ndarray) -> Matrices:
        matrices = _stack(samples)
        traces = np.trace(matrices, axis1=1, axis2=2)
        values, vectors = np.linalg.eigh(matrices / _units(traces))
        is_negative = values[:, :1] < -SINGULAR * np.abs(values[:, -1:])
        if is_negative.any():
            raise _not_definite(self, int(np.flatnonzero(is_negative)[0]), "negative")
        roots = np.sqrt(np.maximum(values, 0.0))
        halves = (vectors * roots[:, None, :]) @ vectors.swapaxes(1, 2)
        return Matrices(matrices, halves, traces)

    def squares(
        self, left: Matrices, right: Matrices, rows: slice, columns: slice
    ) -> np.ndarray:
        left_traces, right_traces = left.numbers[rows], right.numbers[columns]
        left_units, right_units = _units(left_traces), _units(right_traces)
        values = _eigenvalues(left.roots[rows], right.matrices[columns] / right_units)
        common = np.sqrt(np.maximum(values, 0.0)).sum(axis=2)
        size = np.sqrt(left_units[:, :, 0]) * np.sqrt(right_units[:, 0, 0])
        traces = np.add.outer(left_traces, right_traces)
        d2 = traces - 2 * common * size
        return np.where(d2 > ROUNDING * traces, d2, 0.0)


def _units(traces: np.ndarray) -> np.ndarray:  # (n,) -> (n, 1, 1)
    """Return powers of two to scale matrices with: products of tiny ones underflow."""
    return power_of_two(traces)[:, None, None]


def _eigenvalues(left: np.ndarray, right: np.ndarray) -> np.ndarray:  # (n, m, d)
    """Compute the eigenvalues of M B Mᵀ for each M with all B."""
    values = np.empty((len(left), *right.shape[:2]))
    for i, M in enumerate(left):
        inner = M @ right @ M.T
        values[i] = np.linalg.eigvalsh((inner + inner.swapaxes(1, 2)) / 2)
    return values


def _stack(samples: np.ndarray) -> np.ndarray:  # (n, d, d)
    if not len(samples):
        return np.empty((0, 1, 1))
    matrices = np.stack(list(samples)).astype(np.float64)
    return (matrices + matrices.swapaxes(1, 2)) / 2


def _cholesky(kernel: Structured, matrices: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        worst = int(np.linalg.eigvalsh(matrices)[:, 0].argmin())
        raise _not_definite(kernel, worst, "singular or negative") from None


def _not_definite(kernel: Structured, i: int, defect: str) -> ValueError:
    return ValueError(
        f"matrix {i} is not positive definite, an eigenvalue is {defect}: "
        f"{type(kernel).__name__} needs more samples per covariance than channels, or "
        "shrinkage, e.g. kernlets.datasets.covariances(..., shrinkage=0.1)"
    )
