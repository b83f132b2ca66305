"""Kernels of histograms (rows of non-negative numbers): chi² and intersection."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from ..base.constraints import POSITIVE
from ..contracts import Array
from ..data.rows import map_rows
from ..numerics.arrays import namespace, zeros
from ..numerics.overwrite import divide, times
from ..numerics.products import tiles
from .base import positive
from .distance import feature_pull, l1_distances
from .elementwise import ElementwiseKernel, Exponential, Identity


class Histogram(ElementwiseKernel):
    """A family that checks that no entry is negative."""

    non_negative: ClassVar[bool] = True

    def _rows(self, X: Array, name: str) -> Array:
        X = super()._rows(X, name)
        if X.shape[0] and bool((X < 0).any()):
            raise ValueError(
                f"{type(self).__name__} is a kernel of histograms and {name} has "
                "negative values; use counts or frequencies, or another kernel"
            )
        return X


class Chi2(Exponential, Histogram):
    """κ(x, y) = exp(-γ Σ (x - y)²/(x + y)), without features that are 0 in both rows.

    Parameters
    ----------
    gamma : float, default=1.0
        Factor γ of the chi² distance.

    Examples
    --------
    >>> from kernlets import Chi2
    >>> Chi2()([[2.0, 0.0]], [[2.0, 0.0], [1.0, 0.0]]).round(4).tolist()
    [[1.0, 0.7165]]
    """

    bounded = False  # the quotient of two infinite numbers is none
    _parameter_constraints = {"gamma": [POSITIVE]}

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    @property
    def rate(self) -> float:
        return positive(self, "gamma")

    def pairs(self, X: Array, Y: Array) -> Array:  # (n, m)
        def term(x: Array, y: Array) -> Array:
            difference = x - y
            return divide(times(difference, difference), denominator(x, y))

        return feature_sums(X, Y, term)

    def self_pairs(self, X: Array) -> Array:  # (n,)
        return zeros((X.shape[0],), X)

    def weighted_gradient(self, X: Array, Y: Array, V: Array) -> Array:  # (n, p)
        """With r = (x - y)/(x + y), the derivative of r²·(x + y) is r(2 - r)."""

        def derivative(x: Array, y: Array) -> Array:
            ratio = (x - y) / denominator(x, y)
            return ratio * (2.0 - ratio)

        return feature_pull(X, Y, V, derivative)


class Intersection(Identity, Histogram):
    """κ(x, y) = Σ min(x, y).

    It is computed as (Σx + Σy - Σ|x - y|)/2, which needs memory for only one (n, m)
    matrix.

    Examples
    --------
    >>> from kernlets import Intersection
    >>> Intersection()([[2.0, 1.0]], [[1.0, 3.0]]).tolist()
    [[2.0]]
    """

    def pairs(self, X: Array, Y: Array) -> Array:  # (n, m)
        s = times(l1_distances(X, Y), -0.5)
        s += 0.5 * X.sum(1)[:, None]
        s += 0.5 * Y.sum(1)
        return s

    def self_pairs(self, X: Array) -> Array:  # (n,)
        return X.sum(1)

    def weighted_gradient(self, X: Array, Y: Array, V: Array) -> Array:  # (n, p)
        """Σⱼ Vᵢⱼ [x < y], and half where x = y."""
        sign = namespace(X).sign
        return feature_pull(X, Y, V, lambda x, y: 0.5 - 0.5 * sign(x - y))


def denominator(x: Array, y: Array) -> Array:
    """Compute x + y, or the smallest normal number where that is 0."""
    tiny = float(namespace(x).finfo(x.dtype).smallest_normal)
    return (x + tiny) + y


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
    """Compute 2xy/(x + y), and 0 where both are 0."""
    return times(times(y / denominator(x, y), x), 2.0)


TILE_ROWS = 64  # rows per step in loops over features, so that they stay in cache


def feature_sums(
    X: Array, Y: Array, term: Callable[[Array, Array], Array]
) -> Array:  # (n, p), (m, p) -> (n, m)
    """Compute Σ over features of term(x, y), for terms that no matrix product gives."""
    xp = namespace(X)
    columns = xp.stack([Y[:, c] for c in range(Y.shape[1])])  # contiguous

    def tile(rows: Array) -> Array:
        total = 0.0
        for x, y in zip(rows.T, columns, strict=True):
            total += term(x[:, None], y)
        return total

    def block(rows: Array) -> Array:
        return xp.concat([tile(rows[span]) for span in tiles(rows, TILE_ROWS)])

    return map_rows(block, X, row_bytes=Y.itemsize * Y.shape[0])
