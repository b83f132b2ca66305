"""`NystroemMap`: virtual samples from a few columns of the kernel matrix.

The choice of landmarks, also from a stream of rows, is in `landmarks/`; the eigenvalue
solvers are in `spectral.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np

from ..base.constraints import AT_LEAST_1, SHARE, Interval, StrOptions, clipped
from ..contracts import Array
from ..data.missing import (
    all_in_memory,
    apply_by_completeness,
    group_by_mask,
    split_mask,
    take_observed,
)
from ..data.rows import (
    evenly_spaced_rows,
    map_rows,
    sample_objects,
    sum_rows,
    take_rows,
)
from ..data.samples import float_like, is_objects
from ..data.sparse_rows import as_dense
from ..kernels import Kernel, kernel_or_class, resolve
from ..kernels.complete import completed_rows
from ..kernels.indefinite import check_symmetric, rounding
from ..kernels.samples import check_samples, describe_input
from ..landmarks.choose import Landmarks, choose
from ..numerics.arrays import (
    as_like,
    diagonal,
    double,
    empty,
    index_like,
    is_array,
    namespace,
    solve_symmetric,
    to_device,
    to_numpy,
)
from ..numerics.random import generator
from ..schema import Declared, Size
from .base import LandmarkMap
from .spectral import (
    all_eigenpairs,
    check_definite,
    choose_rank,
    is_krylov_small,
    leading_eigenpairs,
    trace_error,
)


class NystroemMap(LandmarkMap):
    """Nyström map to virtual samples, on which linear methods act as kernel methods.

    With landmarks X_R, C = K(X, X_R) and W = K(X_R, X_R) = V Σ Vᵀ, the map is

        F = C V_k Σ_k^(-1/2),    so that    F Fᵀ = C W_k⁺ Cᵀ ≈ K(X, X),

    by LKDL equations (19) to (23). Rows are samples.

    Parameters
    ----------
    kernel : Kernel, str or callable
        For instance ``RBF(sigma=1.0)``, ``"poly:2"`` or ``"precomputed"``. A bandwidth
        of None is set from the data (of a stream, from the first block).
    landmarks : str, callable or array
        How landmarks are chosen: ``"uniform"``, ``"diagonal"``, ``"column-norm"``,
        ``"kmeans"``, ``"coreset"``, ``"leverage"``, ``"rpcholesky"``, also with options
        (``"coreset:replace=True"``); a function ``(kernel, X, m, rng) -> indices or
        points``; indices of rows of X; or points.
    n_landmarks : int, float or None
        Number c of landmarks, or a fraction of the samples. Default: 10 √n, at least
        500 and at most 2000, or all samples if there are fewer. More than there are
        samples are clipped with a warning.
    n_components : int, float or None
        Length k of the virtual samples: an integer; a fraction, to keep that share of
        the trace of W; or None for the numerical rank of W. Directions that consist
        only of rounding errors are always dropped, so F may have fewer columns.
    truncation : {"landmarks", "samples"}
        Keep the k leading eigenvectors of W, equation (21), or those of the full matrix
        C W⁺ Cᵀ. The latter is its best approximation of rank k; it needs all
        eigenvectors of W and one more pass over the samples.
    eigen_solver : {"auto", "full", "randomized"}
        Compute all eigenpairs of W in float64, or the leading `n_components` by a block
        Krylov method; "auto" takes the faster one.
    random_state : int, RandomState, Generator or None
        Seed of the sampler and of the randomized solver.

    Attributes
    ----------
    landmarks_ : array (c, p)
        The landmarks; indices of training samples for a precomputed kernel.
    landmark_indices_ : array (c,) or None
        Their row numbers in X; None if they are not samples.
    n_landmarks_ : int
        Number c of landmarks.
    eigenvalues_ : array (k,)
        Eigenvalues of W, or of C W⁺ Cᵀ with ``truncation="samples"``; largest first.
    projection_ : array (c, k)
        V_k Σ_k^(-1/2); the virtual samples are
        ``kernel_(X, landmarks_) @ projection_``.
    kernel_ : Kernel
        The kernel with all parameters set.
    kernel_error_ : float
        Relative trace error Σ(κ(x, x) − ‖f(x)‖²) / Σκ(x, x), over all samples after
        `fit_transform` and over at most 2048 evenly spaced samples after `fit`.

    Notes
    -----
    X may be an array, a torch tensor, a memory map, a Dask array or dataframe, or an
    iterable of blocks of rows. Values may be missing (NaN) from rows to `transform`;
    they are mapped by least squares on the landmarks' observed parts. `fit` reads
    blocks once and takes a share of the landmarks from each (mini-batch LKDL, section
    IV-E); `transform` then returns blocks. The same seed chooses the same landmarks
    whether the rows are in memory, on disk or on a cluster.

    Examples
    --------
    >>> from kernlets import NystroemMap, datasets
    >>> X = datasets.load("digits").X_train
    >>> virtual = NystroemMap("poly:2", n_landmarks=0.2, random_state=0).fit(X)
    >>> virtual.transform(X).shape[0] == len(X), virtual.kernel_error_ < 0.05
    (True, True)
    """

    _fills_missing = True  # nothing is missing in what it returns

    _parameter_constraints = {
        "kernel": [Kernel, str, callable],
        "landmarks": [str, callable, "array-like"],
        "n_landmarks": [AT_LEAST_1, SHARE, None],
        "n_components": [AT_LEAST_1, Interval(Real, 0, 1, closed="neither"), None],
        "truncation": [StrOptions({"landmarks", "samples"})],
        "eigen_solver": [StrOptions({"auto", "full", "randomized"})],
        "random_state": ["random_state", np.random.Generator],
    }

    _declared: ClassVar[Declared] = {"n_landmarks_": Size("r")}

    def __init__(
        self,
        kernel: Kernel | str | Callable[..., Any] = "rbf",
        landmarks: Any = "uniform",
        *,
        n_landmarks: int | float | None = None,
        n_components: int | float | None = None,
        truncation: Literal["landmarks", "samples"] = "landmarks",
        eigen_solver: Literal["auto", "full", "randomized"] = "auto",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.landmarks = landmarks
        self.n_landmarks = n_landmarks
        self.n_components = n_components
        self.truncation = truncation
        self.eigen_solver = eigen_solver
        self.random_state = random_state

    def fit_transform(  # type: ignore[override]
        self, X: Any, y: Any = None
    ) -> Any:
        """Fit, and return the virtual samples of X; C is computed only once."""
        _refuse_iterator(X, "fit_transform")
        self._validate_params()
        F = self._fit(*self._head_and_rows(X), all_features=True)
        return self.transform(X) if F is None else F

    def _fit(self, head: Array, rows: Any, all_features: bool = False) -> Array | None:
        """Follow LKDL equations (19) to (23); return F if wanted and if it fits."""
        if self.truncation == "samples":
            _refuse_iterator(rows, "truncation='samples'")
        self.kernel_ = kernel = resolve(self.kernel).bound(sample_objects(head))
        rng = generator(self.random_state)

        # (19): K ≈ C W⁺ Cᵀ with C = K(X, X_R) and W = K(X_R, X_R)
        landmarks = choose(self.landmarks, kernel, rows, self.n_landmarks, rng)
        self.landmarks_ = to_device(landmarks.points)  # a memory map's are on the host
        self.landmark_indices_ = landmarks.indices
        self.n_landmarks_ = c = landmarks.points.shape[0]
        n_pairs = self._n_pairs(c)
        W = landmark_matrix(kernel, landmarks, in_float64=n_pairs is None)

        # (20): W = V Σ Vᵀ
        pairs = leading_eigenpairs(W, n_pairs, rng) if n_pairs else all_eigenpairs(W)
        Sigma, V, like = pairs.values, pairs.vectors, float_like(landmarks.rows)
        tolerance = rounding(W, like)
        check_definite(pairs, tolerance, kernel.psd)

        # (21): F = C V_k Σ_k^(-1/2)
        n_components = self.n_components if self.truncation == "landmarks" else None
        k = choose_rank(Sigma, n_components, tolerance)
        self.eigenvalues_ = to_device(as_like(Sigma[:k], like))
        self.projection_ = to_device(as_like(V[:, :k] / Sigma[:k] ** 0.5, like))

        # (22) and (23): the virtual samples of all rows, or of some for the error
        F = None
        if all_features:
            F = map_rows(self._finite_features, rows, self._row_bytes)
            F = F if is_array(F) else None  # not in memory: computed when it is read
        if self.truncation == "samples":
            F = self._truncate_on_samples(rows, F)
        self.kernel_error_ = self._trace_error(rows, landmarks, F)
        return F

    def _features(self, X: Array) -> Array:  # (n, p) -> (n, k)
        """Compute K(X, X_R) V_k Σ_k^(-1/2) for a block, equations (22) and (23)."""
        return apply_by_completeness(
            lambda rows: self.kernel_(rows, self.landmarks_) @ self.projection_,
            lambda rows: incomplete_features(
                self.kernel_, self.landmarks_, self.projection_, rows
            ),
            X,
        )

    def _n_pairs(self, c: int) -> int | None:
        """Return how many eigenpairs the randomized solver finds; None computes all."""
        k = None
        if isinstance(self.n_components, Integral):
            k = clipped("n_components", int(self.n_components), c, "landmarks")
        if self.truncation == "samples":
            k = None
        if self.eigen_solver == "randomized" and k is None:
            raise ValueError(
                "eigen_solver='randomized' finds a given number of eigenvectors of W: "
                "set n_components to a count and truncation to 'landmarks', or use "
                "eigen_solver='full'"
            )
        is_randomized = self.eigen_solver == "randomized" or (
            self.eigen_solver == "auto" and k is not None and is_krylov_small(c, k)
        )
        return k if is_randomized else None

    def _truncate_on_samples(self, rows: Any, F: Array | None) -> Array | None:
        """Rotate to the leading eigenvectors of FᵀF: the best rank k of F Fᵀ.

        If F is None, it is computed again in a pass over the rows.
        """
        features = copy(self)._features
        if F is None:
            gram = sum_rows(lambda X: _gram(features(X)), rows, self._row_bytes)
        else:
            gram = sum_rows(_gram, F, self._row_bytes)
        pairs = all_eigenpairs(gram)
        k = choose_rank(pairs.values, self.n_components, rounding(self.projection_))
        rotation = as_like(pairs.vectors[:, :k], self.projection_)
        self.projection_ = self.projection_ @ rotation
        self.eigenvalues_ = as_like(pairs.values[:k], rotation)
        if F is None:
            return None
        return map_rows(lambda block: block @ rotation, F, self._row_bytes)

    def _trace_error(self, rows: Any, landmarks: Landmarks, F: Array | None) -> float:
        """Compute the trace error on all rows if F is given, else on at most 2048."""
        kernel = self.kernel_
        if F is not None and kernel.by_index:
            return trace_error(kernel.diag(rows), F)
        if F is not None:
            return trace_error(map_rows(kernel.diag, rows, self._row_bytes), F)
        if landmarks.probe is not None:  # random rows of a stream
            sample, energies = landmarks.probe, kernel.diag(landmarks.probe)
        elif kernel.by_index:
            indices = index_like(evenly_spaced_rows(rows.shape[0]), rows)
            sample, energies = rows[indices], kernel.diag(rows)[indices]
        else:
            sample = to_device(take_rows(rows, evenly_spaced_rows(rows.shape[0])))
            energies = kernel.diag(sample)
        return trace_error(energies, map_rows(self._features, sample, self._row_bytes))

    def _check_rows(self, X: Any, reset: bool = False) -> Any:
        """Check rows; in memory, missing entries of training rows are filled in."""
        kernel = kernel_or_class(self.kernel) if reset else self.kernel_
        like = None if reset else self._model_array
        rows = check_samples(
            self,
            X,
            kernel,
            reset=reset,
            containers="stream",
            like=like,
            allow_nan=not reset or all_in_memory(X),
        )
        return completed_rows(rows) if reset and kernel.restrictable else rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        return describe_input(tags, kernel_or_class(self.kernel), allow_nan=True)


def landmark_matrix(
    kernel: Kernel, landmarks: Landmarks, in_float64: bool
) -> Array:  # (c, c)
    """Compute W = K(X_R, X_R); raise if it is not symmetric.

    In float64 even its smallest eigenvalues, down to rounding errors, can be used.
    """
    rows, points = landmarks.rows, landmarks.points
    if in_float64 and points is rows and not is_objects(rows):
        rows = points = double(rows)
    W = kernel(rows, points)
    check_symmetric(W)
    return W


def _gram(F: Array) -> Array:  # (n, k) -> (k, k)
    return double(F.T @ F)


def _refuse_iterator(X: Any, caller: str) -> None:
    if isinstance(X, Iterator):
        raise ValueError(
            f"X is an iterator that can be read only once, but {caller} reads it "
            "twice: pass a list of blocks, a memory map or an object with __iter__"
        )


RIDGE = 0.1  # λ as a share of the mean κ(z_o, z_o)


def incomplete_features(
    kernel: Kernel,
    landmarks: Array,  # (c, p)
    projection: Array,  # (c, k)
    X: Array,  # (n, p), NaN in every row
) -> Array:  # (n, k)
    """Compute features of rows by least squares on the landmarks' observed parts.

    Rows with nothing observed get the features of the landmarks' mean in feature space.
    """
    rows, observed = split_mask(X)
    KP = kernel(landmarks) @ projection
    features = empty((X.shape[0], KP.shape[1]), like=KP)
    features[...] = namespace(KP).mean(KP, axis=0)
    by_feature = namespace(KP).asarray(as_dense(landmarks).T, copy=True)
    for pattern in group_by_mask(to_numpy(observed)):
        if len(pattern.features):
            X_o = take_observed(rows, pattern)
            kernel_o = kernel.restricted(len(pattern.features) / X.shape[1])
            Z_o = by_feature[index_like(pattern.features, X)].T
            pattern_features = as_like(_landmark_coefs(kernel_o, Z_o, X_o), KP) @ KP
            features[index_like(pattern.rows, X)] = pattern_features
    return features


def _landmark_coefs(kernel: Kernel, landmarks: Array, X: Array) -> Array:  # (n, c)
    """Compute K(x, Z)(K(Z, Z) + λI)⁻¹ over the observed features."""
    xp = namespace(landmarks)
    W = double(kernel(landmarks))
    mean_energy = float(xp.mean(diagonal(W))) or 1.0
    numbers = index_like(np.arange(W.shape[0]), W)
    W[numbers, numbers] += RIDGE * mean_energy
    return solve_symmetric(W, double(kernel(X, landmarks)).T).T
