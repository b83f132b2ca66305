"""Damaged images: which are found, and how well they are restored."""

from __future__ import annotations

import numpy as np
import pytest

from kernlets import datasets
from kernlets.datasets import add_noise, drop_pixels
from kernlets.images import ImageRestorer


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits")


@pytest.fixture(scope="module")
def restorer(digits):
    return ImageRestorer(30).fit(digits.X_train)


def test_missing_pixels_are_conditional_means(restorer, digits):
    x = digits.X_test[0].astype(float)
    m = np.arange(64) % 3 == 0
    V = restorer.components_.T.astype(float)
    C = V * restorer.variances_ @ V.T + restorer.noise_variance_ * np.eye(64)
    mean = restorer.mean_
    weights = np.linalg.solve(C[np.ix_(~m, ~m)], x[~m] - mean[~m])
    expected = np.where(m, mean + C[:, ~m] @ weights, x)
    found = restorer.transform(np.where(m, np.nan, x)[None])
    np.testing.assert_allclose(found[0], expected, atol=2e-5)


def test_undamaged_images_stay_as_they_are(restorer, digits):
    X = digits.X_test
    is_same = (restorer.transform(X) == X).all(axis=1)
    assert is_same.mean() > 0.98


@pytest.mark.parametrize("kind", ["noise", "lost", "missing"])
def test_damage_is_found_and_made_good(restorer, digits, kind):
    X = digits.X_test[:300]
    if kind == "noise":
        damaged = add_noise(X, float(digits.X_train.std()), 1)
    else:
        damaged = drop_pixels(X, 0.5, 1, 0.0 if kind == "lost" else np.nan)
    restored = restorer.transform(damaged)
    assert (restored != damaged).any(axis=1).mean() > 0.9
    filled = np.where(np.isnan(damaged), restorer.mean_, damaged)
    error, before = ((each - X).std() for each in (restored, filled))
    assert error < 0.9 * before


@pytest.mark.parametrize("n", [40, 200])
def test_components_are_those_of_the_covariance(rng, n):
    """From the covariance of pixels, or of fewer images from their products."""
    X = rng.standard_normal((n, 100)) @ np.diag(np.linspace(2, 0.1, 100))
    model = ImageRestorer(5).fit(X)
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    np.testing.assert_allclose(model.variances_, values[:-6:-1])
    cosines = np.abs(np.sum(model.components_.T * vectors[:, :-6:-1], axis=0))
    np.testing.assert_allclose(cosines, 1)
    assert model.noise_variance_ == pytest.approx(values[:-5].mean())
