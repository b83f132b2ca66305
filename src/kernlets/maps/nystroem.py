"""`NystroemMap`: virtual samples from a few columns of the kernel matrix.

The choice of landmarks, also from a stream of rows, is in `landmarks/`; the eigenvalue
solvers are in `spectral.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np

from ..backend.arrays import as_like, double, index_like, is_array, to_device
from ..backend.clipping import clipped
from ..backend.constraints import AT_LEAST_1, SHARE, Interval, StrOptions
from ..backend.masks import apply_by_completeness
from ..backend.missing_rows import all_in_memory
from ..backend.random import generator
from ..backend.rows import (
    evenly_spaced_rows,
    map_rows,
    sample_objects,
    sum_rows,
    take_rows,
)
from ..backend.samples import float_like
from ..backend.scale import quiet
from ..backend.validation import check_rows
from ..core import Array, Kernel
from ..fields import Declared, Size
from ..kernels import resolve
from ..kernels.check_samples import (
    are_objects,
    check_samples,
    describe_input,
    takes_rows,
)
from ..kernels.complete import completed_rows
from ..kernels.definite import rounding
from ..kernels.user_kernels import known_by_index, not_square
from ..landmarks import Landmarks, choose
from .base import LandmarkMap
from .factor import (
    check_definite,
    in_float64,
    inverse_root,
    kernel_matrix,
    n_kept,
    trace_error,
)
from .incomplete import incomplete_features
from .spectral import Spectrum, all_eigenpairs, is_worth_it, leading_eigenpairs


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

    _fills_gaps = True  # nothing is missing in what it returns

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
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
        self._finish(X, *self._prepare(X))
        return self

    def fit_transform(  # type: ignore[override]
        self, X: Any, y: Any = None
    ) -> Any:
        """Fit, and return the virtual samples of X; C is computed only once."""
        _refuse_iterator(X, "fit_transform")
        rows, found = self._prepare(X)
        F = map_rows(self._checked_features, rows, self._row_bytes)
        if not is_array(F):  # not in memory: computed when it is read
            self._finish(X, rows, found)
            return self.transform(X)
        if self.truncation == "samples":
            turn = self._rotate(sum_rows(_gram, F, self._row_bytes))
            F = map_rows(lambda block: block @ turn, F, self._row_bytes)
        self.kernel_error_ = trace_error(self._energies(rows), F)
        return F

    def _finish(self, X: Any, rows: Any, found: Landmarks) -> None:
        """The rest of fit: the rotation, and the error on some rows."""
        if self.truncation == "samples":
            gram = partial(_features_gram, copy(self)._features)
            self._rotate(sum_rows(gram, rows, self._row_bytes))
        probe, energies = self._probe(rows, found)
        F = map_rows(self._features, probe, self._row_bytes)
        self.kernel_error_ = trace_error(energies, F)

    def _features(self, X: Array) -> Array:  # (n, p) -> (n, k)
        """Virtual samples K(X, X_R) V_k Σ_k^(-1/2), equations (22) and (23)."""
        return apply_by_completeness(
            self._complete_features, self._incomplete_features, X
        )

    def _complete_features(self, X: Array) -> Array:
        return self.kernel_(X, self.landmarks_) @ self.projection_

    def _incomplete_features(self, X: Array) -> Array:
        model = self.kernel_, self.landmarks_, self.projection_
        return incomplete_features(*model, X)

    @property
    def _row_bytes(self) -> int:
        c, k = self.projection_.shape
        return (2 * c + k) * self.projection_.dtype.itemsize

    def _prepare(self, X: Any) -> tuple[Any, Landmarks]:
        """All of fit except the error; returns the checked rows and the landmarks."""
        self._validate_params()
        if self.truncation == "samples":
            _refuse_iterator(X, "truncation='samples'")
        head, rows = self._first_rows(X)
        self.kernel_ = resolve(self.kernel).bound(sample_objects(head))
        _check_square(self.kernel_, head)
        rng = generator(self.random_state)
        found = choose(self.landmarks, self.kernel_, rows, self.n_landmarks, rng)
        self._factor(found, rng)
        return rows, found

    def _factor(self, found: Landmarks, rng: np.random.Generator) -> None:
        """W = V Σ Vᵀ and the projection V_k Σ_k^(-1/2), equations (20) and (21)."""
        self.landmarks_ = to_device(found.points)  # those of a memory map are on host
        self.landmark_indices_ = found.indices
        self.n_landmarks_ = found.points.shape[0]
        pairs, tolerance = self._eigenpairs(found, rng)
        check_definite(pairs, tolerance, getattr(self.kernel_, "psd", True))
        wanted = self.n_components if self.truncation == "landmarks" else None
        k = n_kept(pairs.values, wanted, tolerance)
        like = float_like(found.rows)
        with quiet():  # features are looked at
            self.eigenvalues_ = to_device(as_like(pairs.values[:k], like))
        self.projection_ = to_device(inverse_root(pairs, k, like))

    def _eigenpairs(
        self, found: Landmarks, rng: np.random.Generator
    ) -> tuple[Spectrum, float]:
        """Eigenpairs of W, and the fraction of the largest that counts as rounding."""
        k = self._n_leading(self.n_landmarks_)
        # if all eigenvalues are needed, down to rounding, W must be in float64, too
        W = kernel_matrix(self.kernel_, in_float64(found) if k is None else found)
        pairs = all_eigenpairs(W) if k is None else leading_eigenpairs(W, k, rng)
        return pairs, rounding(W, float_like(found.rows))

    def _n_leading(self, c: int) -> int | None:
        """How many of c eigenpairs the randomized solver has to find; None: all."""
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
        return k if self.eigen_solver == "randomized" or is_worth_it(c, k) else None

    def _rotate(self, gram: Array) -> Array:  # (r, r) -> (r, k)
        """Rotate to the leading eigenvectors of FᵀF: the best rank k of FFᵀ."""
        pairs = all_eigenpairs(gram)
        k = n_kept(pairs.values, self.n_components, rounding(self.projection_))
        turn = as_like(pairs.vectors[:, :k], self.projection_)
        self.projection_ = self.projection_ @ turn
        self.eigenvalues_ = as_like(pairs.values[:k], turn)
        return turn

    def _probe(self, rows: Any, found: Landmarks) -> tuple[Array, Array]:
        """Rows to estimate the error on, and their energies."""
        if found.probe is not None:
            return found.probe, self.kernel_.diag(found.probe)
        places = evenly_spaced_rows(rows.shape[0])
        if known_by_index(self.kernel_, rows):
            places = index_like(places, rows)
            return rows[places], self.kernel_.diag(rows)[places]
        probe = to_device(take_rows(rows, places))
        return probe, self.kernel_.diag(probe)

    def _energies(self, X: Array) -> Array:  # (n,)
        if known_by_index(self.kernel_, X):
            return self.kernel_.diag(X)
        return map_rows(self.kernel_.diag, X, self._row_bytes)

    def _allow(self, reset: bool) -> bool:
        return not reset and self.kernel_.restrictable

    def _rows(self, X: Any, reset: bool = False) -> Any:
        """Rows to learn from are filled in if they are in memory, else complete."""
        kernel = resolve(self.kernel) if reset else self.kernel_
        if not takes_rows(kernel) and are_objects(X, kernel):
            like = None if reset else self._model_array
            return check_samples(self, X, kernel, reset=reset, lazy=True, like=like)
        if not (reset and all_in_memory(X) and resolve(self.kernel).restrictable):
            return super()._rows(X, reset)
        keys: dict[str, Any] = {"accept_sparse": self._accept_sparse, "lazy": True}
        return completed_rows(check_rows(self, X, reset=True, allow_nan=True, **keys))

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


def _refuse_iterator(X: Any, what: str) -> None:
    if isinstance(X, Iterator):
        raise ValueError(
            f"X is an iterator that can be read only once, but {what} reads it twice: "
            "pass a list of blocks, a memory map or an object with __iter__"
        )


def _check_square(kernel: Kernel, X: Array) -> None:
    if known_by_index(kernel, X) and X.shape[0] != X.shape[1]:
        raise ValueError(not_square(X))
