"""Pictures without their noise, and the parts that do it."""

from __future__ import annotations

import numpy as np
import pytest

from kernlets import OMP, ExplicitDictionary, options
from kernlets.coders import encode
from kernlets.images import ImageDenoiser, denoise, estimate_noise, psnr, ssim
from kernlets.images.denoising import cosine_atoms
from kernlets.images.patches import Grouping, filter_patches
from kernlets.images.picture import from_channels, to_channels
from kernlets.images.wiener import Filter, wiener_filter
from kernlets.numerics.pixels import random_patches

SIGMA = 20.0


@pytest.fixture(scope="module")
def picture():
    """Stripes, a disc and a slope, from 0 to 255."""
    y, x = np.mgrid[:72, :64]
    disc = (x - 40) ** 2 + (y - 30) ** 2 < 300
    stripes = 60 * np.sign(np.sin(x / 3.0)) * (y > 45)
    return np.clip(60 + x + 90 * disc + stripes, 0, 255).astype(np.float64)


@pytest.fixture(scope="module")
def noisy(picture):
    return picture + np.random.default_rng(0).normal(0, SIGMA, picture.shape)


@pytest.mark.parametrize(("quality", "gain"), [("fast", 6.0), ("best", 8.0)])
def test_noise_is_removed(picture, noisy, quality, gain):
    clean = denoise(noisy, SIGMA, quality=quality)
    assert clean.shape == picture.shape and clean.dtype == noisy.dtype
    assert psnr(picture, clean) > psnr(picture, noisy) + gain
    assert ssim(picture, clean) > ssim(picture, noisy)


@pytest.fixture(scope="module")
def photograph():
    """A part of a photograph that scikit-learn ships."""
    pytest.importorskip("PIL")
    from sklearn.datasets import load_sample_image

    return load_sample_image("flower.jpg")[150:278, 250:378].mean(axis=2)


def test_more_passes_improve_a_photograph(photograph):
    noisy = photograph + np.random.default_rng(0).normal(0, 25, photograph.shape)
    fast, best = (denoise(noisy, 25.0, quality=q) for q in ("fast", "best"))
    assert psnr(photograph, noisy) + 5 < psnr(photograph, fast)
    assert psnr(photograph, fast) + 0.05 < psnr(photograph, best)


@pytest.mark.rounding
def test_threads_change_nothing(noisy):
    found = []
    for n in (1, 2, 3):
        with options(n_threads=n):
            found.append(denoise(noisy, SIGMA))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_the_noise_is_estimated(photograph):
    rng = np.random.default_rng(1)
    for sigma in (10.0, 20.0, 60.0):
        found = estimate_noise(photograph + rng.normal(0, sigma, photograph.shape))
        assert 0.95 * sigma < found < 1.3 * sigma
    assert estimate_noise(photograph) < 6


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "int32"])
def test_types_and_units_stay(picture, noisy, dtype):
    unit = {"uint16": 200, "float32": 1 / 255}.get(dtype, 1)
    given = np.clip(noisy, 0, 255) * unit
    found = denoise(given.astype(dtype), SIGMA * unit, quality="fast")
    assert found.dtype == dtype
    expected = denoise(np.clip(noisy, 0, 255), SIGMA, quality="fast")
    assert psnr(expected, found.astype(float) / unit) > 40


def test_colours(picture):
    rng = np.random.default_rng(2)
    colour = np.stack([picture, 255 - picture, picture / 2], axis=2)
    given = colour + rng.normal(0, SIGMA, colour.shape)
    found = denoise(given, SIGMA)
    assert found.shape == colour.shape
    assert psnr(colour, found) > psnr(colour, given) + 8


def test_turned_channels_keep_white_noise_white(rng):
    planes = rng.standard_normal((9, 7, 3))
    np.testing.assert_allclose(from_channels(to_channels(planes)), planes, atol=1e-12)
    np.testing.assert_allclose((to_channels(planes) ** 2).sum(), (planes**2).sum())
    np.testing.assert_allclose(to_channels(planes)[0], planes.sum(2) / np.sqrt(3))


def test_a_dictionary_from_other_pictures(picture, noisy):
    model = ImageDenoiser(SIGMA, 64, max_iter=3, quality="fast", random_state=0)
    with pytest.raises(Exception, match="not fitted"):
        model.transform(noisy)
    model.fit([noisy[::-1].copy(), noisy.T.copy()])
    assert psnr(picture, model.transform(noisy)) > psnr(picture, noisy) + 5
    assert model.components_.shape == (64, 64)


def test_bundled_atoms(photograph, picture, noisy, rng):
    """They code photographs with fewer atoms than cosines do."""
    model = ImageDenoiser(SIGMA, atoms="bundled", quality="fast").fit(noisy)
    atoms = model.components_
    assert atoms.shape == (256, 64)
    np.testing.assert_allclose(atoms.mean(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose((atoms**2).sum(axis=1), 1, rtol=1e-5)
    rows = random_patches(photograph.astype(float), (8, 8), 500, rng)
    rows -= rows.mean(axis=1, keepdims=True)
    errors = [
        encode(ExplicitDictionary(each), OMP(4), rows).residual.sum()
        for each in (atoms, cosine_atoms(8, 256))
    ]
    assert errors[0] < 0.9 * errors[1]
    assert psnr(picture, model.transform(noisy)) > psnr(picture, noisy) + 5
    with pytest.raises(ValueError, match="patch_size=7 out"):
        denoise(noisy, SIGMA, atoms="bundled", patch_size=7)


def test_torch_agrees(picture, noisy):
    torch = pytest.importorskip("torch")
    found = denoise(torch.as_tensor(noisy), SIGMA)
    expected = denoise(noisy, SIGMA)
    assert found.dtype == torch.float64
    assert abs(psnr(picture, found.numpy()) - psnr(picture, expected)) < 0.1


def test_pictures_without_noise_or_contrast(picture):
    np.testing.assert_allclose(denoise(picture, 0.0), picture, atol=1e-3)
    flat = np.full((20, 30), 7, dtype=np.uint8)
    np.testing.assert_array_equal(denoise(flat), flat)
    np.testing.assert_array_equal(denoise(flat, 10.0), flat)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((5, 40)), "lower patch_size to 5"),
        (np.zeros(9), "one image at a time"),
        (np.zeros((3, 20, 200)), "the channels come last"),
        (np.zeros((20, 20), complex), "integers or floats"),
        (np.zeros((20, 20), bool), "integers or floats"),
        (np.full((20, 20), np.nan), "NaN or infinite"),
        (np.full((20, 20), np.inf), "NaN or infinite"),
    ],
)
def test_bad_pictures(image, message):
    with pytest.raises(ValueError, match=message):
        denoise(image, 1.0)


def test_bad_arguments(noisy):
    with pytest.raises(ValueError, match="sigma"):
        denoise(noisy, -1.0)
    with pytest.raises(ValueError, match="quality"):
        denoise(noisy, quality="good")
    with pytest.raises(ValueError, match="empty list"):
        ImageDenoiser().fit([])
    with pytest.raises(ValueError, match="one size"):
        psnr(noisy, noisy[1:])


def test_progress_goes_from_nothing_to_all(noisy):
    told: list[float] = []
    denoise(noisy, SIGMA, progress=told.append)
    assert told == sorted(told) and told[-1] == 1.0 and len(told) > 2


def test_patches_put_back_give_the_picture(picture):
    def same(rows):
        return rows, 1 + rows[:, 0]

    found = filter_patches(picture, 6, 3, same, lambda share: None)
    np.testing.assert_allclose(found, picture)
    rows = random_patches(picture, (6, 6), 10**9, np.random.default_rng(0))
    assert rows.shape == (67 * 59, 36)


@pytest.mark.parametrize("updates", [0, 2])
def test_wiener_filter_is_the_formula(rng, updates):
    """With one group of all patches, against a loop over the patches."""
    noisy, pilot = rng.standard_normal((2, 1, 9, 8))
    how = Filter(Grouping(3, 10**6, 20, 100), 0.1, 1.5, updates)
    found = wiener_filter(noisy, pilot, 0.7, how)
    guess = pilot + 0.1 * (noisy - pilot)
    places = [(i, j) for i in range(7) for j in range(6)]
    Y, X = (
        np.array([image[0, i : i + 3, j : j + 3].ravel() for i, j in places])
        for image in (noisy, guess)
    )
    far = np.mean((X.mean(axis=0) - Y.mean(axis=0)) ** 2)
    trust = min(1, 0.49 / len(places) / far)
    mean = (1 - trust) * Y.mean(axis=0) + trust * X.mean(axis=0)
    C = 1.5 * np.cov(X.T, bias=True)
    for _ in range(updates):
        gain = C @ np.linalg.inv(C + 0.49 * np.eye(9))
        Z = (Y - mean) @ gain.T
        C = Z.T @ Z / len(Y) + C - gain @ C
    gain = C @ np.linalg.inv(C + 0.49 * np.eye(9))
    total, count = np.zeros((9, 8)), np.zeros((9, 8))
    for (i, j), row in zip(places, mean + (Y - mean) @ gain.T, strict=True):
        total[i : i + 3, j : j + 3] += row.reshape(3, 3)
        count[i : i + 3, j : j + 3] += 1
    np.testing.assert_allclose(found[0], total / count, rtol=1e-7)


def test_cosine_atoms():
    atoms = cosine_atoms(8, 100)
    assert atoms.shape == (100, 64)
    np.testing.assert_allclose((atoms**2).sum(axis=1), 1)
    np.testing.assert_allclose(atoms.sum(axis=1), 0, atol=1e-12)
