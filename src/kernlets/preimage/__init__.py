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
from typing import Any

import numpy as np

from ..contracts import Array
from ..data.block_loop import map_blocks
from ..kernels import Kernel, Radial, resolve
from ..numerics.arrays import as_like, index_like, namespace, to_numpy
from ..numerics.convergence import warn_once_at_end
from ..numerics.scaling import quiet
from .closed import by_distance, by_ridge, has_distances, nearest, ridge_map
from .descent import by_fixed_point, by_gradient
from .targets import (
    WORTH,
    Preimages,
    PreimageSettings,
    Targets,
    as_targets,
    over_landmarks,
)

__all__ = ["METHODS", "Preimages", "over_landmarks", "preimages"]

# points to start from -> points
Method = Callable[[Targets, Array, PreimageSettings], Array]

#: name -> (whether it applies to a kernel, the method), in the order "auto" tries them
METHODS: dict[str, tuple[Callable[[Kernel], bool], Method]] = {
    "nearest": (lambda kernel: True, nearest),
    "ridge": (lambda kernel: True, by_ridge),
    "distance": (has_distances, by_distance),
    "fixed-point": (lambda kernel: isinstance(kernel, Radial), by_fixed_point),
    "gradient": (lambda kernel: kernel.differentiable, by_gradient),
}


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
    """Points whose images are near tⱼ = Σᵢ coefs[j, i] φ(anchorᵢ).

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
        return _join(map_blocks(solve, rows, row_bytes))


def _methods_to_try(method: str, kernel: Kernel) -> list[str]:
    """Names of the methods to try, in order."""
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


def _join(blocks: list[Preimages]) -> Preimages:
    concat = namespace(blocks[0].points).concat
    return Preimages(
        points=concat([block.points for block in blocks]),
        distance=concat([block.distance for block in blocks]),
        norm=concat([block.norm for block in blocks]),
        method=np.concatenate([block.method for block in blocks]),
    )
