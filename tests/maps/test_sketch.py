"""The polynomial sketch is scikit-learn's, and unbiased."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from sklearn.kernel_approximation import PolynomialCountSketch

from kernlets import Polynomial, PolynomialSketchMap

KERNELS = [Polynomial(1), Polynomial(2), Polynomial(3, coef0=0.5, scale=1.7)]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("k", [1, 16, 25])
def test_features_are_scikit_learns(rng, kernel, k):
    X = rng.standard_normal((7, 5))
    ours = PolynomialSketchMap(kernel, k, random_state=0).fit(X)
    peer = PolynomialCountSketch(
        gamma=kernel.scale, degree=kernel.degree, coef0=kernel.coef0, n_components=k
    ).fit(X)
    peer.indexHash_, peer.bitHash_ = ours.places_, ours.signs_
    np.testing.assert_allclose(ours.transform(X), peer.transform(X), atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_products_are_unbiased(rng, kernel):
    X = rng.standard_normal((5, 4))
    maps = (PolynomialSketchMap(kernel, 8, random_state=s).fit(X) for s in range(2000))
    products = np.array([F @ F.T for F in (each.transform(X) for each in maps)])
    spread = products.std(axis=0) / sqrt(len(products))
    gap = np.abs(products.mean(axis=0) - kernel(X, X))
    assert (gap <= 5 * spread + 1e-12).all()


def test_other_kernels_are_refused(rng):
    with pytest.raises(ValueError, match=r"not polynomial.*FourierMap"):
        PolynomialSketchMap("rbf").fit(rng.standard_normal((5, 3)))
