"""Pre-images in closed form: the nearest anchor, a ridge map, distances to anchors."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from ..contracts import Array
from ..kernels import RBF, Kernel, Linear, Polynomial, RationalQuadratic
from ..kernels.base import positive
from ..numerics.arrays import as_like, double, eps, namespace, row_norms
from .targets import PreimageSettings, Targets, clip_to_domain

FLAT = 1e-9  # singular values below this share of the largest are ignored


def nearest(targets: Targets, *_: Any) -> Array:  # (m, p)
    """The anchor with the smallest ‖φ(z) − t‖² = κ(z, z) − 2⟨t, φ(z)⟩ + ‖t‖²."""
    xp = namespace(targets.anchors)
    offset = targets.kernel.diag(targets.anchors)
    return targets.anchors[xp.argmin(offset - 2 * targets.products, axis=1)]


def ridge_map(targets: Targets, weight: float) -> Array:  # (r, p)
    """(K + λI)⁻¹Z: the map that turns ⟨φ(zᵢ), φ(Z)⟩ into about zᵢ."""
    xp = namespace(targets.anchors)
    K = double(targets.kernel(targets.anchors))
    mean = float(double(targets.kernel.diag(targets.anchors)).mean())
    penalty = as_like(np.eye(K.shape[0]) * weight * (mean or 1.0), K)
    return as_like(
        xp.linalg.solve(K + penalty, double(targets.anchors)), targets.anchors
    )


def by_ridge(
    targets: Targets, start: Array, settings: PreimageSettings
) -> Array:  # (m, p)
    """⟨t, φ(Z)⟩ (K + λI)⁻¹Z."""
    return clip_to_domain(targets.kernel, targets.products @ settings.ridge_map)


def by_distance(
    targets: Targets, start: Array, settings: PreimageSettings
) -> Array:  # (m, p)
    """The point at given distances from its nearest anchors, in their affine hull.

    With neighbours zᵢ = c + cᵢ around their centre c, ‖x − zᵢ‖² = dᵢ² for all i is
    linear in u = x − c once the mean is taken off: 2⟨u, cᵢ⟩ = ‖cᵢ‖² − dᵢ² − mean.
    """
    xp = namespace(targets.anchors)
    squares = squared_input_distances(targets.kernel, targets)
    count = min(settings.n_neighbors, squares.shape[1])
    indices = xp.argsort(squares, axis=1)[:, :count]
    neighbors = double(targets.anchors)[indices]  # (m, k, p)
    centre = xp.mean(neighbors, axis=1)
    neighbors = neighbors - centre[:, None]
    rhs = xp.sum(neighbors * neighbors, axis=2)
    rhs = rhs - xp.take_along_axis(double(squares), indices, axis=1)
    rhs = rhs - xp.mean(rhs, axis=1)[:, None]
    gram = neighbors @ xp.matrix_transpose(neighbors)
    weights = xp.linalg.pinv(gram, rtol=FLAT) @ (rhs[:, :, None] / 2)
    return as_like(centre + xp.sum(weights * neighbors, axis=1), targets.anchors)


@singledispatch
def squared_input_distances(kernel: Kernel, targets: Targets) -> Any:  # (m, r)
    """‖x − z‖² for the x with φ(x) = t, from ⟨t, φ(z)⟩; None if there is no formula."""
    return None


@squared_input_distances.register
def _(kernel: RBF, targets: Targets) -> Array:
    return -namespace(targets.coefs).log(_cosines(targets)) / kernel.rate


@squared_input_distances.register
def _(kernel: RationalQuadratic, targets: Targets) -> Array:
    raised = _cosines(targets) ** (-1.0 / kernel.alpha)
    return (raised - 1.0) * (2 * kernel.alpha * positive(kernel, "length_scale") ** 2)


@squared_input_distances.register
def _(kernel: Linear, targets: Targets) -> Array:
    return _from_products(targets, targets.products, targets.energy)


@squared_input_distances.register
def _(kernel: Polynomial, targets: Targets) -> Array:
    def base(values: Array) -> Array:
        return (_root(values, kernel.degree) - kernel.coef0) / kernel.scale

    return _from_products(targets, base(targets.products), base(targets.energy))


def _from_products(
    targets: Targets, products: Array, squared_norms: Array
) -> Array:  # (m, r)
    """‖x‖² − 2xᵀz + ‖z‖²."""
    squared_norms = namespace(squared_norms).clip(squared_norms, 0, None)
    return squared_norms[:, None] - 2 * products + row_norms(targets.anchors)


def _root(values: Array, degree: int) -> Array:
    """The real root; for an even degree the non-negative one."""
    xp = namespace(values)
    if degree % 2:
        return xp.sign(values) * xp.abs(values) ** (1.0 / degree)
    return xp.clip(values, 0, None) ** (1.0 / degree)


def _cosines(targets: Targets) -> Array:  # (m, r)
    """⟨t, φ(z)⟩/‖t‖ in (0, 1], for kernels with κ(x, x) = 1.

    For these the scale of t does not matter: all φ(x) have unit norm, and the nearest
    to t is also the nearest to t/‖t‖.
    """
    xp = namespace(targets.coefs)
    norm = xp.sqrt(xp.clip(targets.energy, eps(targets.coefs) ** 2, None))
    return xp.clip(targets.products / norm[:, None], eps(targets.coefs), 1.0)


def has_distances(kernel: Kernel) -> bool:
    method = squared_input_distances.dispatch(type(kernel))
    return method is not squared_input_distances.dispatch(object)
