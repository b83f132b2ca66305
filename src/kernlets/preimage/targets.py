"""Inputs and outputs of pre-image methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..contracts import Array
from ..data.rows import map_rows
from ..data.sparse_rows import as_dense
from ..kernels import Kernel, Precomputed
from ..numerics.arrays import as_float, as_like, is_array, namespace
from ..numerics.scaling import quiet, typical_length
from ..schema import Declared, Floats, Names

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
        """‖φ(xⱼ) − tⱼ‖², at least 0."""
        xp = namespace(self.coefs)
        inner = xp.vecdot(self.coefs, self.kernel(X, self.anchors))
        return xp.clip(self.kernel.diag(X) - 2 * inner + self.energy, 0, None)

    def gradient(self, X: Array) -> Array:  # (m, p)
        """∂‖φ(xⱼ) − tⱼ‖²/∂xⱼ; the first part is the gradient of κ(x, x)."""
        eye = as_like(np.eye(X.shape[0]), X)
        self_gradient = self.kernel.pull(X, X, eye)
        return 2 * (self_gradient - self.kernel.pull(X, self.anchors, self.coefs))

    def reach(self) -> float:
        """Root mean square distance of the anchors from their centre."""
        xp = namespace(self.anchors)
        return typical_length(self.anchors - xp.mean(self.anchors, axis=0))


@dataclass(frozen=True)
class PreimageSettings:
    """Options of the methods, and the map that "ridge" has learned."""

    n_neighbors: int
    max_iter: int
    ridge_map: Array | None  # (r, p)


def as_targets(kernel: Kernel, anchors: Any, coefs: Any) -> Targets:
    anchors = as_dense(anchors)
    if isinstance(kernel, Precomputed) or not is_array(anchors) or anchors.ndim != 2:
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


def over_landmarks(feature_map: Any, F: Array) -> Array:  # (n, k) -> (n, c)
    """Coefficients over φ(landmarks) of the elements that features F represent.

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


def clip_to_domain(kernel: Kernel, points: Array) -> Array:
    """Clip negative entries of points if the kernel is not defined for them."""
    if getattr(kernel, "non_negative", False):
        return namespace(points).clip(points, 0, None)
    return points
