"""`ImageRestorer`: damaged images, restored by what undamaged ones have in common."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..base.constraints import AT_LEAST_1
from ..contracts import Array
from ..data.missing import column_means
from ..data.rows import n_rows_in_memory, take_rows
from ..maps.base import FeatureMap
from ..maps.spectral import all_eigenpairs
from ..numerics.arrays import as_like, double, eps, namespace, to_numpy
from ..numerics.scaling import check_range, least_energy
from ..schema import Declared, Floats, Number

MAX_IMAGES = 4000  # that moments are computed from
N_COMPONENTS = 128
MAX_ROUNDS = 8  # of the search for pixels that were set to zero
SUSPECT = 2.0  # variance of the residual, relative to the largest of the training
LOST = 2.0  # expected pixel, in deviations, above which a zero is doubtful
MANY, FEW = 1.2, 0.05  # more doubtful zeros than in the training: factor and share


class ImageRestorer(FeatureMap):
    """Missing, lost and noisy pixels are replaced by their expectation.

    Images are samples of a normal distribution with mean μ and covariance
    V Λ Vᵀ + s² I, where V has few columns: probabilistic principal components. Given
    the observed pixels o,

        z = (V_oᵀ V_o + s² Λ⁻¹)⁻¹ V_oᵀ (x_o − μ_o),    E[x] = μ + V z.

    Missing pixels (NaN) become their expectation. An image in which many more zeros
    than in all training images stand where 2 s or more is expected has lost pixels:
    these zeros become missing. An image whose residual ‖x_o − E[x]_o‖² is much larger
    than that of all training images is noisy: its mean residual takes the place of s²,
    and all pixels become their expectation. Other images do not change. So damage need
    not be announced, but objects that the training images never show are taken for
    damage, too. It suits images that are aligned, such as digits and faces.

    Parameters
    ----------
    n_components : int, optional
        Number of columns of V. Default: 128, at most half of the pixels and of the
        images.

    Attributes
    ----------
    mean_ : array (p,)
        μ.
    components_ : array (k, p)
        Vᵀ.
    variances_ : array (k,)
        Λ.
    noise_variance_ : float
        s², the mean of the other variances.
    largest_residual_ : float
        The largest mean squared residual of a training image.
    largest_zero_ratio_ : float
        The largest number of zeros where 2 s is expected, relative to the number of
        positive pixels, of a training image.

    Notes
    -----
    M. Tipping and C. Bishop, Probabilistic principal component analysis, JRSS B 1999.
    Missing pixels of training images are replaced by means of the others.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import datasets
    >>> from kernlets.images import ImageRestorer
    >>> digits = datasets.load("digits")
    >>> restorer = ImageRestorer().fit(digits.X_train)
    >>> lost = np.random.default_rng(0).random(digits.X_test.shape) < 0.5
    >>> restored = restorer.transform(np.where(lost, np.nan, digits.X_test))
    >>> error = (restored - digits.X_test)[lost].std()
    >>> bool(error < 0.75 * (restorer.mean_ - digits.X_test)[lost].std())
    True
    """

    _keeps_missing = True
    _parameter_constraints = {"n_components": [AT_LEAST_1, None]}
    _model_attribute = "components_"
    _declared: ClassVar[Declared] = {
        "mean_": Floats("p", like="components_"),
        "components_": Floats("k", "p"),
        "variances_": Floats("k", like="components_"),
        "noise_variance_": Number(0),
        "largest_residual_": Number(0),
        "largest_zero_ratio_": Number(0),
    }

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def _fit(self, head: Array, rows: Any) -> None:
        """Find the principal components of at most 4000 evenly spaced images."""
        n = max(1, min(rows.shape[0], MAX_IMAGES, n_rows_in_memory(rows, 8)))
        numbers = np.unique(np.linspace(0, rows.shape[0] - 1, n).astype(np.intp))
        images = double(take_rows(rows, numbers))
        xp, (n, p) = namespace(images), images.shape
        mean = column_means(images)
        X = xp.where(xp.isnan(images), mean, images) - mean
        check_range(X)
        most = max(1, min(n, p) // 2)
        k = min(self.n_components or N_COMPONENTS, most)
        if p <= n:
            pairs = all_eigenpairs(X.T @ X / n)
            V = pairs.vectors[:, :k]
        else:  # the same from the products of images
            pairs = all_eigenpairs(X @ X.T / n)
            lengths = xp.sqrt(xp.clip(n * pairs.values[:k], least_energy(X), None))
            V = X.T @ (pairs.vectors[:, :k] / lengths)
        total = float(xp.sum(X * X)) / n
        values = xp.clip(pairs.values[:k], 0, None)
        rest = max(total - float(xp.sum(values)), 0.0) / max(1, p - k)
        floor = max(eps(head) * total / p, least_energy(head))
        self.noise_variance_ = max(rest, floor)
        expected = (X @ V) @ V.T
        squares = to_numpy(xp.mean((X - expected) ** 2, axis=1))
        self.largest_residual_ = max(float(squares.max()), floor)
        ratios = self._zero_ratios(to_numpy(images), to_numpy(expected + mean))
        self.largest_zero_ratio_ = float(ratios.max())
        self.mean_, self.components_ = as_like(mean, head), as_like(V.T, head)
        self.variances_ = as_like(xp.clip(values, floor, None), head)

    def _features(self, X: Array) -> Array:  # (n, p)
        restored = [self._restore(to_numpy(double(X[i]))) for i in range(X.shape[0])]
        return as_like(np.stack(restored), X) if restored else X

    def _restore(self, x: np.ndarray) -> np.ndarray:  # (p,)
        observed = ~np.isnan(x)
        expected, residual = self._expect(x, observed, self.noise_variance_)
        ratio = self._zero_ratios(x[None], expected[None])[0]
        if ratio > MANY * self.largest_zero_ratio_ + FEW:
            observed, expected, residual = self._without_lost(x, expected)
        if residual > SUSPECT * self.largest_residual_:
            expected, _ = self._expect(x, observed, residual)
            return expected
        return np.where(observed, x, expected)

    def _expect(
        self, x: np.ndarray, observed: np.ndarray, noise: float
    ) -> tuple[np.ndarray, float]:
        """Return E[x], and the mean squared residual of the observed pixels."""
        mean, Vt, variances = (
            to_numpy(double(part))
            for part in (self.mean_, self.components_, self.variances_)
        )
        differences = (x - mean)[observed]
        V_o = Vt[:, observed]
        gram = V_o @ V_o.T if not observed.all() else np.eye(len(Vt))
        gram[np.diag_indices_from(gram)] += noise / variances
        expected = mean + np.linalg.solve(gram, V_o @ differences) @ Vt
        residuals = (x - expected)[observed]
        return expected, float(residuals @ residuals) / max(1, len(residuals))

    def _without_lost(
        self, x: np.ndarray, expected: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Take zeros for missing where a positive value is expected, in turns."""
        observed = ~np.isnan(x)
        for _ in range(MAX_ROUNDS):
            others = ~np.isnan(x) & ~self._are_doubtful(x, expected)
            expected, residual = self._expect(x, others, self.noise_variance_)
            if np.array_equal(others, observed):
                break
            observed = others
        return observed, expected, residual

    def _zero_ratios(self, X: np.ndarray, expected: np.ndarray) -> np.ndarray:  # (n,)
        """Return the number of doubtful zeros relative to that of positive pixels."""
        doubtful = self._are_doubtful(X, expected).sum(axis=1)
        return doubtful / np.maximum(1, (X > 0).sum(axis=1))

    def _are_doubtful(self, X: np.ndarray, expected: np.ndarray) -> np.ndarray:
        return (X == 0) & (expected > LOST * self.noise_variance_**0.5)

    @property
    def _row_bytes(self) -> int:
        return 16 * self.components_.shape[1]

    @property
    def _n_features_out(self) -> int:
        return self.n_features_in_
