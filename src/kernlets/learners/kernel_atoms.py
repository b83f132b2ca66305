"""Atoms over anchors in feature space, and the kernel matrix of training samples."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..contracts import Array
from ..data.block_loop import stacked_rows
from ..data.limits import OverMemory, memory_limit
from ..data.rows import refuse_nan_on_disk
from ..data.samples import is_objects
from ..dictionaries import KernelDictionary
from ..kernels import Kernel, Precomputed
from ..kernels.indefinite import check_matrix, refuse_negative_energy
from ..loops.codes import decode
from ..numerics.arrays import diagonal, index_like, namespace
from ..numerics.text import size_text
from ..preimage import preimages
from ..schema import Conditions, Declared, Part
from .base import map_codes


class KernelAtoms:
    """Has the anchors and coefficients of the dictionary, and `inverse_transform`."""

    _declared: ClassVar[Declared] = {
        "kernel_": Part(Kernel),
        "dictionary_": Part(KernelDictionary, m="m", p="p"),
    }
    _conditions: ClassVar[Conditions] = {
        "anchors_ are row numbers beyond the training samples": lambda self: (
            anchors_exist(self.dictionary_.anchors, self.n_features_in_)
        ),
    }

    dictionary_: KernelDictionary

    @property
    def anchors_(self) -> Array:  # (r, p)
        """The points zᵢ whose φ(zᵢ) the atoms combine."""
        check_is_fitted(self)
        return self.dictionary_.anchors

    @property
    def coefs_(self) -> Array:  # (m, r)
        """Atom j is Σᵢ coefs_[j, i] φ(anchors_[i])."""
        check_is_fitted(self)
        return self.dictionary_.coefs

    def inverse_transform(self, codes: Any) -> Array:  # (n, p)
        """Points whose φ is near the element Σⱼ codes[·, j] · atomⱼ of feature space.

        Pre-images are approximate; `preimage.preimages` reports their distances.
        """
        points = partial(_find_preimages, self.dictionary_.kernel, self.anchors_)
        return map_codes(points, codes, self.coefs_)


def _find_preimages(kernel: Kernel, anchors: Array, coefs: Array, codes: Any) -> Array:
    return preimages(kernel, anchors, decode(coefs, codes)).points


def anchors_exist(anchors: Array, n_samples: int) -> bool:
    """Whether anchors of a precomputed kernel, which are row numbers, exist."""
    if anchors.ndim > 1 or is_objects(anchors):
        return True
    return int(anchors.max()) < n_samples


def kernel_matrix(kernel: Kernel, X: Array, estimator_name: str) -> Array:  # (N, N)
    """Compute K(X, X) by blocks; OverMemory if it exceeds the memory option."""
    n = X.shape[0]
    itemsize = X.dtype.itemsize if X.dtype.itemsize in (4, 8) and X.ndim > 1 else 8
    _check_memory(n, itemsize, memory_limit(X), estimator_name)
    if isinstance(kernel, Precomputed):
        refuse_nan_on_disk(X)
        check_matrix(kernel, X)
        return namespace(X).asarray(X, copy=False)
    anchors = kernel.take(X, index_like(np.arange(n), X)) if X.ndim == 1 else X
    matrix = stacked_rows(lambda block: kernel(block, anchors), X, n * itemsize)
    refuse_negative_energy(kernel, diagonal(matrix))
    check_matrix(kernel, matrix)
    return matrix


def _check_memory(n: int, itemsize: int, memory: int, estimator_name: str) -> None:
    n_bytes = 1.3 * itemsize * n * n
    if n_bytes <= memory:
        return
    n_landmarks = min(n, max(100, int(memory / (16 * itemsize * n))))
    raise OverMemory(
        f"{estimator_name} needs about {size_text(n_bytes)} for the kernel matrix of "
        f"{n} samples, over the memory option of {size_text(memory)}",
        f"use make_pipeline(NystroemMap(kernel, n_landmarks={n_landmarks}), "
        "KSVD(...)), pass float32, or raise it with kernlets.options(memory=...)",
        f"use --method lkdl --n-landmarks {n_landmarks}, or raise --memory",
    )
