"""Patches of images as the IKA paper uses them."""

from __future__ import annotations

import numpy as np
import pytest

from kernlets.datasets import distance_percentile, whitened_patches
from kernlets.datasets.preparation import normalize_contrast, random_patches, whiten


@pytest.fixture
def images(rng) -> np.ndarray:
    return 255 * rng.random((4, 9, 10))


def test_contrast_of_each_image(images):
    for raw, image in zip(images, normalize_contrast(images), strict=True):
        np.testing.assert_allclose(image, (raw - raw.mean()) / (raw.var() + 10) ** 0.5)


def test_patches_are_parts_of_the_images(images):
    found = random_patches(images, 500, 3, random_state=0)
    known = {
        image[i : i + 3, j : j + 3].tobytes()
        for image in images
        for i in range(7)
        for j in range(8)
    }
    assert {row.tobytes() for row in found} <= known
    assert len({row.tobytes() for row in found}) > 0.8 * len(known)


def test_whitening(rng):
    X = rng.standard_normal((500, 4)) @ rng.standard_normal((4, 4)) + 3.0
    np.testing.assert_allclose(np.cov(whiten(X).T, bias=True), np.eye(4), atol=1e-10)


def test_whitening_without_variance(rng):
    X = rng.standard_normal((50, 3))
    X[:, 2] = X[:, 0] + X[:, 1]
    found = whiten(X)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.linalg.norm(found, axis=0)[0], 0, atol=1e-10)


def test_prepared_patches(images):
    found = whitened_patches(images, 200, size=5, random_state=0)
    assert found.shape == (200, 25) and found.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
    again = whitened_patches(images, 200, size=5, random_state=0)
    np.testing.assert_array_equal(found, again)


def test_distance_percentile(rng):
    X = rng.standard_normal((300, 3))
    every = ((X[:, None] - X) ** 2).sum(axis=2)
    expected = np.percentile(every, 10)
    assert distance_percentile(X, 10, random_state=0) == pytest.approx(
        expected, rel=0.05
    )


def test_patches_larger_than_the_images_are_refused(images):
    with pytest.raises(ValueError, match=r"size=10.*1 to 9"):
        random_patches(images, 5, 10)


def test_patches_in_colour_are_pieces_of_the_images(rng):
    images = rng.integers(256, size=(3, 8, 9, 3)).astype(float)
    found = random_patches(images, 40, 4, random_state=0)
    assert found.shape == (40, 48)
    grey = random_patches(images[..., 1], 40, 4, random_state=0)  # the same places
    middle = found.reshape(40, 16, 3)[..., 1]
    np.testing.assert_array_equal(middle, grey)
    for raw, image in zip(images, normalize_contrast(images), strict=True):
        scale = np.sqrt(raw.var() + 10)  # over all colours together
        np.testing.assert_allclose(image, (raw - raw.mean()) / scale)
    with pytest.raises(ValueError, match=r"images of \(8, 9\) pixels"):
        random_patches(images, 5, 9)


def test_prepared_patches_in_colour(rng):
    images = rng.integers(256, size=(3, 9, 10, 3))
    found = whitened_patches(images, 400, size=3, random_state=0)
    assert found.shape == (400, 27)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)


def test_rows_are_refused_where_images_are_needed(rng):
    with pytest.raises(ValueError, match=r"images have the shape \(5, 64\): pass"):
        whitened_patches(rng.random((5, 64)))
