"""`CountMap`: strings, graphs and bags as sparse rows of counts."""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ..base.constraints import AT_LEAST_1
from ..base.estimator import Estimator
from ..data.rows import apply_to_rows
from ..data.samples import float_like
from ..kernels import Kernel, kernel_or_class, resolve
from ..kernels.samples import check_samples, describe_input
from ..kernels.structured import Counting
from ..schema import Declared, Digests, Part, Size
from ..sklearn_base import ClassNamePrefixFeaturesOutMixin, TransformerMixin


class CountMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Exact features of a kernel that counts, as a sparse matrix.

    Inner products of the rows are the kernel: of substrings (`Spectrum`, `Mismatch`,
    `Gappy`), of parts of graphs (`WeisfeilerLehman`, `ShortestPath`, `RandomWalk`), or
    of matches of vectors (`PyramidMatch`). The columns
    are the parts that training samples have; parts that only new samples have are left
    out. Linear methods that take CSR then need no kernel matrix.

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
        "n_features_in_": Size("p"),
        "kernel_": Part(Counting),
        "vocabulary_": Digests("m"),
    }

    kernel_: Any  # a `Counting` whose parameters are set

    def __init__(self, kernel: str | Kernel = "spectrum", min_samples: int = 1) -> None:
        self.kernel = kernel
        self.min_samples = min_samples

    def fit(self, X: Any, y: Any = None) -> CountMap:
        """Learn which parts the samples in X have."""
        self._validate_params()
        kernel = resolve(self.kernel)
        if not isinstance(kernel, Counting):
            raise ValueError(
                f"kernel={self.kernel!r} has no sparse features: use Spectrum, "
                "Mismatch, Gappy, WeisfeilerLehman, ShortestPath, RandomWalk or "
                "PyramidMatch, or NystroemMap"
            )
        samples = check_samples(self, X, kernel, reset=True)
        self.kernel_ = kernel.bound(samples)
        counts = self.kernel_.prepare(samples)
        digests, sample_counts = np.unique(counts.digests, return_counts=True)
        self.vocabulary_ = digests[sample_counts >= self.min_samples]
        if not len(self.vocabulary_):
            raise ValueError(
                f"no part is in {self.min_samples} samples: lower min_samples, or the "
                f"size of the parts of {self.kernel_!r}"
            )
        return self

    def transform(self, X: Any) -> Any:  # (n, m)
        """The counts of the parts of each sample, as a CSR matrix.

        For a Dask collection the result is a Dask array whose chunks are such matrices.
        """
        check_is_fitted(self)
        samples = check_samples(self, X, self.kernel_, containers="dask")
        return apply_to_rows(copy(self)._counts, samples)

    def _counts(self, samples: np.ndarray) -> sparse.csr_array:  # (n,) -> (n, m)
        counts = self.kernel_.prepare(samples).matrix(self.vocabulary_)
        return counts.astype(float_like(samples).dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return len(self.vocabulary_)

    def __sklearn_tags__(self) -> Any:
        return describe_input(super().__sklearn_tags__(), kernel_or_class(self.kernel))
