"""Pictures with lost pixels filled in, and the parts that do it."""

from __future__ import annotations

import numpy as np
import pytest

from kernlets import options
from kernlets.images import ImageInpainter, inpaint, psnr
from kernlets.images.inpainting import (
    FILLED,
    TRUST,
    _expect_patches,
    fill_holes,
    interpolate,
)
from kernlets.images.patches import Grouping, Tile, similar_patches


@pytest.fixture(scope="module")
def picture():
    """Stripes, a disc and a slope, from 0 to 255."""
    y, x = np.mgrid[:48, :44]
    disc = (x - 26) ** 2 + (y - 18) ** 2 < 150
    stripes = 60 * np.sign(np.sin(x / 3.0)) * (y > 30)
    return np.clip(60 + x + 90 * disc + stripes, 0, 255).astype(np.float64)


@pytest.fixture(scope="module")
def lost(picture):
    return np.random.default_rng(0).random(picture.shape) < 0.5


def holed(picture, lost):
    return np.where(lost, np.nan, picture)


def test_holes_are_filled_better_than_by_interpolation(picture, lost):
    start = interpolate(picture, ~lost)
    found = inpaint(picture, lost)
    np.testing.assert_array_equal(found[~lost], picture[~lost])
    assert psnr(picture, found) > psnr(picture, start) + 3


def test_photograph_beside_interpolation():
    pytest.importorskip("PIL")
    from sklearn.datasets import load_sample_image

    photograph = load_sample_image("china.jpg")[150:246, 250:346].mean(axis=2)
    lost = np.random.default_rng(0).random(photograph.shape) < 0.8
    start = interpolate(photograph, ~lost)
    assert psnr(photograph, inpaint(photograph, lost)) > psnr(photograph, start) + 1


def test_what_is_lost_is_never_looked_at(picture, lost):
    found = inpaint(picture, lost, max_iter=2)
    for other in (np.nan, -1e9, 0.0):
        same = inpaint(np.where(lost, other, picture), lost, max_iter=2)
        np.testing.assert_allclose(same, found, atol=1e-3)
    np.testing.assert_array_equal(inpaint(holed(picture, lost), max_iter=2), found)


@pytest.mark.rounding
def test_threads_change_nothing(picture, lost):
    found = []
    for n in (1, 3):
        with options(n_threads=n):
            found.append(inpaint(picture, lost, max_iter=2))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_types_stay(picture, lost, dtype):
    unit = {"uint16": 200, "float32": 1 / 255}.get(dtype, 1)
    given = (picture * unit).astype(dtype)
    found = inpaint(given, lost, max_iter=2)
    assert found.dtype == dtype
    expected = inpaint(picture, lost, max_iter=2)
    assert psnr(expected, found.astype(float) / unit) > 40


def test_colours_and_masks_of_channels(picture, lost):
    colour = np.stack([picture, 255 - picture, picture / 2], axis=2)
    whole = inpaint(colour, lost, max_iter=2)
    assert psnr(colour, whole) > 25
    each = np.stack([lost, np.zeros_like(lost), np.zeros_like(lost)], axis=2)
    found = inpaint(colour, each, max_iter=2)
    np.testing.assert_array_equal(found[..., 1:], colour[..., 1:])
    np.testing.assert_allclose(found[..., 0], whole[..., 0], atol=1e-3)


def test_torch_agrees(picture, lost):
    torch = pytest.importorskip("torch")
    found = inpaint(torch.as_tensor(picture), torch.as_tensor(lost), max_iter=1)
    expected = inpaint(picture, lost, max_iter=1)
    assert abs(psnr(picture, found.numpy()) - psnr(picture, expected)) < 0.01


def test_nothing_lost_and_flat_pictures(picture):
    np.testing.assert_array_equal(inpaint(picture), picture)
    flat = np.full((20, 30), 7, dtype=np.uint8)
    hole = np.zeros(flat.shape, dtype=bool)
    hole[5:15, 5:15] = True
    np.testing.assert_array_equal(inpaint(flat, hole), flat)


def test_large_holes_stay_within_the_picture(picture):
    hole = np.zeros(picture.shape, dtype=bool)
    hole[10:35, 5:30] = True
    found = inpaint(picture, hole, max_iter=3)
    assert np.isfinite(found).all() and -60 < found.min() and found.max() < 315


@pytest.mark.parametrize(
    ("image", "mask", "message"),
    [
        (np.zeros((5, 40)), np.eye(5, 40), "lower patch_size to 5"),
        (np.zeros((20, 20)), np.zeros((20, 21)), "mask of the image's height"),
        (np.zeros((20, 20)), np.zeros((20, 20, 3)), "mask of the image's height"),
        (np.zeros((20, 20)), np.ones((20, 20)), "all pixels of the image are lost"),
        (np.full((20, 20), np.nan), None, "all pixels of the image are lost"),
        (np.full((20, 20), np.inf), np.eye(20), "infinite"),
        (np.zeros((20, 20), complex), np.eye(20), "integers or floats"),
    ],
)
def test_bad_input(image, mask, message):
    with pytest.raises(ValueError, match=message):
        inpaint(image, mask)


def test_bad_arguments(picture, lost):
    for wrong in ({"patch_size": 1}, {"max_iter": 0}, {"n_similar": 1.5}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            ImageInpainter(**wrong).transform(picture, lost)


def test_progress_goes_from_nothing_to_all(picture, lost):
    told: list[float] = []
    inpaint(picture, lost, max_iter=3, progress=told.append)
    assert told == sorted(told) and told[-1] == 1.0 and len(told) >= 3


def test_only_tiles_with_holes_are_worked_on(picture):
    hole = np.zeros(picture.shape, dtype=bool)
    hole[2, 2] = True
    channels = np.array(picture[None] / 255, dtype=np.float32)
    found = fill_holes(channels, hole, Grouping(7, 20, 10, 4), [0.02])
    np.testing.assert_array_equal(found[0][~hole], channels[0][~hole])
    assert abs(found[0, 2, 2] - channels[0, 2, 2]) < 0.05


def test_expected_patches_are_conditional_means(rng):
    """Against a loop over patches with the formula for each."""
    guess = rng.standard_normal((2, 30, 6))
    known = (rng.random((2, 30, 6)) < 0.5).astype(float)
    pixels = rng.standard_normal((2, 30, 6)) * known
    found, weights = _expect_patches(pixels, known, guess, 0.3)
    assert found.shape == (2, FILLED, 6) and weights.tolist() == [1.0, 1.0]
    for g in range(2):
        C = np.cov(guess[g].T, bias=True)
        m = guess[g].mean(axis=0)
        rest = ((pixels[g] - m) * known[g])[:FILLED].sum(axis=0)
        m = m + rest / (known[g, :FILLED].sum(axis=0) + TRUST)
        for j in range(FILLED):
            o = known[g, j] > 0
            gain = C[:, o] @ np.linalg.inv(C[np.ix_(o, o)] + 0.09 * np.eye(o.sum()))
            np.testing.assert_allclose(found[g, j], m + gain @ (pixels[g, j] - m)[o])


def test_similar_patches_against_a_loop(rng):
    """The reference itself comes first, also where all patches are equal."""
    image = rng.random((18, 17))
    tile = Tile(np.array([0, 5, 13]), np.array([2, 12]))
    grouping = Grouping(5, 6, reach=4)
    rows, cols = similar_patches(image, tile, grouping)
    n = 0
    for i in tile.rows:
        for j in tile.cols:
            around = [
                (a, b)
                for a in range(max(0, i - 4), min(13, i + 4) + 1)
                for b in range(max(0, j - 4), min(12, j + 4) + 1)
            ]
            own = image[i : i + 5, j : j + 5]
            far = {
                p: ((image[p[0] : p[0] + 5, p[1] : p[1] + 5] - own) ** 2).sum()
                for p in around
            }
            expected = sorted(far, key=far.get)[:6]
            assert (
                list(zip(rows[n].tolist(), cols[n].tolist(), strict=True)) == expected
            )
            n += 1
    flat = similar_patches(np.ones((18, 17)), tile, grouping)
    assert flat[0][:, 0].tolist() == np.repeat(tile.rows, 2).tolist()
    assert flat[1][:, 0].tolist() == np.tile(tile.cols, 3).tolist()


def test_interpolation_is_exact_where_pixels_are_known(picture, lost):
    found = interpolate(picture, ~lost)
    np.testing.assert_array_equal(found[~lost], picture[~lost])
    assert picture.min() <= found.min() and found.max() <= picture.max()
    one = np.zeros((9, 7), dtype=bool)
    one[3, 4] = True
    np.testing.assert_allclose(interpolate(np.full((9, 7), 5.0), one), 5.0)
