"""`FourierMap`: random Fourier features of shift-invariant kernels.

The spectral measures and the functions that sample them are in `frequencies.py`.
"""

from __future__ import annotations

from math import pi
from typing import Any, ClassVar

import numpy as np

from ..base.constraints import AT_LEAST_1, StrOptions
from ..contracts import Array, Kernel
from ..data.read_blocks import empty_rows
from ..kernels import resolve
from ..numerics.arrays import as_like
from ..numerics.random import generator
from ..schema import Declared, Floats, Number, Part
from .base import FeatureMap
from .frequencies import SAMPLINGS, Sampling, frequencies, n_waves, waves


class FourierMap(FeatureMap):
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
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

    def fit(self, X: Any, y: Any = None) -> FourierMap:
        """Draw the frequencies; only the width and the scale of X matter."""
        self._validate_params()
        head, _ = self._head_and_rows(X)
        n, rng = self._n_waves, generator(self.random_state)
        self.kernel_ = resolve(self.kernel).bound(head)
        omega = frequencies(self.kernel_, n, head.shape[1], self.sampling, rng)
        self.frequencies_ = as_like(omega, empty_rows(head))
        self.phase_ = rng.uniform(0.0, 2.0 * pi)
        return self

    @property
    def _n_waves(self) -> int:
        return n_waves(self.n_components)

    def _features(self, X: Array) -> Array:  # (n, p) -> (n, k)
        angles = X @ as_like(self.frequencies_, X).T
        return waves(angles, self.n_components, self.phase_)

    @property
    def _row_bytes(self) -> int:
        return 4 * self._n_features_out * self.frequencies_.dtype.itemsize

    @property
    def _model_array(self) -> Array:
        return self.frequencies_

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    @property
    def _accept_sparse(self) -> bool:
        return True
