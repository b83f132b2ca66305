"""Features of images from codes of their patches, beside naive loops."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline

from kernlets import (
    KSVD,
    OMP,
    IKAMap,
    NystroemMap,
    PatchDictionaryMap,
    Threshold,
    datasets,
    load,
    options,
    save,
)
from kernlets.coders import encode, resolve_coder
from kernlets.images import PatchWhitening
from kernlets.images.patch_map import image_shape
from kernlets.images.pooling import GridPool, cell_slices, cell_weights


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits")


@pytest.fixture(scope="module")
def images(digits):
    return digits.X_train.reshape(-1, 8, 8).astype(np.float64)


SMALL = {"learner": KSVD(12, coder=OMP(1), max_iter=2), "random_state": 0}


def whitened_patches(model, image):
    """Patches of a grey image, row by row, whitened by the equations."""
    size, whitening = model.patch_size, model.whitening_
    patches = []
    for i in range(image.shape[0] - size + 1):
        for j in range(image.shape[1] - size + 1):
            x = image[i : i + size, j : j + size].ravel()
            contrast = x.var() + whitening.contrast * whitening.mean_variance_
            patches.append((x - x.mean()) / np.sqrt(contrast))
    return (np.array(patches) - whitening.mean_) @ whitening.projection_


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_features_are_those_of_a_naive_loop(images, pooling):
    model = PatchDictionaryMap(3, grid=2, pooling=pooling, **SMALL).fit(images[:200])
    corr = whitened_patches(model, images[0]) @ model.patch_learner_.components_.T
    codes = np.hstack([np.maximum(corr - 0.5, 0), np.maximum(-corr - 0.5, 0)])
    cells = codes.reshape(2, 3, 2, 3, -1)  # 6 x 6 patches in 2 x 2 cells
    expected = getattr(cells, pooling)(axis=(1, 3)).ravel()
    np.testing.assert_allclose(model.transform(images[:1])[0], expected, atol=1e-10)


@pytest.mark.parametrize("coder", [OMP(2), "lasso:0.3", Threshold(0.4, "hard")])
def test_codes_of_any_coder_are_split_by_sign(images, coder):
    model = PatchDictionaryMap(3, coder=coder, grid=1, pooling="mean", **SMALL)
    model.fit(images[:200])
    Z = whitened_patches(model, images[3])
    codes = encode(model.patch_learner_.dictionary_, resolve_coder(coder), Z).toarray()
    expected = np.hstack([np.maximum(codes, 0), np.maximum(-codes, 0)]).mean(axis=0)
    np.testing.assert_allclose(model.transform(images[3:4])[0], expected, atol=1e-8)


def test_triangle_codes(images):
    model = PatchDictionaryMap(3, coder="triangle", grid=1, pooling="mean", **SMALL)
    model.fit(images[:200])
    Z, atoms = whitened_patches(model, images[5]), model.patch_learner_.components_
    distances = np.linalg.norm(Z[:, None] - atoms, axis=2)
    expected = np.maximum(distances.mean(axis=1, keepdims=True) - distances, 0)
    found = model.transform(images[5:6])[0]
    np.testing.assert_allclose(found, expected.mean(axis=0), atol=1e-8)


@pytest.mark.parametrize("learner", [NystroemMap, IKAMap])
def test_features_of_a_kernel_map_are_pooled(images, learner):
    learner = learner(n_landmarks=10)
    model = PatchDictionaryMap(3, learner, grid=1, pooling="mean", random_state=0)
    model.fit(images[:100])
    expected = model.patch_learner_.transform(whitened_patches(model, images[0]))
    found = model.transform(images[:1])[0]
    np.testing.assert_allclose(found, expected.mean(axis=0), atol=1e-8)


def test_pyramids_have_the_features_of_their_levels(images):
    features = [
        PatchDictionaryMap(3, grid=grid, **SMALL).fit(images[:99]).transform(images[:5])
        for grid in (1, 3, (1, 3))
    ]
    np.testing.assert_array_equal(np.hstack(features[:2]), features[2])


@pytest.mark.parametrize("pooling", ["gaussian", "mean", "max"])
def test_bands_pool_as_the_whole_image(rng, pooling):
    codes = rng.random((11, 7, 4))
    whole, bands = (GridPool((11, 7), 3, pooling) for _ in range(2))
    whole.add(0, codes)
    for first in range(0, 11, 2):
        bands.add(first, codes[first : first + 2])
    np.testing.assert_allclose(bands.pooled, whole.pooled, atol=1e-12)


@pytest.mark.parametrize("n", range(1, 12))
def test_cells_cover_all_positions_and_none_is_empty(n):
    for cells in range(1, 6):
        slices = cell_slices(n, cells)
        covered = {i for ends in slices for i in range(n)[ends]}
        assert covered == set(range(n)) and all(len(range(n)[s]) for s in slices)
        for pooling in ("gaussian", "mean"):
            weights = cell_weights(n, cells, pooling)
            np.testing.assert_allclose(weights.sum(axis=1), 1)


def test_a_large_image_is_coded_in_bands(rng):
    image = rng.random((1, 70, 60))
    model = PatchDictionaryMap(5, grid=2, pooling="mean", **SMALL).fit(image)
    corr = whitened_patches(model, image[0]) @ model.patch_learner_.components_.T
    codes = np.hstack([np.maximum(corr - 0.5, 0), np.maximum(-corr - 0.5, 0)])
    expected = codes.reshape(2, 33, 2, 28, -1).mean(axis=(1, 3)).ravel()
    np.testing.assert_allclose(model.transform(image)[0], expected, atol=1e-10)


# ------------------------------------------------------------------------- whitening


def test_whitened_patches_are_uncorrelated(rng):
    patches = rng.random((3000, 9)) @ rng.random((9, 9))
    Z = PatchWhitening(regulariser=0.0).fit_transform(patches)
    np.testing.assert_allclose(np.cov(Z.T), np.eye(Z.shape[1]), atol=1e-3)


def test_brightness_and_contrast_do_not_count(images):
    model = PatchDictionaryMap(4, whitening=PatchWhitening(contrast=1e-9), **SMALL).fit(
        images[:200]
    )
    brighter = model.transform(3 * images[:5] + 7)
    np.testing.assert_allclose(brighter, model.transform(images[:5]), atol=1e-4)


def test_atoms_are_patches_that_whitening_turns_into_atoms(images):
    model = PatchDictionaryMap(4, whitening=PatchWhitening(None), **SMALL)
    model.fit(images[:200])
    found = (model.components_ - model.whitening_.mean_) @ model.whitening_.projection_
    np.testing.assert_allclose(found, model.patch_learner_.components_, atol=1e-8)


def test_fewer_components_are_the_leading_ones(rng):
    patches = rng.random((500, 9)) @ rng.random((9, 9))
    every = PatchWhitening().fit(patches)
    few = PatchWhitening(n_components=3).fit(patches)
    np.testing.assert_allclose(few.projection_, every.projection_[:, :3])


def test_missing_pixels_are_conditional_means(rng):
    patches = rng.random((2000, 6)) @ rng.random((6, 6))
    model = PatchWhitening().fit(patches)
    x = patches[0].copy()
    x[[1, 4]] = np.nan
    m, o = [1, 4], [0, 2, 3, 5]
    mean, C = patches.mean(axis=0), np.cov(patches.T, bias=True)
    ridge = 1e-3 * np.trace(C) / 6 * np.eye(4)
    weights = np.linalg.solve(C[np.ix_(o, o)] + ridge, x[o] - mean[o])
    x[m] = mean[m] + C[np.ix_(m, o)] @ weights
    holed = np.where(np.isin(np.arange(6), m), np.nan, patches[:1])
    np.testing.assert_allclose(model.transform(holed), model.transform(x[None]))


def test_atoms_are_learned_where_half_of_the_pixels_are_missing(digits, rng):
    X, X_test = digits.X_train, digits.X_test
    holes = rng.random(X.shape) < 0.5, rng.random(X_test.shape) < 0.5
    holed, holed_test = (
        np.where(h, np.nan, each) for h, each in zip(holes, (X, X_test), strict=True)
    )
    means = np.where(holes[0], X.mean(), X), np.where(holes[1], X.mean(), X_test)
    scores = []
    for train, test in ((holed, holed_test), means):
        model = make_pipeline(
            PatchDictionaryMap(4, **SMALL), RidgeClassifierCV(np.logspace(-2, 2, 5))
        )
        scores.append(model.fit(train, digits.y_train).score(test, digits.y_test))
    assert scores[0] > scores[1] + 0.05


def test_a_row_without_gaps_is_not_changed_by_others_with_gaps(images, rng):
    model = PatchDictionaryMap(4, **SMALL).fit(images[:200])
    holed = images[:6].copy()
    holed[1::2, 2:5, 1:4] = np.nan
    features = model.transform(holed)
    np.testing.assert_array_equal(features[::2], model.transform(images[:6])[::2])
    assert np.isfinite(features).all()


# ---------------------------------------------------------------------------- images


def test_images_and_their_rows_are_the_same(images):
    rows = images.reshape(len(images), -1)
    first = PatchDictionaryMap(4, **SMALL).fit(images[:100])
    second = PatchDictionaryMap(4, **SMALL).fit(rows[:100])
    expected = first.transform(images[:9])
    np.testing.assert_array_equal(second.transform(rows[:9]), expected)
    np.testing.assert_array_equal(first.transform(images[:9, :, :, None]), expected)


def test_channels_are_parts_of_a_patch(rng):
    colour = rng.random((30, 9, 8, 3))
    model = PatchDictionaryMap(4, **SMALL).fit(colour)
    assert model.image_shape_ == (9, 8, 3) and model.components_.shape == (12, 48)
    flat = PatchDictionaryMap(4, image_shape=(9, -1, 3), **SMALL)
    flat.fit(colour.reshape(30, -1))
    found = flat.transform(colour.reshape(30, -1)[:4])
    np.testing.assert_array_equal(found, model.transform(colour[:4]))
    patch = np.moveaxis(model.components_[0].reshape(4, 4, 3), 2, 0).ravel()
    z = (patch - model.whitening_.mean_) @ model.whitening_.projection_
    np.testing.assert_allclose(z, model.patch_learner_.components_[0], atol=1e-8)


def test_bytes_are_computed_in_float32(images):
    bytes_ = (images * 10).astype(np.uint8)
    found = PatchDictionaryMap(4, **SMALL).fit(bytes_[:50]).transform(bytes_[:3])
    same = PatchDictionaryMap(4, **SMALL).fit(bytes_[:50].astype("f4"))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, same.transform(bytes_[:3].astype("f4")))


def test_a_second_map_reads_the_features_of_the_first(images):
    first = PatchDictionaryMap(3, grid=4, **SMALL)
    second = PatchDictionaryMap(2, grid=2, image_shape=(4, 4, -1), **SMALL)
    features = make_pipeline(first, second).fit_transform(images[:60])
    assert features.shape == (60, 2 * 2 * 24)
    maps = first.fit(images[:60]).transform(images[:60]).reshape(60, 4, 4, 24)
    alone = PatchDictionaryMap(2, grid=2, **SMALL).fit(maps).transform(maps)
    np.testing.assert_array_equal(features, alone)


def test_one_line_of_pixels_is_an_image(rng):
    X = rng.random((40, 30)).cumsum(axis=1)
    model = PatchDictionaryMap(6, grid=1, **SMALL).fit(X)
    assert model.image_shape_ == (1, 30, 1) and model.components_.shape == (12, 6)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [(None, (8, 8, 1)), ((4, -1), (4, 16, 1)), ([2, 8, 4], (2, 8, 4))],
)
def test_shapes_of_rows(shape, expected):
    assert image_shape(shape, 64) == expected


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"image_shape": (7, 8)}, "does not fit rows of 64 pixels"),
        ({"image_shape": (-1, -1)}, "does not fit"),
        ({"patch_size": (2, 2, 2)}, "a height and a width"),
        ({"patch_size": (0, 2)}, "above 0"),
        ({"grid": ()}, "above 0"),
        ({"coder": "nothing"}, "nothing"),
    ],
)
def test_settings_that_mean_nothing_are_refused(images, params, message):
    with pytest.raises(ValueError, match=message):
        PatchDictionaryMap(**params).fit(images.reshape(-1, 64))


def test_other_images_are_refused(images):
    model = PatchDictionaryMap(4, **SMALL).fit(images[:50])
    with pytest.raises(ValueError, match="have the shape"):
        model.transform(images[:3].reshape(3, 4, 16))
    with pytest.raises(ValueError, match="contrast"):
        PatchDictionaryMap(4, **SMALL).fit(np.ones((5, 8, 8)))


@pytest.mark.rounding
def test_threads_and_blocks_change_nothing(images):
    model = PatchDictionaryMap(4, **SMALL)
    with options(n_threads=1):
        expected = model.fit(images[:300]).transform(images)
    with options(n_threads=3):
        found = model.fit(images[:300]).transform(images)
    np.testing.assert_array_equal(found, expected)
    for setting in ({"block_rows": 7}, {"memory": "20MB"}):
        with options(**setting):
            np.testing.assert_array_equal(model.transform(images), expected)


def test_files_keep_every_bit(images, tmp_path):
    model = PatchDictionaryMap(4, coder="triangle", grid=(1, 2), **SMALL)
    model.fit(images[:100])
    save(model, tmp_path / "patches.kernlets")
    loaded = load(tmp_path / "patches.kernlets")
    np.testing.assert_array_equal(loaded.transform(images), model.transform(images))


def test_patches_say_more_than_pixels(digits):
    """With a linear classifier behind: the oldest result of the method."""
    ridge = RidgeClassifierCV(np.logspace(-3, 3, 7))
    model = make_pipeline(PatchDictionaryMap(4, random_state=0), ridge)
    patches = model.fit(digits.X_train, digits.y_train)
    pixels = RidgeClassifierCV(np.logspace(-3, 3, 7))
    pixels.fit(digits.X_train, digits.y_train)
    X, y = digits.X_test, digits.y_test
    assert patches.score(X, y) > pixels.score(X, y) + 0.03
