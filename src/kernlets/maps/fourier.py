"""Random Fourier features of shift-invariant kernels: `FourierMap` and `FastfoodMap`.

By Bochner's theorem κ(x − y) = E cos(ωᵀ(x − y)) over the kernel's spectral measure.
For RBF, Matérn and rational quadratic kernels ω is a standard normal vector times a
random radius; for the Laplacian its components are independent Cauchy variables.
`FastfoodMap` has Hadamard matrices in place of Gaussian ones.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import gammaincinv, ndtri
from scipy.stats import qmc

from ..base.constraints import AT_LEAST_1, StrOptions
from ..contracts import Array
from ..data.block_loop import empty_rows
from ..kernels import RBF, Kernel, Laplacian, Matern, RationalQuadratic, resolve
from ..kernels.base import positive
from ..loops.table import fwht
from ..numerics.arrays import as_like, empty, index_like, namespace
from ..numerics.random import generator
from ..schema import (
    Conditions,
    Declared,
    Either,
    Floats,
    Indices,
    Nothing,
    Number,
    Part,
)
from .base import FeatureMap

Sampling = Literal["plain", "orthogonal", "quasi"]
SAMPLINGS: tuple[str, ...] = ("plain", "orthogonal", "quasi")


class _RandomWaves(FeatureMap):
    """A map to cosines and sines of random frequencies of a kernel."""

    @property
    def _n_waves(self) -> int:
        """The number of frequencies: one for two features, and one if k is odd."""
        return -(-self.n_components // 2)


class FourierMap(_RandomWaves):
    """Random Fourier features: cosines and sines of random projections.

    With ω₁ … ω_{k/2} from the spectral measure of κ(x − y), the map is

        z(x) = √(2/k) [cos ω₁ᵀx … cos ω_{k/2}ᵀx, sin ω₁ᵀx … sin ω_{k/2}ᵀx],

    with E z(x)ᵀz(y) = κ(x − y) and ‖z(x)‖ = 1: LKDL section IV-F, Algorithm 2. The
    error falls like 1/√k whatever the data; `NystroemMap` needs fewer features when
    the spectrum of the kernel matrix decays.

    Parameters
    ----------
    kernel : Kernel or str
        RBF, Laplacian, Matern or RationalQuadratic. A bandwidth of None is set from the
        data (of a stream, from the first block).
    n_components : int
        Number of features k. If it is odd, the last feature is a single cosine of
        random phase, and rows have length 1 only on average.
    sampling : {"plain", "orthogonal", "quasi"}
        Draw independent frequencies; frequencies that are orthogonal within groups of
        p, for kernels of the Euclidean distance (this always lowers the error for RBF);
        or a scrambled Sobol sequence, which helps if p is small.
    random_state : int, RandomState, Generator or None
        Seed of the frequencies.

    Attributes
    ----------
    frequencies_ : array (⌈k/2⌉, p)
        The frequencies ω.
    phase_ : float
        Phase of the last cosine if k is odd.
    kernel_ : Kernel
        The kernel with all parameters set.

    Notes
    -----
    The data determine nothing but an unset bandwidth, so `fit` reads only the first
    block of a stream.

    Examples
    --------
    >>> from kernlets import FourierMap, datasets
    >>> X = datasets.load("digits").X_train
    >>> FourierMap("rbf", n_components=64, random_state=0).fit_transform(X).shape[1]
    64
    """

    _accept_sparse = True
    _model_attribute = "frequencies_"
    _parameter_constraints = {
        "kernel": [Kernel, str],
        "n_components": [AT_LEAST_1],
        "sampling": [StrOptions(set(SAMPLINGS))],
        "random_state": ["random_state", np.random.Generator],
    }

    _declared: ClassVar[Declared] = {
        "kernel_": Part(Kernel),
        "frequencies_": Floats("._n_waves", "p"),
        "phase_": Number(),
    }

    def __init__(
        self,
        kernel: Kernel | str = "rbf",
        n_components: int = 100,
        *,
        sampling: Sampling = "plain",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.sampling = sampling
        self.random_state = random_state

    def _fit(self, head: Array, rows: Any) -> None:
        """Draw the frequencies ω; only the width and the scale of rows matter."""
        n, rng = self._n_waves, generator(self.random_state)
        self.kernel_ = resolve(self.kernel).bound(head)
        omega = frequencies(self.kernel_, n, head.shape[1], self.sampling, rng)
        self.frequencies_ = as_like(omega, empty_rows(head))
        self.phase_ = rng.uniform(0.0, 2.0 * pi)

    def _features(self, X: Array) -> Array:  # (n, p) -> (n, k)
        angles = X @ as_like(self.frequencies_, X).T
        return waves(angles, self.n_components, self.phase_)

    @property
    def _row_bytes(self) -> int:
        return 4 * self._n_features_out * self.frequencies_.dtype.itemsize


def radii(kernel: Kernel, u: np.ndarray) -> np.ndarray:  # (n,) in (0, 1) -> (n,)
    """Return factors that turn standard normal vectors into frequencies of the kernel.

    They are 1/σ for RBF; √(2ν/χ²)/l with 2ν degrees of freedom for Matérn, so that ω
    follows a multivariate t; and √(Γ(α)/α)/l, a gamma mixture of widths, for the
    rational quadratic kernel.
    """
    if type(kernel) is RBF:
        return np.full(len(u), sqrt(2.0 * kernel.rate))
    if type(kernel) is Matern:
        nu, length_scale = positive(kernel, "nu"), positive(kernel, "length_scale")
        return np.sqrt(nu / gammaincinv(nu, u)) / length_scale
    if type(kernel) is RationalQuadratic:
        alpha = positive(kernel, "alpha")
        length_scale = positive(kernel, "length_scale")
        return np.sqrt(gammaincinv(alpha, u) / alpha) / length_scale
    raise ValueError(
        f"kernel={kernel!r} has no known random frequencies: use RBF, Matern, "
        "RationalQuadratic (or Laplacian with FourierMap), or NystroemMap, which takes "
        "any kernel"
    )


def frequencies(
    kernel: Kernel, n: int, p: int, sampling: Sampling, rng: np.random.Generator
) -> np.ndarray:  # (n, p)
    """Draw n frequencies ω, each from the spectral measure of the kernel.

    ``"plain"``: independent; ``"orthogonal"``: at right angles within groups of p,
    with independent lengths (Yu et al., 2016); ``"quasi"``: from a scrambled Sobol
    sequence, which fills the space more evenly (Yang et al., 2014).
    """
    if isinstance(kernel, Laplacian):
        if sampling == "orthogonal":
            raise ValueError(
                "sampling='orthogonal' needs a kernel of the Euclidean distance, which "
                "Laplacian (L1) is not: use 'plain' or 'quasi', or Matern(nu=0.5)"
            )
        return kernel.rate * np.tan(pi * (uniform(n, p, sampling, rng) - 0.5))
    u = uniform(n, p + 1, sampling, rng)
    normal = ndtri(u[:, :p])
    if sampling == "orthogonal":
        normal = _orthogonalize_groups(normal)
    return normal * radii(kernel, u[:, p])[:, None]


def uniform(
    n: int, p: int, sampling: Sampling, rng: np.random.Generator
) -> np.ndarray:  # (n, p)
    """Draw points in the open unit cube, where inverse distributions are finite."""
    if sampling == "quasi":
        if p > qmc.Sobol.MAXDIM:
            raise ValueError(
                f"sampling='quasi' takes at most {qmc.Sobol.MAXDIM - 1} features: use "
                "'plain' or 'orthogonal'"
            )
        # a full power of two, so that the sequence is balanced, cut to the first n
        u = qmc.Sobol(p, seed=rng).random_base2(int(n - 1).bit_length())[:n]
    else:
        u = rng.random((n, p))
    epsilon = np.finfo(np.float64).epsneg
    return np.clip(u, epsilon, 1.0 - epsilon)


def _orthogonalize_groups(normal: np.ndarray) -> np.ndarray:  # (n, p)
    """Apply Gram-Schmidt within groups of p rows, each of which keeps its length.

    The new directions depend only on the old directions, not on the lengths, so each
    row remains a standard normal vector.
    """
    p = normal.shape[1]
    lengths = np.linalg.norm(normal, axis=1, keepdims=True)
    directions = []
    for start in range(0, len(normal), p):
        Q, R = np.linalg.qr(normal[start : start + p].T)
        # each row keeps its sign, which LAPACK does not guarantee
        directions.append((Q * np.sign(np.diagonal(R))).T)
    return lengths * np.concatenate(directions)


def waves(angles: Array, k: int, phase: float) -> Array:  # (n, ⌈k/2⌉) -> (n, k)
    """Compute √(2/k) [cos, sin] of the angles: rows of length 1, LKDL Algorithm 2.

    For odd k the last frequency has only a cosine, which is unbiased if `phase` is
    uniform on the circle; lengths are then 1 on average.
    """
    xp, (n, h) = namespace(angles), angles.shape
    if k % 2:
        angles[:, -1] += phase
    features = empty((n, k), like=angles)
    features[:, :h] = xp.cos(angles)
    features[:, h:] = xp.sin(angles[:, : k - h])
    features *= sqrt(2.0 / k)
    return features


MIN_ORDER = 64  # smallest Hadamard matrix with ±1 as gains


class FastfoodMap(_RandomWaves):
    """Fastfood: random Fourier features at O(k log p) per row instead of O(k p).

    For a power of two d ≥ p, the d frequencies of one block are the rows of

        V = S H G Π H B / (√d ‖g‖)    or    S H D₃ H D₂ H D₁ / d^(3/2),

    with random signs B and Dᵢ, a permutation Π, normal gains G = diag(g), the Hadamard
    matrix H by the fast Walsh-Hadamard transform, and lengths S drawn as those of
    d-vectors from the spectral measure (χ with d degrees of freedom times 1/σ for RBF).
    Features are √(2/k) [cos Vx, sin Vx]. LKDL section IV-F; Le, Sarlós and Smola,
    2013; Yu et al., 2016.

    On two cores it is about as fast as `FourierMap` at p = 256 and three times as fast
    at p = 1024 and k = 4096.

    Parameters
    ----------
    kernel : Kernel or str
        RBF, Matern or RationalQuadratic. A bandwidth of None is set from the data (of a
        stream, from the first block).
    n_components : int
        Number of features k; surplus rows of the last block of V are not used. If k is
        odd, the last feature is a single cosine of random phase.
    gains : {"signs", "normal"}
        ``"normal"`` is Fastfood as published, the first V: each row is exactly a
        frequency of the kernel, for any p, and inner products are unbiased, but rows of
        a block share their gains, which costs accuracy. On USPS (p = 256, σ = 1) its
        error is 1.1, 1.25 and 1.35 times that of `FourierMap` at k = 64, 256 and 1024.
        ``"signs"`` is the second V, with orthogonal rows (structured orthogonal
        features): 0.94, 0.79 and 0.44 times. A d of at least 64 keeps its bias small.
    random_state : int, RandomState, Generator or None
        Seed of the random matrices.

    Attributes
    ----------
    diagonals_ : array (n_blocks, 2 or 3, d)
        Diagonals of B and G, or of D₁, D₂ and D₃; the last includes the divisor.
    orders_ : array of int (n_blocks, d) or None
        The permutations; None unless ``gains="normal"``.
    lengths_ : array (⌈k/2⌉,)
        The diagonal of S.
    phase_ : float
        Phase of the last cosine if k is odd.
    kernel_ : Kernel
        The kernel with all parameters set.

    Examples
    --------
    >>> from kernlets import FastfoodMap, datasets
    >>> X = datasets.load("digits").X_train
    >>> FastfoodMap("rbf", n_components=90, random_state=0).fit_transform(X).shape[1]
    90
    """

    _model_attribute = "lengths_"
    _parameter_constraints = {
        "kernel": [Kernel, str],
        "n_components": [AT_LEAST_1],
        "gains": [StrOptions({"signs", "normal"})],
        "random_state": ["random_state", np.random.Generator],
    }

    _declared: ClassVar[Declared] = {
        "kernel_": Part(Kernel),
        "lengths_": Floats("._n_waves"),
        "diagonals_": Floats("._n_blocks", "._depth", "._d"),
        "orders_": Either(Nothing(), Indices("._n_blocks", "._d", below="._d")),
        "phase_": Number(),
    }
    _conditions: ClassVar[Conditions] = {
        "orders_ must be there with gains='normal'": lambda self: (
            (self.orders_ is None) == (self.gains != "normal")
        )
    }

    def __init__(
        self,
        kernel: Kernel | str = "rbf",
        n_components: int = 100,
        *,
        gains: Literal["signs", "normal"] = "signs",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.gains = gains
        self.random_state = random_state

    def _fit(self, head: Array, rows: Any) -> None:
        """Draw S, G, Π and B; only the width and the scale of rows matter."""
        self.kernel_, like = resolve(self.kernel).bound(head), empty_rows(head)
        rng = generator(self.random_state)
        h, n_blocks, d = self._n_waves, self._n_blocks, self._d

        # S: lengths of d-vectors from the spectral measure
        u = uniform(h, 1, "plain", rng)[:, 0]
        S = np.sqrt(rng.chisquare(d, h)) * radii(self.kernel_, u)
        self.lengths_ = as_like(S, like)

        # B, G and Π, or D₁, D₂ and D₃
        diagonals = rng.choice([-1.0, 1.0], (n_blocks, self._depth, d))
        self.orders_ = None
        if self.gains == "normal":
            diagonals[:, 1] = rng.standard_normal((n_blocks, d))
            orders = rng.permuted(np.tile(np.arange(d), (n_blocks, 1)), axis=1)
            self.orders_ = index_like(orders, like)

        # the divisor √d ‖g‖ or d^(3/2), with which rows of S⁻¹V are unit vectors
        diagonals[:, 1:] /= np.linalg.norm(diagonals[:, 1:], axis=2, keepdims=True)
        diagonals[:, -1] /= np.sqrt(d)
        self.diagonals_ = as_like(diagonals, like)
        self.phase_ = rng.uniform(0.0, 2.0 * pi)

    @property
    def _d(self) -> int:
        """The power of two to which rows are padded."""
        d = 1 << (self.n_features_in_ - 1).bit_length()
        return max(d, MIN_ORDER) if self.gains == "signs" else d

    @property
    def _n_blocks(self) -> int:
        return -(-self._n_waves // self._d)

    @property
    def _depth(self) -> int:
        """Diagonal matrices in each block of V."""
        return 2 if self.gains == "normal" else 3

    def _features(self, X: Array) -> Array:  # (n, p) -> (n, k)
        angles = empty((X.shape[0], self.lengths_.shape[0]), like=X)
        X, d = self._pad(X), self._d
        lengths = as_like(self.lengths_, X)
        for block in range(self.diagonals_.shape[0]):
            columns = slice(block * d, (block + 1) * d)
            scales = lengths[columns]
            angles[:, columns] = self._project(X, block)[:, : scales.shape[0]] * scales
        return waves(angles, self.n_components, self.phase_)

    def _project(self, X: Array, block: int) -> Array:  # (n, d)
        """Project the rows of X on the unit vectors of one block."""
        first_diagonal, *later_diagonals = as_like(self.diagonals_[block], X)
        Y = X * first_diagonal
        fwht(Y)
        if self.orders_ is not None:
            Y = namespace(Y).take(Y, self.orders_[block], axis=1)
        for diagonal in later_diagonals:
            Y *= diagonal
            fwht(Y)
        return Y

    def _pad(self, X: Array) -> Array:  # (n, p) -> (n, d)
        """Pad rows with zeros to a power of two; each row is contiguous."""
        (n, p), d = X.shape, self._d
        padded = empty((n, d), like=X)
        padded[:, :p], padded[:, p:] = X, 0.0
        return padded

    @property
    def _row_bytes(self) -> int:
        return (4 * self._d + 2 * self.n_components) * self.lengths_.dtype.itemsize
