"""Exact features of kernels that are sums: over parts of samples, or over features.

`CountMap` takes strings, graphs and bags, `AdditiveMap` histograms.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..base.constraints import AT_LEAST_1
from ..contracts import Array
from ..data.samples import float_like
from ..kernels import Intersection, Kernel, kernel_or_class, resolve
from ..kernels.histogram import AdditiveChi2, harmonic
from ..kernels.samples import check_samples, describe_input
from ..kernels.structured import Counting
from ..numerics.arrays import as_like, double, namespace, to_numpy, with_fixed_signs
from ..schema import Declared, Digests, Floats, Part
from .base import FeatureMap

RELATIVE = 1e-13  # eigenvalues below this share of the largest are rounding errors


class CountMap(FeatureMap):
    """Exact features of a kernel that counts, as a sparse matrix.

    Inner products of the rows are the kernel: of substrings (`Spectrum`, `Mismatch`,
    `Gappy`), of parts of graphs (`WeisfeilerLehman`, `ShortestPath`, `RandomWalk`), or
    of matches of vectors (`PyramidMatch`). The columns are the parts that training
    samples have; parts that only new samples have are left out. Linear methods that
    take CSR then need no kernel matrix.

    Parameters
    ----------
    kernel : str or Kernel
        E.g. ``"spectrum:4"`` or ``WeisfeilerLehman(3)``.
    min_samples : int
        Parts of fewer training samples than this are left out.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with all parameters set.
    vocabulary_ : array (m,) of uint64
        Digests of the parts, one for each column.
    n_features_in_ : int
        1: samples are a column of objects.

    Examples
    --------
    >>> from kernlets.maps import CountMap
    >>> CountMap("spectrum:2").fit_transform(["banana", "ananas"]).shape
    (2, 4)
    """

    _parameter_constraints = {"kernel": [str, Kernel], "min_samples": [AT_LEAST_1]}
    _declared: ClassVar[Declared] = {
        "kernel_": Part(Counting),
        "vocabulary_": Digests("m"),
    }
    _row_bytes = 64

    kernel_: Any  # a `Counting` whose parameters are set

    def __init__(self, kernel: str | Kernel = "spectrum", min_samples: int = 1) -> None:
        self.kernel = kernel
        self.min_samples = min_samples

    def _fit(self, head: np.ndarray, rows: np.ndarray) -> None:
        """Learn which parts the samples have."""
        self.kernel_ = resolve(self.kernel).bound(rows)
        counts = self.kernel_.prepare(rows)
        digests, sample_counts = np.unique(counts.digests, return_counts=True)
        self.vocabulary_ = digests[sample_counts >= self.min_samples]
        if not len(self.vocabulary_):
            raise ValueError(
                f"no part is in {self.min_samples} samples: lower min_samples, or the "
                f"size of the parts of {self.kernel_!r}"
            )

    def _features(self, X: np.ndarray) -> sparse.csr_array:  # (n,) -> (n, m)
        counts = self.kernel_.prepare(X).matrix(self.vocabulary_)
        return counts.astype(float_like(X).dtype, copy=False)

    def _check_rows(self, X: Any, reset: bool = False) -> Any:
        kernel = kernel_or_class(self.kernel)
        kernel_class = kernel if isinstance(kernel, type) else type(kernel)
        if not issubclass(kernel_class, Counting):
            raise ValueError(
                f"kernel={self.kernel!r} has no sparse features: use Spectrum, "
                "Mismatch, Gappy, WeisfeilerLehman, ShortestPath, RandomWalk or "
                "PyramidMatch, or NystroemMap"
            )
        return check_samples(
            self, X, kernel, reset=reset, containers="array" if reset else "dask"
        )

    @property
    def _n_features_out(self) -> int:
        return len(self.vocabulary_)

    def __sklearn_tags__(self) -> Any:
        return describe_input(super().__sklearn_tags__(), kernel_or_class(self.kernel))


class AdditiveMap(FeatureMap):
    """Features whose inner products are `Intersection` or `AdditiveChi2`.

    Each feature x gets its own map φ(x) = k(x, t) W^(-½), W = k(t, t), where t are
    numbers that the training rows have there, its knots. ⟨φ(x), φ(y)⟩ is exactly
    k(x, y) if x or y is a knot, so that a training row has its kernel with every row if
    no column has more different numbers than there may be knots; between knots it is
    interpolated, for `Intersection` by straight lines.

    Parameters
    ----------
    kernel : str or Kernel
        ``"intersection"`` or ``"additive_chi2"``.
    n_knots : int
        The most knots of each feature; of more different numbers, quantiles are taken.

    Attributes
    ----------
    kernel_ : Kernel
    knots_ : array (p, m)
        Knots of each feature, 0 where it has fewer than others.
    projections_ : array (p, m, r)
        W^(-½) of each feature.

    Notes
    -----
    S. Maji, A. Berg and J. Malik, Efficient classification for additive kernel SVMs,
    PAMI 2013, for straight lines. X may be blocks: the first one sets the knots.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import Intersection
    >>> from kernlets.maps import AdditiveMap
    >>> X, new = np.array([[1.0, 2.0], [3.0, 0.0]]), np.array([[2.5, 1.0]])
    >>> model = AdditiveMap("intersection").fit(X)
    >>> (model.transform(X) @ model.transform(new).T).round(9).tolist()
    [[2.0], [2.5]]
    >>> Intersection()(X, new).tolist()
    [[2.0], [2.5]]
    """

    _model_attribute = "knots_"
    _parameter_constraints = {"kernel": [str, Kernel], "n_knots": [AT_LEAST_1]}
    _declared: ClassVar[Declared] = {
        "kernel_": Part(Kernel),
        "knots_": Floats("p", "m"),
        "projections_": Floats("p", "m", "r", like="knots_"),
    }

    def __init__(
        self, kernel: str | Kernel = "intersection", n_knots: int = 64
    ) -> None:
        self.kernel = kernel
        self.n_knots = n_knots

    def _fit(self, head: Array, rows: Any) -> None:
        """Find the knots of each feature."""
        kernel = resolve(self.kernel)
        if not isinstance(kernel, (Intersection, AdditiveChi2)):
            raise ValueError(
                f"kernel={self.kernel!r} is no sum over features: use 'intersection' "
                "or 'additive_chi2', or NystroemMap"
            )
        self.kernel_ = kernel
        _refuse_negative(head)

        # the knots t of each feature
        columns = to_numpy(double(head)).T
        knots = [self._choose_knots(column) for column in columns]
        self.knots_ = as_like(_stack_with_zeros(knots), head)

        # W^(-½) with W = k(t, t)
        W = [self._kernel_values(t[:, None], t) for t in knots]
        roots = [_inverse_root(W_j) for W_j in W]
        self.projections_ = as_like(_stack_with_zeros(roots), head)

    def _choose_knots(self, column: np.ndarray) -> np.ndarray:  # (n,) -> (m,)
        values = np.unique(column[column > 0])
        if len(values) <= self.n_knots:
            return values
        indices = np.linspace(0, len(values) - 1, self.n_knots).round().astype(int)
        return values[indices]

    def _kernel_values(self, x: Array, t: Array) -> Array:
        if isinstance(self.kernel_, AdditiveChi2):
            return harmonic(x, t)
        return namespace(x).minimum(x, t)

    def _features(self, X: Array) -> Array:  # (n, p) -> (n, p r)
        """Compute φ(x) = k(x, t) W^(-½) of each feature."""
        _refuse_negative(X)
        C = self._kernel_values(X[:, :, None], self.knots_)  # (n, p, m)
        xp = namespace(X)
        features = xp.matmul(xp.permute_dims(C, (1, 0, 2)), self.projections_)
        return xp.reshape(xp.permute_dims(features, (1, 0, 2)), (X.shape[0], -1))

    @property
    def _row_bytes(self) -> int:
        return 8 * (4 * self.knots_.shape[0] * self.knots_.shape[1])

    @property
    def _n_features_out(self) -> int:
        return self.projections_.shape[0] * self.projections_.shape[2]


def _refuse_negative(X: Array) -> None:
    if bool((X < 0).any()):
        raise ValueError(
            "AdditiveMap is a map of histograms and X has negative values: use counts "
            "or frequencies"
        )


def _inverse_root(W: np.ndarray) -> np.ndarray:  # (m, m) -> (m, r)
    """Compute W^(-½), up to a rotation."""
    if not len(W):
        return np.zeros((0, 0))
    values, vectors = np.linalg.eigh((W + W.T) / 2)
    vectors = with_fixed_signs(vectors)
    is_above_rounding = values > RELATIVE * values[-1]
    return vectors[:, is_above_rounding] / np.sqrt(values[is_above_rounding])


def _stack_with_zeros(arrays: list[np.ndarray]) -> np.ndarray:
    """Stack arrays of different shapes, filled up with zeros to at least one entry."""
    shape = np.max([array.shape for array in arrays], axis=0)
    stacked = np.zeros((len(arrays), *np.maximum(shape, 1)))
    for target, array in zip(stacked, arrays, strict=True):
        target[tuple(slice(0, size) for size in array.shape)] = array
    return stacked
