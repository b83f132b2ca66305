"""`IKAMap`: the leading eigenfunctions of a kernel, in any space of functions.

Functions below the class draw the sample, make the basis functions orthonormal on it,
and compute the kernel as a small matrix in that basis.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..base.constraints import (
    AT_LEAST_0,
    AT_LEAST_1,
    SHARE,
    Interval,
    StrOptions,
    clipped,
)
from ..contracts import Array
from ..data.rows import evenly_spaced_rows, map_rows, n_rows_in_memory, sum_rows
from ..data.sparse_rows import refuse_sparse
from ..data.stream import is_blocks
from ..kernels import Kernel, kernel_or_class, resolve
from ..landmarks.choose import BlockSample, choose, count, is_sampler
from ..landmarks.samplers import uniform
from ..numerics.arrays import (
    as_like,
    double,
    eps,
    index_like,
    inner,
    is_array,
    namespace,
    to_numpy,
    with_fixed_signs,
)
from ..numerics.random import generator
from ..numerics.scaling import check_range, least_energy, lengths, quiet
from ..schema import Conditions, Declared, Either, Floats, Nothing, Whole
from .base import LandmarkMap
from .fourier import frequencies
from .spectral import all_eigenpairs, check_definite, choose_rank, trace_error

UNITS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda s: s * (s > 0),
    "sigmoid": lambda s: 0.5 + 0.5 * namespace(s).tanh(0.5 * s),  # cannot overflow
    "cosine": lambda s: namespace(s).cos(s),
}


class IKAMap(LandmarkMap):
    """IKA: eigenfunctions of a kernel as combinations of freely chosen functions.

    For basis functions b₁ … b_n and a sample of S rows, B = b(sample), G = K(sample):

        P = BᵀB/S,  M = BᵀGB/S²,  M v = λ P v,    ψ(x) = (√λᵢ Σⱼ vᵢⱼ bⱼ(x))ᵢ

    for the m largest λ: IKA, Algorithm 1 and equation (5). On the sample ψψᵀ = Π G Π,
    where Π projects on the range of B. This is the best of all B W Bᵀ, so there IKA
    with kernel functions at the landmarks is at least as good as Nyström. The same
    holds on new rows if S is large; with fewer than 10 n rows Nyström wins.

    Parameters
    ----------
    kernel : Kernel, str or callable
        The kernel to approximate.
    basis : {"kernel", "relu", "sigmoid", "cosine"} or callable
        The functions bⱼ: κ(x, zⱼ) at landmarks zⱼ; max(0, s) or 1/(1 + e⁻ˢ) of
        s = (⟨zⱼ, x⟩ − ⟨zⱼ, xⱼ⟩)/std, where xⱼ is a random row; cosines with random
        frequencies of the kernel; or a function of a block of rows that returns one
        column per bⱼ, such as the `transform` of another map.
    landmarks, n_landmarks
        The filters zⱼ and their number n, as in `NystroemMap`. With "cosine" only the
        number is used.
    n_components : int, float or None
        Number of features m: an integer; a fraction, to keep that share of Σλ; or None
        for all eigenvalues above rounding.
    n_samples : int
        Size S of the sample; all rows are used if there are fewer. Time grows with S²,
        memory with S.
    refine_filters : int
        Number of L-BFGS steps that move the landmarks of ``basis="kernel"`` to lower
        the Frobenius error on the sample; each takes several passes over G.
    random_state : int, RandomState, Generator or None
        Seed of the sample, the landmarks and the frequencies.

    Attributes
    ----------
    eigenvalues_ : array (m,)
        The eigenvalues λ, largest first.
    projection_ : array (n, m)
        Columns √λᵢ vᵢ, so that ψ(X) = b(X) @ `projection_`.
    landmarks_ : array (n, p)
        Filters (frequencies for "cosine"); None if the basis is a function.
    landmark_indices_ : array (n,) or None
        Their row numbers in X; None if they are not samples.
    offsets_ : array (n,) or None
        Offsets ⟨zⱼ, xⱼ⟩/std, or phases with "cosine".
    n_samples_ : int
        Number of rows in the sample.
    kernel_ : Kernel
        The kernel with all parameters set.
    kernel_error_ : float
        Relative trace error Σ(κ(x, x) − ‖ψ(x)‖²) / Σκ(x, x) on at most 2048 rows of
        the sample.

    Notes
    -----
    Only one block of rows of G is held at a time. P is never formed: a singular value
    decomposition of B, cut off at 1e-9 (float32: at the rounding error of B), makes
    linearly dependent functions harmless.

    Examples
    --------
    >>> from kernlets import IKAMap, NystroemMap, datasets, metrics
    >>> X = datasets.load("digits").X_train
    >>> maps = [
    ...     each("rbf", n_landmarks=50, random_state=0).fit(X[:700])
    ...     for each in (NystroemMap, IKAMap)
    ... ]
    >>> errors = [metrics.kernel_error(each, X[700:]).frobenius for each in maps]
    >>> errors[1] < errors[0]
    True
    """

    _parameter_constraints = {
        "kernel": [Kernel, str, callable],
        "basis": [StrOptions({"kernel", *UNITS}), callable],
        "landmarks": [str, callable, "array-like"],
        "n_landmarks": [AT_LEAST_1, SHARE, None],
        "n_components": [AT_LEAST_1, Interval(Real, 0, 1, closed="neither"), None],
        "n_samples": [AT_LEAST_1],
        "refine_filters": [AT_LEAST_0],
        "random_state": ["random_state", np.random.Generator],
    }

    _declared: ClassVar[Declared] = {
        "offsets_": Either(Nothing(), Floats("r")),
        "n_samples_": Whole(1),
    }
    _conditions: ClassVar[Conditions] = {
        "offsets_ must be there unless basis='kernel'": lambda self: (
            (self.offsets_ is None) == (self.basis == "kernel")
        )
    }

    landmarks_: Array | None
    landmark_indices_: np.ndarray | None
    offsets_: Array | None

    def __init__(
        self,
        kernel: Kernel | str | Callable[..., Any] = "rbf",
        basis: str | Callable[[Array], Array] = "kernel",
        *,
        landmarks: Any = "uniform",
        n_landmarks: int | float | None = None,
        n_components: int | float | None = None,
        n_samples: int = 10_000,
        refine_filters: int = 0,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.basis = basis
        self.landmarks = landmarks
        self.n_landmarks = n_landmarks
        self.n_components = n_components
        self.n_samples = n_samples
        self.refine_filters = refine_filters
        self.random_state = random_state

    def _fit(self, head: Array, rows: Any) -> None:
        """Draw a sample, choose the functions, solve the eigenproblem."""
        self.kernel_ = kernel = resolve(self.kernel).bound(head)
        rng = generator(self.random_state)

        # a sample of S rows, the functions b₁ … b_n, and B = b(sample)
        rows, row_numbers = gather_sample(kernel, rows, self.n_samples, rng)
        sample = draw_sample(kernel, rows, self.n_samples, rng)
        self._choose_functions(rows, row_numbers, sample, rng)
        n = 1 if self.landmarks_ is None else self.landmarks_.shape[0]
        row_bytes = 16 * max(n, sample.rows.shape[1])
        B = map_rows(self._basis_functions, sample.rows, row_bytes)
        self.n_samples_ = S = B.shape[0]

        # (5): M v = λ P v. With U = B R orthonormal and v = √S R u it is UᵀGU/S u = λ u
        U, R = orthonormal(B)
        UtGU = projected_gram(kernel, sample, as_like(U, B))
        pairs = all_eigenpairs(UtGU / S)
        lambdas, u, tolerance = pairs.values, pairs.vectors, 10 * eps(B)
        check_definite(pairs, tolerance, kernel.psd)
        n_components = self.n_components
        if isinstance(n_components, Integral):
            n_components = clipped(
                "n_components", int(n_components), B.shape[1], "basis functions"
            )
        m = choose_rank(lambdas, n_components, tolerance)
        self.eigenvalues_ = as_like(lambdas[:m], B)

        # ψ(x) = (√λᵢ Σⱼ vᵢⱼ bⱼ(x))ᵢ, and its error on at most 2048 rows of the sample
        projection = R @ (u[:, :m] * (S * lambdas[:m]) ** 0.5)
        self.projection_ = as_like(with_fixed_signs(projection), B)
        indices = index_like(evenly_spaced_rows(S), B)
        F = B[indices] @ self.projection_
        self.kernel_error_ = trace_error(sample.energies[indices], F)

    def _choose_functions(
        self,
        rows: Array,
        row_numbers: np.ndarray | None,
        sample: Sample,
        rng: np.random.Generator,
    ) -> None:
        """Set landmarks and offsets; rows of a stream have `row_numbers` in it."""
        are_indices = not is_sampler(self.landmarks) and np.ndim(self.landmarks) == 1
        if are_indices and row_numbers is not None:
            raise ValueError(
                "landmarks are indices of rows, but X is an iterable of blocks: pass "
                "the rows themselves as landmarks, or X as one array or memory map"
            )
        self.landmarks_ = self.landmark_indices_ = self.offsets_ = None
        if self.basis == "cosine":
            n, p = count(self.n_landmarks, sample.rows.shape[0]), sample.rows.shape[1]
            omega = frequencies(self.kernel_, n, p, "plain", rng)
            self.landmarks_ = as_like(omega, sample.rows)
            self.offsets_ = as_like(rng.uniform(0.0, 2 * pi, n), sample.rows)
        elif not callable(self.basis):
            chosen = choose(self.landmarks, self.kernel_, rows, self.n_landmarks, rng)
            self.landmarks_, self.landmark_indices_ = chosen.points, chosen.indices
            if row_numbers is not None and chosen.indices is not None:
                self.landmark_indices_ = row_numbers[chosen.indices]
            if self.basis != "kernel":
                scaled = scale_and_offset(chosen.rows, sample.rows, rng)
                self.landmarks_, self.offsets_ = scaled
        if self.refine_filters:
            self._refine(sample)

    def _refine(self, sample: Sample) -> None:
        if self.basis != "kernel" or not self.kernel_.differentiable:
            raise ValueError(
                f"refine_filters={self.refine_filters} needs basis='kernel' and a "
                "differentiable kernel such as RBF or Polynomial: change these, or set "
                "refine_filters=0"
            )
        message = (
            f"refine_filters={self.refine_filters} needs gradients by dense rows: "
            "pass X.toarray(), or set refine_filters=0"
        )
        refuse_sparse(message, sample.rows)
        self.landmarks_ = refine_filters(
            self.kernel_, sample.rows, self.landmarks_, self.refine_filters
        )
        self.landmark_indices_ = None

    def _basis_functions(self, X: Array) -> Array:  # (n, p) -> (n, n_functions)
        """Compute b(X)."""
        if callable(self.basis):
            return _check_basis_values(self.basis(X), X)
        if self.basis == "kernel":
            return self.kernel_(X, self.landmarks_)
        # a product that overflows is still on one side of the offset
        s = X @ as_like(self.landmarks_, X).T - as_like(self.offsets_, X)
        return UNITS[self.basis](s)

    def _features(self, X: Array) -> Array:  # (n, p) -> (n, m)
        return self._basis_functions(X) @ self.projection_

    @property
    def _accept_sparse(self) -> bool:  # type: ignore[override]
        return self.basis == "kernel" and kernel_or_class(self.kernel).accept_sparse

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = kernel_or_class(self.kernel).by_index
        return tags


def _check_basis_values(values: Any, X: Array) -> Array:  # (n, n_functions)
    """Check what a user's basis function returned for the rows X."""
    if not is_array(values) or values.ndim != 2 or values.shape[0] != X.shape[0]:
        raise ValueError(
            "basis must return an array with one row per row of X and one column per "
            f"function; for {X.shape[0]} rows it returned {np.shape(values)}"
        )
    values = as_like(values, X)
    if not bool(namespace(values).all(namespace(values).isfinite(values))):
        raise ValueError("basis returned NaN or infinity: bound it or scale X")
    return values


def scale_and_offset(
    filters: Array, sample: Array, rng: np.random.Generator
) -> tuple[Array, Array]:  # (m, p), (S, p) -> (m, p), (m,)
    """Scale filters so that ⟨w, x⟩ has unit variance, and choose offsets tⱼ.

    Each unit switches on at a random sample of its own.
    """
    xp, m = namespace(filters), filters.shape[0]
    projections = sample @ filters.T
    check_range(projections, "X · filters")
    std = xp.std(projections, axis=0)
    is_varying = std > least_energy(projections)
    factors = 1.0 / xp.where(is_varying, std, xp.ones_like(std))
    sample_rows = index_like(rng.integers(sample.shape[0], size=m), projections)
    offsets = projections[sample_rows, index_like(np.arange(m), projections)]
    return filters * factors[:, None], offsets * factors


CUT = 1e-9  # singular values of B below this share of the largest are dropped


class Sample(NamedTuple):
    """Rows that stand for the distribution of the data."""

    rows: Array  # (S, p)
    points: Array  # the same rows, as the second argument of the kernel
    energies: Array  # (S,) κ(x, x)


def gather_sample(
    kernel: Kernel, rows: Any, n_samples: int, rng: np.random.Generator
) -> tuple[Array, np.ndarray | None]:
    """Draw random rows of a stream; return them and their row numbers in the stream.

    An array that is no stream is returned unchanged.
    """
    if not is_blocks(rows):
        return rows, None
    sampled_rows = BlockSample(uniform, kernel, lambda n: min(n, n_samples), rng)
    for block in rows:
        sampled_rows.add(block)
    return sampled_rows.rows, sampled_rows.indices


def draw_sample(
    kernel: Kernel, X: Array, n_samples: int, rng: np.random.Generator
) -> Sample:
    """Draw `n_samples` random rows of X, or all rows if there are fewer.

    It draws only as many rows from disk as fit into a part of the memory option.
    """
    n, max_rows = X.shape[0], max(1, n_rows_in_memory(X, 32))
    n_samples = min(n_samples, max_rows)
    row_numbers = np.sort(rng.choice(n, min(n_samples, n), replace=False))
    landmarks = choose(row_numbers, kernel, X, None, rng)
    if kernel.by_index:
        energies = kernel.diag(X)[index_like(row_numbers, X)]
    else:
        energies = kernel.diag(landmarks.rows)
    return Sample(landmarks.rows, landmarks.points, energies)


def orthonormal(B: Array) -> tuple[Array, Array]:  # (S, n) -> (S, r), (n, r)
    """Return U, which has orthonormal columns and spans B, and R with U = B R.

    Both are in float64. They come from the singular values of B with columns of unit
    length, because P = BᵀB/S is numerically singular for kernel functions and B much
    less so.
    """
    xp = namespace(B)
    cutoff, smallest_length = max(CUT, 10 * eps(B)), least_energy(B)
    B = double(B)
    column_lengths = lengths(B.T)
    is_accurate = column_lengths > smallest_length  # shorter ones have lost digits
    B = xp.where(is_accurate, B, 0.0)
    column_lengths = xp.where(is_accurate, column_lengths, xp.ones_like(column_lengths))
    U, s, Vh = xp.linalg.svd(B / column_lengths, full_matrices=False)
    r = int((s > cutoff * s[0]).sum())
    if r == 0:
        raise ValueError(
            "all basis functions are zero on the sample: choose other landmarks, "
            "another basis, or check X for zero rows"
        )
    return U[:, :r], Vh[:r].T / s[:r] / column_lengths[:, None]


def projected_gram(kernel: Kernel, sample: Sample, U: Array) -> Array:  # (r, r)
    """Compute UᵀGU in float64, from blocks of G at and right of its diagonal."""
    S = U.shape[0]

    def block_product(indices: np.ndarray) -> Array:
        block, columns = slice(indices[0], indices[-1] + 1), slice(indices[0], S)
        K = kernel(sample.rows[block], sample.points[columns])
        KU = K @ U[columns]
        KU -= 0.5 * (K[:, : len(indices)] @ U[block])  # counted twice below
        return double(U[block].T @ KU)

    half_product = sum_rows(block_product, np.arange(S), 2 * S * U.dtype.itemsize)
    return half_product + half_product.T


def refine_filters(
    kernel: Kernel, sample: Array, filters: Array, max_iter: int
) -> Array:  # (S, p), (n, p) -> (n, p)
    """Return the filters after at most `max_iter` steps of L-BFGS on the sample error.

    It always computes in float64, because the error is a small difference of large
    numbers.
    """
    from scipy.optimize import minimize

    sample64, filters64 = double(sample), double(filters)
    gram_norm2 = _squared_norm(kernel, sample64)
    scale = gram_norm2 - captured_norm2(kernel, sample64, filters64)[0] or 1.0

    def error(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = captured_norm2(
            kernel, sample64, as_like(flat.reshape(shape), filters64)
        )
        return (gram_norm2 - value) / scale, -to_numpy(gradient).ravel() / scale

    shape = tuple(filters64.shape)
    options = {"maxiter": max_iter, "ftol": 0.0, "gtol": 0.0}
    flat_filters = to_numpy(filters64).ravel()
    result = minimize(error, flat_filters, jac=True, method="L-BFGS-B", options=options)
    return as_like(result.x.reshape(shape), filters)


def captured_norm2(
    kernel: Kernel, sample: Array, filters: Array
) -> tuple[float, Array]:  # (S, p), (n, p)
    """Compute ‖UᵀGU‖²_F and its gradient in the filters.

    The gradient in B is 4 (I − UUᵀ) G U (UᵀGU) Rᵀ with U = B R; the kernel's own
    gradient takes it to the filters.
    """
    U, R = orthonormal(kernel(sample, filters))
    row_bytes = 2 * sample.shape[0] * sample.dtype.itemsize
    GU = map_rows(lambda rows: kernel(rows, sample) @ U, sample, row_bytes)
    with quiet():  # the kernel refuses a slope that is not finite
        UtGU = U.T @ GU
        GU_UtGU = GU @ UtGU
        gradient_in_B = 4.0 * (GU_UtGU - U @ (U.T @ GU_UtGU)) @ R.T  # (S, n)
    return inner(UtGU, UtGU), kernel.pull(filters, sample, gradient_in_B.T)


def _squared_norm(kernel: Kernel, sample: Array) -> float:
    """Compute ‖G‖²_F, a block of rows at a time."""

    def squares(rows: Array) -> float:
        K = kernel(rows, sample)
        return inner(K, K)

    return sum_rows(squares, sample, 2 * sample.shape[0] * sample.dtype.itemsize)
