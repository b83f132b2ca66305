"""Virtual samples of rows with missing entries.

φ(x) is represented over φ of the landmarks by the observed features o: a minimises
‖φ(x_o) − Σᵢ aᵢ φ(zᵢ_o)‖² + λ‖a‖², so a = (K(Z_o, Z_o) + λI)⁻¹ K(Z_o, x_o), and the
features are those of Σᵢ aᵢ φ(zᵢ), which is a·K(Z, Z)·P. With all features observed and
λ = 0 this is K(x, Z)·P.

Compared on digits (200 landmarks, 30, 50 and 70 % of the pixels missing; accuracy of
one dictionary per class): K(x_o, Z_o)·P has 82, 63 and 38 % with the kernel "poly:2"
and 97, 94 and 66 % with RBF; least squares with λ = 10⁻⁶ of the mean κ(z, z) 98, 77 and
68 %, with λ = 0.1 of it 98, 95 and 83 %; the error of the features falls likewise.
"""

from __future__ import annotations

from ..contracts import Array, Kernel
from ..data.masks import group_by_mask, split_mask, take_observed
from ..numerics.arrays import (
    as_like,
    diagonal,
    double,
    empty,
    index_like,
    namespace,
    to_numpy,
)

RIDGE = 0.1  # λ as a share of the mean κ(z_o, z_o)


def incomplete_features(
    kernel: Kernel,
    landmarks: Array,  # (c, p)
    projection: Array,  # (c, k)
    X: Array,  # (n, p), NaN in every row
) -> Array:  # (n, k)
    """Features of rows by least squares on the landmarks' observed parts.

    Rows with nothing observed get the features of the landmarks' mean in feature space.
    """
    rows, observed = split_mask(X)
    KP = kernel(landmarks) @ projection
    features = empty((X.shape[0], KP.shape[1]), like=KP)
    features[...] = namespace(KP).mean(KP, axis=0)
    for pattern in group_by_mask(to_numpy(observed)):
        if len(pattern.features):
            X_o = take_observed(rows, pattern)
            kernel_o = kernel.restricted(len(pattern.features) / X.shape[1])
            Z_o = landmarks[:, index_like(pattern.features, X)]
            pattern_features = as_like(_landmark_coefs(kernel_o, Z_o, X_o), KP) @ KP
            features[index_like(pattern.rows, X)] = pattern_features
    return features


def _landmark_coefs(kernel: Kernel, landmarks: Array, X: Array) -> Array:  # (n, c)
    """K(x, Z)(K(Z, Z) + λI)⁻¹ over the observed features."""
    xp = namespace(X)
    W = double(kernel(landmarks))
    mean_energy = float(xp.mean(diagonal(W))) or 1.0
    ridge = as_like(xp.eye(W.shape[0], dtype=W.dtype), W) * (RIDGE * mean_energy)
    return xp.linalg.solve(W + ridge, double(kernel(X, landmarks)).T).T
