"""Pre-images: points x of the input space with φ(x) near Σᵢ aᵢ φ(zᵢ).

Most elements of a feature space are not φ of any point, so every method here is a
compromise. The result reports the distance ‖φ(x) − t‖ in feature space, which shows
whether a pre-image is good.

* ``nearest``: the anchor that is nearest in feature space. Any kernel.
* ``ridge``: a linear map from feature space to points, learned on the anchors by ridge
  regression (Bakır, Weston and Schölkopf, 2003). Any kernel.
* ``distance``: feature-space distances to some anchors are turned into distances
  between points, which give the point in closed form (Kwok and Tsang, 2004, used by
  K-SAD). `RBF`, `RationalQuadratic`, `Polynomial`, `Linear`.
* ``fixed-point``: x = Σ wᵢzᵢ / Σ wᵢ, wᵢ = aᵢκ'(‖x − zᵢ‖²) (Mika et al., 1999). Kernels
  of the distance.
* ``gradient``: descent on ‖φ(x) − t‖² through `Kernel.pull`. Differentiable kernels.
* ``auto``: all methods that apply, each iterative one from the best point so far; the
  smallest distance wins for each target.

This module knows only kernels and points. For pre-images of atoms or features, use
`KernelDictionary.preimages` and the `inverse_transform` of learners and maps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .contracts import Array
from .data.block_loop import map_blocks
from .data.rows import map_rows
from .data.sparse_rows import as_dense
from .kernels import Kernel, Radial, resolve
from .numerics.arrays import (
    as_float,
    as_like,
    double,
    eps,
    index_like,
    is_array,
    namespace,
    row_norms,
    to_numpy,
)
from .numerics.convergence import warn_once_at_end, warn_unfinished
from .numerics.scaling import quiet, typical_length
from .numerics.text import field_text
from .schema import Declared, Floats, Names

__all__ = ["METHODS", "Preimages", "over_landmarks", "preimages"]

FLAT = 1e-9  # singular values below this share of the largest are ignored
SHORTEST = 0.01  # stop when all steps are shorter than this share of a full step
STILL = 1e-6  # stop when gradient steps are shorter than this share of the reach
WORTH = 1e-9  # ‖φ(x) − t‖² is better if it is smaller by this share of ‖t‖²


@dataclass(frozen=True)
class Preimages:
    """Points, and the distances of their images from the targets t.

    Parameters
    ----------
    points : array (m, p)
        The points x.
    distance : array (m,)
        ‖φ(x) − t‖.
    norm : array (m,)
        ‖t‖, to compare the distance with.
    method : array (m,)
        Name of the method that found each point.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import preimage
    >>> found = preimage.preimages("linear", np.eye(2), np.array([[2.0, 0.0]]))
    >>> (found.distance / found.norm).round(2).tolist()
    [0.0]
    """

    _declared: ClassVar[Declared] = {
        "points": Floats("m", "p"),
        "distance": Floats("m"),
        "norm": Floats("m"),
        "method": Names("m"),
    }

    points: Array
    distance: Array
    norm: Array
    method: np.ndarray

    __repr__ = field_text


def preimages(
    kernel: Any,
    anchors: Array,  # (r, p)
    coefs: Array,  # (m, r)
    method: str = "auto",
    *,
    n_neighbors: int = 10,
    max_iter: int = 1000,
    ridge: float = 1e-3,
    start: Array | None = None,  # (m, p)
) -> Preimages:
    """Find points whose images are near tⱼ = Σᵢ coefs[j, i] φ(anchorᵢ).

    Parameters
    ----------
    kernel : Kernel, str or callable
        The kernel.
    anchors : array (r, p)
        The points zᵢ.
    coefs : array (m, r)
        One row of coefficients per target.
    method : {"auto", "nearest", "ridge", "distance", "fixed-point", "gradient"}
        See the docstring of this module.
    n_neighbors : int
        Number of anchors whose distances "distance" uses.
    max_iter : int
        Largest number of iterations of "fixed-point" and "gradient". A
        ConvergenceWarning tells if points still moved then.
    ridge : float
        Weight of the penalty of "ridge", relative to the mean κ(z, z).
    start : array (m, p), optional
        Where "fixed-point" and "gradient" start. Default: the best result of the
        methods in closed form ("auto"), or the nearest anchor.

    Returns
    -------
    Preimages
        Points, and their distances from the targets in feature space.

    Notes
    -----
    A polynomial kernel of even degree determines κ^(1/d) only up to its sign.
    "distance" takes the non-negative root, which is right if scale · xᵀz + coef0 ≥ 0,
    as for images without negative pixels. The other methods do not need this.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import RBF, preimage
    >>> anchors = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> found = preimage.preimages(RBF(sigma=2.0), anchors, np.array([[0.0, 1.0, 0.0]]))
    >>> found.points.round(3).tolist(), found.distance.round(3).tolist()
    ([[1.0, 0.0]], [0.0])
    """
    targets = as_targets(resolve(kernel), anchors, coefs)
    names = _methods_to_try(method, targets.kernel)
    ridge_coefs = ridge_map(targets, ridge) if "ridge" in names else None
    settings = PreimageSettings(n_neighbors, max_iter, ridge_coefs)

    def solve(rows: Array) -> Preimages:
        start_rows = None if start is None else as_like(start, targets.anchors)[rows]
        with quiet():  # a step to NaN is never better, so it is not taken
            return _try_methods(targets.select(rows), names, settings, start_rows)

    rows = index_like(np.arange(coefs.shape[0]), targets.anchors)
    r, p = targets.anchors.shape
    row_bytes = 8 * (4 * r + 2 * (n_neighbors + 4) * p)
    with warn_once_at_end():
        blocks = map_blocks(solve, rows, row_bytes)
    concat = namespace(targets.anchors).concat
    return Preimages(
        points=concat([block.points for block in blocks]),
        distance=concat([block.distance for block in blocks]),
        norm=concat([block.norm for block in blocks]),
        method=np.concatenate([block.method for block in blocks]),
    )


def _methods_to_try(method: str, kernel: Kernel) -> list[str]:
    """Return names of the methods to try, in order."""
    applicable = [name for name, (applies, _) in METHODS.items() if applies(kernel)]
    if method == "auto":
        return applicable
    if method not in METHODS:
        choices = ", ".join(["auto", *METHODS])
        raise ValueError(f"method={method!r} is unknown: choose from {choices}")
    if method not in applicable:
        raise ValueError(
            f"method={method!r} is not defined for {kernel!r}: choose from "
            f"{', '.join(['auto', *applicable])}"
        )
    return [method]


def _try_methods(
    targets: Targets, names: list[str], settings: PreimageSettings, start: Array | None
) -> Preimages:
    """Try the methods one after the other; take the nearest point for each target."""
    xp = namespace(targets.anchors)
    points = nearest(targets) if start is None else start
    best = targets.squared_distance(points)
    first_name = "nearest" if start is None else "start"
    winners = np.full(points.shape[0], first_name, dtype="U11")
    for name in names:
        trial = METHODS[name][1](targets, points, settings)
        squared = targets.squared_distance(trial)
        is_better = squared < best - WORTH * targets.energy
        is_better = is_better | (len(names) == 1)
        points = xp.where(is_better[:, None], trial, points)
        best = xp.where(is_better, squared, best)
        winners[to_numpy(is_better)] = name
    return Preimages(points, xp.sqrt(best), xp.sqrt(targets.energy), winners)


def over_landmarks(feature_map: Any, F: Array) -> Array:  # (n, k) -> (n, c)
    """Return coefficients over φ(landmarks) of the elements that features F represent.

    The Nyström and IKA maps are ψ(x) = K(x, Z)P with P = `projection_` and
    Z = `landmarks_`, so a feature vector f represents Σᵢ (Pf)ᵢ φ(zᵢ).

    Parameters
    ----------
    feature_map : NystroemMap or IKAMap
        A fitted map; IKA with ``basis="kernel"``.
    F : array (n, k)
        Features.

    Returns
    -------
    array (n, c)
        One coefficient per landmark.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import NystroemMap, preimage
    >>> X = np.random.default_rng(0).standard_normal((30, 4))
    >>> model = NystroemMap("rbf", n_landmarks=10, random_state=0).fit(X)
    >>> preimage.over_landmarks(model, model.transform(X[:5])).shape
    (5, 10)
    """
    anchors = getattr(feature_map, "landmarks_", None)
    units = getattr(feature_map, "offsets_", None) is not None
    if anchors is None or units or not hasattr(feature_map, "projection_"):
        raise TypeError(
            f"features of {feature_map!r} are not made of κ(x, landmark): use a fitted "
            "NystroemMap, or IKAMap with basis='kernel'"
        )
    projection = feature_map.projection_
    if F.ndim != 2 or F.shape[1] != projection.shape[1]:
        raise ValueError(
            f"features of shape {tuple(F.shape)} are not from this map, which has "
            f"{projection.shape[1]} features"
        )
    with quiet():  # functions that use the coefficients refuse infinite ones
        return as_like(F, projection) @ projection.T


# ------------------------------------------------------------------------- targets


@dataclass(frozen=True)
class Targets:
    """Elements t = Σᵢ coefs[·, i] φ(anchorᵢ) of a feature space."""

    kernel: Kernel
    anchors: Array  # (r, p)
    coefs: Array  # (m, r)
    products: Array  # (m, r) ⟨t, φ(anchor)⟩

    @property
    def energy(self) -> Array:  # (m,)
        """‖t‖²."""
        xp = namespace(self.coefs)
        return xp.clip(xp.vecdot(self.coefs, self.products), 0, None)

    def select(self, rows: Array) -> Targets:
        return Targets(self.kernel, self.anchors, self.coefs[rows], self.products[rows])

    def squared_distance(self, X: Array) -> Array:  # (m,)
        """Compute ‖φ(xⱼ) − tⱼ‖², at least 0."""
        xp = namespace(self.coefs)
        inner = xp.vecdot(self.coefs, self.kernel(X, self.anchors))
        return xp.clip(self.kernel.diag(X) - 2 * inner + self.energy, 0, None)

    def gradient(self, X: Array) -> Array:  # (m, p)
        """Compute ∂‖φ(xⱼ) − tⱼ‖²/∂xⱼ; the first part is the gradient of κ(x, x)."""
        eye = as_like(np.eye(X.shape[0]), X)
        self_gradient = self.kernel.pull(X, X, eye)
        return 2 * (self_gradient - self.kernel.pull(X, self.anchors, self.coefs))

    def reach(self) -> float:
        """Return the root mean square distance of the anchors from their centre."""
        xp = namespace(self.anchors)
        return typical_length(self.anchors - xp.mean(self.anchors, axis=0))


def as_targets(kernel: Kernel, anchors: Any, coefs: Any) -> Targets:
    anchors = as_dense(anchors)
    if kernel.by_index or not is_array(anchors) or anchors.ndim != 2:
        raise TypeError(
            "pre-images are rows of numbers, so anchors must be too: a precomputed "
            "kernel or samples such as strings have none"
        )
    anchors = as_float(anchors)
    coefs = as_like(coefs, anchors)
    if coefs.ndim != 2 or coefs.shape[1] != anchors.shape[0]:
        raise ValueError(
            f"coefs has shape {tuple(coefs.shape)}, but there are {anchors.shape[0]} "
            "anchors: it needs one column for each"
        )
    kernel = kernel.bound(anchors)
    with quiet():  # infinite products have no pre-image, and are refused later
        products = map_rows(
            lambda rows: kernel(rows, anchors) @ coefs.T, anchors, 8 * sum(coefs.shape)
        )
    return Targets(kernel, anchors, coefs, products.T)


def clip_to_domain(kernel: Kernel, points: Array) -> Array:
    """Clip negative entries of points if the kernel is not defined for them."""
    if kernel.non_negative:
        return namespace(points).clip(points, 0, None)
    return points


@dataclass(frozen=True)
class PreimageSettings:
    """Options of the methods, and the map that "ridge" has learned."""

    n_neighbors: int
    max_iter: int
    ridge_map: Array | None  # (r, p)


# --------------------------------------------------------------------- closed forms


def nearest(targets: Targets, *_: Any) -> Array:  # (m, p)
    """Find the anchor with the smallest ‖φ(z) − t‖² = κ(z, z) − 2⟨t, φ(z)⟩ + ‖t‖²."""
    xp = namespace(targets.anchors)
    offset = targets.kernel.diag(targets.anchors)
    return targets.anchors[xp.argmin(offset - 2 * targets.products, axis=1)]


def ridge_map(targets: Targets, weight: float) -> Array:  # (r, p)
    """Compute (K + λI)⁻¹Z: the map that turns ⟨φ(zᵢ), φ(Z)⟩ into about zᵢ."""
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
    """Compute ⟨t, φ(Z)⟩ (K + λI)⁻¹Z."""
    return clip_to_domain(targets.kernel, targets.products @ settings.ridge_map)


def by_distance(
    targets: Targets, start: Array, settings: PreimageSettings
) -> Array:  # (m, p)
    """Find the point at given distances from its nearest anchors, in their affine hull.

    With neighbours zᵢ = c + cᵢ around their centre c, ‖x − zᵢ‖² = dᵢ² for all i is
    linear in u = x − c once the mean is taken off: 2⟨u, cᵢ⟩ = ‖cᵢ‖² − dᵢ² − mean.
    """
    xp = namespace(targets.anchors)
    squares = squared_input_distances(targets)
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


def squared_input_distances(targets: Targets) -> Array:  # (m, r)
    """Compute ‖x − z‖² for the x with φ(x) = t, from ⟨t, φ(z)⟩."""
    kernel: Any = targets.kernel  # an invertible one
    xp, products, energy = namespace(targets.coefs), targets.products, targets.energy
    if isinstance(kernel, Radial):
        # All φ(x) have unit norm, so the nearest to t is also the nearest to t/‖t‖.
        norm = xp.sqrt(xp.clip(energy, eps(targets.coefs) ** 2, None))
        cosines = xp.clip(products / norm[:, None], eps(targets.coefs), 1.0)
        return kernel.inverse(cosines)
    products, squared_norms = kernel.inverse(products), kernel.inverse(energy)
    squared_norms = xp.clip(squared_norms, 0, None)
    return squared_norms[:, None] - 2 * products + row_norms(targets.anchors)


# -------------------------------------------- descent, never away from the target


def by_fixed_point(targets: Targets, start: Array, settings: PreimageSettings) -> Array:
    """Iterate x ← Σ wᵢzᵢ/Σ wᵢ, wᵢ = aᵢκ'(‖x − zᵢ‖²), where that brings x nearer.

    If it does not (some aᵢ are negative), half of the step is tried, then a quarter.
    """
    xp, anchors = namespace(start), targets.anchors
    kernel: Any = targets.kernel  # radial
    points, best = start, targets.squared_distance(start)
    share = xp.ones_like(best)
    for _ in range(settings.max_iter):
        weights = targets.coefs * kernel.slope(kernel.pairs(points, anchors))
        total = xp.sum(weights, axis=1)
        usable = xp.abs(total) > eps(total) * xp.sum(xp.abs(weights), axis=1)
        means = (weights @ anchors) / xp.where(usable, total, 1.0)[:, None]
        trial = points + share[:, None] * (means - points)
        squared = targets.squared_distance(trial)
        is_better = usable & (squared < best - WORTH * targets.energy)
        points = xp.where(is_better[:, None], trial, points)
        best = xp.where(is_better, squared, best)
        share = xp.where(is_better, xp.clip(2 * share, 0, 1), share / 2)
        if bool(xp.all(share < SHORTEST)):
            break
    else:
        warn_unfinished(_unfinished("fixed-point", settings))
    return points


def by_gradient(targets: Targets, start: Array, settings: PreimageSettings) -> Array:
    """Descend along the gradient with a step length of its own for each point.

    A step that does not lower the distance is repeated with a quarter of its length;
    otherwise the next one has the length of Barzilai and Borwein, ⟨s, s⟩/⟨s, y⟩ for a
    step s that changed the gradient by y. No step is longer than the reach of the
    anchors.
    """
    xp, reach = namespace(start), targets.reach()
    points, best = start, targets.squared_distance(start)
    gradient = targets.gradient(points)
    length = 0.1 * reach / _norms(gradient)
    for _ in range(settings.max_iter):
        length = xp.minimum(length, reach / _norms(gradient))
        trial = clip_to_domain(targets.kernel, points - length[:, None] * gradient)
        squared, new_gradient = targets.squared_distance(trial), targets.gradient(trial)
        is_better = squared < best
        s, y = trial - points, new_gradient - gradient
        s_y = xp.vecdot(s, y)
        barzilai_borwein = row_norms(s) / xp.where(s_y > 0, s_y, 1.0)
        grown = xp.where(s_y > 0, barzilai_borwein, 2 * length)
        length = xp.where(is_better, grown, length / 4)
        points = xp.where(is_better[:, None], trial, points)
        gradient = xp.where(is_better[:, None], new_gradient, gradient)
        best = xp.where(is_better, squared, best)
        if not bool(xp.any(length * _norms(gradient) > STILL * reach)):
            break
    else:
        warn_unfinished(_unfinished("gradient", settings))
    return points


def _unfinished(method: str, settings: PreimageSettings) -> str:
    return (
        f"pre-images by method={method!r} still moved after max_iter="
        f"{settings.max_iter} iterations: raise max_iter"
    )


def _norms(rows: Array) -> Array:  # (m,)
    """Compute the lengths of rows, never 0."""
    squares = row_norms(rows)
    xp = namespace(squares)
    return xp.sqrt(xp.clip(squares, float(xp.finfo(squares.dtype).tiny), None))


# points to start from -> points
Method = Callable[[Targets, Array, PreimageSettings], Array]

#: name -> (whether it applies to a kernel, the method), in the order "auto" tries them
METHODS: dict[str, tuple[Callable[[Kernel], bool], Method]] = {
    "nearest": (lambda kernel: True, nearest),
    "ridge": (lambda kernel: True, by_ridge),
    "distance": (lambda kernel: kernel.invertible, by_distance),
    "fixed-point": (lambda kernel: isinstance(kernel, Radial), by_fixed_point),
    "gradient": (lambda kernel: kernel.differentiable, by_gradient),
}
