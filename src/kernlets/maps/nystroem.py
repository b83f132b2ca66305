"""`NystroemMap`: virtual samples from a few columns of the kernel matrix.

The choice of landmarks, also from a stream of rows, is in `landmarks/`; the eigenvalue
solvers are in `spectral.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np

from ..base.clipping import clipped
from ..base.constraints import AT_LEAST_1, SHARE, Interval, StrOptions
from ..contracts import Array
from ..data.check import check_rows
from ..data.masks import apply_by_completeness, group_by_mask, split_mask, take_observed
from ..data.missing_rows import all_in_memory
from ..data.rows import (
    evenly_spaced_rows,
    map_rows,
    sample_objects,
    sum_rows,
    take_rows,
)
from ..data.samples import float_like
from ..kernels import Kernel, resolve
from ..kernels.complete import completed_rows
from ..kernels.custom import known_by_index, not_square
from ..kernels.indefinite import rounding
from ..kernels.samples import (
    are_objects,
    check_samples,
    describe_input,
    takes_rows,
)
from ..landmarks.choose import Landmarks, choose
from ..numerics.arrays import (
    as_like,
    diagonal,
    double,
    empty,
    index_like,
    is_array,
    namespace,
    to_device,
    to_numpy,
)
from ..numerics.random import generator
from ..numerics.scaling import quiet
from ..schema import Declared, Size
from .base import LandmarkMap
from .spectral import (
    all_eigenpairs,
    check_definite,
    choose_rank,
    eigenpairs,
    inverse_root,
    is_krylov_small,
    landmark_matrix,
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
        ``"kmeans"``, ``"coreset"``, ``"leverage"``, ``"rpcholesky"``; a function
        ``(kernel, X, m, rng) -> indices or points``; indices of rows of X; or points.
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

    def fit(self, X: Any, y: Any = None) -> NystroemMap:
        """Choose landmarks among the rows of X and factor their kernel matrix."""
        rows, landmarks = self._fit_projection(X)
        self._truncate_on_samples(rows)
        self.kernel_error_ = self._estimate_error(rows, landmarks)
        return self

    def _fit_projection(self, X: Any) -> tuple[Any, Landmarks]:
        """LKDL equations (19) to (21); returns the checked rows and the landmarks."""
        self._validate_params()
        head, rows = self._head_and_rows(X)
        self.kernel_ = self._bind_kernel(head)
        rng = generator(self.random_state)

        # (19): K ≈ C W⁺ Cᵀ with C = K(X, X_R) and W = K(X_R, X_R)
        landmarks = choose(self.landmarks, self.kernel_, rows, self.n_landmarks, rng)
        self._store_landmarks(landmarks)
        n_pairs = self._n_pairs(self.n_landmarks_)
        W = landmark_matrix(self.kernel_, landmarks, in_float64=n_pairs is None)

        # (20): W = V Σ Vᵀ
        pairs = eigenpairs(W, n_pairs, rng)
        tolerance = rounding(W, float_like(landmarks.rows))
        check_definite(pairs, tolerance, self.kernel_.psd)

        # (21): F = C V_k Σ_k^(-1/2)
        k = choose_rank(pairs.values, self._n_components_of_W, tolerance)
        like = float_like(landmarks.rows)
        with quiet():  # transform checks that features are finite
            self.eigenvalues_ = to_device(as_like(pairs.values[:k], like))
        self.projection_ = to_device(inverse_root(pairs, k, like))
        return rows, landmarks

    def fit_transform(  # type: ignore[override]
        self, X: Any, y: Any = None
    ) -> Any:
        """Fit, and return the virtual samples of X; C is computed only once."""
        _refuse_iterator(X, "fit_transform")
        rows, landmarks = self._fit_projection(X)
        F = map_rows(self._finite_features, rows, self._row_bytes)
        if not is_array(F):  # not in memory: transform computes it when it is read
            self._truncate_on_samples(rows)
            self.kernel_error_ = self._estimate_error(rows, landmarks)
            return self.transform(X)
        if self.truncation == "samples":
            rotation = self._rotate(sum_rows(_gram, F, self._row_bytes))
            F = map_rows(lambda block: block @ rotation, F, self._row_bytes)
        self.kernel_error_ = trace_error(self._energies(rows), F)
        return F

    def _features(self, X: Array) -> Array:  # (n, p) -> (n, k)
        """(22) and (23): the virtual samples K(X, X_R) V_k Σ_k^(-1/2) of a block."""
        return apply_by_completeness(
            self._complete_features, self._incomplete_features, X
        )

    def _complete_features(self, X: Array) -> Array:
        return self.kernel_(X, self.landmarks_) @ self.projection_

    def _incomplete_features(self, X: Array) -> Array:
        return incomplete_features(self.kernel_, self.landmarks_, self.projection_, X)

    @property
    def _row_bytes(self) -> int:
        c, k = self.projection_.shape
        return (2 * c + k) * self.projection_.dtype.itemsize

    def _head_and_rows(self, X: Any) -> tuple[Array, Any]:
        if self.truncation == "samples":
            _refuse_iterator(X, "truncation='samples'")
        return super()._head_and_rows(X)

    def _bind_kernel(self, head: Array) -> Kernel:
        """The kernel, with unset parameters from the first rows."""
        kernel = resolve(self.kernel).bound(sample_objects(head))
        if known_by_index(kernel, head) and head.shape[0] != head.shape[1]:
            raise ValueError(not_square(head))
        return kernel

    def _store_landmarks(self, landmarks: Landmarks) -> None:
        self.landmarks_ = to_device(landmarks.points)  # a memory map's are on the host
        self.landmark_indices_ = landmarks.indices
        self.n_landmarks_ = landmarks.points.shape[0]

    @property
    def _n_components_of_W(self) -> int | float | None:
        """`n_components`, or None if the rank is cut on the samples instead of W."""
        return self.n_components if self.truncation == "landmarks" else None

    def _n_pairs(self, c: int) -> int | None:
        """Number of leading eigenpairs for the randomized solver; None: compute all."""
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
        if self.eigen_solver == "full" or k is None:
            return None
        is_randomized = self.eigen_solver == "randomized" or is_krylov_small(c, k)
        return k if is_randomized else None

    def _truncate_on_samples(self, rows: Any) -> None:
        """With ``truncation="samples"``, cut to the best rank k in a pass over rows."""
        if self.truncation == "samples":
            gram = partial(_features_gram, copy(self)._features)
            self._rotate(sum_rows(gram, rows, self._row_bytes))

    def _rotate(self, gram: Array) -> Array:  # (r, r) -> (r, k)
        """Rotate to the leading eigenvectors of FᵀF: the best rank k of FFᵀ."""
        pairs = all_eigenpairs(gram)
        k = choose_rank(pairs.values, self.n_components, rounding(self.projection_))
        rotation = as_like(pairs.vectors[:, :k], self.projection_)
        self.projection_ = self.projection_ @ rotation
        self.eigenvalues_ = as_like(pairs.values[:k], rotation)
        return rotation

    def _estimate_error(self, rows: Any, landmarks: Landmarks) -> float:
        """The trace error on at most 2048 rows, by equations (22) and (23)."""
        sample, energies = self._sample_rows(rows, landmarks)
        F = map_rows(self._features, sample, self._row_bytes)
        return trace_error(energies, F)

    def _sample_rows(self, rows: Any, landmarks: Landmarks) -> tuple[Array, Array]:
        """Evenly spaced rows, or random rows of a stream, and their energies."""
        if landmarks.probe is not None:
            return landmarks.probe, self.kernel_.diag(landmarks.probe)
        indices = evenly_spaced_rows(rows.shape[0])
        if known_by_index(self.kernel_, rows):
            indices = index_like(indices, rows)
            return rows[indices], self.kernel_.diag(rows)[indices]
        sample = to_device(take_rows(rows, indices))
        return sample, self.kernel_.diag(sample)

    def _energies(self, X: Array) -> Array:  # (n,)
        if known_by_index(self.kernel_, X):
            return self.kernel_.diag(X)
        return map_rows(self.kernel_.diag, X, self._row_bytes)

    def _allows_missing(self, reset: bool) -> bool:
        return not reset and self.kernel_.restrictable

    def _check_rows(self, X: Any, reset: bool = False) -> Any:
        """Check rows; in memory, missing entries of training rows are filled in."""
        kernel = resolve(self.kernel) if reset else self.kernel_
        if not takes_rows(kernel) and are_objects(X, kernel):
            like = None if reset else self._model_array
            return check_samples(self, X, kernel, reset=reset, lazy=True, like=like)
        if not (reset and all_in_memory(X) and resolve(self.kernel).restrictable):
            return super()._check_rows(X, reset)
        rows = check_rows(
            self,
            X,
            reset=True,
            allow_nan=True,
            accept_sparse=self._accept_sparse,
            lazy=True,
        )
        return completed_rows(rows)

    @property
    def _accept_sparse(self) -> bool:
        return getattr(resolve(self.kernel), "accept_sparse", False)

    @property
    def _model_array(self) -> Array:
        return self.projection_

    @property
    def _n_features_out(self) -> int:
        return self.projection_.shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        return describe_input(tags, resolve(self.kernel), allow_nan=True)


def _gram(F: Array) -> Array:  # (n, k) -> (k, k)
    return double(F.T @ F)


def _features_gram(features: Callable[[Array], Array], X: Array) -> Array:  # (k, k)
    return _gram(features(X))


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
    """Features of rows by least squares on the landmarks' observed parts.

    Rows with nothing observed get the features of the landmarks' mean in feature space.
    """
    rows, observed = split_mask(X)
    KP = kernel(landmarks) @ projection
    features = empty((X.shape[0], KP.shape[1]), like=KP)
    features[...] = namespace(KP).mean(KP, axis=0)
    for pattern in group_by_mask(to_numpy(observed)):
        if len(pattern.features):
            X_o = take_observed(rows, pattern)
            kernel_o = kernel.restricted(len(pattern.features) / X.shape[1])
            Z_o = landmarks[:, index_like(pattern.features, X)]
            pattern_features = as_like(_landmark_coefs(kernel_o, Z_o, X_o), KP) @ KP
            features[index_like(pattern.rows, X)] = pattern_features
    return features


def _landmark_coefs(kernel: Kernel, landmarks: Array, X: Array) -> Array:  # (n, c)
    """K(x, Z)(K(Z, Z) + λI)⁻¹ over the observed features."""
    xp = namespace(X)
    W = double(kernel(landmarks))
    mean_energy = float(xp.mean(diagonal(W))) or 1.0
    ridge = as_like(xp.eye(W.shape[0], dtype=W.dtype), W) * (RIDGE * mean_energy)
    return xp.linalg.solve(W + ridge, double(kernel(X, landmarks)).T).T
