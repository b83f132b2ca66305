"""The additive chi² kernel of histograms."""

from __future__ import annotations

from ..contracts import Array
from ..numerics.overwrite import times
from .family import Identity
from .histogram import Histogram, denominator
from .pairs import feature_pull, feature_sums


class AdditiveChi2(Identity, Histogram):
    """κ(x, y) = Σ 2xy/(x + y), without features that are 0 in both rows.

    A sum over features, like `Intersection`; `kernlets.maps.AdditiveMap` gives features
    of both. `Chi2` is another kernel, the exponential of a distance.

    Notes
    -----
    A. Vedaldi and A. Zisserman, Efficient additive kernels via explicit feature maps,
    PAMI 2012.

    Examples
    --------
    >>> from kernlets import AdditiveChi2
    >>> AdditiveChi2()([[2.0, 0.0]], [[2.0, 3.0], [1.0, 0.0]]).round(4).tolist()
    [[2.0, 1.3333]]
    """

    def pairs(self, X: Array, Y: Array) -> Array:  # (n, m)
        return feature_sums(X, Y, harmonic)

    def self_pairs(self, X: Array) -> Array:  # (n,)
        return X.sum(1)

    def weighted_gradient(self, X: Array, Y: Array, V: Array) -> Array:  # (n, p)
        """The derivative of 2xy/(x + y) is 2 (y/(x + y))²."""

        def derivative(x: Array, y: Array) -> Array:
            ratio = y / denominator(x, y)
            return 2.0 * ratio * ratio

        return feature_pull(X, Y, V, derivative)


def harmonic(x: Array, y: Array) -> Array:
    """2xy/(x + y), and 0 where both are 0."""
    return times(times(y / denominator(x, y), x), 2.0)
