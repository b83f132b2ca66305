"""Images labelled in one line, whole and damaged."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier
from typer.testing import CliRunner

from kernlets import (
    KSVD,
    OMP,
    ImageClassifier,
    PatchDictionaryMap,
    datasets,
    explain,
    load,
    save,
)
from kernlets.base.pipelines import last_step
from kernlets.cli import app
from kernlets.datasets import add_noise, drop_pixels
from kernlets.images.left_out import without_patches
from kernlets.images.pooling import cell_weights

SMALL = PatchDictionaryMap(3, KSVD(24, coder=OMP(1), max_iter=3), grid=3)


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits")


@pytest.fixture(scope="module")
def model(digits):
    return ImageClassifier(SMALL, random_state=0).fit(digits.X_train, digits.y_train)


@pytest.fixture(scope="module")
def plain(digits):
    model = ImageClassifier(SMALL, robust=False, random_state=0)
    return model.fit(digits.X_train, digits.y_train)


@pytest.mark.parametrize(("kind", "gain"), [("noise", 0.05), ("lost", 0.2)])
def test_damaged_images_are_labelled_better(model, plain, digits, kind, gain):
    X, y = digits.X_test, digits.y_test
    if kind == "noise":
        damaged = add_noise(X, float(digits.X_train.std()), 1)
    else:
        damaged = drop_pixels(X, 0.5, 1)
    assert model.score(damaged, y) > plain.score(damaged, y) + gain


def test_half_of_the_pixels_suffice(model, plain, digits):
    holed = drop_pixels(digits.X_test, 0.5, 1, np.nan)
    filled = np.where(np.isnan(holed), digits.X_train.mean(axis=0), holed)
    expected = plain.score(filled, digits.y_test)
    assert plain.score(holed, digits.y_test) > expected + 0.25
    assert model.score(holed, digits.y_test) > expected + 0.25


def test_damage_of_others_costs_nothing(model, plain, digits):
    assert plain.damaged_classifier_ is None
    accuracy = plain.score(digits.X_test, digits.y_test)
    assert accuracy > 0.97
    assert model.score(digits.X_test, digits.y_test) > accuracy - 0.01
    beside = digits.X_test[:20].copy()
    beside[::2] = add_noise(beside[::2], 1.0, 0)
    found, expected = map(model.decision_function, (beside, digits.X_test[:20]))
    np.testing.assert_array_equal(found[1::2], expected[1::2])


def test_large_images_are_shrunk_by_averages(rng):
    y = np.arange(40) % 2
    images = rng.random((40, 90, 62))
    images[y == 1, 30:60] += 1
    model = ImageClassifier(SMALL, robust=False, random_state=0).fit(images, y)
    assert model.image_shape_ == (90, 62, 1) and model._small_shape == (30, 21, 1)
    small = model._shrunk(images.reshape(40, -1)).reshape(40, 30, 21)
    np.testing.assert_allclose(
        small[:, :, 0], images[:, :, :3].reshape(40, 30, 3, 3).mean(axis=(2, 3))
    )
    np.testing.assert_allclose(small[0, 5, 1], images[0, 15:18, 2:6].mean())
    holed = images.copy()
    holed[0, 15:17, :] = np.nan
    found = model._shrunk(holed.reshape(40, -1)).reshape(40, 30, 21)
    np.testing.assert_allclose(found[0, 5, 0], images[0, 17, :3].mean())
    assert model.score(images, y) == 1


def test_many_zeros_are_missing_pixels(rng):
    images = rng.random((30, 10, 10)) + 1
    y = (images[:, 0, 0] > 1.5).astype(int)
    model = ImageClassifier(SMALL, robust=False, random_state=0).fit(images, y)
    lost = drop_pixels(images.reshape(30, -1), 0.3, 0)
    missing = np.where(lost == 0, np.nan, lost)
    expected = model.decision_function(missing)
    np.testing.assert_array_equal(model.decision_function(lost), expected)


def test_colours(rng):
    y = np.arange(30) % 3
    images = 0.2 * rng.random((30, 9, 9, 3))
    for c in range(3):  # stripes of one colour
        images[y == c, ::3, :, c] += 1
    model = ImageClassifier(SMALL, random_state=0).fit(images, y)
    assert model.image_shape_ == (9, 9, 3)
    assert model.score(images, y) == 1


def test_other_classifiers_read_the_features(digits):
    X, y = digits.X_train[:200], digits.y_train[:200] < 5  # two classes
    model = ImageClassifier(SMALL, RidgeClassifier(), random_state=0).fit(X, y)
    assert model.score(digits.X_test, digits.y_test < 5) > 0.85
    with pytest.raises(ValueError, match="have the shape"):
        model.predict(np.ones((2, 4, 16)))


def test_files(model, digits, tmp_path):
    save(model, tmp_path / "images.kernlets")
    loaded = load(tmp_path / "images.kernlets")
    damaged = drop_pixels(digits.X_test[:30], 0.5, 0, np.nan)
    expected = model.decision_function(damaged)
    np.testing.assert_array_equal(loaded.decision_function(damaged), expected)


def test_probabilities_of_whole_and_damaged_images(model, digits):
    images = digits.X_test[:40].copy()
    images[::2] = drop_pixels(images[::2], 0.5, 0, np.nan)
    probabilities = model.predict_proba(images)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    winners = model.classes_[probabilities.argmax(axis=1)]
    np.testing.assert_array_equal(winners, model.predict(images))
    features = model.patches_.transform(model._shrunk(images[1::2]))
    expected = model.classifier_.predict_proba(features)
    np.testing.assert_allclose(probabilities[1::2], expected, rtol=1e-4, atol=1e-6)
    assert not hasattr(ImageClassifier(SMALL, RidgeClassifier()), "predict_proba")


def margin(model, features, label):
    scores = model.classifier_.decision_function(features)
    winner = np.flatnonzero(model.classes_ == label)[0]
    return scores[:, winner] - np.delete(scores, winner, axis=1).max(axis=1)


def test_weights_of_atoms_are_the_margins_without_them(plain, digits):
    x = digits.X_test[3]
    explanation = explain(plain, x)
    assert explanation.label == plain.predict(x[None])[0]
    scores = plain.decision_function(x[None])[0]
    np.testing.assert_allclose(explanation.scores, scores, rtol=1e-5)
    features = plain.patches_.transform(x[None])
    use, n_atoms = explanation.atoms[0], len(plain.patches_.components_)
    left_out = features.reshape(9, 2, n_atoms).copy()  # cells, signs, atoms
    left_out[:, :, use.atom] = 0
    whole, without = (
        margin(plain, f.reshape(1, -1), explanation.label) for f in (features, left_out)
    )
    np.testing.assert_allclose(use.weight, whole - without, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "max", "gaussian"])
def test_features_without_a_patch_are_those_of_a_loop(digits, pooling):
    patches = PatchDictionaryMap(
        3, KSVD(8, coder=OMP(1), max_iter=2), grid=(1, 2), pooling=pooling, padding=1
    ).fit(digits.X_train[:200])
    groups = without_patches(patches, digits.X_test[:1])
    assert groups.side == 1 and groups.grid == (8, 8) and len(groups.corners) == 64
    framed = np.pad(digits.X_test[0].reshape(8, 8), 1, mode="edge")
    atoms, codes = patches.patch_learner_.components_, np.zeros((8, 8, 16))
    for i in range(8):
        for j in range(8):
            patch = framed[i : i + 3, j : j + 3].reshape(1, -1)
            (corr,) = patches.whitening_.transform(patch) @ atoms.T
            codes[i, j] = np.maximum(np.concatenate([corr, -corr]) - 0.5, 0)
    codes[2, 5] = 0
    cells = []
    for g in (1, 2):
        for down in cell_weights(8, g, pooling):
            for across in cell_weights(8, g, pooling):
                weights = np.outer(down, across)[..., None]
                inside = codes[np.outer(down, across) > 0]
                pooled = inside.max(axis=0) if pooling == "max" else 0
                cells.append(
                    pooled if pooling == "max" else (weights * codes).sum(axis=(0, 1))
                )
    found = groups.features[groups.corners.index((2, 5))]
    np.testing.assert_allclose(found, np.concatenate(cells), atol=1e-4)


def test_the_map_shows_where_the_classes_differ(rng):
    """Images of noise, with a cross in one corner or none."""
    images = 0.1 * rng.random((60, 20, 20)).astype(np.float32)
    y = np.arange(60) % 2
    images[y == 1, 13, 10:17] = images[y == 1, 10:17, 13] = 1
    model = ImageClassifier(robust=False, random_state=0).fit(images, y)
    explanation = explain(model, images[1])
    assert explanation.label == 1 and explanation.score_map.shape == (20, 20)
    row, column = np.unravel_index(explanation.score_map.argmax(), (20, 20))
    assert 8 <= row <= 18 and 8 <= column <= 18
    inside = explanation.score_map[8:19, 8:19].sum()
    assert inside > 0.6 * np.abs(explanation.score_map).sum()
    assert f"around row {row}, column {column} of 20 x 20 pixels" in str(explanation)
    with pytest.raises(ValueError, match=r"or of an image of \(20, 20\) pixels"):
        explain(model, images[1, 1:])
    flat = explain(model, images[1].reshape(-1))
    np.testing.assert_array_equal(flat.score_map, explanation.score_map)


def test_maps_of_large_damaged_and_colored_images(rng):
    y = np.arange(30) % 3
    images = 0.2 * rng.random((30, 50, 44, 3))
    for c in range(3):
        images[y == c, ::5, :, c] += 1
    model = ImageClassifier(SMALL, random_state=0).fit(images, y)
    images[4, :10, :10] = np.nan
    explanation = explain(model, images[4])
    assert explanation.image.shape == (50, 44, 3)
    assert explanation.score_map.shape == (50, 44)
    assert np.isfinite(explanation.score_map).all()
    assert "<img" in explanation._repr_html_()


def write_faces(folder, sizes):
    """Write images of two classes, which differ in the distance of their stripes."""
    Image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for number, (height, width) in enumerate(sizes):
        (folder / "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
        stripes = np.arange(8) % (2 + 2 * (number % 2)) == 0
        pixels = 99 * rng.random((10, 8)) + 99 * stripes
        picture = Image.fromarray(pixels.astype(np.uint8)).convert("RGB")
        picture.resize((width, height)).save(
            folder / "ab"[number % 2] / f"{number}.png"
        )


def run(command):
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 0, done.output
    return done


def test_command_line(tmp_path, monkeypatch):
    """Folders of images of several sizes, with a folder for each class."""
    monkeypatch.chdir(tmp_path)
    write_faces(tmp_path / "faces", [(10 + n % 3, 8) for n in range(24)])
    write_faces(tmp_path / "new", [(22, 16)] * 6)
    done = run("fit faces -m faces.kernlets --set robust=False")
    assert "method    image-classifier (images with labels" in done.output
    assert "images    11x8 pixels" in done.output and "of patches" in done.output
    assert "faces: images have 3 sizes" in done.stderr and "11x8" in done.stderr
    assert "1.0000" in run("score faces.kernlets faces").output
    assert "of 6" in run("score faces.kernlets new").output
    assert load("faces.kernlets").image_shape_ == (11, 8, 1)
    assert "proba_a" in run("predict faces.kernlets new --proba").output
    assert "patches that speak" in run("explain faces.kernlets new").output
    assert "| images | 11x8 pixels |" in run("info faces.kernlets --card").output


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ("", "ImageClassifier"),
        ("--color", "ImageClassifier"),
        ("--atoms 3", "ResidualClassifier"),
        ("--method lkdl", "ResidualClassifier"),
        ("--unsupervised", "KSVD"),
        ("--method outliers --unsupervised", "DictionaryOutlierDetector"),
    ],
)
def test_the_method_of_a_folder(tmp_path, monkeypatch, options, name):
    monkeypatch.chdir(tmp_path)
    write_faces(tmp_path / "faces", [(9, 8)] * 24)
    write_faces(tmp_path / "new", [(12, 9)] * 4)
    run(f"fit faces -m faces.kernlets {options}")
    model = load("faces.kernlets")
    assert type(last_step(model)).__name__ == name
    assert model.n_features_in_ == 72 * (3 if options == "--color" else 1)
    run("score faces.kernlets new")  # images are resized to those of the fit
