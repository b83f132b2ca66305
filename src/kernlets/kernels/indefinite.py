"""Checks that a kernel is positive semi-definite, and remedies if it is not.

A kernel that is not, e.g. of DTW distances, has negative eigenvalues on some sets of
samples, and no feature space. Feature maps check the matrix that they factor; learners
and classifiers check a sample of their rows, because residuals need a feature space.

`Clipped`, `Squared` and `Shifted` turn such a kernel into one that is definite, by its
matrix on reference samples, at most 500 of the training samples. New samples and
reference samples are treated in the same way.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from math import inf, sqrt
from typing import Any

import numpy as np

from ..base.constraints import NOT_NEGATIVE
from ..contracts import Array
from ..data.rows import evenly_spaced_rows, load_row_subset, take_rows
from ..data.samples import is_objects
from ..data.sparse_rows import stored_entries
from ..data.stream import first_block
from ..data.weights import Weights, row_numbers_by_weight
from ..numerics.arrays import (
    as_like,
    cholesky_or_none,
    diagonal,
    double,
    eps,
    holds_floats,
    index_like,
    namespace,
    to_numpy,
)
from .base import Kernel, Wrapped, length
from .custom import not_square

REFERENCE = 500  # samples on which a kernel is corrected


class _Corrected(Wrapped):
    """A definite kernel made of another one."""

    def _reference_samples(self, kernel: Kernel, X: Any, weights: Weights) -> Array:
        """Choose samples of X, evenly spaced, on which the kernel is corrected."""
        X = self.samples(X)
        rows = row_numbers_by_weight(length(X), weights)
        return kernel.take(
            *load_row_subset(X, rows[evenly_spaced_rows(len(rows), REFERENCE)])
        )


class _Projected(_Corrected):
    """κ'(x, y) = κ(x, R) P Pᵀ κ(R, y) with reference samples R."""

    _parameter_constraints = {"kernel": [Kernel], "reference": ["array-like", None]}
    _reference_and_factor: tuple[Any, np.ndarray] | None = None
    """P, and the samples that it was computed from."""
    _recomputed = frozenset({"_reference_and_factor"})
    """Attributes that a model file leaves out, because they follow from parameters."""

    def __init__(self, kernel: Kernel, reference: Any = None) -> None:
        self.kernel = kernel
        self.reference = reference

    @property
    def unset(self) -> bool:
        """Whether the reference samples are None and will be chosen from the data."""
        return self.reference is None

    @abstractmethod
    def projection(self, W: np.ndarray) -> np.ndarray:  # (r, r) -> (r, k)
        """Compute P from the matrix of the reference samples."""

    def bound(self, X: Array, weights: Weights = None) -> Kernel:
        if not self.unset:
            return self
        kernel = self.kernel.bound(X, weights)
        return type(self)(kernel, self._reference_samples(kernel, X, weights))

    def __call__(self, X: Array, Y: Array | None = None) -> Array:  # (n, m)
        bound: Any = self.bound(X)
        X_features = bound._features(X)
        Y_features = X_features if Y is None or Y is X else bound._features(Y)
        return X_features @ Y_features.T

    def diag(self, X: Array) -> Array:  # (n,)
        bound: Any = self.bound(X)
        features = bound._features(X)
        return (features * features).sum(1)

    def _features(self, X: Array) -> Array:  # (n, k)
        K = self.kernel(X, self.reference)
        return K @ as_like(self._factor(), K)

    def _factor(self) -> np.ndarray:  # (r, k)
        """Return P, which is computed once for these reference samples."""
        if self._reference_and_factor is not None:
            reference, P = self._reference_and_factor
            if reference is self.reference:
                return P
        W = double(self.kernel(self.reference))
        P = self.projection(to_numpy((W + W.T) / 2))
        self._reference_and_factor = self.reference, P
        return P


class Clipped(_Projected):
    """A kernel without the negative eigenvalues that it has on reference samples.

    On these the matrix K = UΛUᵀ becomes U max(Λ, 0) Uᵀ, and for any samples
    κ'(x, y) = κ(x, R) U₊Λ₊⁻¹U₊ᵀ κ(R, y): the indefinite kernel projected on the
    directions in which it is definite.

    Parameters
    ----------
    kernel : Kernel
        The kernel, e.g. ``DTW()``.
    reference : array, default=None
        The reference samples R. None means up to 500 of the training samples, evenly
        taken.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import DTW, Clipped
    >>> series = np.random.default_rng(0).standard_normal((40, 12))
    >>> K, clipped = DTW(0.1)(series), Clipped(DTW(0.1))(series)
    >>> lowest = np.linalg.eigvalsh(K)[0], np.linalg.eigvalsh(clipped)[0]
    >>> bool(lowest[0] < -1e-3), bool(lowest[1] > -1e-9)
    (True, True)
    """

    def projection(self, W: np.ndarray) -> np.ndarray:
        values, vectors = np.linalg.eigh(W)
        is_positive = values > rounding(W) * values.max(initial=0.0)
        return vectors[:, is_positive] / np.sqrt(values[is_positive])


class Squared(_Projected):
    """κ'(x, y) = Σ over reference samples r of κ(x, r) κ(r, y).

    On reference samples the matrix K becomes K²: samples are described by their
    similarities to the reference samples. Nothing is dropped, and large eigenvalues
    outweigh small ones more than before.

    Parameters
    ----------
    kernel : Kernel
        The kernel, e.g. ``DTW()``.
    reference : array, default=None
        The reference samples. None means up to 500 of the training samples, evenly
        taken.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import DTW, Squared
    >>> series = np.random.default_rng(0).standard_normal((40, 12))
    >>> K = DTW(0.1)(series)
    >>> bool(np.allclose(Squared(DTW(0.1))(series), K @ K))
    True
    """

    def projection(self, W: np.ndarray) -> np.ndarray:
        return np.eye(len(W))


class Shifted(_Corrected):
    """κ'(x, y) = κ(x, y) + shift · [x = y]: eigenvalues are raised, none is dropped.

    Similarities of different samples do not change. This holds for new samples as well:
    only a pair of equal samples gets the shift.

    Parameters
    ----------
    kernel : Kernel
        The kernel, e.g. ``DTW()``.
    shift : float, default=None
        The number added. None means the size of the most negative eigenvalue on up to
        500 of the training samples, evenly spaced; with more samples it may be too
        little, which learners check.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import DTW, Shifted
    >>> series = np.random.default_rng(0).standard_normal((40, 12))
    >>> kernel = Shifted(DTW(0.1)).bound(series)
    >>> bool(np.linalg.eigvalsh(kernel(series))[0] > -1e-9), bool(kernel.shift > 0)
    (True, True)
    """

    _parameter_constraints = {"kernel": [Kernel], "shift": [NOT_NEGATIVE, None]}

    def __init__(self, kernel: Kernel, shift: float | None = None) -> None:
        self.kernel = kernel
        self.shift = shift

    @property
    def unset(self) -> bool:
        """Whether the shift is None and will be set from the data."""
        return self.shift is None

    def bound(self, X: Array, weights: Weights = None) -> Kernel:
        if not self.unset:
            return self
        kernel = self.kernel.bound(X, weights)
        samples = self._reference_samples(kernel, X, weights)
        digests = _digests(samples)
        first_indices = np.sort(np.unique(digests, return_index=True)[1])
        W = to_numpy(double(kernel(samples)))[np.ix_(first_indices, first_indices)]
        lowest = float(np.linalg.eigvalsh((W + W.T) / 2).min(initial=0.0))
        return type(self)(kernel, -lowest * (1 + 1e-9))

    def __call__(self, X: Array, Y: Array | None = None) -> Array:  # (n, m)
        bound: Any = self.bound(X)
        K = bound.kernel(X, Y)
        X_digests = _digests(self.samples(X))
        Y_digests = X_digests if Y is None or Y is X else _digests(self.samples(Y))
        is_equal = as_like(X_digests[:, None] == Y_digests, K)
        return K + is_equal * bound.shift

    def diag(self, X: Array) -> Array:  # (n,)
        bound: Any = self.bound(X)
        return bound.kernel.diag(X) + bound.shift


def _digests(X: Any) -> np.ndarray:  # (n,)
    """Return a number for each sample that is the same for equal samples."""
    X = X if is_objects(X) else to_numpy(X)
    return np.array([_digest(sample) for sample in X], dtype=np.uint64)


def _digest(sample: Any) -> int:
    is_record = hasattr(sample, "__dict__") and not isinstance(sample, np.ndarray)
    fields = vars(sample).values() if is_record else [sample]
    sha = hashlib.blake2b(digest_size=8)
    for field in fields:
        if isinstance(field, str):  # text may hold half a surrogate pair
            content = field.encode("utf-8", "surrogatepass")
        else:
            content = np.float64(field).tobytes()
        sha.update(f"{np.shape(field)}".encode() + content)
    return int.from_bytes(sha.digest(), "big")


CORNER = 500  # rows of a matrix that are compared with its columns
ASYMMETRY = 1e-4  # relative difference from which on a matrix is not symmetric
SAMPLE = 200  # samples whose kernel matrix a learner checks
BEYOND_ROUNDING = 100  # values beyond so many tolerances are no rounding errors


def rounding(W: Array, rows: Array | None = None) -> float:
    """Return the share of the largest eigenvalue of W below which others are rounding.

    It follows from the dtype of W, or from that of the rows if it is less precise.
    """
    coarse = eps(W) if rows is None else eps(as_like(0.0, rows))
    return max(sqrt(W.shape[0]) * eps(W), 10 * eps(W), coarse)


def check_symmetric(W: Array) -> None:
    """Raise if a kernel is not symmetric, judged by a corner of its matrix."""
    xp = namespace(W)
    corner = W[:CORNER, :CORNER]
    worst, size = xp.max(xp.abs(corner - corner.T)), xp.max(xp.abs(corner))
    if float(worst) > ASYMMETRY * float(size):
        raise ValueError(
            "kernel is not symmetric: κ(x, y) and κ(y, x) differ by up to "
            f"{float(worst):.2g}; use (κ(x, y) + κ(y, x))/2, or check the precomputed X"
        )


def refuse_negative(
    lowest: float, largest: float, tolerance: float, where: str = "the landmarks"
) -> None:
    """Raise if the lowest eigenvalue of a kernel matrix is negative beyond rounding."""
    if lowest < -BEYOND_ROUNDING * tolerance * max(largest, -lowest):
        raise ValueError(
            f"kernel is not positive semi-definite: its matrix on {where} has "
            f"eigenvalues from {lowest:.3g} to {largest:.3g}; use a kernel such as RBF "
            "or Polynomial, or add a constant to the diagonal of a precomputed X"
        )


def refuse_negative_energy(kernel: Kernel, energy: Array) -> None:
    """Raise if κ(x, x) is negative for some sample."""
    if bool((energy < 0).any()):
        raise ValueError(
            f"kernel={kernel!r} is not positive semi-definite on these samples: "
            "κ(x, x) is negative for some; use another kernel"
        )


def check_matrix(
    kernel: Kernel,
    matrix: Array,  # (n, n)
    rows: Array | None = None,  # the rows, if their dtype is coarser
) -> None:
    """Raise if a kernel matrix is not symmetric or not positive semi-definite.

    Kernels that say that they are indefinite (``psd = False``) are not checked.
    """
    if not kernel.psd:
        return
    indices = index_like(evenly_spaced_rows(matrix.shape[0], SAMPLE), matrix)
    W = matrix[indices][:, indices]
    check_symmetric(W)
    where, tolerance = f"{W.shape[0]} samples", rounding(W, rows)
    W64 = double(W)
    if _is_clearly_definite(W64, tolerance):
        return
    values = namespace(W).linalg.eigvalsh(W64)
    refuse_negative(float(values[0]), float(values[-1]), tolerance, where)


def _is_clearly_definite(W: Array, tolerance: float) -> bool:
    """Whether a Cholesky factor shows that `refuse_negative` would pass.

    The largest diagonal entry is a lower bound of the largest eigenvalue. Eigenvalues
    are slow on a GPU, and needed only where there is no factor.
    """
    xp = namespace(W)
    shift = BEYOND_ROUNDING * tolerance * float(xp.max(diagonal(W)))
    diagonal_indices = index_like(np.arange(W.shape[0]), W)
    shifted = xp.asarray(W, copy=True)
    shifted[diagonal_indices, diagonal_indices] += shift
    return 0 < shift < inf and cholesky_or_none(shifted) is not None


def check_kernel(kernel: Kernel, X: Any) -> None:
    """Call `check_matrix` for at most `SAMPLE` rows of X, in memory or on disk.

    In a stream of blocks, only the first block is checked.
    """
    if not kernel.psd:
        return
    X, _ = first_block(X)
    indices = evenly_spaced_rows(length(X), SAMPLE)
    if kernel.by_index:
        if X.shape[1] < length(X):
            raise ValueError(not_square(X))
        rows = take_rows(X, indices)
        check_matrix(kernel, kernel(rows, index_like(indices, rows)))
        return
    samples = kernel.take(*load_row_subset(X, indices))
    if holds_floats(samples):  # in float64, where rounding hides no negative eigenvalue
        check_matrix(kernel, kernel(double(samples)), stored_entries(samples)[:0])
    else:
        check_matrix(kernel, kernel(samples))
