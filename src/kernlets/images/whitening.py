"""`PatchWhitening`: patches of similar contrast whose pixels are uncorrelated."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..base.constraints import AT_LEAST_1, NOT_NEGATIVE
from ..contracts import Array
from ..data.check import check_rows
from ..data.missing import apply_by_completeness, column_means, split_mask
from ..data.rows import map_rows, sum_rows
from ..maps.base import FeatureMap
from ..maps.spectral import all_eigenpairs
from ..numerics.arrays import as_like, diagonal, double, eps, namespace
from ..numerics.scaling import check_range, least_energy
from ..schema import Declared, Floats, Number

RIDGE = 1e-3  # s² as a share of the mean variance of a pixel
SOLVED_NUMBERS = 2**21  # entries of the matrices that are factored at once


class PatchWhitening(FeatureMap):
    """Brightness, contrast and correlations of neighbouring pixels are removed.

    For a patch x with mean m(x) and variance v(x),

        x̂ = (x − m(x)) / √(v(x) + c v̄),    z = (x̂ − μ) V (Λ + r λ̄ I)^(-1/2),

    where v̄ is the mean variance of the training patches, μ and V Λ Vᵀ are mean and
    covariance of their x̂, and λ̄ is the mean of Λ. Columns of V of which Λ is only
    rounding error are left out. This is whitening by principal components; atoms and
    codes are those of ZCA whitening, which is a rotation of it.

    Parameters
    ----------
    contrast : float or None
        c: patches with less contrast stay fainter; None leaves the contrast as it is.
    regulariser : float or None
        r: the larger, the less do faint details count; None leaves the pixels
        correlated.
    n_components : int or None
        The most columns of V to keep, those of the largest eigenvalues.

    Attributes
    ----------
    mean_ : array (p,)
        μ.
    projection_ : array (p, k)
        V (Λ + r λ̄ I)^(-1/2).
    inverse_ : array (k, p)
        (Λ + r λ̄ I)^(1/2) Vᵀ, which turns atoms into patches.
    mean_variance_ : float
        v̄.
    patch_mean_, patch_covariance_ : arrays (p,) and (p, p)
        Those of the patches themselves.

    Notes
    -----
    Missing pixels m of a patch (NaN) are replaced by their conditional mean given the
    observed ones o, x_m = μ_m + C_mo (C_oo + s²I)⁻¹ (x_o − μ_o), with mean and
    covariance of the training patches. Those of a fit come from the pairs of pixels
    that were observed together.

    A. Coates, A. Ng and H. Lee, An analysis of single-layer networks in unsupervised
    feature learning, AISTATS 2011, section 3.1.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets.images import PatchWhitening
    >>> patches = np.random.default_rng(0).random((500, 9)).cumsum(axis=1)
    >>> Z = PatchWhitening(regulariser=0).fit_transform(patches)
    >>> bool(np.allclose(np.cov(Z.T, bias=True), np.eye(8)))
    True
    """

    _parameter_constraints = {
        "contrast": [NOT_NEGATIVE, None],
        "regulariser": [NOT_NEGATIVE, None],
        "n_components": [AT_LEAST_1, None],
    }
    _model_attribute = "projection_"
    _keeps_missing = True
    _declared: ClassVar[Declared] = {
        "mean_": Floats("p", like="projection_"),
        "projection_": Floats("p", "k"),
        "inverse_": Floats("k", "p", like="projection_"),
        "mean_variance_": Number(0),
        "patch_mean_": Floats("p", like="projection_"),
        "patch_covariance_": Floats("p", "p", like="projection_"),
    }

    def __init__(
        self,
        contrast: float | None = 0.3,
        regulariser: float | None = 1.0,
        *,
        n_components: int | None = None,
    ) -> None:
        self.contrast = contrast
        self.regulariser = regulariser
        self.n_components = n_components

    def _fit(self, head: Array, rows: Any) -> None:
        row_bytes = 32 * head.shape[1]
        patch_mean, patch_covariance = _observed_moments(rows, row_bytes)
        self.patch_mean_ = as_like(patch_mean, head)
        self.patch_covariance_ = as_like(patch_covariance, head)
        rows = map_rows(self._complete, rows, row_bytes)
        n, variance = sum_rows(_sum_variances, rows, row_bytes)
        self.mean_variance_ = float(variance) / float(n)
        if not self.mean_variance_ > 0:
            raise ValueError(
                f"no patch has any contrast: each of its {head.shape[1]} feature(s) is "
                "equal to the others. Pass images that are not constant, and patches "
                "of more than one pixel"
            )
        normalized = map_rows(self._normalized, rows, row_bytes)
        mu, cov = _observed_moments(normalized, row_bytes)
        xp = namespace(mu)
        self.mean_ = as_like(mu, head)
        if self.regulariser is None and self.n_components is None:
            self.projection_ = self.inverse_ = as_like(xp.eye(len(mu)), head)
            return
        pairs = all_eigenpairs(cov)
        is_real = pairs.values > 100 * eps(head) * pairs.values[0]
        k = min(int(is_real.sum()), self.n_components or len(mu))
        values, V = pairs.values[:k], pairs.vectors[:, :k]
        scale = xp.ones_like(values)
        if self.regulariser is not None:
            scale = xp.sqrt(values + self.regulariser * xp.mean(pairs.values))
        self.projection_ = as_like(V / scale, head)
        self.inverse_ = as_like((V * scale).T, head)

    def _features(self, X: Array) -> Array:  # (n, p) -> (n, k)
        return (self._normalized(self._complete(X)) - self.mean_) @ self.projection_

    def _complete(self, X: Array) -> Array:  # (n, p)
        """Replace missing pixels by their conditional means."""
        return apply_by_completeness(lambda rows: rows, self._expect, X)

    def _expect(self, X: Array) -> Array:  # (n, p), NaN in every row
        xp, (rows, observed) = namespace(X), split_mask(X)
        mean, C = double(self.patch_mean_), double(self.patch_covariance_)
        p, filled = X.shape[1], xp.zeros_like(X)
        noise = max(RIDGE * float(xp.mean(diagonal(C))), least_energy(C))
        n_rows = max(1, SOLVED_NUMBERS // p**2)
        for first in range(0, X.shape[0], n_rows):
            block = slice(first, first + n_rows)
            o = xp.astype(observed[block], C.dtype)
            # equations of missing pixels are w = 0, so that all systems have one size
            gram = o[:, :, None] * C * o[:, None, :]
            gram = gram + as_like(noise * np.eye(p), C)
            differences = o * (double(rows[block]) - mean)
            weights = xp.linalg.solve(gram, differences[..., None])[..., 0]
            filled[block] = as_like(mean + weights @ C, X)
        return xp.where(observed, rows, filled)

    def _normalized(self, X: Array) -> Array:  # (n, p)
        """Compute x̂."""
        xp = namespace(X)
        X = X - xp.mean(X, axis=1, keepdims=True)
        if self.contrast is None:
            return X
        variances = xp.mean(X * X, axis=1, keepdims=True)
        least = max(self.contrast, eps(X)) * self.mean_variance_
        return X / xp.sqrt(variances + as_like(least, X))

    def inverse_transform(self, Z: Array) -> Array:  # (n, k) -> (n, p)
        """Return patches, each without its mean and of unit contrast."""
        return map_rows(lambda rows: rows @ self.inverse_ + self.mean_, Z, 64)

    def _check_rows(self, X: Any, reset: bool = False) -> Any:
        if not reset:
            return super()._check_rows(X)
        rows = check_rows(self, X, reset=True, containers="memory", allow_nan=True)
        check_range(split_mask(rows).rows)
        return rows

    @property
    def _row_bytes(self) -> int:
        return 32 * sum(self.projection_.shape)

    @property
    def _n_features_out(self) -> int:
        return self.projection_.shape[1]


def _sum_variances(X: Array) -> np.ndarray:
    """Return the number of patches and the sum of their variances."""
    xp = namespace(X)
    X = double(X - xp.mean(X, axis=1, keepdims=True))
    return np.array([X.shape[0], float(xp.sum(X * X)) / X.shape[1]])


def _observed_moments(X: Array, row_bytes: int) -> tuple[Array, Array]:
    """Return mean and covariance in float64 from the entries that are not missing."""
    mean = column_means(X)
    xp = namespace(mean)

    def products(block: Array) -> Array:  # (2, p, p)
        rows, observed = split_mask(double(block) - mean)
        o = xp.astype(observed, mean.dtype)
        return xp.stack([rows.T @ rows, o.T @ o])

    total, counts = sum_rows(products, X, row_bytes)
    pairs = all_eigenpairs(total / xp.clip(counts, 1, None))
    values = xp.clip(pairs.values, 0, None)  # of other pairs for each entry
    return mean, (pairs.vectors * values) @ pairs.vectors.T
