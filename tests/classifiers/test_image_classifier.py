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
    load,
    save,
)
from kernlets.cli import app
from kernlets.datasets import add_noise, drop_pixels

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


def test_command_line(tmp_path, monkeypatch):
    """Folders of images that are not square, with a folder for each class."""
    Image = pytest.importorskip("PIL.Image")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for number in range(24):
        folder = tmp_path / "faces" / "ab"[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = 99 * rng.random((10, 8)) + 99 * (np.arange(8) % (2 + number % 2) == 0)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{number}.png")
    options = "--method image-classifier --scale none --set image_shape=10,8"
    command = f"fit faces -m faces.kernlets {options} --set robust=False"
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 0, done.output
    assert "of patches" in done.output
    done = CliRunner().invoke(app, ["score", "faces.kernlets", "faces"])
    assert "1.0000" in done.output
