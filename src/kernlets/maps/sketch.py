"""`PolynomialSketchMap`: tensor sketch of polynomial kernels."""

from __future__ import annotations

from math import sqrt
from typing import Any, ClassVar

import numpy as np

from ..base.constraints import AT_LEAST_1
from ..contracts import Array
from ..data.block_loop import empty_rows
from ..kernels import Kernel, Polynomial, resolve
from ..numerics.arrays import as_like, empty, move_like, namespace
from ..numerics.products import signed_sums
from ..numerics.random import generator
from ..schema import Conditions, Declared, Floats, Indices, Part
from .base import FeatureMap

MAX_COMPONENTS = 2**24


class PolynomialSketchMap(FeatureMap):
    """Tensor sketch: random features of polynomial kernels from count sketches.

    A count sketch adds each feature, with a random sign, to one of k sums. The cyclic
    convolution of `degree` independent sketches of one row is a sketch of its tensor
    power, so that

        E ⟨s(x), s(y)⟩ = (scale · xᵀy + coef0)^degree

    at a cost of O(degree · (p + k log k)) per row (Pham and Pagh, 2013). This is the
    map of scikit-learn's `PolynomialCountSketch`; it also supports float32, torch
    tensors and blocks of rows.

    The variance grows like (xᵀy)^degree, so many features are needed. With equal k,
    `NystroemMap` wins on data with a decaying spectrum.

    Parameters
    ----------
    kernel : Polynomial or str
        For instance ``"poly:2"``.
    n_components : int
        Number of features k.
    random_state : int, RandomState, Generator or None
        Seed of the sketches.

    Attributes
    ----------
    places_, signs_ : arrays (degree, p), or (degree, p + 1) if coef0 is not 0
        The sum that each feature is added to, and its sign.
    kernel_ : Polynomial
        The kernel with all parameters set.

    Examples
    --------
    >>> from kernlets import PolynomialSketchMap, datasets
    >>> X = datasets.load("digits").X_train
    >>> PolynomialSketchMap("poly:2", n_components=200).fit_transform(X).shape[1]
    200
    """

    _model_attribute = "signs_"
    _parameter_constraints = {
        "kernel": [Kernel, str],
        "n_components": [AT_LEAST_1],
        "random_state": ["random_state", np.random.Generator],
    }

    _declared: ClassVar[Declared] = {
        "kernel_": Part(Polynomial),
        "places_": Indices(".kernel_.degree", "._width", below=".n_components"),
        "signs_": Floats(".kernel_.degree", "._width"),
    }
    _conditions: ClassVar[Conditions] = {
        # nothing that is stored grows with them
        "n_components is too large": lambda self: self.n_components <= MAX_COMPONENTS
    }

    kernel_: Polynomial

    def __init__(
        self,
        kernel: Kernel | str = "poly:2",
        n_components: int = 100,
        *,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state

    def _fit(self, head: Array, rows: Any) -> None:
        """Draw the places and signs; only the width of rows matters."""
        kernel, like = resolve(self.kernel).bound(head), empty_rows(head)
        if not isinstance(kernel, Polynomial):
            raise ValueError(
                f"kernel={self.kernel!r} is not polynomial: use e.g. 'poly:2', or "
                "FourierMap for an RBF kernel, or NystroemMap for any kernel"
            )
        self.kernel_, rng = kernel, generator(self.random_state)
        shape = (self.kernel_.degree, self._width)
        self.places_ = move_like(rng.integers(self.n_components, size=shape), like)
        self.signs_ = as_like(rng.choice([-1.0, 1.0], size=shape), like)

    def _features(self, X: Array) -> Array:  # (n, p) -> (n, k)
        X, k = self._extend(X), self.n_components
        fft, product = namespace(X).fft, 1.0
        for positions, signs in zip(self.places_, as_like(self.signs_, X), strict=True):
            product = product * fft.rfft(signed_sums(X, positions, signs, k), axis=1)
        return as_like(fft.irfft(product, n=k, axis=1), X)

    @property
    def _width(self) -> int:
        """Features, and one more for the constant of the kernel."""
        return self.n_features_in_ + (self.kernel_.coef0 != 0)

    def _extend(self, X: Array) -> Array:
        """Return √scale · x, with √coef0 as an additional feature unless it is 0."""
        kernel, (n, p) = self.kernel_, X.shape
        extended = empty((n, self.signs_.shape[1]), like=X)
        extended[:, :p], extended[:, p:] = X, sqrt(kernel.coef0 / kernel.scale)
        extended *= sqrt(kernel.scale)
        return extended

    @property
    def _row_bytes(self) -> int:
        return 6 * (self.n_components + self.signs_.shape[1]) * 8
